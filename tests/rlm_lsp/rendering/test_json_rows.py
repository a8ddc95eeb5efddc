"""One prediction as JSON fields in SI units, also where the model abstains."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from rlm_core.inference.anchoring import anchored_prediction, measured_prediction
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import (
    Amount,
    CalibrationSource,
    Cause,
    CauseKind,
    CostFacts,
    Growth,
    GrowthClass,
    GrowthEstimate,
    Prediction,
    Wait,
    WaitKind,
    WorkFacts,
)
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.json_rows import prediction_fields, unit_row

from tests.fakes import NO_NUMBER
from tests.rlm_core.inference.test_anchoring import AFTER, cost, ratio_of

MakePrediction = Callable[..., Prediction]


def test_an_answer_has_its_median_band_and_unit(make_prediction: MakePrediction) -> None:
    fields = prediction_fields(make_prediction(1e-6, 4e-6, median=2e-6))
    assert (fields["unit"], fields["median"], fields["low"], fields["high"]) == ("s", 2e-6, 1e-6, 4e-6)
    assert fields["coverage"] == 0.8
    assert json.loads(json.dumps(fields)) == fields


def test_an_uncalibrated_interval_is_no_band(make_prediction: MakePrediction) -> None:
    prediction = make_prediction()
    assert prediction_fields(prediction)["calibrated"] is True
    own = CalibrationSource(uncalibrated=True)
    raw = replace(prediction, bands=tuple(replace(band, source=own) for band in prediction.bands))
    assert prediction_fields(raw)["calibrated"] is False
    assert math.isnan(raw.above(0.0))
    assert prediction_fields(make_prediction(abstained=NO_NUMBER))["calibrated"] is None


def test_an_abstention_has_a_reason_and_no_numbers(make_prediction: MakePrediction) -> None:
    fields = prediction_fields(make_prediction(metric="memory", abstained=NO_NUMBER, workload={"M": "64"}))
    assert [fields[name] for name in ("median", "low", "high", "coverage")] == [None] * 4
    assert (fields["unit"], fields["abstained"], fields["workload"]) == ("B", reason(NO_NUMBER), {"M": "64"})


def test_a_row_has_the_file_and_the_line_of_the_name_of_the_unit(make_prediction: MakePrediction) -> None:
    prediction = make_prediction()
    [unit] = Analyser().analyse(ParsedSource(b"\n\ndef f(n):\n    return n\n", "python"))
    row = unit_row("a.py", unit, prediction)
    assert (row["file"], row["line"], row["qualname"]) == ("a.py", 3, "f")
    assert {name: row[name] for name in prediction_fields(prediction)} == prediction_fields(prediction)


def test_growth_has_its_class_probability_and_inputs(make_prediction: MakePrediction) -> None:
    grown = make_prediction(growth=GrowthEstimate("n log n", 0.8, ("values",)))
    assert prediction_fields(grown)["growth"] == {
        "class": "n log n",
        "probability": 0.8,
        "sizes": ["values"],
        "in_worst_case": False,
    }
    assert prediction_fields(make_prediction())["growth"] is None


def test_a_row_has_what_the_text_says_with_lines_of_the_file(make_prediction: MakePrediction) -> None:
    [unit] = Analyser().analyse(ParsedSource(b"\n\ndef f(n):\n    return n\n", "python"))
    waits = (Wait(WaitKind.TIME, 1, "sleep", Amount(0.0, 1.0, math.inf), 0.5), Wait(WaitKind.NETWORK, 0, "get"))
    pattern = Cause(CauseKind.PATTERN, 1, "a*a*$", 1e9, worst_case=Growth("", 3.0))
    latency = CostFacts(causes=(Cause(CauseKind.LOOP, 1, "for i in x", 0.3, 100.0), pattern))
    memory = CostFacts(causes=(Cause(CauseKind.ALLOCATION, 0, "", 1e6),))
    analysed = replace(unit, code=replace(unit.code, work=WorkFacts(latency, memory, waits, endless=1)))
    row = unit_row("a.py", analysed, make_prediction(1.2, 1.6))
    assert row["waits"] == [
        {
            "kind": "time",
            "line": 4,
            "call": "sleep",
            "seconds": {"least": 0.0, "likely": 1.0, "most": None},
            "share": 0.5,
            "per": [],
            "on_error": False,
            "each": None,
        },
        {
            "kind": "network",
            "line": 3,
            "call": "get",
            "seconds": None,
            "share": 1.0,
            "per": [],
            "on_error": False,
            "each": None,
        },
    ]
    assert row["endless"] == 4
    assert row["causes"] == [
        {"kind": "loop", "line": 4, "name": "for i in x", "amount": 0.3, "count": 100.0, "worst_case": None},
        {"kind": "pattern", "line": 4, "name": "a*a*$", "amount": None, "count": None, "worst_case": "n^3"},
    ]
    [cause] = unit_row("a.py", analysed, make_prediction(1e6, 3e6, metric="memory"))["causes"]
    assert (cause["kind"], cause["line"], cause["amount"], cause["count"]) == ("allocation", 3, 1e6, None)
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    # Parts of a number are not more than it, and a number that the waits explain has no others.
    [cause, _] = unit_row("a.py", analysed, make_prediction(1.05, 1.15))["causes"]
    assert cause["amount"] == pytest.approx(0.1)
    [cause] = unit_row("a.py", analysed, make_prediction(0.5, 0.9))["causes"]
    assert cause["worst_case"] == "n^3"


@pytest.mark.parametrize(("growth_class", "probability"), [("n", 0.79), ("1", 0.5), ("other", 0.99)])
def test_growth_that_is_not_certain_enough_is_not_in_json(
    make_prediction: MakePrediction, growth_class: GrowthClass, probability: float
) -> None:
    estimate = GrowthEstimate(growth_class, probability, ("xs",))
    assert prediction_fields(make_prediction(growth=estimate))["growth"] is None
    certain = replace(estimate, growth_class="n", probability=0.8)
    fields = {"class": "n", "probability": 0.8, "sizes": ["xs"], "in_worst_case": False}
    assert prediction_fields(make_prediction(growth=certain))["growth"] == fields


def test_a_unit_without_facts_has_the_same_fields(make_prediction: MakePrediction) -> None:
    [unit] = Analyser().analyse(ParsedSource(b"def f(n):\n    return n\n", "python"))
    row = unit_row("a.py", replace(unit, code=replace(unit.code, work=None)), make_prediction())
    assert (row["waits"], row["endless"], row["causes"], row["growth"]) == ([], None, [], None)


def test_a_number_names_its_source_and_basis(make_prediction: MakePrediction) -> None:
    predicted = prediction_fields(make_prediction())
    assert (predicted["source"], predicted["measured"]) == ("predicted", None)
    measured = prediction_fields(measured_prediction(make_prediction(), cost()))
    assert (measured["source"], measured["median"], measured["low"], measured["high"]) == ("measured", 2e-6, 1e-6, 8e-6)
    assert measured["measured"]["date"] == "2026-11-01"
    assert measured["measured"]["ratio"] is None
    assert measured["measured"]["predicted"]["median"] == predicted["median"]
    anchored = prediction_fields(anchored_prediction(AFTER, make_prediction(), cost(), ratio_of(2.0)))
    assert (anchored["source"], anchored["measured"]["median"], anchored["measured"]["ratio"]) == (
        "anchored",
        2e-6,
        2.0,
    )
    for fields in (predicted, measured, anchored):
        assert json.loads(json.dumps(fields, allow_nan=False)) == fields
