"""A sample of the random edits, with each position encoding."""

from __future__ import annotations

import pytest

from . import random_edits

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio]
_EDITS = 2_000  # the command line makes a million


@pytest.mark.parametrize("encoding", random_edits.ENCODINGS)
async def test_answers_after_random_edits_are_those_for_a_fresh_document(encoding: str) -> None:
    report = await random_edits.run_session(_EDITS, 30_000 + random_edits.ENCODINGS.index(encoding))
    assert report.differences == []
    assert report.tracebacks == 0
    assert report.edits == _EDITS
    # Most comparisons had something to compare.
    assert report.rows > 3 * report.comparisons
