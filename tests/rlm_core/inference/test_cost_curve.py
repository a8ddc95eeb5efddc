"""Curves through measured costs: exact on exact power laws, and honest about how far they hold."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rlm_core.inference.cost_curve import (
    DECADES_AT_TEN,
    LEAST_SPREAD,
    MOST_BEYOND,
    CostCurve,
    curve_at,
    curve_of,
    half_width,
)
from rlm_core.types import GrowthEstimate, MeasuredCost, SizedCalls

from tests.rlm_core.inference.test_anchoring import cost

EXPONENTS = st.floats(0, 3)
SIZES = st.lists(st.integers(1, 10**5), min_size=2, max_size=8, unique=True)


def measured(*points: tuple[float, float], name: str = "items", **others: float) -> MeasuredCost:
    return replace(cost(), sized=tuple(SizedCalls({name: size, **others}, value, 5) for size, value in points))


def curve(*points: tuple[float, float]) -> CostCurve:
    found = curve_of(measured(*points))
    assert found is not None
    return found


@given(st.floats(1.1, 4), SIZES, st.floats(1e-6, 1e-2))
def test_a_power_above_one_is_found_exactly(exponent: float, sizes: list[int], scale: float) -> None:
    points = [(float(size), scale * size**exponent) for size in sizes]
    found = curve_of(measured(*points))
    if max(sizes) < LEAST_SPREAD * min(sizes):
        assert found is None
        return
    assert found is not None
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    value = curve_at(found, 3.0 * max(sizes))
    assert value is not None
    assert value.median == pytest.approx(scale * (3 * max(sizes)) ** exponent, rel=1e-6)


@given(st.floats(1e-6, 1e-3), st.floats(1e-6, 1e-3), SIZES)
def test_a_fixed_part_and_one_in_proportion_are_found_exactly(fixed: float, rate: float, sizes: list[int]) -> None:
    found = curve_of(measured(*((float(size), fixed + rate * size) for size in sizes)))
    assume(found is not None and found.share == 1)
    assert found is not None
    beyond = 10 * found.measured_to
    assert found.median(beyond) == pytest.approx(fixed + rate * beyond, rel=1e-6)
    assert found.exponent == pytest.approx(rate * max(sizes) / (fixed + rate * max(sizes)), rel=1e-6)


@given(SIZES, st.lists(st.floats(1e-6, 1e-2), min_size=8, max_size=8))
def test_no_curve_falls(sizes: list[int], costs: list[float]) -> None:
    found = curve_of(measured(*zip(map(float, sizes), costs, strict=False)))
    assume(found is not None)
    assert found is not None
    medians = [found.median(size) for size in (found.least, found.measured_to, found.most)]
    assert medians == sorted(medians)


def test_a_curve_holds_from_the_smallest_to_ten_times_the_largest_size() -> None:
    found = curve((10, 1e-5), (100, 1e-4))
    assert (found.least, found.measured_to, found.most) == (10, 100, 100 * MOST_BEYOND)
    assert curve_at(found, 9.9) is None
    assert curve_at(found, 1001) is None
    assert [curve_at(found, size) is not None for size in (10, 50, 100, 1000)] == [True] * 4


@given(st.floats(0, 6), st.floats(1, 10), st.floats(1, 10), st.floats(0, 1))
def test_the_band_only_widens_beyond_what_was_measured(
    power: float, first: float, second: float, spread: float
) -> None:
    near, far = sorted((first, second))
    assert half_width(power, spread, near) <= half_width(power, spread, far)
    assert half_width(power, spread, 0.5) == half_width(power, spread, 1.0) <= half_width(power, spread, near)
    assert half_width(power, spread, 10.0) >= min(decades for _, decades in DECADES_AT_TEN)


def test_the_quantiles_agree_with_the_band() -> None:
    value = curve_at(curve((10, 1e-5), (100, 1e-4)), 1000)
    assert value is not None
    assert value.beyond == 10
    assert value.median == pytest.approx(1e-3)
    assert math.log10(value.band.high / value.median) == pytest.approx(half_width(1.0, 0.0, 10.0))
    assert value.quantiles[4] == pytest.approx(value.band.low)
    assert list(value.quantiles) == sorted(value.quantiles)


def test_noise_widens_the_band() -> None:
    noisy = curve((10, 1e-5), (30, 9e-5), (100, 6e-5), (300, 9e-4))
    assert noisy.spread > 0.2
    wide, narrow = curve_at(noisy, 100), curve_at(curve((10, 1e-5), (300, 3e-4)), 100)
    assert wide is not None
    assert narrow is not None
    assert wide.band.high / wide.band.low > narrow.band.high / narrow.band.low


def test_one_size_or_two_close_ones_give_no_curve() -> None:
    assert curve_of(measured((10, 1e-5))) is None
    assert curve_of(measured((10, 1e-5), (29, 3e-5))) is None
    assert curve_of(cost()) is None


def test_what_the_measurement_does_not_resolve_is_left_out() -> None:
    found = curve((1, 1e-9), (0, 5e-5), (10, 1e-5), (100, 1e-4))
    assert [point.size for point in found.points] == [10, 100]


def test_a_cost_that_falls_with_a_size_does_not_depend_on_it() -> None:
    assert curve((10, 1e-4), (1000, 1e-5)).exponent == 0


def test_calls_of_one_size_are_one_point() -> None:
    found = curve((10, 1e-5), (10, 3e-5), (100, 1e-4))
    assert [(point.size, point.cost, point.calls) for point in found.points] == [(10, 2e-5, 10), (100, 1e-4, 5)]


def test_of_several_sizes_the_one_that_explains_most_is_chosen() -> None:
    sized = tuple(
        SizedCalls({"items": items, "width": width}, 1e-6 * items, 3)
        for items, width in ((10.0, 70.0), (100.0, 3.0), (1000.0, 40.0), (3000.0, 9.0))
    )
    found = curve_of(replace(cost(), sized=sized))
    assert found is not None
    assert found.size == "items"
    named = curve_of(replace(cost(), sized=sized), GrowthEstimate("n", 0.9, ("width",)))
    assert named is not None
    assert named.size == "width"
