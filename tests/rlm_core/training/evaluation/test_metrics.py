"""The figures of an evaluation; rows that count several times are those of a list that has each row so often."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import CodeText, Query
from rlm_core.training.evaluation.metrics import (
    Columns,
    RankCorrelation,
    Ranks,
    band_figures,
    between,
    bootstrap,
    floor_auc,
    gain,
    kendall,
    mean_of,
    median_of,
    point_figures,
    spearman,
    with_interval,
    within,
)
from rlm_core.training.evaluation.rows import PredictionTable, Row, quarter_of
from scipy.stats import rankdata, spearmanr


def rows(values: list[float], basis: str = "call", metric: str = "latency", **extra: str) -> list[Row]:
    """Rows of four groups with given values."""
    return [
        Row(
            f"x/{n % 3}/{n}",
            CodeText("text", "python", basis),  # type: ignore[arg-type]
            Query(metric, extra.get("device"), {"date": "2024-02-29"}),  # type: ignore[arg-type]
            value,
            f"g{n % 4}",
            "family",
            "module",
            "test",
            "",
        )
        for n, value in enumerate(values)
    ]


def test_kendall_counts_pairs_and_is_none_for_a_constant() -> None:
    actual = np.arange(4.0)
    assert kendall(np.array([0.0, 1, 3, 2]), actual) == pytest.approx((5 - 1) / 6)
    assert kendall(np.zeros(4), actual) is None


def test_between_compares_medians_and_within_the_rows_of_each_unit() -> None:
    units = np.repeat(np.array(["a", "b", "c", "d"]), 6)
    level = np.repeat([1.0, 2.0, 3.0, 4.0], 6)
    inside = np.tile(np.arange(6.0), 4)
    # Right between the units, the wrong way round within them.
    predicted, actual = 100 * level - inside, 100 * level + inside
    across = between(predicted, actual, units, units)
    inner = within(predicted, actual, units, units)
    assert across is not None
    assert across.value == pytest.approx(1)
    assert inner is not None
    assert [inner.value, inner.low, inner.high] == pytest.approx([-1, -1, -1])
    assert within(np.ones(24), actual, units, units) is None


def test_floor_auc_is_one_when_every_row_at_the_floor_is_predicted_lower() -> None:
    at_floor = np.array([True, True, False, False])
    each = np.ones(4, np.int64)
    assert floor_auc(np.array([1.0, 2.0, 3.0, 4.0]), at_floor)(each) == 1
    assert floor_auc(np.array([4.0, 3.0, 2.0, 1.0]), at_floor)(each) == 0
    assert floor_auc(np.array([1.0, 3.0, 2.0, 4.0]), at_floor)(each) == 0.75
    # The second row counts three times: 3 of its 6 pairs and both of the first row's are right.
    assert floor_auc(np.array([1.0, 3.0, 2.0, 4.0]), at_floor)(np.array([1, 3, 1, 1])) == 5 / 8
    assert floor_auc(np.array([1.0, 2.0]), np.array([False, False]))(np.ones(2, np.int64)) is None


def test_band_covers_the_floor_when_its_low_end_is_zero() -> None:
    low, high = np.array([0.0, 0.0, 10.0, 100.0]), np.array([64.0, 64.0, 90.0, 200.0])
    columns = Columns.of(rows([0.0, 65.0, 50.0, 300.0]), 64.0)
    found = band_figures(PredictionTable(high, low, high, low, high), columns)
    assert found["cover80"].value == 0.5
    assert found["cover80"].low is not None
    assert found["cover80"].low <= 0.5
    # High over low, both raised to the floor.
    assert found["width80"].value == pytest.approx(np.median([1, 1, 90 / 64, 2]))


def test_no_bands_no_band_figures() -> None:
    none = np.full(4, np.nan)
    assert band_figures(PredictionTable(np.ones(4), *[none] * 4), Columns.of(rows([1.0] * 4), 0.0)) == {}


def test_each_basis_gets_its_own_figures() -> None:
    values = [float(n) for n in range(1, 61)]
    actual = np.array(values)
    names = {
        basis: set(point_figures(actual, Columns.of(rows(values, basis, metric), 0.0)))
        for basis, metric in (
            ("call", "latency"),
            ("program", "memory"),
            ("kernel", "latency"),
            ("network", "accuracy"),
        )
    }
    assert names["call"] == {"spearman", "error", "by_family"}
    assert names["program"] == {"spearman", "error", "in_quarter"}
    assert names["kernel"] == {"spearman", "error", "between", "within"}
    assert names["network"] == {"spearman", "error", "kendall", "by_setting"}


def test_several_devices_give_the_mean_over_them() -> None:
    values = [float(n) for n in range(1, 61)]
    both = rows(values, "module", device="a") + rows(values, "module", device="b")
    slow = np.concatenate([np.array(values), 1000 - np.array(values)])
    found = point_figures(slow, Columns.of(both, 0.0))
    assert found["by_setting"].value == pytest.approx(0)
    assert found["by_setting"].interval is not None


def test_gain_is_the_difference_on_the_same_groups() -> None:
    columns = Columns.of(rows([float(n) for n in range(40)]), 0.0)
    found = gain(columns.actual, -columns.actual, columns)
    assert found is not None
    assert [found.value, found.low, found.high] == pytest.approx([2, 2, 2])


def test_quarter_of_a_date() -> None:
    assert quarter_of({"date": "2024-02-29"}) == "2024Q1"
    assert quarter_of({"date": "2024-12-01"}) == "2024Q4"
    assert quarter_of({}) == ""


ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2), st.integers(0, 3)), min_size=3, max_size=40
)
Values = tuple[int, int, int, int]


@given(ROWS)
def test_spearman_is_scipys_and_none_for_a_constant(rows: list[Values]) -> None:
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
def test_a_row_that_counts_twice_is_two_rows(rows: list[Values]) -> None:
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
