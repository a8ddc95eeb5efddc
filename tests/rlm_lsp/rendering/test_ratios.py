"""One ratio has one text wherever it is shown: hint, hover, finding, explanation, coding agent and report."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
import rlm_lsp
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core import Band, Prediction
from rlm_core.inference.anchoring import anchored_prediction
from rlm_core.inference.explain import Explanation, StatementEffect
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CalibrationSource, CostRatio, CpuScale, Query
from rlm_lsp.budgets.syntax import Budget
from rlm_lsp.rendering import labels
from rlm_lsp.rendering.abstentions import scaling
from rlm_lsp.rendering.agent_answers import ratio_line
from rlm_lsp.rendering.explanations import explanation_text
from rlm_lsp.rendering.finding_messages import over_budget_message, regression_message
from rlm_lsp.rendering.hover import head_words, measured_note
from rlm_lsp.rendering.report_page import ReportContent, page

from tests.rlm_core.inference.test_anchoring import AFTER, cost, ratio_of
from tests.rlm_core.training.evaluation.test_measured_report import answered

pytestmark = pytest.mark.timeout(120)

[ANALYSED] = Analyser().analyse(ParsedSource(b"def f(n):\n    return n\n", "python"))
SOURCE = CalibrationSource("changes/call/latency")
RATIOS = st.floats(-8, 8).map(lambda exponent: 10**exponent) | st.floats(1e-9, 2000)
# Digits of a ratio: no power of ten, no thousands separator.
WRITTEN = re.compile(r"(?:>999|<0\.001|\d+(?:\.\d+)?)×")


def change_of(ratio: float) -> CostRatio:
    """A ratio whose band has no width."""
    band = Band(ratio, ratio, 0.8, 100, 1000, SOURCE)
    return replace(ratio_of(1.0), ratio=ratio, bands=(band,))


def ratios_in(text: str) -> list[str]:
    """The ratios of a text as ``labels.times`` writes them."""
    text = text.replace("over ", ">").replace("under ", "<")
    return [found for found in re.findall(r"[<>]?[\d.,e+-]*\d×", text) if found != "1.5×"]


@given(RATIOS)
def test_a_ratio_has_the_same_text_on_every_path(make_prediction: Callable[..., Prediction], ratio: float) -> None:
    written, change, answer = labels.times(ratio), change_of(ratio), make_prediction()
    anchored = replace(anchored_prediction(AFTER, answer, cost(), ratio_of(1.0)), ratio=change)
    explanation = Explanation(answer, (StatementEffect(1, 1, "return n", ratio),))
    texts = {
        "band": labels.ratio_band(change.bands[0]),
        "regression": regression_message(ANALYSED.unit, [change], [], "HEAD", 1.5),
        "over budget": over_budget_message(ANALYSED.unit, Budget("latency", 1e-6), anchored, 0.9).rpartition("date")[2],
        "measured": measured_note(anchored),
        "explanation": explanation_text(ANALYSED, Query("latency"), explanation, {1: 1}),
    }
    if ratio != 1:
        texts["agent"] = ratio_line("f", change, answer, answer)
        texts["against HEAD"] = head_words("changed", [change])
    for path, text in texts.items():
        assert set(ratios_in(text)) == {written} - {"1.5×"}, (path, text)
    if ratio >= 1:
        assert labels.mark(ratio) == f"▲ {written}"
    assert scaling(replace(SOURCE, cpu_scale=CpuScale(ratio, "2026-11-01"))).startswith(f"scaled by {written[:-1]} to")


@given(RATIOS)
def test_a_ratio_is_never_a_power_of_ten_and_within_rounding(ratio: float) -> None:
    written = labels.times(ratio)
    assert WRITTEN.fullmatch(written)
    if written[0] == ">":
        assert ratio >= 995
    elif written[0] == "<":
        assert ratio <= 0.00095
    else:
        assert float(written[:-1]) == pytest.approx(ratio, rel=0.051)


@given(RATIOS, RATIOS)
def test_the_ends_of_a_band_are_written_as_ratios(first: float, second: float) -> None:
    low, high = sorted((first, second))
    text = labels.ratio_band(Band(low, high, 0.8, 100, 1000, SOURCE))
    ends = text.removesuffix("×").lstrip("≥≤").split("–")
    assert set(ends) <= {labels.ratio_digits(low), labels.ratio_digits(high)}


@settings(max_examples=20)
@given(st.floats(2.5, 1e6))
def test_the_report_writes_ratios_as_the_others(factor: float) -> None:
    above = answered(1e-3 * factor)
    html = page(ReportContent([above], [], {}, ()))
    [table] = re.findall(r'<table class="sortable">(.*?)</table>', html, re.DOTALL)
    assert f"{labels.times(above.factor)} above" in unescape(table)


def test_no_other_module_writes_a_ratio() -> None:
    found = [
        (path.name, line.strip())
        for path in Path(rlm_lsp.__file__).parent.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "}×" in line and path.name != "labels.py"
    ]
    # The threshold is the setting, as the user wrote it.
    [(file, line)] = found
    assert (file, line.count("{ratio:g}×")) == ("finding_messages.py", 1)
