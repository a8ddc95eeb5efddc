"""Outcome scales: bins follow the data, positions and quantiles are each other's inverse."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rlm_core.inference.bins import BINS, Scale, fit_scale

Array = npt.NDArray[np.float64]
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


def test_each_row_may_have_levels_of_its_own() -> None:
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
