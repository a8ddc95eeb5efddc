"""The distribution function against writing all numbers down, and against the quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rlm_core.errors import ModelError
from rlm_core.training.full.cdf import distribution
from rlm_core.training.full.decoding import Slot, quantiles

from .test_decoding import all_numbers
from .tiny import LATENCY, LOOSE, MEMORY, SMALL, TEXTS, tiny_model


def test_it_is_the_sum_over_all_smaller_numbers() -> None:
    model = tiny_model()
    values, probabilities = all_numbers(model)
    ordered = ~np.isnan(values)
    share = probabilities / probabilities[ordered].sum()
    asked = sorted(values[ordered].tolist())[::7]
    [found] = distribution(model, model.encode(TEXTS[:1]), [[LATENCY] * len(asked)], [asked])
    for place, value in enumerate(asked):
        assert found.below[place] == pytest.approx(share[values < value].sum(), abs=1e-6)
        assert found.mass[place] == pytest.approx(share[values == value].sum(), abs=1e-6)


def test_quantiles_invert_it() -> None:
    model = tiny_model(seed=1, sharpness=2.0)
    checked = 0
    levels = (0.01, 0.2, 0.5, 0.7, 0.99)
    memories = model.encode(TEXTS)
    asks = [[LATENCY], [MEMORY], [LATENCY, MEMORY]]
    found = quantiles(model, memories, [[[Slot(ask)] for ask in own] for own in asks], levels)
    for own, memory, line in zip(asks, memories, found, strict=True):
        for ask, answer in zip(own, line, strict=True):
            [at] = distribution(model, [memory], [[ask] * len(levels)], [answer.smooth.tolist()])
            # Zero has no interval, and a quantile at an interval's very end may be rounded into the next one.
            inside = (answer.smooth != 0) & (at.share > 1e-9) & (at.share < 1 - 1e-9)
            checked += int(inside.sum())
            np.testing.assert_allclose(at.at[inside], np.array(levels)[inside], atol=1e-6)
    assert checked >= 8


def test_it_is_the_same_alone_and_in_a_batch() -> None:
    model = tiny_model()
    memories = model.encode(TEXTS)
    asks, values = [[LATENCY], [MEMORY, LATENCY], [LATENCY]], [[0.01], [3.0, 0.2], [7.0]]
    together = distribution(model, memories, asks, values)
    for one, ask, value, memory in zip(together, asks, values, memories, strict=True):
        [alone] = distribution(model, [memory], [ask], [value])
        np.testing.assert_allclose(one.at, alone.at, atol=1e-6)


def test_it_runs_from_nothing_to_one() -> None:
    model = tiny_model()
    ends = [-SMALL.largest, SMALL.largest]
    [found] = distribution(model, model.encode(TEXTS[:1]), [[LATENCY] * 2], [ends])
    assert found.below[0] == 0
    assert math.isclose(found.through[1], 1, abs_tol=1e-6)


def test_numbers_with_several_ways_of_writing_are_refused() -> None:
    model = tiny_model(LOOSE)
    with pytest.raises(ModelError, match="needs unique numbers with the exponent first"):
        distribution(model, model.encode(TEXTS[:1]), [[LATENCY]], [[1.0]])
