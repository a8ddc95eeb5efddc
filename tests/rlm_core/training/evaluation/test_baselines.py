"""The plain baselines and their bands."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from rlm_core import CodeText, Query
from rlm_core.training.evaluation.baselines import WorkloadTable, conformal_radius, fit_baselines
from rlm_core.training.evaluation.metrics import spearman
from rlm_core.training.evaluation.rows import Row


def row(number: int, text: str, value: float, basis: str, device: str | None, workload: Mapping[str, str]) -> Row:
    """A row in a group of its own."""
    code = CodeText(text, "python", basis)  # type: ignore[arg-type]
    return Row(str(number), code, Query("latency", device, workload), value, str(number), "f", "problem", "x", "")


def programs(count: int) -> list[Row]:
    """Programs whose cost grows with their loops and was ten times as high in the second quarter."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(count):
        loops, later = int(rng.integers(1, 6)), int(rng.integers(0, 2))
        text = "def f(x):\n" + "    for i in x:\n" * loops + "        pass"
        value = float(10.0 ** (loops + later + rng.normal(0, 0.1)))
        found.append(row(number, text, value, "program", None, {"date": f"2024-0{1 + 3 * later}-15"}))
    return found


def kernels(count: int) -> list[Row]:
    """Kernels whose time is their size, on a fast and a slow device."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(count):
        size, slow = int(2 ** rng.integers(4, 14)), bool(rng.integers(0, 2))
        workload = {"arg0": f"{size}x4", "dtype": "fp16"}
        value = 1e-6 * size * (30 if slow else 1)
        found.append(row(number, f"def k{number % 3}(): pass", value, "kernel", "slow" if slow else "fast", workload))
    return found


def test_linear_baselines_learn_what_they_may_see() -> None:
    rows = programs(300)
    found = fit_baselines(rows[:200], rows[200:250], rows[250:], 0.0)
    actual = np.array([r.value for r in rows[250:]])
    score = {name: spearman(answers.median, actual) for name, answers in found.items()}
    assert score["mean"] is None
    assert min(score["tfidf"] or 0, score["length"] or 0) > 0.9
    assert 0 < (score["quarter"] or 0) < (score["length"] or 0)


def test_boosting_reads_device_and_sizes() -> None:
    rows = kernels(600)
    found = fit_baselines(rows[:400], rows[400:500], rows[500:], 0.0)
    actual = np.array([r.value for r in rows[500:]])
    assert set(found) == {"mean", "boosting"}
    assert (spearman(found["boosting"].median, actual) or 0) > 0.97


def test_bands_of_baselines_cover_about_what_they_state() -> None:
    rows = programs(900)
    actual = np.array([r.value for r in rows[500:]])
    found = fit_baselines(rows[:200], rows[200:500], rows[500:], 0.0)["tfidf"]
    covered = float(((found.low80 <= actual) & (actual <= found.high80)).mean())
    assert 0.72 < covered < 0.88
    assert (found.low90 <= found.low80).all()
    assert (found.high80 <= found.high90).all()


def test_bands_reach_down_to_zero_where_they_touch_the_floor() -> None:
    rows = programs(200)
    found = fit_baselines(rows[:100], rows[100:150], rows[150:], 1e9)["mean"]
    assert (found.low80 == 0).all()
    assert (found.high80 >= 1e9).all()


def test_without_calibration_rows_there_are_no_bands() -> None:
    rows = programs(60)
    assert np.isnan(fit_baselines(rows[:40], [], rows[40:], 0.0)["tfidf"].low80).all()


def test_a_group_counts_by_the_square_root_of_its_rows_in_the_radius() -> None:
    residuals = np.concatenate([np.zeros(100), np.arange(1.0, 11.0)])
    groups = np.array(["large"] * 100 + [f"s{n}" for n in range(10)])
    # The hundred equal rows weigh as ten of twenty: the median of all rows is 0, of the weighted ones it is not.
    assert conformal_radius(residuals, groups, 0.5) == pytest.approx(1, abs=1)
    assert conformal_radius(residuals, groups, 0.8) == pytest.approx(7, abs=1)


def test_workload_table_reads_shapes_numbers_and_words() -> None:
    queries = [Query("latency", "a", {"x": "3x5", "dtype": "fp16"}), Query("latency", "b", {"x": "7"})]
    table = WorkloadTable.fit(queries)
    found = table.columns([*queries, Query("latency", "c", {"x": "odd", "dtype": "int8"})])
    assert list(found[:2, 0]) == [0, 1]
    assert np.isnan(found[2, 0])
    assert found[0, 1] == pytest.approx(4)  # log2(1 + 3 * 5)
    assert found[1, 1] == pytest.approx(3)
    dtype, size = (found[:, 8 + list(table.names).index(name)] for name in ("dtype", "x"))
    assert dtype[0] == 0
    assert np.isnan(dtype[1:]).all()
    assert np.isnan(size[2])
