"""How many rows of a GPU the kernels' trees need of it: its rows held out of training, then 0, 10, 100 or all given.

    python -m tools.experiments.gpu_held_out --data triton.parquet --config configs/student.toml --out gpus.json

A GPU's rows leave the training rows; its kernels are then predicted, each by trees that have seen no row of the kernel
on any GPU, in five folds of the groups outside of the test split, and once on the groups of the test split. With 0 rows
the GPU is known by its data sheet. Rows are given, drawn evenly from those of the other folds, to ``adapt`` (as
``rlm-lsp adapt``: a correction of what is predicted for the known GPUs), ``tune`` (as ``rlm-lsp tune``: level and slope
below 200 rows, else trees on residuals; unchanged where its guard says so) and ``refit`` (training with them). Where a
GPU has fewer rows than that, it gives all.

Printed: the mean of the GPUs (of draws, too) with 95 % intervals of a bootstrap over groups of kernels: Spearman among
the rows of a fold, which one correction answers, and within kernels, the median error in decades, coverage and width in
decades of the 80 % band. Bands of ``refit`` are those of 0 rows.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.inference.adaptation.fit import fit_device
from rlm_core.inference.residuals import Residuals, fit_residuals
from rlm_core.inference.trees import Forest
from rlm_core.training.corpus import Corpus, load_corpus
from rlm_core.training.evaluation.metrics import members, spearman
from rlm_core.training.student.config import TreesConfig, load_config
from rlm_core.training.student.forest_fit import Matrix, fit_forest, group_weights
from rlm_core.training.student.trees_fit import feature_matrix, log_values
from rlm_core.training.tuning.data import TuningData
from rlm_core.training.tuning.judging import ForestBands, judge
from rlm_core.training.tuning.run import FEWEST_ROWS
from rlm_core.training.tuning.tuners import ForestTuner, folds_of, suffices
from rlm_core.types import LEVELS
from threadpoolctl import threadpool_limits

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Way = tuple[str, int]  # method, and how many rows it is given; -1 for all
_SLICE = "kernel/triton/latency"
_TEST = -1  # the fold of the test split
# Rows outside of the largest group.
_FEWEST_GROUPS, _FEWEST_ROWS = 4, 20
_LEAST_WITHIN = 5
_GIVEN, _ALL, _RESAMPLES = (10, 100), -1, 200
_LOW, _HIGH = LEVELS.index(0.1), LEVELS.index(0.9)
FIGURES = ("spearman", "within", "error", "coverage", "width")


@dataclass(frozen=True, slots=True)
class Task:
    """A GPU to hold out: all rows ``(rows, ...)`` and its own for the known GPUs, ``(own, known, features)``."""

    gpu: str
    corpus: Corpus
    features: Matrix
    target: Array
    own: Indices
    fold: Indices
    known: Matrix
    config: TreesConfig
    draws: int
    refits: bool

    @property
    def group(self) -> npt.NDArray[np.str_]:
        """The group of every row."""
        return self.corpus.rows.group

    def fit(self, rows: Indices) -> Forest:
        """Trees on some rows, as the model's are."""
        return fit_forest(self.features[rows], self.target[rows], group_weights(self.group[rows]), _SLICE, self.config)


@dataclass(frozen=True, slots=True)
class Found:
    """The predictions of a GPU's rows, log10 seconds ``(draws, own)`` each."""

    median: Array
    low: Array
    high: Array


