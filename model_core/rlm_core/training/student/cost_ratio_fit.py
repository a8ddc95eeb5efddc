"""Fits models of cost ratios: pairs of texts with known values -> a model per basis and metric.

Programs: two solutions of a problem in one language and half year, of problems that nothing was fitted on. Functions:
our own measured edits; the families that calibrate were trained on, so their ratios are checked on held-out families.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_core.inference.cost_ratio import Array, RatioModel, ratio_task
from rlm_core.inference.residuals import fit_residuals
from rlm_core.queries.query_vector import task_parts
from rlm_core.training.corpus import Corpus, floor_of
from rlm_core.training.datasets.schema import Edit

MOST_A_CELL = 50
FEWEST_PAIRS = 50
_MOST_LEVEL = 0.995  # of the absolute ratios
_ROBUST_ROUNDS, _LEAST_ERROR = 12, 0.05
_SMALLEST = 1e-3  # log10: the least expected error of a ratio
Pairs = list[tuple[int, int]]


def fit_cost_ratios(corpus: Corpus, medians: Array, roles: Array, edits: Iterable[Edit] = ()) -> dict[str, RatioModel]:
    """The ratio models that the corpus has pairs for, by :func:`rlm_core.inference.cost_ratio.ratio_task`.

    Args:
        corpus: texts, queries and rows.
        medians: log10 of the predicted medians, ``(rows,)``; NaN where a row was not predicted.
        roles: what the change role says of each row's text, ``(rows,)``.
        edits: measured edits of functions in the ``train`` split, as ``schema.read_edits`` gives them.
    """
    by_metric: dict[tuple[str, str], Pairs] = defaultdict(list)
    for pair in [*_solutions(corpus), *_edited(corpus, edits)]:
        basis, _, metric, _ = task_parts(corpus.tasks[corpus.rows.task[pair[0]]])
        if np.isfinite(medians[list(pair)]).all():
            by_metric[basis, metric].append(pair)
    return {
        ratio_task(basis, metric): _fitted(corpus, pairs, medians, roles)
        for (basis, metric), pairs in by_metric.items()
        if len(pairs) >= FEWEST_PAIRS
    }


def _fitted(corpus: Corpus, pairs: Sequence[tuple[int, int]], medians: Array, roles: Array) -> RatioModel:
    floor = np.array([floor_of(name) or 1e-12 for name in corpus.tasks])[corpus.rows.task]
    logs = np.log10(np.maximum(corpus.rows.value, floor))
    return fit_ratio_model(pairs, np.stack([medians, roles, np.zeros_like(medians)], axis=1), logs, corpus.rows.group)


def fit_ratio_model(
    pairs: Sequence[tuple[int, int]], inputs: Array, logs: Array, row_groups: npt.NDArray[np.str_]
) -> RatioModel:
    """The ratio model of pairs of rows.

    Args:
        pairs: the rows before and after.
        inputs: what the model compares: log10 medians, change roles and log10 work, ``(rows, 3)``.
        logs: log10 of the true values, ``(rows,)``.
        row_groups: the group of each row; whole groups are weighted and calibrate the band.
    """
    before, after = np.array(pairs).T
    # Every pair in both directions: a change back is as likely as the change.
    before, after = np.concatenate([before, after]), np.concatenate([after, before])
    true = logs[after] - logs[before]
    features = inputs[after] - inputs[before]
    groups = row_groups[before]
    _, inverse, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weight = sizes[inverse] ** -0.25  # the root of a group's weight in a sum of squares
    weights = _robust_weights(features, true, weight)
    most = float(np.quantile(np.abs(true), _MOST_LEVEL))
    ratio = np.clip(features @ weights, -most, most)
    sizes_of = np.stack([np.ones_like(ratio), np.abs(ratio)], axis=1) * weight[:, None]
    least, slope = np.linalg.lstsq(sizes_of, np.abs(true - ratio) * weight, rcond=None)[0]
    spread = (float(max(least, _SMALLEST)), float(max(slope, 0.0)))
    scores = (true - ratio) / (spread[0] + spread[1] * np.abs(ratio))
    return RatioModel(
        (float(weights[0]), float(weights[1]), float(weights[2])), spread, most, fit_residuals(scores, groups)
    )


def _robust_weights(features: Array, true: Array, weight: npt.NDArray[np.floating[Any]]) -> Array:
    """Weights of the least absolute error: a few pairs whose work is misjudged by decades must not decide."""
    weights: npt.NDArray[np.floating[Any]] = np.zeros(features.shape[1])
    importance: npt.NDArray[np.floating[Any]] = weight**2
    for _ in range(_ROBUST_ROUNDS):
        scaled = features * importance[:, None]
        ridge = 1e-6 * np.eye(features.shape[1]) * len(true)
        weights = np.linalg.solve(features.T @ scaled + ridge, scaled.T @ true)
        importance = weight**2 / np.maximum(np.abs(true - features @ weights), _LEAST_ERROR)
    return weights.astype(np.float64)


def _solutions(corpus: Corpus) -> Pairs:
    """Calibration rows of one problem, task and half year with different texts."""
    rows = corpus.rows
    cells: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for row in np.flatnonzero(rows.split == "cal"):
        if corpus.tasks[rows.task[row]].startswith("program/"):
            cells[str(rows.group[row]), int(rows.task[row]), int(2 * rows.date[row])].append(int(row))
    rng = np.random.default_rng(0)
    found: Pairs = []
    for members in cells.values():
        pairs = [pair for pair in combinations(members, 2) if rows.text[pair[0]] != rows.text[pair[1]]]
        if len(pairs) > MOST_A_CELL:
            pairs = [pairs[i] for i in np.sort(rng.choice(len(pairs), MOST_A_CELL, replace=False))]
        found += pairs
    return found


def _edited(corpus: Corpus, edits: Iterable[Edit]) -> Pairs:
    index = {str(name): number for number, name in enumerate(corpus.rows.ids)}
    return [(index[edit.before], index[edit.after]) for edit in edits if edit.before in index and edit.after in index]
