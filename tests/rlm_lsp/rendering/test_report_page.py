"""The report as a page: what the rows of its tables say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rlm_core.types import Wait, WaitKind, WorkFacts
from rlm_lsp.rendering.report_page import ReportContent, page

from tests.rlm_core.training.evaluation.test_measured_report import answered

pytestmark = pytest.mark.timeout(60)


def test_a_surprise_that_waits_says_so() -> None:
    surprise = answered(10.0)
    work = WorkFacts(waits=(Wait(WaitKind.NETWORK, 1, "requests.get"),))
    waiting = replace(surprise, row=replace(surprise.row, code=replace(surprise.row.code, work=work)))
    for comparison, ending in ((surprise, ""), (waiting, ", waits: network")):
        [table] = re.findall(
            r'<table class="sortable">(.*?)</table>', page(ReportContent([comparison], [], {}, ())), re.DOTALL
        )
        assert re.search(rf"[nµm]?s{ending}</td>", table)
        assert ("network" in table) == bool(ending)
