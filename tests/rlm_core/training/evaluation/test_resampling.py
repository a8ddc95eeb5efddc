"""Statistics of rows that count several times are those of a list that has each row so often."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.training.evaluation.resampling import (
    RankCorrelation,
    Ranks,
    bootstrap,
    mean_of,
    median_of,
    spearman,
    with_interval,
)
from scipy.stats import rankdata, spearmanr

ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2), st.integers(0, 3)), min_size=3, max_size=40
)
Row = tuple[int, int, int, int]


@given(ROWS)
def test_spearman_is_scipys_and_none_for_a_constant(rows: list[Row]) -> None:
    first, second, *_ = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    found = spearman(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(first, second).statistic, abs=1e-9)


def test_no_rows_have_no_statistics() -> None:
    none, weights = np.zeros(0), np.zeros(0, np.int64)
    assert spearman(none, none) is None
    assert median_of(none)(weights) is None
    assert mean_of(none)(weights) is None


@given(ROWS)
def test_a_row_that_counts_twice_is_two_rows(rows: list[Row]) -> None:
    columns = list(zip(*rows, strict=True))
    first, second = (np.array(column, np.float64) for column in columns[:2])
    cells, weights = (np.array(column, np.int64) for column in columns[2:])
    listed = np.repeat(np.arange(len(rows)), weights)
    for statistic, expected in ((mean_of(first), np.mean), (median_of(first), np.median)):
        found = statistic(weights)
        assert found == (pytest.approx(expected(first[listed])) if len(listed) else None)
    ranks = Ranks(first, cells).of(weights)
    for cell in set(cells[listed]):
        chosen = listed[cells[listed] == cell]
        assert ranks[chosen].tolist() == rankdata(first[chosen]).tolist()
    whole = RankCorrelation(first, second).mean(weights)
    expected_whole = spearman(first[listed], second[listed])
    assert whole == (pytest.approx(expected_whole) if expected_whole is not None else None)
    for weighted in (False, True):
        found = RankCorrelation(first, second, cells).mean(weights, weighted=weighted)
        parts = [listed[cells[listed] == cell] for cell in range(3)]
        values = [(spearman(first[part], second[part]), len(part)) for part in parts]
        known = [(value, size if weighted else 1) for value, size in values if value is not None]
        total = sum(size for _, size in known)
        assert found == (pytest.approx(sum(v * size for v, size in known) / total) if known else None)


def test_means_of_cells_leave_out_small_ones_and_weigh_by_rows() -> None:
    rising, falling = np.arange(30.0), -np.arange(60.0)
    actual = np.concatenate([np.arange(30.0), np.arange(60.0), [1.0, 2.0]])
    predicted = np.concatenate([rising, falling, [5.0, 6.0]])
    cells = np.array(["a"] * 30 + ["b"] * 60 + ["c"] * 2)
    correlation, each = RankCorrelation(predicted, actual, cells, 20), np.ones(92, np.int64)
    assert correlation.mean(each, weighted=True) == pytest.approx((30 - 60) / 90)
    assert correlation.mean(each) == pytest.approx(0)


def test_bootstrap_resamples_whole_groups_and_needs_two() -> None:
    groups = np.array(["a"] * 50 + ["b"] * 50)
    values = np.array([0.0] * 50 + [1.0] * 50)
    # Two groups: a draw holds both, or one of them twice; rows alone would never give 0 or 1.
    assert bootstrap(groups, mean_of(values)) == (0.0, 1.0)
    assert bootstrap(np.array(["a"] * 9), lambda weights: 1.0) is None
    found = with_interval(groups, mean_of(values))
    assert found is not None
    assert (found.value, found.interval) == (0.5, (0.0, 1.0))
