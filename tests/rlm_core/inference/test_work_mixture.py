"""The mixture of the model's distribution with known work: laws of distributions, floors, waits, and files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference.calibration import Calibration, bands
from rlm_core.inference.model_store import builtin
from rlm_core.inference.work_mixture import (
    FACTS,
    FEATURES,
    FIXED,
    FLOOR_SHARE,
    LEAST_WORK,
    METRICS,
    KnownWork,
    Network,
    WorkMixture,
    facts_of,
    features,
    is_fixed,
    kind_of,
    known_wait,
    log_quantiles,
    log_work,
    mixture_cdf,
    mixture_quantiles,
    model_cdf,
    stated_floor,
    t_cdf,
    truncated,
    with_facts,
    without_end,
)
from rlm_core.types import (
    LEVELS,
    MEDIAN,
    Amount,
    CalibrationSource,
    Callee,
    Cause,
    CauseKind,
    CodeText,
    CostFacts,
    Prediction,
    Wait,
    WaitKind,
    WorkFacts,
)
from safetensors.numpy import load_file, save_file

MIXTURE = builtin() / "work.safetensors"
FLOOR = 1e-8
AMOUNTS = st.floats(0, 1e6)
LOGS = st.lists(st.floats(-8, 3), min_size=len(LEVELS), max_size=len(LEVELS)).map(sorted)
WORK = st.builds(KnownWork, st.floats(0, 1), st.floats(-8, 4), st.floats(0.02, 4))


@st.composite
def amounts(draw: st.DrawFn) -> Amount:
    """An amount whose least is at most its likely, and that at most its most."""
    return Amount(*sorted((draw(AMOUNTS), draw(AMOUNTS), draw(AMOUNTS))))


COSTS = st.builds(CostFacts, known=amounts(), typical=AMOUNTS, large=AMOUNTS)
SOME_FACTS = st.builds(
    WorkFacts, latency=COSTS, memory=COSTS, unknown_calls=st.floats(0, 1e9), opaque=st.integers(0, 100),
    unknown_sizes=st.integers(0, 20), nodes=st.integers(0, 3000),
)  # fmt: skip


def fixed_facts(seconds: float, *waits: Wait) -> WorkFacts:
    """Facts of a text that fixes its cost."""
    cost = CostFacts(Amount(seconds, seconds, seconds), seconds, seconds)
    return WorkFacts(latency=cost, memory=cost, waits=waits, nodes=10)


def normal_quantiles(median: float, width: float = 0.4) -> tuple[float, ...]:
    """Quantiles around a median: a logistic distribution in log10."""
    return tuple(median * 10 ** (width * math.log(level / (1 - level))) for level in LEVELS)


def prediction_of(median: float = 1e-3) -> Prediction:
    """A prediction of a function's latency."""
    quantiles = normal_quantiles(median)
    source = CalibrationSource("call/python/latency")
    return Prediction(
        "call", "latency", "cpu", {}, "model", median, bands(quantiles, 50, 500, source), FLOOR, False,
        quantiles=quantiles,
    )  # fmt: skip


@given(SOME_FACTS, st.sampled_from(METRICS), LOGS)
def test_features_are_finite_numbers(facts: WorkFacts, metric: str, logs: list[float]) -> None:
    row = features(facts, metric, np.array(logs))
    assert row.shape == (FEATURES,)
    assert np.isfinite(row).all()


@given(LOGS, WORK)
def test_a_mixture_is_a_distribution(logs: list[float], work: KnownWork) -> None:
    at = np.linspace(-30, 30, 300)
    reached = mixture_cdf(log_quantiles([10**value for value in logs], 0), work, at)
    assert (np.diff(reached) >= -1e-12).all()
    assert reached[0] == pytest.approx(0, abs=0.01)
    assert reached[-1] == pytest.approx(1, abs=0.01)


def test_the_t_distribution_has_the_values_of_tables() -> None:
    quantiles = np.array([0.0, 0.741, 1.533, 2.132, 2.776, 4.604])
    assert t_cdf(quantiles) == pytest.approx([0.5, 0.75, 0.9, 0.95, 0.975, 0.995], abs=2e-4)
    assert t_cdf(-quantiles) == pytest.approx(1 - t_cdf(quantiles))


@given(LOGS)
def test_the_models_distribution_goes_through_its_quantiles(logs: list[float]) -> None:
    spread = np.array(logs) + 0.01 * np.arange(len(LEVELS))
    assert model_cdf(spread, spread) == pytest.approx(np.array(LEVELS))


@settings(max_examples=60)
@given(LOGS, WORK, st.one_of(st.just(0.0), st.floats(1e-9, 1e3)))
def test_quantiles_of_a_mixture_rise_and_keep_to_the_floor(logs: list[float], work: KnownWork, least: float) -> None:
    found = mixture_quantiles([10**value for value in logs], FLOOR, work, LEVELS, least)
    assert list(found) == sorted(found)
    assert all(value == 0 or value > FLOOR for value in found[: MEDIAN + 1])
    assert all(value >= FLOOR for value in found[MEDIAN + 1 :])
    assert all(value >= least for value in found if value)


