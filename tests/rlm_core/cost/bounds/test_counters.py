"""Trip counts by arithmetic against counting."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.bounds.counters import FLIPPED, NEGATED, NEVER, Counter

COMPARE: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
OPERATORS = st.sampled_from(sorted(COMPARE, key=lambda op: op.__name__))
MOST = 500


def counted(start: float, change: Callable[[float], float], holds: Callable[[float], bool]) -> float:
    """The number of changes before a condition holds, infinite if it does not within ``MOST``."""
    for trips in range(MOST):
        if holds(start):
            return trips
        start = change(start)
    return math.inf


@settings(max_examples=200)
@given(st.integers(-50, 50), st.integers(-9, 9), OPERATORS, st.integers(-60, 60), st.booleans())
def test_steps_are_counted_exactly(start: int, step: int, op: type[ast.cmpop], bound: int, rises: bool) -> None:
    change = step if rises else -step
    expected = counted(start, lambda value: value + change, lambda value: COMPARE[op](value, bound))
    assert Counter(start, "+" if rises else "-", step).first(op, bound) == (expected, expected, expected)


@settings(max_examples=100)
@given(st.integers(-3, 2000), st.integers(2, 9), OPERATORS, st.integers(-5, 3000), st.sampled_from(["*", "//"]))
def test_factors_are_counted_exactly(start: int, factor: int, op: type[ast.cmpop], bound: int, sign: str) -> None:
    def change(value: float) -> float:
        return value * factor if sign == "*" else value // factor

    expected = counted(start, change, lambda value: COMPARE[op](value, bound))
    assert Counter(start, sign, factor).first(op, bound) == (expected, expected, expected)


@settings(max_examples=100)
@given(st.floats(0, 5), st.floats(0.05, 2), st.sampled_from([ast.Gt, ast.GtE]), st.floats(-1, 20))
def test_rounding_of_fractions_is_that_of_the_program(
    start: float, step: float, op: type[ast.cmpop], bound: float
) -> None:
    expected = counted(start, lambda value: value + step, lambda value: COMPARE[op](value, bound))
    assert Counter(start, "+", step).first(op, bound) == (expected, expected, expected)


def test_many_fractions_are_counted_to_within_a_trip() -> None:
    low, likely, high = Counter(0.0, "+", 0.1).first(ast.GtE, 1e6) or NEVER
    assert low <= 1e7 <= high
    assert high - low == 2
    assert likely == pytest.approx(1e7, abs=1)


def test_large_counts_take_no_time() -> None:
    assert Counter(0, "+", 3).first(ast.GtE, 10**15) == (333333333333334.0,) * 3
    assert Counter(1, "*", 2).first(ast.Gt, 10**15) == (50.0,) * 3


@given(st.integers(-9, 9), st.integers(-9, 9), OPERATORS)
def test_negated_and_flipped_comparisons_mean_what_they_say(left: int, right: int, op: type[ast.cmpop]) -> None:
    assert COMPARE[NEGATED[op]](left, right) is not COMPARE[op](left, right)
    assert COMPARE[FLIPPED[op]](right, left) is COMPARE[op](left, right)


def test_a_counter_that_never_gets_there() -> None:
    assert Counter(0, "+", 3).first(ast.Eq, 10) == NEVER
    assert Counter(0, "-", 1).first(ast.Gt, 10) == NEVER
    assert Counter(0, "*", 2).first(ast.Gt, 10) == NEVER
    assert Counter(8, "//", 2).first(ast.Lt, 0) == NEVER


@pytest.mark.parametrize("bound", [math.inf, -math.inf, math.nan])
def test_bounds_that_are_not_numbers_are_not_known(bound: float) -> None:
    assert Counter(0, "+", 1).first(ast.Gt, bound) is None
