"""A sample of the storms."""

from __future__ import annotations

import pytest

from . import storms

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio]


@pytest.mark.parametrize("name", storms.STORMS)
async def test_in_a_storm_every_request_has_one_answer_and_none_is_stale(name: str) -> None:
    report = await storms.STORMS[name](400, 1)
    assert (report.lost, report.answered_twice, report.stale, report.tracebacks) == (0, 0, 0, 0)
    assert report.other_errors == []
    assert report.requests == 400
    # The storm was one: requests were ended.
    assert name == "opens and closes" or report.cancelled + report.modified > 20
