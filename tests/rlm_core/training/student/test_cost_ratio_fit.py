"""Fitting change models: pairs inside problems and measured edits, never of held-out rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from rlm_core.training.corpus import Corpus, Rows
from rlm_core.training.datasets.schema import Edit
from rlm_core.training.student.cost_ratio_fit import MOST_A_CELL, fit_cost_ratios

Array = npt.NDArray[np.float64]


def problems(count: int = 80, each: int = 4, split: str = "cal") -> tuple[Corpus, Array, Array]:
    """Solutions of problems: a cost of the problem times one of the solution; medians know both, roles the latter."""
    rng = np.random.default_rng(0)
    n = count * each
    group = np.repeat(np.arange(count), each)
    own = rng.normal(0, 0.3, n)
    logs = rng.normal(0, 1, count)[group] + own
    rows = Rows(
        np.array([f"leethub/{i}/latency" for i in range(n)]),
        np.arange(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        10**logs,
        np.full(n, 2024.1),
        np.full((n, 2, 1), -1, np.int32),
        np.char.add("problem-", group.astype(np.str_)),
        np.char.add("problem-", group.astype(np.str_)),
        np.full(n, split),
        np.zeros(n, bool),
    )
    corpus = Corpus([(f"text {i}", "go") for i in range(n)], [(None, {})], rows, ["program/go/latency"])
    return corpus, logs + rng.normal(0, 0.3, n), own + rng.normal(0, 0.1, n)


def test_both_differences_are_weighted_by_their_information() -> None:
    corpus, medians, roles = problems()
    [model] = fit_cost_ratios(corpus, medians, roles).values()
    assert model.weights[1] > 2 * model.weights[0] > 0
    assert model.residuals.groups == 80
    assert model.residuals.rows == 2 * 80 * 6


def test_ratio_bands_cover_what_they_state_on_other_problems() -> None:
    corpus, medians, roles = problems(400)
    first = replace(corpus, rows=replace(corpus.rows, split=np.where(np.arange(1600) < 800, "cal", "test")))
    [model] = fit_cost_ratios(first, medians, roles).values()
    before, after = np.arange(800, 1600, 4), np.arange(801, 1600, 4)
    moved = [medians[after] - medians[before], roles[after] - roles[before], np.zeros(len(after))]
    said = model.predict(np.stack(moved, axis=1))
    true = np.log10(corpus.rows.value[after] / corpus.rows.value[before])
    scores = (true - said) / model.size(said)
    inside = (scores >= model.residuals.quantiles[4]) & (scores <= model.residuals.quantiles[12])
    assert inside.mean() == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_only_calibration_problems_teach(split: str) -> None:
    assert fit_cost_ratios(*problems(split=split)) == {}


def test_a_large_problem_gives_no_more_than_its_share() -> None:
    [model] = fit_cost_ratios(*problems(3, 40)).values()
    assert model.residuals.rows == 2 * 3 * MOST_A_CELL


def test_rows_without_a_prediction_make_no_pair() -> None:
    corpus, medians, roles = problems()
    medians[::4] = np.nan
    [model] = fit_cost_ratios(corpus, medians, roles).values()
    assert model.residuals.rows == 2 * 80 * 3


def test_edits_teach_functions_where_both_rows_are_known() -> None:
    corpus, medians, roles = problems(60, 2, split="train")
    names = np.array([f"base-{i // 2}/{'after' if i % 2 else 'before'}/latency" for i in range(120)])
    corpus = replace(corpus, tasks=["call/python/latency"], rows=replace(corpus.rows, ids=names))
    edits = [Edit(f"base-{i}/before/latency", f"base-{i}/after/latency") for i in range(5, 65)]
    [(name, model)] = fit_cost_ratios(corpus, medians, roles, edits).items()
    assert name == "changes/call/latency"
    assert model.residuals.rows == 2 * 55
