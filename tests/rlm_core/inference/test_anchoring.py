"""What was measured takes precedence over predictions, and carries over to a changed text by the predicted ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.anchoring import AnchoredPredictor, anchored_prediction, measured_prediction, repeat_spread
from rlm_core.inference.calibration import bands
from rlm_core.types import (
    LEVELS,
    MEASURED_FLOORS,
    MEDIAN,
    Abstention,
    AbstentionCode,
    Anchor,
    Basis,
    CalibrationSource,
    CalledFunction,
    Calls,
    CallSite,
    CodeText,
    CostFacts,
    CostRatio,
    MeasuredCost,
    MeasuredPrediction,
    Metric,
    Prediction,
    Query,
    Wait,
    WaitKind,
    WorkFacts,
)
from rlm_core.types import Amount as KnownAmount

from tests.fakes import NO_NUMBER, quantiles

BEFORE = CodeText("def f(n):\n    return n", "python", "call")
AFTER = CodeText("def f(n):\n    return sorted(range(n))", "python", "call")
SOURCE = CalibrationSource("changes/call/latency")


def cost(median: float = 2e-6, low: float = 1e-6, high: float = 8e-6, metric: Metric = "latency") -> MeasuredCost:
    return MeasuredCost(metric, median, low, high, 40, 8, "function", "a processor", "cpython-3.12", "2026-11-01")


def ratio_of(ratio: float, factor: float = 3.0) -> CostRatio:
    found = quantiles(ratio, factor)
    return CostRatio("call", "latency", "x86-64", "model", found[MEDIAN], bands(found, 50, 500, SOURCE), found)


def predicted(metric: Metric = "latency", median: float = 1e-3) -> Prediction:
    found = quantiles(median, 10)
    banded = bands(found, 50, 500, CalibrationSource("call"))
    return Prediction("call", metric, "x86-64", {}, "model", median, banded, 0.0, False, quantiles=found)


class RatioPredictor:
    """Predicts 1 ms for everything and one ratio for all pairs; counts what it is asked."""

    model_id = "ratios"

    def __init__(self, ratio: CostRatio | None) -> None:
        self.ratio, self.compared = ratio, 0

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return (Query("latency"), Query("memory"))

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ("x86-64",)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return [[predicted(query.metric) for query in line] for line in queries]

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]] | None:
        self.compared += len(pairs)
        ratio = self.ratio
        return [[ratio for _ in line] for line in queries] if ratio is not None else None

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        return prediction.median


def answers(code: CodeText, base: RatioPredictor) -> list[Prediction]:
    [line] = AnchoredPredictor(base).predict([code], [[Query("latency"), Query("memory")]])
    return line


def test_an_unchanged_text_has_what_was_measured_and_the_other_metric_what_is_predicted() -> None:
    base = RatioPredictor(ratio_of(2.0))
    latency, memory = answers(replace(AFTER, measured=(Anchor(cost()),)), base)
    assert isinstance(latency, MeasuredPrediction)
    assert latency.source == "measured"
    assert latency.band is not None
    assert (latency.median, latency.band.low, latency.band.high) == (2e-6, 1e-6, 8e-6)
    assert latency.predicted == predicted()
    assert (memory.source, memory) == ("predicted", predicted("memory"))
    assert base.compared == 0


def test_a_changed_text_has_the_measurement_times_the_ratio() -> None:
    base = RatioPredictor(ratio_of(2.0))
    latency, _ = answers(replace(AFTER, measured=(Anchor(cost(), BEFORE),)), base)
    assert latency.source == "anchored"
    assert latency.median == pytest.approx(4e-6)
    assert base.compared == 1


def test_a_wait_is_added_and_one_that_was_measured_too_is_not() -> None:
    one_ms = WorkFacts(waits=(Wait(WaitKind.TIME, 0, "time.sleep", KnownAmount(1e-3, 1e-3, 1e-3)),))
    waiting = replace(AFTER, work=one_ms)
    added, _ = answers(replace(waiting, measured=(Anchor(cost(), BEFORE),)), RatioPredictor(ratio_of(500.0)))
    assert added == predicted()
    before = replace(BEFORE, work=one_ms)
    kept, _ = answers(replace(waiting, measured=(Anchor(cost(), before),)), RatioPredictor(ratio_of(2.0)))
    assert kept.source == "anchored"


@pytest.mark.parametrize(
    ("ratio", "source"), [(ratio_of(1.5), "anchored"), (ratio_of(1.05), "measured"), (None, "measured")]
)
def test_a_text_whose_calls_have_changed_moves_only_by_a_ratio_that_is_noticed(
    ratio: CostRatio | None, source: str
) -> None:
    earlier = replace(AFTER, calls=Calls((CallSite((CalledFunction("def g(): ..."),)),)))
    latency, _ = answers(replace(AFTER, measured=(Anchor(cost(), earlier),)), RatioPredictor(ratio))
    assert latency.source == source
    assert latency.median == pytest.approx(3e-6 if source == "anchored" else 2e-6)


@pytest.mark.parametrize(
    "ratio",
    [None, CostRatio("call", "latency", None, "model", None, (), (), NO_NUMBER)],
    ids=["the predictor cannot compare", "the ratio is not known"],
)
def test_without_a_ratio_the_prediction_stays(ratio: CostRatio | None) -> None:
    latency, _ = answers(replace(AFTER, measured=(Anchor(cost(), BEFORE),)), RatioPredictor(ratio))
    assert latency == predicted()


def test_a_text_that_is_not_known_is_not_compared() -> None:
    base = RatioPredictor(ratio_of(2.0))
    latency, _ = answers(replace(AFTER, measured=(Anchor(cost(), replace(BEFORE, text="")),)), base)
    assert (latency.source, base.compared) == ("predicted", 0)


def test_a_kernel_has_what_was_measured_on_the_device_and_at_the_sizes_of_the_query() -> None:
    class Kernels(RatioPredictor):
        def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
            return [
                [replace(predicted(), basis="kernel", device=query.device, workload=query.workload) for query in line]
                for line in queries
            ]

    its = replace(cost(), kind="kernel", device="a100", workload=(("M", "64"),))
    code = CodeText("def k(): pass", "python", "kernel", measured=(Anchor(its),))
    queries = [Query("latency", "a100", {"M": "64"}), Query("latency", "a100", {"M": "32"}), Query("latency", "h100")]
    [line] = AnchoredPredictor(Kernels(None)).predict([code], [queries])
    assert [answer.source for answer in line] == ["measured", "predicted", "predicted"]


def test_a_measurement_is_shown_where_the_model_abstains() -> None:
    missing = Prediction.missing(AFTER, Query("latency"), "model", Abstention(AbstentionCode.NO_NUMBER))
    measured = measured_prediction(missing, cost())
    assert (measured.median, measured.abstained) == (2e-6, None)
    assert AnchoredPredictor(RatioPredictor(None)).percentile(measured, "python") is None


def test_an_anchored_cost_is_at_least_what_the_text_allows() -> None:
    work = WorkFacts(latency=CostFacts(known=KnownAmount(1.0, 1.0, 1.0)))
    answer = anchored_prediction(replace(AFTER, work=work), predicted(), cost(), ratio_of(2.0))
    assert answer.median is not None
    assert answer.band is not None
    assert answer.median >= 0.5
    assert answer.band.low >= 0.5


def test_a_latency_that_timing_does_not_resolve_stays_below_the_floor() -> None:
    answer = measured_prediction(predicted(), cost(1e-8, 0.0, 3e-8))
    floor = MEASURED_FLOORS["latency"]
    assert answer.band is not None
    assert (answer.median, answer.band.low, answer.band.high, answer.floor) == (0.0, 0.0, floor, floor)


AMOUNTS = st.tuples(st.floats(1e-6, 10), st.floats(1.0, 50), st.floats(1.0, 50)).map(
    lambda drawn: cost(drawn[0], drawn[0] / drawn[1], drawn[0] * drawn[2])
)


@given(AMOUNTS, st.floats(0.05, 1000), st.floats(1.001, 100))
def test_joined_bands_have_the_product_as_median_and_are_wider_than_either(
    its: MeasuredCost, ratio: float, factor: float
) -> None:
    change = ratio_of(ratio, factor)
    answer = anchored_prediction(AFTER, predicted(), its, change)
    product = its.median * ratio
    assert answer.median == pytest.approx(product if product > MEASURED_FLOORS["latency"] else 0.0)
    for band, of_ratio in zip(answer.bands, change.bands, strict=True):
        if answer.median is None or band.low <= 0:
            continue
        width = math.log(band.high / band.low)
        assert width >= math.log(of_ratio.high / of_ratio.low) - 1e-9
        assert width >= math.log(its.high / max(its.low, MEASURED_FLOORS["latency"])) - 1e-9
        assert band.low <= answer.median <= band.high
    assert list(answer.quantiles) == sorted(answer.quantiles)
    assert len(answer.quantiles) == len(LEVELS)


@given(AMOUNTS)
def test_a_ratio_of_one_without_doubt_gives_the_measured_value(its: MeasuredCost) -> None:
    ones = (1.0,) * len(LEVELS)
    one = CostRatio("call", "latency", None, "model", 1.0, bands(ones, 0, 0, SOURCE), ones)
    anchored, measured = anchored_prediction(AFTER, predicted(), its, one), measured_prediction(predicted(), its)
    assert anchored.median == measured.median
    assert anchored.bands[0].low == pytest.approx(measured.bands[0].low)
    assert anchored.bands[0].high == pytest.approx(measured.bands[0].high)
    assert anchored.quantiles == pytest.approx(measured.quantiles)


@given(AMOUNTS)
def test_a_budget_is_compared_with_the_median_if_it_were_measured_again(its: MeasuredCost) -> None:
    answer = measured_prediction(predicted(), its)
    assert answer.above(its.median) == pytest.approx(0.5, abs=0.01)
    surely = 10 ** (3 * repeat_spread(its))
    assert answer.above(its.median / surely) > 0.99
    assert answer.above(its.median * surely) < 0.01
    one_deviation = 10 ** repeat_spread(its)
    assert answer.above(its.median * one_deviation) == pytest.approx(1 - NormalDist().cdf(1), abs=0.02)


def test_a_measurement_is_carried_over_by_what_revisions_confirm_of_the_ratio() -> None:
    base = RatioPredictor(replace(ratio_of(2.0), agreed=0.0))
    latency, _ = answers(replace(AFTER, measured=(Anchor(cost(), BEFORE),)), base)
    assert latency.median == pytest.approx(2e-6, rel=0.02)
