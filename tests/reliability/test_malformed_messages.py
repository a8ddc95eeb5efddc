"""A sample of the malformed messages."""

from __future__ import annotations

import pytest

from . import malformed_messages

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio]


async def test_the_server_survives_malformed_messages_and_answers_every_request() -> None:
    report = await malformed_messages.run_session(3_000, 7)
    assert report.deaths == 0
    assert report.unanswered == []
    assert report.answered_twice == []
    assert report.tracebacks == 0
    # A second is the goal on an idle machine; CI's may be busy.
    assert report.slowest < 5
    assert report.requests > 1_000
