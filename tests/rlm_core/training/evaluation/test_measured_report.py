"""The numbers of the report: which measurements have a place in it, and what is counted of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rlm_core
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Band, CodeText, Prediction
from rlm_core.inference.adaptation.predictor import with_corrections
from rlm_core.inference.query_selection import queries_for
from rlm_core.measurement.known import Here, KnownMeasurements
from rlm_core.queries.analysis import Analyser
from rlm_core.source.units import read_source
from rlm_core.training.evaluation.measured_report import (
    Comparison,
    MeasuredRow,
    MeasuredRows,
    calibration,
    compare,
    coverage,
    coverage_by_group,
    rank_correlation,
    rows_from_store,
    surprises,
    task_summaries,
)
from rlm_core.types import LEVELS, CalibrationSource, MeasuredPrediction

from tests.fakes import quantiles
from tests.rlm_core.measurement.test_store import measurement

from .report_rows import write_shop

pytestmark = pytest.mark.timeout(60)

CODE = CodeText("def f(): pass", "python", "call")


def answered(value: float, median: float = 1e-3, group: str = "shop", floor: float = 5e-8) -> Comparison:
    """A value beside a log-normal prediction whose 80 % band is a factor of 2 up and down."""
    row = MeasuredRow("f", "shop.py:1", group, (group, "f"), CODE, "latency", None, value, value, value)
    levels = quantiles(median)
    band = Band(median / 2, median * 2, 0.8, 40, 400, CalibrationSource("call"))
    return Comparison(row, Prediction("call", "latency", None, {}, "test", median, (band,), floor, False, None, levels))


def test_the_store_gives_a_row_a_unit_and_metric_with_its_text(tmp_path: Path) -> None:
    found = rows_from_store(write_shop(tmp_path).all(), "a processor")
    assert len(found.rows) == 12
    assert not found.left_out
    by_name = {(row.name, row.metric): row for row in found.rows}
    row = by_name["pairs", "latency"]
    assert row.path == ("shop", "deep", "find", "pairs")
    assert row.location == "shop/deep/find.py:1"
    assert row.code.text.startswith("def pairs(items):")
    assert (row.low, row.value, row.high) == (1.5e-6, 3e-6, 6e-6)
    # Of a program's inputs, the most expensive.
    program = by_name["Solution", "latency"]
    assert (program.value, program.code.basis, program.path) == (0.08, "program", ("judge", "square", "Solution"))


def test_predictions_are_those_of_the_hover_of_a_measured_function(tmp_path: Path) -> None:
    store, predictor = write_shop(tmp_path), with_corrections(rlm_core.load())
    known = KnownMeasurements(store, here=lambda: Here("a processor"))

    def medians(found: MeasuredRows) -> dict[tuple[str, str], float]:
        compared, _ = compare(predictor, found.rows)
        return {(one.row.name, one.row.metric): one.prediction.median or 0.0 for one in compared if one is not None}

    path = tmp_path / "shop" / "cart.py"
    in_hover = {}
    for unit in Analyser(measured=known).analyse(read_source(path), path):
        for query in queries_for(predictor, unit.code):
            [[answer]] = predictor.predict([unit.code], [[query]])
            assert isinstance(answer, MeasuredPrediction)
            in_hover[unit.unit.qualname, query.metric] = answer.predicted.median
    in_report = medians(rows_from_store(store.all(), "a processor", known))
    assert {key: in_report[key] for key in in_hover} == in_hover
    # What was measured of the functions around them makes a difference.
    alone = medians(rows_from_store(store.all(), "a processor"))
    assert all(alone[key] != in_report[key] for key in in_hover if key[1] == "latency")


def test_what_has_no_place_is_counted_by_reason(tmp_path: Path) -> None:
    store = write_shop(tmp_path)
    (tmp_path / "shop" / "cart.py").write_text("def total(prices):\n    return 0\n")
    store.add(
        [
            measurement(qualname="g", kind="generator"),
            measurement(qualname="d", ok=False),
            measurement(qualname="x", path=""),
        ]
    )
    found = rows_from_store(store.all(), "a processor")
    assert len(found.rows) == 8
    assert found.left_out == {
        "the file is missing or has changed": 4,
        "generators and coroutines are measured per resume": 1,
        "the run's calibration was disturbed": 1,
        "imported from another machine, without its source text": 1,
    }


def test_this_device_counts_before_a_newer_measurement_on_another(tmp_path: Path) -> None:
    store = write_shop(tmp_path)
    [mine] = [one for one in store.all() if one.qualname == "total" and one.metric == "latency"]
    store.add([replace(mine, device="another", median=9.0, high=9.0, measured_at="2099-01-01T00:00:00+00:00", run="r")])
    for device, value in (("a processor", mine.median), ("another", 9.0)):
        found = rows_from_store(store.all(), device)
        assert {row.value for row in found.rows if (row.name, row.metric) == ("total", "latency")} == {value}


def test_the_shipped_model_answers_rows_of_the_store(tmp_path: Path) -> None:
    rows = rows_from_store(write_shop(tmp_path).all(), "a processor").rows
    predictor = rlm_core.load(threads=1)
    found, reasons = compare(predictor, rows)
    assert len(found) == len(rows)
    assert sum(one is None for one in found) == sum(reasons.values())
    answered = [one for one in found if one is not None]
    assert len(answered) >= 10
    for one in answered:
        queries = predictor.default_queries(one.row.code.basis, "python")
        [[alone]] = predictor.predict([one.row.code], [[query for query in queries if query.metric == one.row.metric]])
        assert alone == one.prediction


def test_a_value_at_the_median_is_below_half_of_the_quantiles() -> None:
    [(name, curve)] = calibration([answered(1e-3)]).items()
    assert name == "call latency"
    assert dict(curve)[0.4] == 0.0
    assert dict(curve)[0.5] == 0.5  # equal counts half
    assert dict(curve)[0.6] == 1.0


def test_values_drawn_from_the_prediction_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    spread = np.log(2) / 1.2815515655446004
    rows = [answered(float(1e-3 * np.exp(spread * rng.standard_normal()))) for _ in range(4000)]
    [curve] = calibration(rows).values()
    assert max(abs(level - share) for level, share in curve) < 0.03
    assert [level for level, _ in curve] == list(LEVELS)
    [one] = coverage_by_group(rows)
    assert one.low < 0.8 < one.high
    assert one.rows == 4000


def test_coverage_is_by_group_with_most_rows_first() -> None:
    rows = [answered(1e-3, group="a"), answered(9e-3, group="b"), answered(1e-3, group="b"), answered(1e-3, group="b")]
    found = coverage_by_group(rows)
    assert [(one.name, one.rows, round(one.share, 2)) for one in found] == [
        ("b, call latency", 3, 0.67),
        ("a, call latency", 1, 1.0),
    ]
    assert len(coverage_by_group(rows, 1)) == 1


@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_the_interval_of_a_coverage_holds_it(inside: list[bool]) -> None:
    found = coverage("x", [answered(1e-3 if one else 1.0) for one in inside])
    assert 0 <= found.low <= found.share + 1e-12
    assert found.share - 1e-12 <= found.high <= 1
    assert found.share == pytest.approx(sum(inside) / len(inside))


def test_surprises_are_outside_the_band_the_furthest_first() -> None:
    rows = [answered(1.5e-3), answered(1e-5), answered(1e-2), answered(0.0)]
    found = surprises(rows)
    # Nothing is below what the measurement resolves.
    assert [round(one.factor, 6) for one in found] == [5e-5, 0.01, 10.0]
    assert [one.is_covered for one in rows] == [True, False, False, False]
    assert surprises(rows, 1) == found[:1]


def test_a_task_is_summed_up() -> None:
    rows = [answered(value, median) for value, median in ((1e-3, 1e-3), (4e-3, 2e-3), (9e-3, 3e-3), (1.6e-2, 4e-3))]
    [one] = task_summaries(rows)
    assert (one.name, one.rows, one.groups) == ("call latency", 4, 1)
    assert one.spearman == pytest.approx(1.0)
    assert one.error == pytest.approx(6**0.5)
    assert one.coverage == 0.5


@given(st.lists(st.integers(-5, 5), min_size=3, max_size=30))
def test_ranks_do_not_care_for_scale(values: list[int]) -> None:
    first = np.array(values, float)
    found = rank_correlation(first, np.exp(first))
    assert found is None if len(set(values)) < 2 else found == pytest.approx(1.0)
