"""A sample of the requests to a model server."""

from __future__ import annotations

import pytest

from . import model_server

pytestmark = pytest.mark.timeout(300)


def test_hostile_requests_cost_no_client_its_answer() -> None:
    report = model_server.run(300, 5)
    assert (report.lost, report.wrong, report.tracebacks, report.ended) == (0, 0, 0, False)
    assert report.hostile > 10
    # No hostile request was answered as a good one.
    assert "200" not in report.refusals