def prepare(corpus: Corpus, config: TreesConfig, draws: int, *, refits: bool) -> Iterator[Task]:
    """A task for each GPU with enough groups and rows outside of the test split."""
    rows = corpus.rows
    features = feature_matrix(corpus, np.arange(len(rows)), "kernel")
    target = log_values(corpus, np.arange(len(rows)), _SLICE)
    device = np.array([corpus.queries[query][0] or "" for query in rows.query])
    learnt = rows.split != "test"
    for gpu in np.unique(device).tolist():
        own, mine = np.flatnonzero(device == gpu), learnt & (device == gpu)
        counts = np.unique(rows.group[mine], return_counts=True)[1]
        if len(counts) < _FEWEST_GROUPS or mine.sum() - counts.max() < _FEWEST_ROWS:
            continue
        known = [name for name in np.unique(device[learnt]).tolist() if name != gpu]
        workloads = [corpus.queries[query][1] for query in rows.query[own]]
        asked = replace(
            corpus,
            queries=[(name, workload) for workload in workloads for name in known],
            rows=replace(rows.chosen(np.repeat(own, len(known))), query=np.arange(len(own) * len(known))),
        )
        elsewhere = feature_matrix(asked, np.arange(len(asked.rows)), "kernel").reshape(len(own), len(known), -1)
        fold = _folds(rows.group, mine, learnt)
        yield Task(gpu, corpus, features, target, own, fold, elsewhere, config, draws, refits)


def _folds(group: npt.NDArray[np.str_], mine: npt.NDArray[np.bool_], learnt: npt.NDArray[np.bool_]) -> Indices:
    """Folds of whole groups, even in the rows of the GPU and then in all others; ``_TEST`` for the test split."""
    fold = np.full(len(group), _TEST)
    of = dict(zip(group[mine], folds_of(group[mine]), strict=True))
    rest = learnt & ~np.isin(group, list(of))
    of |= dict(zip(group[rest], folds_of(group[rest], len(set(of.values()))), strict=True))
    fold[learnt] = [of[name] for name in group[learnt]]
    return fold


def run(task: Task) -> dict[Way, Found]:
    """Every way of learning the GPU, each row of it answered by trees and corrections without its fold."""
    with threadpool_limits(1):
        return _run(task)


def _run(task: Task) -> dict[Way, Found]:
    own, count = task.own, len(task.own)
    folds = np.unique(task.fold[own])
    others = np.setdiff1d(np.flatnonzero(task.fold != _TEST), own)
    base = {fold: task.fit(others[task.fold[others] != fold]) for fold in np.unique(task.fold).tolist()}
    # Predictions for rows of kernels that the trees have not seen, as a user's are.
    unseen = np.zeros(len(task.target))
    known = np.zeros(task.known.shape[:2])
    for fold, forest in base.items():
        mine = task.fold == fold
        unseen[mine] = forest.predict(task.features[mine])
        asked = task.known[mine[own]]
        known[mine[own]] = forest.predict(asked.reshape(-1, asked.shape[2])).reshape(asked.shape[:2])
    ways: list[Way] = [("data sheet", 0)]
    ways += [(name, k) for k in (*_GIVEN, _ALL) for name in ("adapt", "tune", *(["refit"] if task.refits else []))]
    found = {way: Found(*(np.zeros((_draws(task, way), count)) for _ in range(3))) for way in ways}
    for fold in folds:
        at = np.flatnonzero(task.fold[own] == fold)
        rest = np.flatnonzero((task.fold[own] != fold) & (task.fold[own] != _TEST))
        calibrated = others[task.fold[others] != fold]
        errors = task.target[calibrated] - unseen[calibrated]
        residuals = fit_residuals(errors, task.group[calibrated])
        for (name, k), into in found.items():
            for draw in range(len(into.median)):
                rng = np.random.default_rng([draw, int(fold) + 1])
                given = rest if k == _ALL or k >= len(rest) else np.sort(rng.choice(rest, k, replace=False))
                if name == "adapt":
                    answer = _adapted(task, known, given, at, residuals)
                elif name == "tune":
                    answer = _tuned(task, base[int(fold)], unseen, given, at, residuals)
                else:
                    fitted = task.fit(np.concatenate([calibrated, own[given]])) if name == "refit" else base[int(fold)]
                    answer = _banded(fitted.predict(task.features[own[at]]), residuals)
                into.median[draw, at], into.low[draw, at], into.high[draw, at] = answer
    return found


def _draws(task: Task, way: Way) -> int:
    return task.draws if way[1] in _GIVEN else 1


