"""The report as a page: what the rows of its tables say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rlm_core.inference.cost_curve import curve_of
from rlm_core.types import Anchor, SizedCalls, Wait, WaitKind, WorkFacts
from rlm_lsp.rendering.curve_plot import curve_svg
from rlm_lsp.rendering.report_page import ReportContent, page

from tests.rlm_core.inference.test_anchoring import cost
from tests.rlm_core.training.evaluation.test_measured_report import answered

pytestmark = pytest.mark.timeout(60)


def test_functions_that_were_measured_at_several_sizes_have_a_plot() -> None:
    value = answered(10.0)
    sized = (SizedCalls({"items": 10.0}, 1e-5, 4), SizedCalls({"items": 100.0}, 1e-4, 4))
    anchor = Anchor(replace(cost(metric=value.row.metric), sized=sized))
    measured = replace(value, row=replace(value.row, code=replace(value.row.code, measured=(anchor,))))
    text = page(ReportContent([measured], [], {}, ()))
    assert "<h2>Cost by size</h2>" in text
    [plot] = re.findall(r'<svg class="plot".*?</svg>', text, re.DOTALL)
    curve = curve_of(anchor.cost)
    assert curve is not None
    assert plot == curve_svg(curve)
    assert "<h2>Cost by size</h2>" not in page(ReportContent([value], [], {}, ()))


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
