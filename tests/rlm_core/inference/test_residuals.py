"""Quantiles of forests that answer alone: they cover what they state, in order, and follow the expected size."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.residuals import Residuals, fit_residuals, from_axis, normal_axis, quantiles, to_axis
from rlm_core.inference.trees import Forest
from rlm_core.types import LEVELS, MEDIAN


def constant(value: float) -> Forest:
    """A forest that always says the same."""
    leaf = np.zeros(1, np.int32)
    return Forest(
        np.full(1, -1, np.int16),
        np.zeros(1, np.float32),
        leaf,
        leaf,
        np.zeros(1, np.bool_),
        np.zeros(1, np.float32),
        np.zeros(1, np.int32),
        np.array([value, -1, 0], np.float32),
    )


NORMAL = fit_residuals(np.random.default_rng(0).normal(size=4000), np.arange(4000).astype(np.str_))
TOLD = np.zeros(3, np.float32)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_the_stated_share_of_new_scores_lies_between_the_quantiles(coverage: float) -> None:
    scores = np.random.default_rng(1).normal(size=4000)
    low, high = np.interp([(1 - coverage) / 2, (1 + coverage) / 2], LEVELS, NORMAL.quantiles)
    assert np.mean((scores >= low) & (scores <= high)) == pytest.approx(coverage, abs=0.03)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=60), st.integers(1, 9))
def test_quantiles_rise_and_survive_json(scores: list[float], groups: int) -> None:
    found = fit_residuals(np.array(scores), np.array([str(i % groups) for i in range(len(scores))]))
    assert np.all(np.diff(found.quantiles) >= 0)
    assert (found.groups, found.rows) == (min(groups, len(scores)), len(scores))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Residuals) == found


def test_few_scores_give_no_narrower_tails_than_all_of_them() -> None:
    found = fit_residuals(np.array([-1.0, 0.0, 2.0]), np.array(["a", "b", "c"]))
    assert (found.quantiles[4], found.quantiles[12]) == (-1, 2)


def test_a_group_counts_by_the_square_root_of_its_size() -> None:
    scores = np.concatenate([np.zeros(100), np.ones(20)])
    groups = np.array(["large"] * 100 + [str(i) for i in range(20)])
    assert fit_residuals(scores, groups).quantiles[LEVELS.index(0.5)] == 1


@pytest.mark.parametrize("broken", [(1.0,) * 3, tuple(-value for value in NORMAL.quantiles)])
def test_other_quantiles_are_refused(broken: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="rising quantiles"):
        msgspec.convert({"quantiles": broken, "groups": 3, "rows": 3, "axis": ()}, Residuals)


def test_quantiles_lie_around_the_prediction_and_rise() -> None:
    found = quantiles(constant(-3), constant(-1), NORMAL, TOLD, 0.0, np.inf)
    assert found[MEDIAN] == pytest.approx(1e-3, rel=0.02)
    assert np.all(np.diff(found) > 0)
    assert np.log10(found[12] / found[4]) == pytest.approx(0.1 * 2 * 1.2816, rel=0.05)


def test_a_larger_expected_error_widens_the_band() -> None:
    widths = []
    for size in (-3.0, -2.0, -1.0):
        found = quantiles(constant(0), constant(size), NORMAL, TOLD, 0.0, np.inf)
        widths.append(np.log10(found[12] / found[4]))
    np.testing.assert_allclose(np.divide(widths[1:], widths[:-1]), 10, rtol=1e-6)


def test_quantiles_at_or_below_the_floor_are_zero() -> None:
    found = quantiles(constant(-3), constant(-1), NORMAL, TOLD, 1e-3, np.inf)
    whole = quantiles(constant(-3), constant(-1), NORMAL, TOLD, 0.0, np.inf)
    assert found == tuple(value if value > 1e-3 else 0.0 for value in whole)
    assert found[0] == 0.0 < found[-1]


def test_no_share_is_above_one() -> None:
    found = quantiles(constant(-0.01), constant(-1), NORMAL, TOLD, 0.0, 1.0)
    assert found[MEDIAN] < 1
    assert found[-1] == 1


@given(st.lists(st.floats(-2, 0), min_size=2, max_size=200), st.floats(-3, 3))
def test_an_axis_leads_there_and_back(logs: list[float], place: float) -> None:
    axis = normal_axis(np.array(logs))
    assert to_axis(from_axis(np.array([place]), axis), axis)[0] == pytest.approx(place, abs=1e-3)


def test_values_are_normal_on_their_axis() -> None:
    logs = np.log10(1 - np.random.default_rng(0).gamma(0.3, 0.1, 5000).clip(0, 0.9))
    places = to_axis(logs, normal_axis(logs))
    assert places.mean() == pytest.approx(0, abs=0.03)
    assert places.std() == pytest.approx(1, abs=0.03)


def test_a_forest_on_normal_scores_answers_with_values() -> None:
    axis = normal_axis(np.log10(np.random.default_rng(0).uniform(0.6, 0.9, 5000)))
    found = quantiles(constant(0), constant(-1), replace(NORMAL, axis=axis), TOLD, 0.0, 1.0)
    assert found[MEDIAN] == pytest.approx(0.75, abs=0.01)
    assert 0.6 < found[0] < found[-1] < 0.9
