"""The student's query head in onnxruntime: queries about encoded units -> distributions over the outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_core.errors import ModelError
from rlm_core.queries.kernel_arguments import example_sizes as kernel_example
from rlm_core.queries.module_sizes import example_sizes as module_example
from rlm_core.queries.query_vector import QUERY, has_sizes, query_vector, task_parts
from rlm_core.source.call_graph import MAX_CALLEES
from rlm_core.source.syntax_counts import FACTS, facts
from rlm_core.types import Abstention, AbstentionCode, CodeText, Query

from . import ngram_ridge
from .card import TaskCard
from .encoder import Encoding, Entry, open_session, run
from .features import estimate_name, feature_names, features, forest_key, has_trees, reads_ridge
from .trees import Forest

_MOST_ROWS = 240
# Head rows come in whole blocks: matrix kernels round the last rows of a batch differently when they do not fill a
# block (of 4, 6, 8 or 12 rows), and a number must not depend on what else is asked.
_ROW_BLOCK = 24


@dataclass(frozen=True, slots=True)
class HeadRow:
    """A query about a unit: ``index`` is where its answer goes, the rest are the head's inputs.

    ``features`` are None for a task without trees.
    """

    index: tuple[int, int]
    task: int
    code: CodeText
    query: Query
    encoding: Encoding
    levels: tuple[list[Encoding], list[Encoding]]
    date: float
    features: npt.NDArray[np.float32] | None


class QueryHead:
    """The head of an exported student.

    Raises:
        ModelError: the file is not a usable model.
    """

    def __init__(self, path: Path, tasks: Sequence[TaskCard], forests: Mapping[str, Forest]) -> None:
        self._session = open_session(path)
        self._tasks, self._forests = tasks, forests

    def probabilities(self, rows: Sequence[HeadRow]) -> npt.NDArray[np.float64]:
        """Distributions over the outcomes, ``(rows, outcomes)``."""
        if not rows:
            return np.zeros((0, len(self._tasks[0].scale.edges)))
        return np.concatenate([self._run(rows[i : i + _MOST_ROWS]) for i in range(0, len(rows), _MOST_ROWS)])

    def _run(self, rows: Sequence[HeadRow]) -> npt.NDArray[np.float64]:
        width = len(rows[0].encoding.vector)
        size = -(-len(rows) // _ROW_BLOCK) * _ROW_BLOCK
        inputs: dict[str, npt.NDArray[Any]] = {
            "unit": np.zeros((size, width), np.float32),
            "callees": np.zeros((size, 4 * width), np.float32),
            "counts": np.zeros((size, 2), np.float32),
            "wide": np.zeros(size, np.float32),
            "facts": np.zeros((size, FACTS), np.float32),
            "slice": np.zeros(size, np.int64),
            "date": np.zeros(size, np.float32),
            "query": np.zeros((size, QUERY), np.float32),
        }
        inputs["wide"][: len(rows)] = self._positions(rows)
        for i, row in enumerate(rows):
            for level, encodings in enumerate(row.levels):
                if encodings:
                    vectors = np.stack([encoding.vector for encoding in encodings])
                    inputs["callees"][i, 2 * level * width : (2 * level + 1) * width] = vectors.mean(0)
                    inputs["callees"][i, (2 * level + 1) * width : (2 * level + 2) * width] = vectors.max(0)
                    inputs["counts"][i, level] = len(encodings)
            lengths = ([e.tokens for e in level] for level in row.levels)
            inputs["unit"][i], inputs["slice"][i], inputs["date"][i] = row.encoding.vector, row.task, row.date
            inputs["facts"][i] = facts(row.encoding.counts, row.encoding.tokens, *lengths)
            inputs["query"][i] = query_vector(row.query.device, row.query.workload)
        logits = run(self._session, inputs, "head")
        if logits.shape != (size, len(self._tasks[0].scale.edges)):
            raise ModelError(
                "the head of the model and its card have another number of outcomes; export the model again"
            )
        logits = logits[: len(rows)].astype(np.float64)
        floorless = np.array([part.scale.floor == 0 for part in self._tasks])
        logits[floorless[inputs["slice"][: len(rows)]], 0] = -np.inf
        weights = np.exp(logits - logits.max(1, keepdims=True))
        result: npt.NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
        return result

    def _positions(self, rows: Sequence[HeadRow]) -> npt.NDArray[np.float64]:
        """Predictions of the n-gram ridge or the trees, on the outcome axis."""
        logs = np.zeros(len(rows))
        members: dict[int, list[int]] = {}
        for i, row in enumerate(rows):
            members.setdefault(row.task, []).append(i)
            part = self._tasks[row.task]
            if row.features is not None:
                forest = self._forests[forest_key(part.name, row.query.workload, row.query.device)]
                logs[i] = float(forest.predict(row.features[None, :])[0])
                continue
            logs[i] = ridge_prediction(part, row.encoding, row.levels, row.date)
        places = np.zeros(len(rows))
        for task, rows_of_task in members.items():
            places[rows_of_task] = on_axis(self._tasks[task], logs[rows_of_task])
        return places


def make_row(
    index: tuple[int, int],
    number: int,
    task: TaskCard,
    code: CodeText,
    query: Query,
    encodings: dict[Entry, Encoding],
    date: float,
) -> HeadRow:
    """The head's inputs for a query about a unit whose texts are encoded; ``number`` is that of the task."""
    encoding, levels = encodings[code.text, code.language, code.basis], _callees(code, encodings)
    inputs = None
    if has_trees(task.name):
        ridge = ridge_prediction(task, encoding, levels, date) if reads_ridge(code.basis) else math.nan
        inputs = features(encoding.described, code.basis, query.workload, query.device, ridge)
    return HeadRow(index, number, code, query, encoding, levels, date, inputs)


