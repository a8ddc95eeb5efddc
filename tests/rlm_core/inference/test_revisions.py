"""What revisions of real packages leave of a predicted ratio."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.calibration import bands
from rlm_core.inference.revisions import agreement, of_revisions, revised
from rlm_core.types import LEVELS, MEDIAN, CalibrationSource, CostRatio, Metric, SizeValue

from tests.fakes import quantiles

logs = st.floats(-5, 5)


def ratio_of(log: float, agreed: float | None, metric: Metric = "latency") -> CostRatio:
    found = quantiles(10**log, 3.0)
    banded = bands(found, 50, 500, CalibrationSource(f"changes/call/{metric}"))
    return CostRatio("call", metric, "x86-64", "model", found[MEDIAN], banded, found, agreed=agreed)


@given(logs, logs)
def test_the_agreement_is_the_smaller_change_where_the_directions_are_the_same(moved: float, work: float) -> None:
    found = agreement(moved, work)
    assert abs(found) <= min(abs(moved), abs(work))
    assert found == agreement(work, moved)
    assert (found != 0) == (moved * work > 0)
    assert found * moved >= 0


@given(logs, st.floats(0, 1), st.sampled_from(["latency", "memory"]))
def test_a_revised_ratio_has_the_predicted_direction_and_a_smaller_change(
    log: float, share: float, metric: Metric
) -> None:
    found = revised(ratio_of(log, share * log, metric))
    assert found.ratio is not None
    assert abs(math.log10(found.ratio)) <= abs(log) + 1e-9
    assert math.log10(found.ratio) * log >= 0
    assert list(found.quantiles) == sorted(found.quantiles)
    assert found.quantiles[MEDIAN] == found.ratio
    band = found.bands[0]
    assert (band.low, band.high) == (found.quantiles[LEVELS.index(0.1)], found.quantiles[LEVELS.index(0.9)])
    assert band.source.task == f"revisions/call/{metric}"


def test_only_texts_that_fix_their_cost_without_given_sizes_say_which_revision_costs_more() -> None:
    fixed = ratio_of(2.0, None)
    seen = replace(fixed, sizes=(SizeValue("n", 1000.0, "recorded"),))
    assert [of_revisions(ratio) for ratio in (fixed, seen)] == [fixed, seen]
    for ratio in (ratio_of(2.0, 2.0), replace(fixed, sizes=(SizeValue("n", 1000.0, "query"),))):
        assert ratio.direction == "higher"
        found = of_revisions(ratio)
        assert found.direction is None
        assert not found.has_grown(1.5, 0.9)
        assert of_revisions(found) == found


def test_a_small_change_hardly_counts_and_a_large_agreed_one_does() -> None:
    small, large = (revised(ratio_of(log, log)).ratio for log in (0.1, 2.0))
    assert small == pytest.approx(1.0, abs=0.07)
    assert large is not None
    assert large > 30


def test_a_change_of_which_the_facts_see_more_counts_more() -> None:
    ratios = [revised(ratio_of(log, 0.4)).ratio for log in (0.4, 1.2)]
    assert all(ratio is not None for ratio in ratios)
    assert 1.2 < ratios[0] < ratios[1] < 2  # type: ignore[operator]


def test_a_change_that_only_one_of_the_two_sees_is_not_believed_but_widens_the_band() -> None:
    surely, doubtful = revised(ratio_of(0.0, 0.0)), revised(ratio_of(1.0, 0.0))
    assert doubtful.ratio == pytest.approx(1.0, abs=0.02)
    assert doubtful.bands[0].high > 1.5 * surely.bands[0].high


def test_a_ratio_is_revised_once() -> None:
    revision = revised(ratio_of(1.0, 0.5))
    assert revised(revision) == revision


def test_a_ratio_that_does_not_rest_on_both_stays() -> None:
    arithmetic = ratio_of(3.0, None)
    assert revised(arithmetic) is arithmetic
    unknown = replace(ratio_of(1.0, 1.0), ratio=None, quantiles=())
    assert revised(unknown) is unknown
