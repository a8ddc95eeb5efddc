"""How kernels are answered, as the product does it: ranks, the 80 % band, and which variant of a kernel is faster.

    python -m tools.experiments.kernels_cv --data triton.parquet --config configs/student.toml [--old OLD.parquet]

Five folds by kernel, everything fitted without the kernels of a fold, bands included. Blind groups (those of the split
``test``, and of ``cal`` among groups that ``--old`` lacks) take no part unless ``--blind`` asks for them, alone, by a
model of all others. Values at the floor of their measurement are judged by no figure. Prints Spearman pooled, between
kernels (medians) and within kernels (mean of those with five rows), coverage and width of the band, and which of two
texts of a kernel is faster at equal sizes where the true ratio is at least 1.5 and both are above twice the floor.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.inference.residuals import fit_residuals
from rlm_core.training.corpus import Corpus, load_corpus
from rlm_core.training.datasets.schema import read_rows
from rlm_core.training.student.config import TreesConfig, load_config
from rlm_core.training.student.forest_fit import ForestJob, cross_fit
from rlm_core.training.student.ngram_ridge_fit import FOLDS, fold_of
from rlm_core.training.student.trees_fit import feature_matrix, log_values
from rlm_core.types import LEVELS
from scipy.stats import spearmanr
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

Array = npt.NDArray[Any]
_TASK = "kernel/triton/latency"
_LEAST_RATIO, _ABOVE_FLOOR = 1.5, 2.0


@dataclass(frozen=True, slots=True)
class Answers:
    """Predictions in log10 seconds of rows of a corpus, and the ends of their bands, ``(rows,)`` each."""

    corpus: Corpus
    target: Array
    found: Array
    low: Array
    high: Array
    floors: Array


def main() -> None:
    """Run the cross-validation, or judge the blind groups, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--old", type=Path, help="an earlier data set, whose rows are judged apart too")
    parser.add_argument("--old-only", action="store_true", help="fit and judge the rows of --old alone")
    parser.add_argument("--blind", action="store_true")
    arguments = parser.parse_args()
    corpus = load_corpus(arguments.data, tasks=[_TASK])
    old = {row["id"] for row in read_rows([arguments.old])} if arguments.old else set(corpus.rows.ids.tolist())
    is_old = np.isin(corpus.rows.ids, list(old))
    known = np.isin(corpus.rows.group, corpus.rows.group[is_old])
    blind = (corpus.rows.split == "test") | ((corpus.rows.split == "cal") & ~known)
    used = np.flatnonzero(is_old) if arguments.old_only else np.arange(len(corpus.rows))
    development, judged = used[~blind[used]], used[blind[used]]
    trees = load_config(arguments.config).trees
    floors = _floors(arguments.data, corpus)
    if arguments.blind:
        answers = _answers(corpus, trees, floors, [(development, judged)])
    else:
        judged, groups = development, corpus.rows.group[development]
        folds = GroupKFold(5).split(development, groups=groups)
        answers = _answers(corpus, trees, floors, [(judged[train], judged[test]) for train, test in folds])
    for name, part in (("all", judged), ("old rows", judged[is_old[judged]]), ("new rows", judged[~is_old[judged]])):
        measured = part[~corpus.rows.at_floor[part]]
        if len(measured) and (name == "all" or len(part) < len(judged)):
            print(f"{name}: {figures(answers, measured)}", flush=True)
    print(f"variants: {faster(answers, judged)}")


def _floors(data: Sequence[Path], corpus: Corpus) -> Array:
    by_id = {row["id"]: row["floor"] or 0.0 for row in read_rows(data) if row["basis"] == "kernel"}
    return np.array([by_id[name] for name in corpus.rows.ids.tolist()])


def _answers(
    corpus: Corpus, trees: dict[str, TreesConfig], floors: Array, folds: Sequence[tuple[Array, Array]]
) -> Answers:
    """Answers about the second rows of each fold by a model of the first ones."""
    rows, every = corpus.rows, np.arange(len(corpus.rows))
    features, target = feature_matrix(corpus, every, "kernel"), log_values(corpus, every, _TASK)
    fold = np.array([fold_of(family) for family in rows.family])
    device = np.full(len(rows), "")
    found, low, high = np.full((3, len(rows)), np.nan)
    for train, test in folds:
        chosen = np.concatenate([train, test])
        split = np.repeat(["train", "test"], [len(train), len(test)])
        job = ForestJob(
            _TASK,
            trees["kernel"],
            features[chosen],
            target[chosen],
            rows.group[chosen],
            fold[chosen],
            split,
            device[chosen],
            rows.at_floor[chosen],
        )
        with threadpool_limits(1):
            predicted = cross_fit(job, FOLDS)[1]
        kept = (split == "train") & ~job.at_floor
        residuals = fit_residuals((job.target - predicted)[kept], job.group[kept]).quantiles
        found[test] = predicted[len(train) :]
        low[test], high[test] = (found[test] + residuals[LEVELS.index(level)] for level in (0.1, 0.9))
    return Answers(corpus, target, found, low, high, floors)


def figures(answers: Answers, rows: Array) -> str:
    """Spearman pooled, between and within groups, and the 80 % band."""
    target, found, group = answers.target[rows], answers.found[rows], answers.corpus.rows.group[rows]
    kernels = [np.flatnonzero(group == name) for name in np.unique(group)]
    medians = np.array([(np.median(found[own]), np.median(target[own])) for own in kernels])
    within = [spearmanr(found[own], target[own]).statistic for own in kernels if len(own) >= 5 and np.ptp(target[own])]
    inside = (target >= answers.low[rows]) & (target <= answers.high[rows])
    shares = [inside[own].mean() for own in kernels]
    width = 10 ** np.mean(answers.high[rows] - answers.low[rows])
    return (
        f"pooled {spearmanr(found, target).statistic:.3f} between {spearmanr(*medians.T).statistic:.3f} within"
        f" {np.nanmean(within):.3f} ({len(kernels)} kernels, {len(rows)} rows); 80 % band {width:.1f}x, inside"
        f" {inside.mean():.3f} of the rows, {np.mean(shares):.3f} of a kernel's on average,"
        f" {sum(share < 0.6 for share in shares)} kernels below .6;"
        f" median factor {10 ** np.median(np.abs(target - found)):.2f}"
    )


def faster(answers: Answers, rows: Array) -> str:
    """Which of two texts of a kernel at one size and device is faster, of all pairs and of the surer half."""
    table, cells = answers.corpus.rows, defaultdict(list)
    for row in rows.tolist():
        if 10 ** answers.target[row] > _ABOVE_FLOOR * answers.floors[row] > 0:
            cells[table.group[row], table.query[row]].append(row)
    sure, right = [], []
    for members in cells.values():
        for one, other in combinations(members, 2):
            actual = answers.target[one] - answers.target[other]
            if table.text[one] != table.text[other] and abs(actual) >= np.log10(_LEAST_RATIO):
                said = answers.found[one] - answers.found[other]
                sure.append(abs(said))
                right.append(0.5 if said == 0 else float(said * actual > 0))
    half = np.argsort(sure)[::-1][: len(sure) // 2]
    if not len(half):
        return "none"
    return f"{len(sure)} pairs, right {np.mean(right):.3f}; of the surer half {np.mean(np.array(right)[half]):.3f}"


if __name__ == "__main__":
    main()
