"""What the facts of launches add to the prediction of kernels of unseen groups: five folds on the same rows.

    python -m tools.experiments.launch_cv --data triton.parquet --cache SOURCES --facts FACTS.npz [--old OLD.parquet]

The facts are computed once and kept in ``--facts``. Blind groups (those of the split ``test``, and of ``cal`` among
groups that ``--old`` lacks) take no part unless ``--blind`` asks for them, alone, by a model of all others. Values at
the floor of their measurement are only known not to be above it: they are fitted as the smaller of the floor and the
prediction, and judged by no figure. Prints Spearman pooled, between and within groups, the 80 % band by groups, and
which of two texts of a group is faster.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.cost.triton_launch.workload import WorkloadFacts, workload_facts
from rlm_core.inference.features import kernel, launch
from rlm_core.source.canonical import canonical
from rlm_core.training.datasets.schema import read_rows
from scipy.stats import spearmanr
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

from .launch_sources import source_files

Array = npt.NDArray[Any]
_SHARE = 0.5  # of the prediction: the estimate
_COLUMNS = [kernel.NAMES.index(name) for name in kernel.SELECTED]
_ROUNDS = 2  # of fitting values at the floor
_LEAST_RATIO = 1.5


@dataclass(frozen=True, slots=True)
class Problem:
    """Rows with their features: ``(rows, features)`` each, targets in log10 seconds, and which are at their floor."""

    rows: list[dict[str, Any]]
    plain: Array
    launched: Array
    target: Array
    censored: Array
    group: Array


def main() -> None:
    """Print the figures of the variants."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--facts", type=Path, required=True)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--blind", action="store_true")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    rows = [row for row in read_rows(arguments.data) if row["basis"] == "kernel"]
    old_ids = {row["id"] for row in read_rows([arguments.old]) if row["basis"] == "kernel"} if arguments.old else set()
    old_groups = {row["group"] for row in rows if row["id"] in old_ids}
    blind = np.array(
        [row["split"] == "test" or (row["split"] == "cal" and row["group"] not in old_groups) for row in rows]
    )
    problem = _problem(rows, arguments.cache, arguments.facts)
    is_old = np.array([row["id"] in old_ids for row in rows])
    print(f"{len(rows)} rows, {len(set(problem.group))} groups, {problem.censored.sum()} at their floor; "
          f"blind: {blind.sum()} rows of {len(set(problem.group[blind]))} groups")  # fmt: skip
    variants = {"before": False, "with launches": True}
    with threadpool_limits(1):
        for name, with_launches in variants.items():
            x, estimate = features_of(problem, with_launches=with_launches)
            if arguments.blind:
                found = fit_predict(
                    problem, x, estimate, np.flatnonzero(~blind), np.flatnonzero(blind), arguments.seeds
                )
                judged = np.flatnonzero(blind)
            else:
                judged = np.flatnonzero(~blind)
                found = np.zeros(len(judged))
                folds = GroupKFold(5).split(judged, groups=problem.group[judged])
                for train, test in folds:
                    found[test] = fit_predict(problem, x, estimate, judged[train], judged[test], arguments.seeds)
            for part, chosen in (
                ("all", np.ones(len(judged), bool)),
                ("old rows", is_old[judged]),
                ("new rows", ~is_old[judged]),
            ):
                kept = chosen & ~problem.censored[judged]
                if kept.any():
                    print(f"{name}, {part}: {figures(problem, judged[kept], found[kept])}", flush=True)
            print(f"{name}, variants: {faster(problem, judged, found)}", flush=True)


def _problem(rows: list[dict[str, Any]], cache: Path, path: Path) -> Problem:
    launched = _launched(rows, cache, path)
    described = {text: kernel.describe(canonical(text, "triton")) for text in {row["text"] for row in rows}}
    plain = np.array([kernel.features(described[row["text"]], row["workload"], row["device"]) for row in rows])
    target = np.log10([row["value"] for row in rows])
    floors = np.array([row["floor"] or np.nan for row in rows], float)
    censored = np.array([row["value"] for row in rows]) <= floors * 1.001
    return Problem(rows, plain, launched, target, censored, np.array([row["group"] for row in rows]))


def _launched(rows: list[dict[str, Any]], cache: Path, path: Path) -> Array:
    """The features of launches of all rows, kept in a file by the rows' ids."""
    if path.exists():
        with np.load(path) as file:
            known = dict(zip(file["ids"].tolist(), file["features"], strict=True))
        if all(row["id"] in known for row in rows):
            return np.array([known[row["id"]] for row in rows])
    files = source_files(rows, cache)
    facts: dict[tuple[str, str], WorkloadFacts | None] = {}
    found = []
    for number, row in enumerate(rows):
        key = files[row["id"]], json.dumps(row["workload"], sort_keys=True)
        if key not in facts:
            facts[key] = workload_facts(key[0], row["workload"])
        found.append(launch.launch_features(facts[key], row["device"]))
        if number % 500 == 0:
            print(f"{number} of {len(rows)} rows", flush=True)
    np.savez_compressed(path, ids=np.array([row["id"] for row in rows]), features=np.array(found))
    return np.array(found)


