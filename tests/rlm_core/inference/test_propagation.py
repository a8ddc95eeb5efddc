"""Costs of callees in their callers' predictions: sums over call sites, corrections, the file, the shipped model."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rlm_core
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference.propagation import (
    CALLS,
    FEATURES,
    Correction,
    CostEstimate,
    Propagation,
    Residuals,
    SiteEstimate,
    features,
)
from rlm_core.inference.student import OnnxPredictor
from rlm_core.inference.work_mixture import log_quantiles
from rlm_core.types import (
    LEVELS,
    MEDIAN,
    CalledFunction,
    Calls,
    CallSite,
    CodeText,
    KnownCost,
    MeasuredFunctions,
    Prediction,
    Query,
)

BUILTIN = Path(rlm_core.__file__).parent / "builtin"
LOGS = np.linspace(-6, -4, len(LEVELS))
ESTIMATES = st.builds(CostEstimate, st.floats(-7, 3), st.floats(0, 3), st.booleans())
SITES = st.lists(
    st.builds(
        SiteEstimate,
        st.lists(ESTIMATES, min_size=1, max_size=3),
        st.integers(0, 3),
        st.integers(0, 3),
        st.floats(1, 1e9),
    ),
    max_size=4,
)


def feature(name: str, sites: list[SiteEstimate], metric: str = "latency") -> float:
    return features(metric, LOGS, sites)[FEATURES.index(name)]


@given(SITES, st.randoms())
def test_the_order_of_calls_does_not_count(sites: list[SiteEstimate], random: object) -> None:
    mixed = list(sites)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert features("memory", LOGS, mixed) == pytest.approx(features("memory", LOGS, sites))


@given(SITES)
def test_there_is_one_finite_number_per_feature(sites: list[SiteEstimate]) -> None:
    found = features("latency", LOGS, sites, 3, 2)
    assert len(found) == len(FEATURES)
    assert all(map(math.isfinite, found))


def test_costs_of_sites_add_up_and_candidates_are_averaged_in_the_logarithm() -> None:
    cheap, expensive = CostEstimate(-6, 1), CostEstimate(-4, 1)
    assert feature("total", [SiteEstimate([cheap])] * 10) == pytest.approx(-5)
    assert feature("total", [SiteEstimate([cheap, expensive])]) == pytest.approx(-5)
    assert feature("disagreement", [SiteEstimate([cheap, expensive])]) == pytest.approx(1)
    assert feature("total", [SiteEstimate([cheap], times=1000.0)]) == pytest.approx(-3)


def test_measured_callees_count_by_their_share_of_the_cost() -> None:
    known, predicted = CostEstimate(-4, 0, known=True), CostEstimate(-6, 1)
    assert feature("known_share", [SiteEstimate([known]), SiteEstimate([predicted])]) == pytest.approx(1, abs=0.02)
    assert feature("all_known", [SiteEstimate([known])]) == 1
    assert feature("all_known", [SiteEstimate([known]), SiteEstimate([predicted])]) == 0


def test_few_residuals_are_drawn_to_zero() -> None:
    assert Residuals.of([], 3) == Residuals()
    assert Residuals.of([1.0], 3).mean == pytest.approx(0.25)
    assert Residuals.of([1.0] * 300, 3).mean == pytest.approx(1, abs=0.02)


def test_a_correction_moves_the_median_and_stretches_around_it() -> None:
    found = Correction(0.5, 2.0).apply(LOGS, 0.0)
    assert found[MEDIAN] == pytest.approx(LOGS[MEDIAN] + 0.5)
    assert found[-1] - found[0] == pytest.approx(2 * (LOGS[-1] - LOGS[0]))


@pytest.mark.parametrize("shift", [-0.3, 0.001, 0.3])
def test_what_may_be_below_the_floor_may_be_so_after_a_correction(shift: float) -> None:
    floor = 64.0
    logs = log_quantiles([0.0] * 4 + [80.0 * 1.2**place for place in range(len(LEVELS) - 4)], floor)
    found = Correction(shift, 1.1).apply(logs, floor)
    assert (found[:4] <= math.log10(floor)).all()
    assert found[MEDIAN] == pytest.approx(logs[MEDIAN] + shift)
    assert found[5] - found[4] == pytest.approx(1.1 * (logs[5] - logs[4]))


def test_the_median_of_a_corrected_prediction_may_leave_the_floor() -> None:
    logs = log_quantiles([0.0] * len(LEVELS), 64.0)
    found = Correction(0.2, 1.0).apply(logs, 64.0)
    assert found[0] <= math.log10(64.0) < found[MEDIAN]
    assert (np.diff(found) >= 0).all()


def test_networks_are_read_as_they_were_written(tmp_path: Path) -> None:
    shipped = Propagation.load(BUILTIN / CALLS)
    shipped.save(tmp_path / CALLS)
    inputs = np.random.default_rng(0).normal(size=(5, len(FEATURES)))
    for metric, network in Propagation.load(tmp_path / CALLS).networks.items():
        assert network.corrections(inputs) == shipped.networks[metric].corrections(inputs)


def test_a_bad_file_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / CALLS
    with pytest.raises(ModelError, match="reinstall"):
        Propagation.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ModelError, match="reinstall"):
        Propagation.load(path)
    shutil.copyfile(BUILTIN / "work.safetensors", path)
    with pytest.raises(ModelError, match="reinstall"):
        Propagation.load(path)
    shipped = Propagation.load(BUILTIN / CALLS)
    wrong = {metric: replace(network, mean=network.mean[:-1]) for metric, network in shipped.networks.items()}
    Propagation(wrong).save(path)
    with pytest.raises(ModelError, match="other features"):
        Propagation.load(path)


@pytest.fixture(scope="module")
def predictor() -> OnnxPredictor:
    return OnnxPredictor(BUILTIN)


CALLER = "def run(x, items):\n    return x.visit_everything(items)\n"
CHEAP = CalledFunction("    def visit_everything(self, items):\n        return self.size\n")
MEASURED = Query("latency"), Query("memory")


def calls_of(*functions: CalledFunction, known: tuple[float, float] | None = None) -> Calls:
    if known is not None:
        latency, memory = known
        costs = KnownCost("latency", latency, latency, latency), KnownCost("memory", memory, memory, memory)
        functions = tuple(replace(function, known=costs) for function in functions)
    # A measured callee is one of the measured functions of its package.
    measured = MeasuredFunctions(functions) if known is not None else MeasuredFunctions()
    return Calls((CallSite(functions),), of_package=measured)


def predict(predictor: OnnxPredictor, calls: Calls | None) -> list[Prediction]:
    return predictor.predict([CodeText(CALLER, "python", "call", calls=calls)], [MEASURED])[0]


@pytest.mark.parametrize("metric", [0, 1])
def test_an_expensive_callee_makes_its_caller_expensive(predictor: OnnxPredictor, metric: int) -> None:
    medians = [
        predict(predictor, calls_of(CHEAP, known=known))[metric].median or 0.0
        for known in ((1e-6, 100.0), (1e-4, 1e4), (1e-2, 1e6))
    ]
    assert medians == sorted(medians)
    assert medians[2] > 30 * medians[0]


def test_a_measured_callee_makes_the_band_narrower(predictor: OnnxPredictor) -> None:
    def width(answer: Prediction) -> float:
        assert answer.band is not None
        return answer.band.high / answer.band.low

    assert width(predict(predictor, calls_of(CHEAP, known=(1e-4, 1e4)))[0]) < width(
        predict(predictor, calls_of(CHEAP))[0]
    )


def test_measurements_in_the_same_file_move_a_prediction(predictor: OnnxPredictor) -> None:
    def near(cost: float) -> Calls:
        known = (KnownCost("latency", cost, cost, cost),)
        texts = [f"def f{place}(x):\n    return x[{place}] + 1\n" for place in range(10)]
        measured = MeasuredFunctions(tuple(CalledFunction(text, known=known) for text in texts))
        return Calls(of_file=measured)

    slow, fast = (predict(predictor, near(cost))[0].median for cost in (1e-3, 1e-7))
    assert slow is not None
    assert fast is not None
    assert slow > 2 * fast


def test_the_most_similar_measured_function_of_the_package_counts_most(predictor: OnnxPredictor) -> None:
    body = "    total = 0\n    for {0} in {1}:\n        total += {0}.{2} * 2\n    return total\n"
    text = "def weigh(parcels):\n" + body.format("parcel", "parcels", "weight")
    similar = "def measure(parcels):\n" + body.format("parcel", "parcels", "length")
    other = "def connect(self, host, port=80):\n    self.socket = open_socket(host, port)\n    return self.socket\n"

    def median(cost_of_similar: float, cost_of_other: float) -> float:
        costs = ((similar, cost_of_similar), (other, cost_of_other))
        functions = tuple(CalledFunction(one, known=(KnownCost("latency", cost, cost, cost),)) for one, cost in costs)
        code = CodeText(text, "python", "call", calls=Calls(of_package=MeasuredFunctions(functions)))
        [[answer]] = predictor.predict([code], [[Query("latency")]])
        assert answer.median is not None
        return answer.median

    assert median(1e-3, 1e-6) > 1.5 * median(1e-6, 1e-3)


def test_what_was_measured_of_the_same_text_is_not_read(predictor: OnnxPredictor) -> None:
    def predicted(cost: float) -> list[Prediction]:
        known = (KnownCost("latency", cost, cost, cost), KnownCost("memory", cost * 1e6, cost * 1e6, cost * 1e6))
        return predict(predictor, Calls(of_package=MeasuredFunctions((CalledFunction(CALLER, known=known),))))

    assert predicted(1e-6) == predicted(1.0)


def test_texts_without_resolved_calls_and_texts_that_fix_their_cost_stay_as_they_were(predictor: OnnxPredictor) -> None:
    plain = OnnxPredictor(BUILTIN, propagate=False)
    assert predict(predictor, None) == predict(plain, None)
    fixed = CodeText("def f():\n    return [0] * 10_000_000\n", "python", "call", calls=calls_of(CHEAP))
    assert predictor.predict([fixed], [MEASURED]) == plain.predict([fixed], [MEASURED])


def test_the_batch_does_not_change_a_number(predictor: OnnxPredictor) -> None:
    codes = [
        CodeText(CALLER, "python", "call", calls=calls_of(CHEAP)),
        CodeText("def g(x):\n    return h(x)\n", "python", "call", calls=calls_of(CalledFunction(CALLER))),
    ]
    together = predictor.predict(codes, [MEASURED] * 2)
    fresh = OnnxPredictor(BUILTIN)
    assert [fresh.predict([code], [MEASURED])[0] for code in reversed(codes)] == together[::-1]


def test_functions_that_call_themselves_through_others_are_predicted(predictor: OnnxPredictor) -> None:
    first, second = "def f(n):\n    return g(n)\n", "def g(n):\n    return f(n)\n"
    codes = [
        CodeText(text, "python", "call", calls=calls_of(CalledFunction(other)))
        for text, other in ((first, second), (second, first))
    ]
    assert all(answer.median is not None for line in predictor.predict(codes, [MEASURED] * 2) for answer in line)
