"""Extrapolation: laws are recognised from three sizes, and what follows none is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.counterfactual.literal.laws import extrapolate

LAWS: dict[str, Callable[[float], float]] = {
    "constant": lambda n: 5.0,
    "linear": lambda n: 3e-8 * n,
    "n log n": lambda n: 2e-8 * n * math.log(n),
    "quadratic": lambda n: 4e-8 * n * n,
    "cubic": lambda n: 1e-9 * n**3,
}


@pytest.mark.parametrize("law", sorted(LAWS))
def test_a_law_that_the_template_does_not_declare_is_recognised(law: str) -> None:
    cost = LAWS[law]
    points = [(size, cost(size)) for size in (1000, 4000, 16000)]
    value = extrapolate(points, 10**6, lambda n: 2.0**n if n < 50 else math.inf, 0.0)
    assert value == pytest.approx(cost(10**6), rel=0.05)


def test_exponentials_are_recognised_from_neighbouring_sizes() -> None:
    points = [(size, 1e-7 * 1.618**size) for size in (20, 21, 22)]
    assert extrapolate(points, 40, lambda n: float(n), 0.0) == pytest.approx(1e-7 * 1.618**40, rel=0.01)


@given(st.lists(st.floats(0.96, 1.04), min_size=3, max_size=3))
def test_the_declared_law_takes_precedence_within_the_noise(noise: list[float]) -> None:
    points = [(size, 1e-8 * size * factor) for size, factor in zip((1000, 2000, 4000), noise, strict=True)]
    assert extrapolate(points, 10**7, lambda n: 7.0 * n, 0.0) == pytest.approx(0.1, rel=0.05)


def test_costs_that_follow_no_law_and_too_few_points_give_nothing() -> None:
    assert extrapolate([(1000, 1.0), (2000, 9.0), (4000, 2.0)], 10**6, float, 0.0) is None
    assert extrapolate([(1000, 1.0), (2000, 2.0)], 10**6, float, 0.0) is None


def test_differences_below_the_floor_do_not_count() -> None:
    assert extrapolate([(1000, 0.0), (2000, 64.0), (4000, 32.0)], 10**6, lambda n: 1.0, 64.0) == 32.0
