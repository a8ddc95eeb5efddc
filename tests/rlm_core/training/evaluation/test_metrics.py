"""The figures of an evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from rlm_core import CodeText, Query
from rlm_core.training.evaluation.metrics import (
    Columns,
    band_figures,
    between,
    floor_auc,
    gain,
    kendall,
    point_figures,
    within,
)
from rlm_core.training.evaluation.prediction_table import PredictionTable
from rlm_core.training.evaluation.rows import Row, quarter_of


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