@given(st.lists(st.floats(-7, 2), min_size=len(LEVELS), max_size=len(LEVELS)), WORK)
def test_without_weight_the_quantiles_are_the_models_own(logs: list[float], work: KnownWork) -> None:
    values = 10 ** (np.sort(logs) + 1e-3 * np.arange(len(LEVELS)))
    values[values <= FLOOR] = 0.0
    found = mixture_quantiles(tuple(values), FLOOR, replace(work, weight=0.0), LEVELS, 0.0)
    assert found[: MEDIAN + 1] == pytest.approx(values[: MEDIAN + 1], rel=1e-4)
    assert found[MEDIAN + 1 :] == pytest.approx(np.maximum(values[MEDIAN + 1 :], FLOOR), rel=1e-4)


@given(LOGS, WORK)
def test_quantiles_are_where_the_mixture_reaches_their_levels(logs: list[float], work: KnownWork) -> None:
    spread = [10**value for value in np.array(logs) + 0.01 * np.arange(len(LEVELS))]
    found = np.log10(mixture_quantiles(spread, 0.0, work, LEVELS, 0.0))
    reached = mixture_cdf(log_quantiles(spread, 0.0), work, found)
    assert reached == pytest.approx(np.array(LEVELS), abs=2e-3)


def test_the_weight_moves_the_median_from_the_model_to_the_work() -> None:
    quantiles = normal_quantiles(1e-3)
    medians = [
        mixture_quantiles(quantiles, FLOOR, KnownWork(weight, 1.0, 0.1), LEVELS, 0.0)[MEDIAN]
        for weight in (0.0, 0.3, 0.7, 1.0)
    ]
    assert medians == sorted(medians)
    assert medians[0] == pytest.approx(1e-3, rel=0.1)
    assert medians[-1] == pytest.approx(10, rel=0.1)


def test_a_text_that_contradicts_the_model_takes_precedence() -> None:
    found = truncated(normal_quantiles(1e-6, 0.1), FLOOR, 1.0)
    assert found[0] >= 1
    assert found[-1] < 10


@given(LOGS, st.floats(1e-9, 1e4))
def test_truncated_quantiles_are_at_least_the_least(logs: list[float], least: float) -> None:
    quantiles = tuple(10**value for value in logs)
    found = truncated(quantiles, FLOOR, least)
    assert all(value >= least or (value == 0 and least <= FLOOR) for value in found)
    if quantiles[0] >= least:
        assert found == quantiles
    assert truncated(quantiles, FLOOR, 0.0) == quantiles


def test_only_waits_of_known_length_are_added() -> None:
    waits = (
        Wait(WaitKind.TIME, 1, "time.sleep", Amount(1, 2, 3)),
        Wait(WaitKind.TIME, 2, "time.sleep", None),
        Wait(WaitKind.NETWORK, 3, "requests.get", Amount(5, 5, 5)),
        Wait(WaitKind.TIME, 4, "time.sleep", Amount(0.5, 0.25, 1)),
    )
    assert known_wait(fixed_facts(0.0, *waits)) == (1.5, 2.25)
    assert known_wait(WorkFacts()) == (0.0, 0.0)


def test_waits_shift_a_prediction_by_the_least_and_the_likely() -> None:
    facts = WorkFacts(waits=(Wait(WaitKind.TIME, 0, "time.sleep", Amount(1, 3, 5)),))
    before = prediction_of()
    after = with_facts(before, facts, None, Calibration({}))
    assert after.median == pytest.approx(3 + 1e-3)
    assert after.quantiles[0] == pytest.approx(1 + before.quantiles[0])
    assert after.quantiles[-1] == pytest.approx(3 + before.quantiles[-1])
    assert after.bands[0].high == after.quantiles[LEVELS.index(0.9)]


def test_memory_does_not_wait() -> None:
    facts = WorkFacts(waits=(Wait(WaitKind.TIME, 0, "time.sleep", Amount(1, 3, 5)),))
    before = replace(prediction_of(), metric="memory")
    assert with_facts(before, facts, None, Calibration({})) == before


def test_without_facts_a_prediction_stays_as_it_is() -> None:
    before = prediction_of()
    assert with_facts(before, None, WorkMixture.load(MIXTURE), Calibration({})) is before
    assert with_facts(before, WorkFacts(), None, Calibration({})) == before
    nothing = replace(before, quantiles=())
    assert with_facts(nothing, fixed_facts(1.0), None, Calibration({})) is nothing


def test_a_floor_bounds_programs_too() -> None:
    before = replace(prediction_of(), basis="program")
    after = with_facts(before, fixed_facts(10.0), None, Calibration({}))
    assert after.quantiles[0] >= 10 * FLOOR_SHARE
    assert after.bands[0].low >= 10 * FLOOR_SHARE


def test_the_floor_is_half_of_the_least_work() -> None:
    facts = fixed_facts(10.0)
    assert stated_floor(facts, "latency") == 10 * FLOOR_SHARE
    assert stated_floor(facts, "memory") == 0
    assert stated_floor(fixed_facts(1e6), "memory") == (1e6 - 4096) * FLOOR_SHARE