def features_of(problem: Problem, *, with_launches: bool) -> tuple[Array, Array]:
    """The features that trees read and the estimate, ``(rows,)``, of one variant."""
    host = np.array([[row["workload"].get("timed") == "host"] for row in problem.rows], float)
    roofline = problem.plain[:, kernel.NAMES.index(kernel.ESTIMATE)].astype(float)
    columns = [problem.plain[:, _COLUMNS], host]
    if not with_launches:
        return np.hstack(columns), roofline
    estimate = problem.launched[:, launch.NAMES.index(launch.ESTIMATE)].astype(float)
    return np.hstack([*columns, problem.launched]), np.where(np.isfinite(estimate), estimate, roofline)


def fit_predict(problem: Problem, x: Array, estimate: Array, train: Array, test: Array, seeds: int) -> Array:
    """Predictions of rows by trees on others, the estimate taking a share."""
    usual = float(np.nanmedian(estimate[train]))
    offset = np.where(np.isfinite(estimate), estimate, usual)
    texts = [problem.rows[row]["text"] for row in (*train, *test)]
    words = _words(texts, len(train))
    inner, outer = np.hstack([x[train], words[: len(train)]]), np.hstack([x[test], words[len(train) :]])
    target = problem.target[train].copy()
    _, place, counts = np.unique(problem.group[train], return_inverse=True, return_counts=True)
    weights = counts[place] ** -0.5
    found = np.zeros(len(test))
    for seed in range(seeds):
        for round_number in range(_ROUNDS):
            trees = HistGradientBoostingRegressor(
                max_iter=150, learning_rate=0.05, max_leaf_nodes=8, min_samples_leaf=30, l2_regularization=3.0,
                max_features=0.3, random_state=seed,
            )  # fmt: skip
            trees.fit(inner, target, sample_weight=weights)
            if round_number + 1 < _ROUNDS:
                fitted = (1 - _SHARE) * trees.predict(inner) + _SHARE * offset[train]
                at_floor = problem.censored[train]
                target[at_floor] = np.minimum(problem.target[train][at_floor], fitted[at_floor])
        found += ((1 - _SHARE) * trees.predict(outer) + _SHARE * offset[test]) / seeds
    return found


def _words(texts: Sequence[str], fitted: int) -> Array:
    """Words and pairs of them, reduced to a few numbers; fitted on the first of the texts."""
    distinct = list(dict.fromkeys(texts[:fitted]))
    tfidf = TfidfVectorizer(token_pattern=r"[A-Za-z_]+|\d+", ngram_range=(1, 2), min_df=3, sublinear_tf=True)
    matrix = tfidf.fit_transform(distinct)
    svd = TruncatedSVD(16, random_state=0).fit(matrix)
    every = list(dict.fromkeys(texts))
    reduced = dict(zip(every, svd.transform(tfidf.transform(every)), strict=True))
    return np.array([reduced[text] for text in texts])


def figures(problem: Problem, rows: Array, found: Array) -> str:
    """Spearman pooled, between and within groups, and the 80 % band made of the other groups' residuals."""
    target, group = problem.target[rows], problem.group[rows]
    own = [np.flatnonzero(group == name) for name in np.unique(group)]
    medians = np.array([(np.median(found[part]), np.median(target[part])) for part in own])
    within = [
        spearmanr(found[part], target[part]).statistic for part in own if len(part) >= 5 and np.ptp(target[part]) > 0
    ]
    residuals = target - found
    shares, widths = [], []
    for part in own:
        others = np.setdiff1d(np.arange(len(rows)), part)
        weights = _weights(group[others])
        low, high = _quantiles(residuals[others], weights, (0.1, 0.9))
        shares.append(np.mean((residuals[part] >= low) & (residuals[part] <= high)))
        widths.append(high - low)
    return (
        f"pooled {spearmanr(found, target).statistic:.3f} between {spearmanr(*medians.T).statistic:.3f} "
        f"within {np.nanmean(within):.3f} ({len(own)} groups, {len(rows)} rows); band {10 ** np.mean(widths):.1f}x, "
        f"inside {np.mean(shares):.3f} of a group on average; median factor {10 ** np.median(np.abs(residuals)):.2f}"
    )


def _weights(groups: Array) -> Array:
    _, place, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return 1.0 / counts[place]


def _quantiles(values: Array, weights: Array, levels: tuple[float, ...]) -> list[float]:
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    return [float(values[order[min(int(np.searchsorted(cumulative, level)), len(order) - 1)]]) for level in levels]


def faster(problem: Problem, rows: Array, found: Array) -> str:
    """Which of two texts of a group at one size and device is faster, where they differ by 1.5 times and more."""
    cells: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        entry = problem.rows[row]
        if entry["floor"] is not None and not problem.censored[row]:
            key = entry["group"], entry["device"], json.dumps(entry["workload"], sort_keys=True)
            cells[key].append(place)
    sure, right = [], []
    for places in cells.values():
        for one, other in combinations(places, 2):
            actual = problem.target[rows[one]] - problem.target[rows[other]]
            if problem.rows[rows[one]]["text"] != problem.rows[rows[other]]["text"] and abs(actual) >= np.log10(
                _LEAST_RATIO
            ):
                said = found[one] - found[other]
                sure.append(abs(said))
                right.append(0.5 if said == 0 else float(said * actual > 0))
    if not sure:
        return "none"
    order = np.argsort(sure)[::-1]
    half = order[: len(order) // 2]
    return f"{len(sure)} pairs, right {np.mean(right):.3f}; of the surer half {np.mean(np.array(right)[half]):.3f}"


if __name__ == "__main__":
    main()