def _banded(median: Array, residuals: Residuals) -> tuple[Array, Array, Array]:
    return median, median + residuals.quantiles[_LOW], median + residuals.quantiles[_HIGH]


def _adapted(task: Task, known: Array, given: Indices, at: Indices, residuals: Residuals) -> tuple[Array, Array, Array]:
    rows = task.own[given]
    fit = fit_device(known[given], task.target[rows], texts=task.group[rows].tolist())
    half = (residuals.quantiles[_HIGH] - residuals.quantiles[_LOW]) / 2
    return fit.predict(known[at]), *fit.band(known[at], 0.8, half)


def _tuned(
    task: Task, base: Forest, unseen: Array, given: Indices, at: Indices, residuals: Residuals
) -> tuple[Array, Array, Array]:
    """Return the result of the slice tuner on the given rows, under its guard."""
    rows = task.own[given]
    group, here = task.group[rows], task.features[task.own[at]]
    folds, bands = folds_of(group), ForestBands(_SLICE, residuals)
    if not suffices(folds):
        return _banded(base.predict(here), residuals)
    unused: Any = None  # the query head's part, which kernels do without
    tuning_data = TuningData(
        corpus=replace(task.corpus, rows=task.corpus.rows.chosen(rows)),
        encoded=unused,
        wide=unseen[rows],
        actual=task.target[rows],
        keys=np.full(len(rows), _SLICE),
        inputs=unused,
        evidence=unused,
        features={0: task.features[rows]},
    )
    student: Any = SimpleNamespace(forests={_SLICE: base})
    for few in (False, True)[len(rows) < FEWEST_ROWS :]:
        tuner = ForestTuner(student, tuning_data, 0, np.arange(len(rows)), folds, few=few)
        answers = tuner.shipped(), tuner.held_out()
        fresh = np.ones(len(rows), bool)
        result = judge(_SLICE, tuner.kind, tuning_data.actual, group, folds, answers, bands, fresh)
        if result.refused is None:
            draft: Any = SimpleNamespace(forests={_SLICE: base}, residuals={})
            tuner.put(draft)
            bands.put(draft, answers[1].score, group, np.full(len(rows), task.gpu))
            return _banded(draft.forests[_SLICE].predict(here), draft.residuals[_SLICE])
    return _banded(base.predict(here), residuals)


def within(found: Found, actual: Array, rows: Indices) -> list[float]:
    """Spearman among the rows of a kernel, a draw each; empty for few rows or values that are all alike."""
    if len(rows) < _LEAST_WITHIN:
        return []
    return [rank for median in found.median if (rank := spearman(median[rows], actual[rows])) is not None]


def among(median: Array, actual: Array, fold: Indices) -> float | None:
    """Spearman of the rows of each fold, weighed by their number: levels of two folds are those of two corrections."""
    ranks = [(spearman(median[one], actual[one]), len(one)) for one in members(fold) if len(one) >= _LEAST_WITHIN]
    known = np.array([(rank, count) for rank, count in ranks if rank is not None])
    return float(np.average(known[:, 0], weights=known[:, 1])) if len(known) else None


def measure(
    found: Found, actual: Array, fold: Indices, parts: list[Indices], ranks: list[list[float]]
) -> dict[str, float]:
    """The figures of the rows in ``parts``, a part a kernel with its ranks, as the mean of the draws."""
    at = np.concatenate(parts)
    by_figure: dict[str, list[float]] = defaultdict(list)
    for median, low, high in zip(found.median, found.low, found.high, strict=True):
        whole = among(median[at], actual[at], fold[at])
        by_figure["spearman"] += [whole] if whole is not None else []
        by_figure["error"].append(float(np.median(np.abs(median[at] - actual[at]))))
        by_figure["coverage"].append(float(np.mean((low[at] <= actual[at]) & (actual[at] <= high[at]))))
        by_figure["width"].append(float(np.mean(high[at] - low[at])))
    by_figure["within"] = [float(np.mean(one)) for one in ranks if one]
    return {name: float(np.mean(values)) for name, values in by_figure.items() if values}


