"""Calibration: stated coverages hold on groups, and slices with few groups take their parent's level."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rlm_core.inference.calibration import (
    BINS,
    COVERAGES,
    MIN_GROUPS,
    Calibration,
    Scale,
    bands,
    conformal_level,
    fit_scale,
    parents,
    scores,
)
from rlm_core.types import LEVELS, CalibrationSource

Array = npt.NDArray[np.float64]
SCALE = Scale(1e-7, np.linspace(-7, 1, BINS + 1))


def random_rows(count: int, seed: int = 0) -> tuple[Array, Array]:
    """Distributions ``(count, outcomes)`` and values drawn from wider ones."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(10, 50, count)
    weights = np.exp(-0.5 * ((np.arange(BINS + 1)[None, :] - centre[:, None]) / 3) ** 2)
    place = np.clip(centre - 0.5 + rng.normal(0, 6, count), 0.1, BINS - 0.1)
    return weights / weights.sum(1, keepdims=True), 10 ** np.interp(place, np.arange(BINS + 1), SCALE.edges)


@given(hnp.arrays(np.float64, st.integers(1, 80), elements=st.floats(0, 0.99)), st.sampled_from(COVERAGES), st.data())
def test_the_level_covers_its_own_data(found: Array, coverage: float, data: st.DataObject) -> None:
    groups = np.array(data.draw(st.lists(st.sampled_from("abcdef"), min_size=len(found), max_size=len(found))))
    level = conformal_level(found, groups, coverage)
    _, inverse, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weights = 1 / np.sqrt(sizes[inverse])
    assert np.average(found <= level, weights=weights) >= coverage - 1e-9


def test_a_band_at_a_values_score_just_reaches_it() -> None:
    probabilities, values = random_rows(300)
    levels = scores(probabilities, SCALE, values)
    ends = SCALE.quantiles(probabilities, np.stack([(1 - levels) / 2, (1 + levels) / 2], axis=1))
    inside = levels < 0.99
    nearest = np.abs(np.log10(ends[inside]) - np.log10(values[inside])[:, None]).min(1)
    assert nearest.max() < 1e-6


def test_stated_coverage_holds_on_groups_that_were_not_calibrated_on() -> None:
    probabilities, values = random_rows(4000)
    groups = np.array([f"g{number % 200}" for number in range(4000)])
    found = scores(probabilities, SCALE, values)
    first = np.arange(4000) % 200 < 100
    for coverage in COVERAGES:
        level = conformal_level(found[first], groups[first], coverage)
        assert np.mean(found[~first] <= level) == pytest.approx(coverage, abs=0.03)


def test_a_value_at_the_floor_is_covered_once_the_band_reaches_the_floor() -> None:
    probabilities = np.zeros((1, BINS + 1))
    probabilities[0, :2] = 0.3, 0.7
    [score] = scores(probabilities, SCALE, np.array([0.0]))
    assert score == pytest.approx(1 - 2 * 0.3)
    assert SCALE.quantiles(probabilities, [(1 - score - 0.01) / 2])[0, 0] == 0


def test_a_large_group_does_not_outvote_many_small_ones() -> None:
    found = np.concatenate([np.full(1000, 0.9), np.linspace(0, 0.5, 100)])
    groups = np.array(["large"] * 1000 + [f"g{number}" for number in range(100)])
    assert conformal_level(found, groups, 0.7) <= 0.5


def fitted(groups: int, basis: str = "call", language: str = "python") -> Calibration:
    names = [parents(basis, language, "latency", "x86-64")] * groups
    return Calibration.fit(names, np.linspace(0, 0.9, groups), np.array([f"g{number}" for number in range(groups)]))


def test_a_slice_with_enough_groups_has_its_own_level() -> None:
    level = fitted(MIN_GROUPS).lookup("call", "python", "latency", "x86-64")
    assert level is not None
    assert level.name == "call/python/latency/x86-64"
    assert (level.groups, level.rows) == (MIN_GROUPS, MIN_GROUPS)


def test_a_slice_with_few_groups_takes_its_parents_level() -> None:
    names = [parents("program", "go", "latency", "leetcode")] * 5
    names += [parents("program", "java", "latency", "leetcode")] * 60
    calibration = Calibration.fit(names, np.linspace(0, 0.9, 65), np.array([f"g{number}" for number in range(65)]))
    go = calibration.lookup("program", "go", "latency", "leetcode")
    java = calibration.lookup("program", "java", "latency", "leetcode")
    assert go is not None
    assert java is not None
    assert (go.name, java.name) == ("program/latency", "program/java/latency/leetcode")


def test_where_no_level_has_enough_groups_the_widest_counts() -> None:
    level = fitted(3).lookup("call", "python", "latency", "x86-64")
    assert level is not None
    assert level.name == "call"


def test_an_unknown_basis_has_no_level() -> None:
    assert fitted(3).lookup("kernel", "python", "latency", "a100") is None


