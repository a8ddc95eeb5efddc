"""A unit that cannot be shown has the reason in place of its numbers, in each form."""

from __future__ import annotations

import json

import pytest
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Prediction
from rlm_lsp.rendering import json_rows, labels
from rlm_lsp.rendering.agent_answers import unit_lines
from rlm_lsp.rendering.json_rows import unit_row
from rlm_lsp.rendering.prediction_cells import cost_rows

pytestmark = pytest.mark.usefixtures("lenient")
REASON = "the analysis of this text failed (OverflowError)"


@pytest.fixture
def analysed() -> AnalysedUnit:
    [unit] = Analyser().analyse(ParsedSource(b"def f(values):\n    return sorted(values)\n", "python"))
    return unit


@pytest.fixture
def prediction() -> Prediction:
    return Prediction("call", "latency", None, {}, "model", 1e-6, (), 0.0, False)


def overflow(*arguments: object) -> str:
    raise OverflowError("cannot convert float infinity to integer")


def test_a_row_that_cannot_be_made_has_the_reason(
    analysed: AnalysedUnit, prediction: Prediction, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = json_rows.work_fields
    monkeypatch.setattr(
        json_rows, "work_fields", lambda work, *rest: overflow() if work is not None else real(work, *rest)
    )
    row = unit_row("a.py", analysed, prediction)
    assert (row["qualname"], row["median"], row["abstained"]) == ("f", None, REASON)
    assert row["analysis_failed"] == "OverflowError"
    json.dumps(row, allow_nan=False)


def test_a_line_that_cannot_be_made_has_the_reason(
    analysed: AnalysedUnit, prediction: Prediction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "marked_median", lambda answer: overflow() if answer.median else "")
    [row] = cost_rows("a.py", analysed, [prediction])
    assert (row.where, row.unit, row.costs, row.note) == ("a.py:1", "f", {"latency": "-"}, REASON)
    assert unit_lines("a.py", analysed, [prediction]) == [f"a.py:1 f: no prediction because {REASON}"]


def test_nothing_is_said_where_nothing_failed(analysed: AnalysedUnit, prediction: Prediction) -> None:
    assert unit_row("a.py", analysed, prediction)["analysis_failed"] is None
    [row] = cost_rows("a.py", analysed, [prediction])
    assert "failed" not in row.note
