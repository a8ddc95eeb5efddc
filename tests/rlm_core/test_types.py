"""Probabilities from a prediction's quantiles."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.types import LEVELS, Prediction

from tests.fakes import NO_NUMBER, quantiles

FOUND = quantiles(1e-3)
PREDICTION = Prediction("call", "latency", "x86-64", {}, "test", 1e-3, (), 5e-8, False, quantiles=FOUND)


@pytest.mark.parametrize(("value", "level"), list(zip(FOUND, LEVELS, strict=True)))
def test_at_a_quantile_the_probability_is_what_its_level_leaves(value: float, level: float) -> None:
    assert PREDICTION.above(value) == pytest.approx(1 - level)


@given(st.floats(1e-6, 1), st.floats(1, 100))
def test_a_larger_budget_is_less_likely_exceeded(value: float, factor: float) -> None:
    assert PREDICTION.above(value * factor) <= PREDICTION.above(value) + 1e-12


def test_beyond_the_quantiles_nothing_is_certain() -> None:
    assert PREDICTION.above(0.0) == pytest.approx(0.995)
    assert PREDICTION.above(1e9) == pytest.approx(0.005)


def test_a_value_at_the_floor_counts_as_not_above_it() -> None:
    low = replace(PREDICTION, median=0.0, quantiles=(0.0,) * 12 + FOUND[12:])
    assert low.above(0.0) == pytest.approx(1 - LEVELS[11])
    assert 1 - LEVELS[12] < low.above(1e-5) < 1 - LEVELS[11]


def test_without_a_prediction_there_is_no_probability() -> None:
    assert math.isnan(replace(PREDICTION, median=None, quantiles=(), abstained=NO_NUMBER).above(1.0))
