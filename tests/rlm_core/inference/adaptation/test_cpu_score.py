"""The CPU's score: its arithmetic, its file, and the predictions that it scales."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core import CodeText, Prediction, Query
from rlm_core.inference.adaptation import cpu_score
from rlm_core.inference.adaptation.cpu_score import (
    UNSCORED_SPREAD,
    CpuScore,
    Rates,
    ScaledPredictor,
    UnscoredPredictor,
    scaled,
    unscored,
)
from rlm_core.inference.adaptation.predictor import UserCorrections
from rlm_core.inference.calibration import bands
from rlm_core.inference.predictor import Predictor, PredictorWrapper, WithoutComparison
from rlm_core.types import Basis, CalibrationSource

from tests.fakes import NO_NUMBER, quantiles

BASE = Rates(100.0, 100.0, 100.0, 0.0)
SLOW = CpuScore(0.5, 0.5, 0.5, 0.5, 0.1, cpu_score.cpu_name(), "2026-11-20")
QUANTILES = quantiles(1e-4, 10)
CALL = Prediction(
    "call",
    "latency",
    "x86-64",
    {"runtime": "cpython-3.12"},
    "test-1",
    1e-4,
    bands(QUANTILES, 40, 400, CalibrationSource("call/python/latency")),
    5e-8,
    False,
    quantiles=QUANTILES,
)


class Fake(WithoutComparison):
    """Answers every query with ``CALL``."""

    model_id = "test-1"

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return (Query("latency", "x86-64"),)

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ("x86-64",)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return [[CALL for _ in line] for line in queries]


def test_an_equal_machine_scores_one() -> None:
    found = cpu_score.score(BASE, BASE)
    assert (found.overall, found.spread) == pytest.approx((1.0, 0.0))


def test_a_machine_twice_as_fast_in_all_parts_scores_two() -> None:
    found = cpu_score.score(Rates(200.0, 200.0, 200.0, 0.03), replace(BASE, spread=0.04))
    assert found.overall == pytest.approx(2.0)
    assert found.spread == pytest.approx(0.05)


def test_parts_that_differ_widen_the_spread() -> None:
    found = cpu_score.score(Rates(200.0, 100.0, 50.0, 0.0), BASE)
    assert found.numpy < found.overall < found.interpreter
    assert 0.1 < found.spread < 0.3


def test_the_benchmark_measures_and_is_steady_enough_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_score, "_ROUNDS", 6)
    found = cpu_score.score(cpu_score.measure_rates(), cpu_score.reference())
    assert 0.01 < found.overall < 100
    assert 0 <= found.spread < 1
    assert found.cpu == cpu_score.cpu_name() != ""


def test_the_work_of_the_benchmark_is_the_same_each_time() -> None:
    for work, _ in cpu_score._PARTS.values():
        assert work() == work()


def test_every_reference_has_rates_above_zero_and_a_small_spread() -> None:
    for rates in cpu_score.REFERENCE.values():
        assert min(rates.interpreter, rates.allocation, rates.numpy) > 0
        assert 0 < rates.spread < 0.1
    assert cpu_score.reference() in cpu_score.REFERENCE.values()


def test_a_score_survives_its_file(tmp_path: Path) -> None:
    cpu_score.write(SLOW, tmp_path / "deep" / "score.json")
    assert cpu_score.read(tmp_path / "deep" / "score.json") == SLOW


@pytest.mark.parametrize(
    "change",
    [{"format": "other"}, {"cpu": "another CPU"}, {"overall": 0}, {"overall": "fast"}, {"spread": -1}, {"more": 1}],
)
def test_a_score_that_cannot_be_used_counts_as_none(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "score.json"
    cpu_score.write(SLOW, path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert cpu_score.read(path) is None
    path.write_text("{")
    assert cpu_score.read(path) is None
    assert cpu_score.read(tmp_path / "none.json") is None


@pytest.mark.parametrize(("value", "used"), [("0", False), ("off", False), ("1", True), ("", True)])
def test_the_environment_switches_scaling_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, used: bool
) -> None:
    monkeypatch.setattr(cpu_score, "default_path", lambda: tmp_path / "score.json")
    monkeypatch.setenv(cpu_score.SWITCH, value)
    cpu_score.write(SLOW, tmp_path / "score.json")
    assert (cpu_score.stored() is not None) == used


def test_a_slower_cpu_makes_a_call_longer_and_its_bands_wider() -> None:
    found = scaled(CALL, SLOW)
    assert found.median == pytest.approx(2e-4)
    assert found.floor == pytest.approx(1e-7)
    assert found.band is not None
    slack = 1.2816 * SLOW.spread
    assert found.band.high == pytest.approx(2e-4 * 10 ** math.hypot(1, slack), rel=1e-4)
    assert found.band.low == pytest.approx(2e-4 / 10 ** math.hypot(1, slack), rel=1e-4)
    assert found.bands[1].low < found.band.low
    assert found.bands[1].high > found.band.high
    assert found.band.source.task == "call/python/latency"
    assert found.band.source.cpu_scale is not None
    assert found.band.source.cpu_scale.ratio == pytest.approx(2)
    assert found.band.source.cpu_scale.date == "2026-11-20"


def test_a_value_below_the_floor_stays_below_the_scaled_floor() -> None:
    found = scaled(replace(CALL, median=0.0, quantiles=(0.0,) * 9 + (5e-8,) * 8), SLOW)
    assert found.median == 0
    assert found.band is not None
    assert found.band.low == 0
    assert found.band.high == pytest.approx(1e-7 * 10 ** (1.2816 * SLOW.spread), rel=1e-4)


def test_no_cpu_shortens_a_wait() -> None:
    waiting = replace(CALL, median=1.0 + 1e-4, quantiles=tuple(1.0 + value for value in QUANTILES))
    found = scaled(waiting, SLOW, 1.0)
    own = scaled(CALL, SLOW)
    assert found.median == pytest.approx(1.0 + 2e-4)
    assert found.quantiles == pytest.approx([1.0 + value for value in own.quantiles])
    assert found.band is not None
    assert found.band.low > 1.0
    # The share of training values below it is that of the reference machine's value.
    asked: list[float | None] = []

    class Recorded(Fake):
        def percentile(self, prediction: Prediction, language: str) -> float | None:
            asked.append(prediction.median)
            return 0.5

    ScaledPredictor(Recorded(), SLOW).percentile(found, "python")
    assert asked == pytest.approx([1.0 + 1e-4])


def test_an_open_band_stays_open() -> None:
    found = scaled(replace(CALL, quantiles=(*QUANTILES[:12], *[math.inf] * 5)), SLOW)
    assert found.band is not None
    assert found.band.high == math.inf


@pytest.mark.parametrize(
    "change",
    [
        {"metric": "memory"},
        {"basis": "program"},
        {"device": "my-phone"},
        {"median": None, "bands": (), "quantiles": (), "abstained": NO_NUMBER},
    ],
)
def test_all_but_latencies_of_calls_on_the_reference_device_pass_through(change: dict[str, object]) -> None:
    other = replace(CALL, **change)  # type: ignore[arg-type]
    assert scaled(other, SLOW) == other


def test_the_scaled_predictor_passes_questions_on() -> None:
    predictor = ScaledPredictor(Fake(), SLOW)
    assert predictor.model_id == "test-1"
    assert predictor.default_queries("call", "python") == (Query("latency", "x86-64"),)
    assert predictor.devices("call") == ("x86-64",)
    [[answer]] = predictor.predict([CodeText("x", "python", "call")], [[Query("latency", "x86-64")]])
    assert answer == scaled(CALL, SLOW)
    waits = "def f():\n    time.sleep(5e-5)\n"
    [[answer]] = predictor.predict([CodeText(waits, "python", "call")], [[Query("latency", "x86-64")]])
    assert answer == scaled(CALL, SLOW, 5e-5)


FIXED = replace(CALL, bands=bands(QUANTILES, 40, 400, CalibrationSource("fixed/call/python/latency")))


def test_a_cpu_of_unknown_speed_has_the_same_medians_and_wider_bands() -> None:
    found = unscored(FIXED)
    assert (found.median, found.floor) == (FIXED.median, FIXED.floor)
    assert found.band is not None
    slack = 1.2816 * UNSCORED_SPREAD
    assert found.band.high == pytest.approx(1e-4 * 10 ** math.hypot(1, slack), rel=1e-4)
    assert found.band.low == pytest.approx(1e-4 / 10 ** math.hypot(1, slack), rel=1e-4)
    assert found.band.source == FIXED.bands[0].source
    assert list(found.quantiles) == sorted(found.quantiles)


def test_a_narrow_band_is_as_wide_as_cpus_differ_and_waits_do_not_differ() -> None:
    narrow = tuple(1.0 + value for value in quantiles(1e-4, 1.01))
    found = unscored(replace(FIXED, median=narrow[8], quantiles=narrow), 1.0)
    assert found.band is not None
    assert found.median == narrow[8]
    assert (found.band.high - 1.0) / (narrow[8] - 1.0) == pytest.approx(10 ** (1.2816 * UNSCORED_SPREAD), rel=0.01)
    assert found.band.low > 1.0


def test_only_latencies_that_the_text_fixes_are_widened_without_a_score() -> None:
    class Both(Fake):
        def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
            return [[FIXED, CALL, replace(FIXED, metric="memory")] for _ in texts]

    [answers] = UnscoredPredictor(Both()).predict([CodeText("def f():\n    pass\n", "python", "call")], [[]])
    assert answers == [unscored(FIXED), CALL, replace(FIXED, metric="memory")]


@pytest.mark.parametrize(
    ("score", "cpu", "switch", "widened"),
    [(None, True, "1", True), (None, True, "0", False), (None, False, "1", False), (SLOW, True, "1", False)],
)
def test_corrections_know_whether_predictions_are_for_a_cpu_without_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: CpuScore | None, cpu: bool, switch: str, widened: bool
) -> None:
    monkeypatch.setattr(cpu_score, "default_path", lambda: tmp_path / "score.json")
    monkeypatch.setenv(cpu_score.SWITCH, switch)
    if score is not None:
        cpu_score.write(score, tmp_path / "score.json")
    corrections = UserCorrections.read("test-1", tmp_path / "devices", cpu=cpu)
    assert corrections.is_unscored is widened
    predictor = corrections.around(Fake())
    assert (UnscoredPredictor in [type(each) for each in layers(predictor)]) is widened


def layers(predictor: Predictor) -> list[Predictor]:
    """A predictor and those inside it."""
    return [predictor, *(layers(predictor.base) if isinstance(predictor, PredictorWrapper) else ())]