def test_higher_coverage_never_needs_a_lower_level() -> None:
    level = fitted(50).lookup("call", "python", "latency", "x86-64")
    assert level is not None
    assert list(level.levels) == sorted(level.levels)


def test_levels_survive_json() -> None:
    before = fitted(40)
    after = Calibration.from_json(json.loads(json.dumps(before.to_json())))
    assert after.to_json() == before.to_json()
    assert after.lookup("call", "python", "latency", "x86-64") == before.lookup("call", "python", "latency", "x86-64")


@given(st.lists(st.floats(0, 0.99), min_size=1, max_size=60))
def test_the_raw_levels_of_quantiles_rise_and_are_symmetric(found: list[float]) -> None:
    level = Calibration.fit([["call"]] * len(found), np.array(found), np.arange(len(found)).astype(np.str_)).lookup(
        "call", "python", "latency", ""
    )
    assert level is not None
    raw = level.raw_levels()
    assert len(raw) == len(LEVELS)
    assert raw == sorted(raw)
    np.testing.assert_allclose(np.add(raw, raw[::-1]), 1)
    assert level.at(0.8) == level.levels[3]


def test_bands_are_cut_out_of_the_quantiles() -> None:
    assert [(band.low, band.high, band.coverage) for band in bands(LEVELS, 40, 400, CalibrationSource("here"))] == [
        (0.1, 0.9, 0.8),
        (0.05, 0.95, 0.9),
    ]


FLOOR = 5e-8
LATENCY = Scale(FLOOR, np.linspace(np.log10(FLOOR), 1, BINS + 1))
values = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=50)
distributions = hnp.arrays(np.float64, BINS + 1, elements=st.floats(0, 1)).filter(lambda p: p.sum() > 1e-6)


def point_mass(outcome: int) -> Array:
    result = np.zeros((1, BINS + 1))
    result[0, outcome] = 1
    return result


@given(distributions, st.lists(st.floats(0.001, 0.999), min_size=2, max_size=8))
def test_quantiles_are_monotone_and_within_the_scale(weights: Array, levels: list[float]) -> None:
    found = LATENCY.quantiles((weights / weights.sum())[None, :], sorted(levels))[0]
    assert np.all(np.diff(found) >= -1e-12)
    assert np.all((found == 0) | ((found >= FLOOR * 0.999) & (found <= 10.001)))


@given(st.floats(FLOOR * 1.001, 9.9))
def test_the_quantile_at_a_values_position_is_the_value(value: float) -> None:
    place = float(LATENCY.position(value))
    outcome = int(place)
    found = LATENCY.quantiles(point_mass(outcome + 1), [place - outcome])[0, 0]
    assert found == pytest.approx(value, rel=1e-6)


@given(values)
def test_positions_keep_the_order_of_values(data: list[float]) -> None:
    assert np.all(np.diff(LATENCY.position(np.sort(data))) >= 0)


@pytest.mark.parametrize("value", [0.0, -1.0, FLOOR / 2, FLOOR])
def test_a_value_at_or_below_the_floor_is_the_floors_outcome(value: float) -> None:
    assert LATENCY.position(value) == -0.5


def test_mass_at_the_floor_is_shown_as_0() -> None:
    assert LATENCY.quantiles(point_mass(0), [0.1, 0.5, 0.9]).tolist() == [[0.0, 0.0, 0.0]]


def test_each_row_may_have_separate_levels() -> None:
    both = np.concatenate([point_mass(3), point_mass(9)])
    found = np.log10(LATENCY.quantiles(both, np.array([[0.5, 1.0], [0.25, 1.0]])))
    low, step = LATENCY.edges[2], LATENCY.edges[1] - LATENCY.edges[0]
    expected = np.array([[low + 0.5 * step, low + step], [low + 6.25 * step, low + 7 * step]])
    np.testing.assert_allclose(found, expected, atol=1e-6)


@given(values, st.sampled_from([0.0, FLOOR]))
def test_fitted_edges_ascend_from_the_floor(data: list[float], floor: float) -> None:
    scale = fit_scale(data, floor)
    assert len(scale.edges) == BINS + 1
    assert np.all(np.diff(scale.edges) > 0)
    if floor:
        assert scale.edges[0] == pytest.approx(np.log10(floor))


def test_bins_are_finer_where_the_data_is() -> None:
    rng = np.random.default_rng(0)
    data = np.concatenate([10 ** rng.normal(7, 0.02, 5000), 10 ** rng.uniform(5, 9, 100)])
    scale = fit_scale(data, 0.0)
    widths = np.diff(scale.edges)
    assert widths[int(scale.position(1e7))] < 0.2 * np.median(widths)


def test_the_largest_values_of_training_have_a_bin() -> None:
    data = 10 ** np.random.default_rng(0).normal(-4, 1, 10_000)
    scale = fit_scale(data, FLOOR)
    assert np.mean(scale.position(data) < BINS) > 0.999


def test_a_slice_without_any_value_above_the_floor_still_has_a_scale() -> None:
    assert np.all(np.diff(fit_scale([FLOOR, 0.0], FLOOR).edges) > 0)
