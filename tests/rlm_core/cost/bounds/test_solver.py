"""Numbers of iterations by the bound solver against counting."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rlm_core.cost.bounds.solver import NEVER, End, Gap, iterations, of_all
from rlm_core.cost.domain.quantities import ONE, ZERO, Quantity, constant, of_size

X, Y, N = of_size("@x"), of_size("@y"), of_size("n")
OPEN: dict[End, Callable[[float], bool]] = {
    "at zero": lambda distance: distance > 0,
    "below zero": lambda distance: distance >= 0,
    "at other than zero": lambda distance: distance != 0,
}
ENDS = st.sampled_from(sorted(OPEN))
MOST = 500


def counted(distance: float, change: Callable[[float], float], end: End) -> float:
    """The number of changes until a gap is closed, infinite if it is not within ``MOST``."""
    for times in range(MOST):
        if not OPEN[end](distance):
            return times
        distance = change(distance)
    return math.inf


def solved(distance: Quantity, end: End, after: Quantity, start: float) -> Quantity | None:
    """The iterations of a loop that changes ``@x`` alone."""
    return iterations(Gap(distance, end), {"@x": after}, {"@x": constant(start)})


@settings(max_examples=200)
@given(st.integers(-50, 50), st.integers(-9, 9), st.integers(-60, 60), ENDS)
def test_fixed_steps_are_counted_exactly(start: int, step: int, bound: int, end: End) -> None:
    expected = counted(bound - start, lambda distance: distance - step, end)
    found = solved(constant(bound) - X, end, X + constant(step), start)
    if found is None:
        # At first the condition may fail; that a loop does not run at all is seen where it is read.
        assert expected == 0 or step == 0
    else:
        assert found.exact == expected


@settings(max_examples=100)
@given(st.floats(0, 5), st.floats(0.05, 2), st.floats(-1, 20))
def test_fractions_are_counted_to_within_an_iteration(start: float, step: float, bound: float) -> None:
    expected = counted(bound - start, lambda distance: distance - step, "at zero")
    found = solved(constant(bound) - X, "at zero", X + constant(step), start)
    assert found is not None
    assert found.constant is not None
    assert found.constant[0] <= expected <= found.constant[2]


@settings(max_examples=100)
@given(st.integers(1, 5000), st.integers(2, 9), st.integers(0, 200))
def test_divisions_stay_in_their_range(start: int, divisor: int, bound: int) -> None:
    assume(start > bound)
    times, value = 0, start
    while value > bound:
        times, value = times + 1, value // divisor
    found = solved(X - constant(bound), "at zero", X.times(1 / divisor), start)
    assert found is not None
    assert found.constant is not None
    assert found.constant[0] <= times <= found.constant[2]


@settings(max_examples=100)
@given(st.integers(1, 100), st.integers(2, 9), st.integers(1, 10**9))
def test_products_stay_in_their_range(start: int, factor: int, bound: int) -> None:
    times, value = 0, start
    while value < bound:
        times, value = times + 1, value * factor
    found = solved(constant(bound) - X, "at zero", X.times(factor), start)
    assert found is not None
    assert found.constant is not None
    assert found.constant[0] <= times <= found.constant[2]


def test_large_counts_take_no_time() -> None:
    assert solved(constant(10**15) - X, "at zero", X + constant(3), 0) == constant(333333333333334)


@pytest.mark.parametrize(
    ("distance", "end", "after"),
    [
        (constant(10) - X, "at other than zero", X + constant(3)),
        (constant(10) - X, "at zero", X - ONE),
        (constant(10) - X, "at zero", X),
        (X, "below zero", X.times(0.5)),
    ],
)
def test_a_gap_that_nothing_closes(distance: Quantity, end: End, after: Quantity) -> None:
    assert solved(distance, end, after, 5) == NEVER
    unknown = iterations(Gap(distance, end), {"@x": after}, {"@x": N})
    assert unknown is None or end == "at other than zero"


@pytest.mark.parametrize(
    ("distance", "after", "growth"),
    [
        (N - X, {"@x": X + ONE}, {("n", ""): 1.0}),
        (N - X, {"@x": X.times(2)}, {("n", "log"): 1.0}),
        (N - X * X, {"@x": X + ONE}, {("n", ""): 0.5}),
        (Y - X, {"@x": X + ONE, "@y": Y - ONE}, {("n", ""): 1.0}),
        (Y - X, {"@x": (X + Y).times(0.5), "@y": Y}, {("n", "log"): 1.0}),
    ],
)
def test_what_bounds_a_loop_is_what_it_grows_with(
    distance: Quantity, after: dict[str, Quantity], growth: dict[tuple[str, str], float]
) -> None:
    found = iterations(Gap(distance), after, {"@x": ONE, "@y": N})
    assert found is not None
    [leading] = [dict(monomial) for monomial in found.terms if monomial]
    assert leading == growth


def test_a_step_that_may_not_be_taken_gives_a_range() -> None:
    sometimes = X + Quantity({(): (0.0, 0.5, 1.0)})
    found = solved(constant(100) - X, "at zero", sometimes, 0)
    assert found is not None
    assert found.constant is not None
    low, likely, high = found.constant
    assert low <= 100 <= likely == 200 < high


@pytest.mark.parametrize(
    "after",
    [
        {},
        {"@x": X + N},
        {"@x": X + Quantity({(): (-1.0, 0.0, 1.0)})},
        {"@x": X * X},
        {"@x": N},
    ],
)
def test_other_transitions_say_nothing(after: dict[str, Quantity]) -> None:
    assert iterations(Gap(constant(100) - X), after, {"@x": ZERO}) is None


def test_the_first_of_several_conditions_to_fail_ends_a_loop() -> None:
    assert of_all([constant(5), constant(3)]) == constant(3)
    assert of_all([constant(5), NEVER]) == constant(5)
    assert of_all([NEVER]) == NEVER
    assert of_all([NEVER, None]) is None
    assert of_all([None]) is None
    sooner = of_all([constant(8), None])
    assert sooner is not None
    assert sooner.constant is not None
    assert sooner.constant[0] == 0
    assert sooner.constant[2] == 8


@given(st.integers(2, 5), st.integers(0, 9), st.integers(0, 50), st.integers(1, 5000))
def test_what_is_multiplied_and_moved_ends_also_from_zero(factor: int, added: int, start: int, bound: int) -> None:
    assume(start or added)
    expected = counted(bound - start, lambda distance: bound - (factor * (bound - distance) + added), "at zero")
    found = solved(constant(bound) - X, "at zero", X.times(factor) + constant(added), start)
    assert found is not None
    assert found.evaluate(lambda name: 0.0)[1] == pytest.approx(expected, abs=2)
