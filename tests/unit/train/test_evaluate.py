"""The figures of an evaluation and the plain baselines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.evaluate.baselines import Sample, predict_baselines, quarter_of
from rlm_core.evaluate.metrics import (
    band_figures,
    bootstrap,
    floor_auc,
    mean_within,
    point_figures,
    spearman,
)
from rlm_core.evaluate.report import Report, SliceReport
from scipy.stats import spearmanr


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=40))
def test_spearman_is_scipys_and_none_for_a_constant(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array(values, dtype=np.float64) for values in zip(*pairs, strict=True))
    found = spearman(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(first, second).statistic, abs=1e-9)


def test_mean_within_leaves_out_small_cells_and_weighs_by_rows() -> None:
    rising, falling = np.arange(30.0), -np.arange(60.0)
    actual = np.concatenate([np.arange(30.0), np.arange(60.0), [1.0, 2.0]])
    predicted = np.concatenate([rising, falling, [5.0, 6.0]])
    cells = np.array(["a"] * 30 + ["b"] * 60 + ["c"] * 2)
    assert mean_within(predicted, actual, cells, weighted=True) == pytest.approx((30 - 60) / 90)
    assert mean_within(predicted, actual, cells, weighted=False) == pytest.approx(0)


def test_floor_auc_is_one_when_every_row_at_the_floor_is_predicted_lower() -> None:
    at_floor = np.array([True, True, False, False])
    assert floor_auc(np.array([1.0, 2.0, 3.0, 4.0]), at_floor) == 1
    assert floor_auc(np.array([4.0, 3.0, 2.0, 1.0]), at_floor) == 0
    assert floor_auc(np.array([1.0, 2.0]), np.array([False, False])) is None


def test_band_covers_the_floor_when_its_low_end_is_zero() -> None:
    groups = np.array(["a", "b", "c", "d"])
    low, high = np.array([0.0, 0.0, 10.0, 100.0]), np.array([64.0, 64.0, 90.0, 200.0])
    figures = band_figures(low, high, np.array([0.0, 65.0, 50.0, 300.0]), 64.0, groups)
    assert figures.coverage == 0.5
    assert figures.interval[0] <= 0.5 <= figures.interval[1]


def test_bootstrap_resamples_whole_groups() -> None:
    groups = np.array(["a"] * 50 + ["b"] * 50)
    values = np.array([0.0] * 50 + [1.0] * 50)
    interval = bootstrap(groups, lambda rows: float(values[rows].mean()))
    # Two groups: a draw holds both, or one of them twice; rows alone would never give 0 or 1.
    assert interval == (0.0, 1.0)


def test_point_figures_give_families_for_functions_and_quarters_for_programs() -> None:
    actual = np.arange(1.0, 41.0)
    names = np.array(["p"] * 40)
    functions = point_figures(actual, actual, 0.0, names, names, None)
    programs = point_figures(actual, actual, 0.0, names, names, names)
    assert functions.spearman_by_family == pytest.approx(1)
    assert functions.spearman_within is None
    assert programs.spearman_by_family is None
    assert programs.spearman_within == pytest.approx(1)
    assert functions.error == 0


def test_quarter_of_a_date() -> None:
    assert quarter_of({"date": "2024-02-29"}) == "2024Q1"
    assert quarter_of({"date": "2024-12-01"}) == "2024Q4"
    assert quarter_of({}) == ""


def test_baselines_learn_what_they_may_see() -> None:
    rng = np.random.default_rng(0)
    loops = rng.integers(1, 6, 300)
    texts = ["def f(x):\n" + "    for i in x:\n" * int(n) + "        pass" for n in loops]
    quarters = np.array(["2024Q1", "2024Q2"])[rng.integers(0, 2, 300)]
    values = 10.0 ** (loops + (quarters == "2024Q2"))
    train, test = (
        Sample([texts[i] for i in part], [[]] * len(part), quarters[part], values[part])
        for part in (np.arange(200), np.arange(200, 300))
    )
    found = predict_baselines(train, test, floor=0.0)
    score = {name: spearman(predicted, test.values) for name, predicted in found.items()}
    assert score["mean"] is None
    assert min(score["tfidf"] or 0, score["length"] or 0) > 0.9
    assert 0 < (score["quarter"] or 0) < (score["length"] or 0)


def test_report_prints_one_line_a_predictor_and_the_bands_of_the_model() -> None:
    actual = np.arange(1.0, 41.0)
    names = np.array(["g"] * 40)
    figures = point_figures(actual, actual, 0.0, names, names, names)
    band = band_figures(actual / 2, actual * 2, actual, 0.0, names)
    slice_report = SliceReport(
        "program",
        "go",
        "latency",
        "problem",
        40,
        1,
        {"model": replace(figures, band80=band, band90=band), "mean": figures},
    )
    text = str(Report("m-1", "test", [slice_report], {"no such device": 3}))
    assert text.count("program/go/latency") == 3
    assert "100.0 %" in text
    assert "abstained from 3 rows: no such device" in text