def ridge_prediction(
    task: TaskCard, encoding: Encoding, levels: tuple[list[Encoding], list[Encoding]], date: float
) -> float:
    """Return the prediction of the n-gram ridge for a unit and its callees, log10 of SI units."""
    contributions = encoding.contributions
    assert contributions is not None
    called = [[e.contributions for e in level if e.contributions is not None] for level in levels]
    grams = ngram_ridge.combine(contributions, *called)[ngram_ridge.column(task_parts(task.name))]
    return task.intercept + float(grams) + season(task, date)


def unsized(row: HeadRow) -> Abstention | None:
    """The reason to abstain from a kernel or module whose tensor sizes are unknown."""
    estimate = estimate_name(row.code.basis)
    if row.features is None or estimate is None or row.query.metric != "latency":
        return None
    known = np.isfinite(row.features[feature_names(row.code.basis).index(estimate)])
    # A module's sizes may be in its text; a kernel's never are.
    if known and (row.code.basis != "kernel" or has_sizes(row.query.workload)):
        return None
    example = module_example if row.code.basis == "module" else kernel_example
    details = {"basis": row.code.basis, "language": row.code.language, "example": example(row.code.text)}
    return Abstention(AbstentionCode.SIZES_UNKNOWN, details)


def _callees(code: CodeText, encodings: dict[Entry, Encoding]) -> tuple[list[Encoding], list[Encoding]]:
    first, second = callee_texts(code)
    return (
        [encodings[text, code.language, code.basis] for text in first],
        [encodings[text, code.language, code.basis] for text in second],
    )


def callee_texts(code: CodeText) -> tuple[list[str], list[str]]:
    """The texts of the callees that the head reads: depth 1 and depth 2, at most ``MAX_CALLEES`` each."""
    first, second = ([c.text for c in code.callees if c.depth == depth][:MAX_CALLEES] for depth in (1, 2))
    return first, second


def season(task: TaskCard, date: float) -> float:
    """Return what a date (a decimal year) adds to the prediction of the n-gram ridge, in log10."""
    return _season(task.calendar, date)


@lru_cache(maxsize=1024)
def _season(calendar: tuple[float, ...], date: float) -> float:
    return float(ngram_ridge.calendar([date])[0] @ np.asarray(calendar))


def on_axis(part: TaskCard, log10: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Values in log10 SI units on the outcome axis of their task."""
    return part.scale.position(10 ** np.clip(log10, -300.0, 300.0))