def summary(tasks: list[Task], found: list[dict[Way, Found]], way: Way, *, test: bool) -> list[dict[str, Any]]:
    """The figures of a way: of each GPU, and of their mean with its interval over groups."""
    parts: list[dict[str, Indices]] = []
    for task in tasks:
        mine = np.flatnonzero((task.fold[task.own] == _TEST) == test)
        group = task.group[task.own[mine]]
        parts.append({str(group[one[0]]): mine[one] for one in members(group)})
    actual = [task.target[task.own] for task in tasks]
    folds = [task.fold[task.own] for task in tasks]
    ranks = [
        {name: within(answers[way], values, rows) for name, rows in one.items()}
        for one, values, answers in zip(parts, actual, found, strict=True)
    ]
    names = sorted({name for one in parts for name in one})

    def mean(drawn: list[str]) -> tuple[dict[str, float], list[dict[str, float]]]:
        each = []
        for one, values, fold, answers, known in zip(parts, actual, folds, found, ranks, strict=True):
            chosen = [name for name in drawn if name in one]
            rows = [one[name] for name in chosen]
            each.append(measure(answers[way], values, fold, rows, [known[name] for name in chosen]) if chosen else {})
        by_figure = {figure: [one[figure] for one in each if figure in one] for figure in FIGURES}
        return {figure: float(np.mean(values)) for figure, values in by_figure.items() if values}, each

    value, each = mean(names)
    rng = np.random.default_rng(0)
    resampled = [mean(rng.choice(names, len(names)).tolist())[0] for _ in range(_RESAMPLES)]
    interval = {
        figure: np.quantile([one[figure] for one in resampled if figure in one], [0.025, 0.975]).round(4).tolist()
        for figure in value
    }
    columns = {"split": "test" if test else "folds", "method": way[0], "rows": "all" if way[1] == _ALL else way[1]}
    lines = [{**columns, "gpu": "mean", "gpus": sum(map(bool, each)), **_rounded(value), "interval": interval}]
    for task, one, figures in zip(tasks, parts, each, strict=True):
        if figures:
            evaluated = {"groups": len(one), "evaluated": sum(map(len, one.values()))}
            lines.append({**columns, "gpu": task.gpu, **evaluated, **_rounded(figures)})
    return lines


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in figures.items()}


def table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """The means as Markdown."""
    yield "| split | method | rows | GPUs | " + " | ".join(FIGURES) + " |"
    yield "|---" * (4 + len(FIGURES)) + "|"
    for line in lines:
        if line["gpu"] == "mean":
            cells = [
                f"{line[name]:.3f} [{line['interval'][name][0]:.3f}, {line['interval'][name][1]:.3f}]"
                for name in FIGURES
            ]
            yield (
                f"| {line['split']} | {line['method']} | {line['rows']} | {line['gpus']} | " + " | ".join(cells) + " |"
            )


def main() -> None:
    """Run all GPUs, write the figures and print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=5, help="draws of 10 and of 100 rows")
    parser.add_argument("--no-refit", action="store_true", help="leave out the slow way")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    corpus = load_corpus(arguments.data, tasks=[_SLICE])
    config = load_config(arguments.config).trees["kernel"]
    tasks = list(prepare(corpus, config, arguments.draws, refits=not arguments.no_refit))
    with ProcessPoolExecutor(arguments.processes, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(run, tasks))
    lines = [line for test in (False, True) for way in found[0] for line in summary(tasks, found, way, test=test)]
    arguments.out.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    for task in tasks:
        kept = task.fold[task.own] != _TEST
        groups = len(np.unique(task.group[task.own[kept]]))
        print(f"{task.gpu}: {kept.sum()} rows of {groups} groups, and {(~kept).sum()} rows of the test split")
    print("\n".join(table(lines)))


if __name__ == "__main__":
    main()