@pytest.mark.parametrize(
    ("facts", "weight", "kind"),
    [(fixed_facts(1.0), 0.9, FIXED), (fixed_facts(1.0), 0.1, FACTS), (WorkFacts(unknown_calls=1), 0.9, FACTS)],
)
def test_a_band_is_of_fixed_texts_where_the_network_agrees(facts: WorkFacts, weight: float, kind: str) -> None:
    assert kind_of(facts, KnownWork(weight, 0, 1)) == kind
    band = bands(normal_quantiles(1.0), 9, 9, CalibrationSource(f"{kind}/call/python/latency"))
    assert is_fixed(replace(prediction_of(), bands=band)) is (kind == FIXED)


@given(SOME_FACTS, st.floats(1.0, 100.0))
def test_more_work_is_more(facts: WorkFacts, factor: float) -> None:
    cost = facts.latency
    more = replace(facts, latency=replace(cost, typical=cost.typical * factor, large=cost.large * factor))
    assert log_work(more, "latency") >= log_work(facts, "latency") >= math.log10(LEAST_WORK["latency"])


def test_facts_are_those_of_the_text_and_its_callees() -> None:
    stated = WorkFacts(nodes=1)
    assert facts_of(CodeText("def f(): pass", "python", "call", work=stated)) is stated
    assert facts_of(CodeText("int f() { return 1; }", "cpp", "program")) is None
    assert facts_of(CodeText("def f(): pass", "python", "kernel")) is None
    callee = Callee("def helper():\n    time.sleep(2)\n")
    facts = facts_of(CodeText("def f():\n    helper()\n", "python", "call", (callee,)))
    assert facts is not None
    assert known_wait(facts) == (2, 2)


def test_networks_are_read_as_they_were_written(tmp_path: Path) -> None:
    mixture = WorkMixture.load(MIXTURE)
    mixture.save(tmp_path / "copy")
    again = WorkMixture.load(tmp_path / "copy")
    work, quantiles = fixed_facts(1.0), normal_quantiles(1e-3)
    for metric in METRICS:
        assert again.known_work(work, metric, quantiles, FLOOR) == mixture.known_work(work, metric, quantiles, FLOOR)


def test_the_shipped_network_believes_a_text_that_fixes_a_second_of_work() -> None:
    work = WorkMixture.load(MIXTURE).known_work(fixed_facts(1.0), "latency", normal_quantiles(1e-5), FLOOR)
    assert work.weight > 0.5
    assert work.centre == pytest.approx(0, abs=0.3)


def tensors() -> dict[str, np.ndarray]:
    """The shipped networks."""
    return dict(load_file(MIXTURE))


def test_a_missing_or_corrupt_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    content = MIXTURE.read_bytes()
    path = tmp_path / "work.safetensors"
    for broken in (None, b"", b"{}", content[:100], content[:-10], b"\xff" * 1000, content[: len(content) // 2]):
        if broken is not None:
            path.write_bytes(broken)
        with pytest.raises(ModelError, match="reinstall the model") as caught:
            WorkMixture.load(path)
        assert "\n" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_directory_is_not_a_mixture(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="reinstall the model"):
        WorkMixture.load(tmp_path)


@pytest.mark.parametrize("name", Network.__slots__)
def test_other_shapes_and_values_are_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "work.safetensors"
    array = tensors()[f"latency.{name}"]
    for changed in (array[..., :-1], np.full_like(array, np.nan)):
        save_file(tensors() | {f"latency.{name}": np.ascontiguousarray(changed)}, path)
        with pytest.raises(ModelError, match="reinstall the model"):
            WorkMixture.load(path)
    save_file({key: value for key, value in tensors().items() if key != f"memory.{name}"}, path)
    with pytest.raises(ModelError, match="not the work mixture"):
        WorkMixture.load(path)


def test_a_function_that_may_not_end_has_no_latency() -> None:
    latency, memory = prediction_of(), replace(prediction_of(), metric="memory")
    facts = WorkFacts(endless=1)
    [ended, kept] = without_end([latency, memory], facts)
    assert (ended.median, ended.bands, ended.quantiles, str(ended.abstained)) == (None, (), (), "may-not-end")
    assert kept is memory
    assert without_end([latency, memory], WorkFacts()) == [latency, memory]
    # A judge ends the input, and with it the program.
    program = replace(latency, basis="program")
    assert without_end([program], facts) == [program]


def test_infinite_facts_give_finite_features_and_predictions() -> None:
    endless = Amount(math.inf, math.inf, math.inf)
    cause = Cause(CauseKind.LOOP, 1, "x", math.inf, math.inf)
    cost = CostFacts(endless, math.inf, math.inf, (), (cause,))
    facts = WorkFacts(
        latency=cost, memory=cost, waits=(Wait(WaitKind.TIME, 1, "sleep", endless),), unknown_calls=math.inf
    )
    for metric in METRICS:
        assert np.isfinite(features(facts, metric, np.linspace(-9, 0, len(LEVELS)))).all()
        assert math.isfinite(log_work(facts, metric))
        assert math.isfinite(stated_floor(facts, metric))
    assert all(map(math.isfinite, known_wait(facts)))
