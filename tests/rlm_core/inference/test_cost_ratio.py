"""Ratios of costs: their quantiles follow the differences, nest, and survive JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.cost_ratio import RatioModel, centred, cost_ratio, log_median, ratio_quantiles, unchanged
from rlm_core.inference.residuals import fit_residuals
from rlm_core.types import LEVELS, MEDIAN, CostRatio

from tests.fakes import NO_NUMBER

NORMAL = np.random.default_rng(0).normal(size=4000)
SCORES = np.concatenate([NORMAL, -NORMAL])
MODEL = RatioModel((0.8, 0.5, 0.0), (0.02, 0.3), 5.0, fit_residuals(SCORES, np.arange(8000).astype(np.str_)))
Difference = st.floats(-3, 3)


@given(Difference, Difference)
def test_a_change_and_its_undoing_mirror_each_other(median: float, role: float) -> None:
    there, back = ratio_quantiles(MODEL, (median, role, 0.0)), ratio_quantiles(MODEL, (-median, -role, 0.0))
    np.testing.assert_allclose(np.multiply(there, back[::-1]), 1, rtol=0.02)


@given(Difference, Difference)
def test_quantiles_rise_around_the_weighted_difference(median: float, role: float) -> None:
    found = ratio_quantiles(MODEL, (median, role, 0.0))
    assert len(found) == len(LEVELS)
    assert list(found) == sorted(found)
    assert math.log10(found[MEDIAN]) == pytest.approx(
        0.8 * median + 0.5 * role, abs=0.05 * float(MODEL.size(np.array(3.9)))
    )


def test_no_ratio_goes_beyond_those_of_the_calibration() -> None:
    far, farther = (ratio_quantiles(replace(MODEL, most=1.0), (median, 0.0, 0.0))[MEDIAN] for median in (2.0, 9.0))
    assert far == farther == pytest.approx(10, rel=0.1)


def test_a_larger_change_is_less_certain() -> None:
    small, large = (
        cost_ratio("call", "latency", None, "m", MODEL, (median, 0.0, 0.0), "changes/call/latency")
        for median in (0.01, 1.0)
    )
    widths = [change.bands[0].high / change.bands[0].low for change in (small, large)]
    assert widths[0] < 1.2 < widths[1]
    assert small.above(1.25) < 0.05
    assert large.above(1.25) > 0.95


def test_a_model_survives_json() -> None:
    assert msgspec.json.decode(json.dumps(asdict(MODEL)), type=RatioModel) == MODEL


def test_a_model_without_all_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"length 3, got 1 - at `\$\.weights`"):
        msgspec.convert({**asdict(MODEL), "weights": [1.0]}, RatioModel)


def test_without_a_ratio_nothing_is_likely() -> None:
    change = CostRatio("call", "latency", None, "m", None, (), (), NO_NUMBER)
    assert math.isnan(change.above(1.25))


@pytest.mark.parametrize(("median", "floor", "log"), [(1e-3, 1e-6, -3), (0.0, 1e-6, -6), (0.0, 0.0, -12)])
def test_a_median_counts_as_no_less_than_its_floor(median: float, floor: float, log: float) -> None:
    assert log_median(median, floor) == pytest.approx(log)


def test_what_is_the_same_to_the_model_costs_the_same_without_doubt() -> None:
    ratio = unchanged("call", "latency", None, "m", MODEL)
    assert ratio.ratio == 1
    assert {(band.low, band.high) for band in ratio.bands} == {(1, 1)}
    assert ratio.above(1.01) < 0.05 < 0.95 < ratio.above(0.99)


def test_a_centred_ratio_keeps_its_width() -> None:
    ratio = cost_ratio("call", "memory", None, "m", MODEL, (0.3, 0.0, 0.0), "changes/call/memory")
    moved = centred(ratio)
    assert (moved.ratio, moved.quantiles[MEDIAN]) == (1.0, 1.0)
    widths = [one.bands[0].high / one.bands[0].low for one in (ratio, moved)]
    assert widths[0] == pytest.approx(widths[1])
