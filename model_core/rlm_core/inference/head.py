"""The student's query head in onnxruntime: queries about encoded units -> distributions over the outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_core.queries.kernel_arguments import example_sizes as kernel_example
from rlm_core.queries.module_sizes import example_sizes as module_example
from rlm_core.queries.query_vector import QUERY, has_sizes, query_vector, task_parts
from rlm_core.source.call_graph import MAX_CALLEES
from rlm_core.source.syntax_counts import FACTS, facts
from rlm_core.types import Abstention, AbstentionCode, CodeText, Query

from . import ngram_ridge
from .card import TaskCard
from .encoder import Encoding, Entry, open_session
from .features import estimate_name, feature_names, features, forest_key
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
        (logits,) = self._session.run(None, inputs)
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
        seasons: dict[tuple[int, float], float] = {}
        for i, row in enumerate(rows):
            members.setdefault(row.task, []).append(i)
            part = self._tasks[row.task]
            if row.features is not None:
                forest = self._forests[forest_key(part.name, row.query.workload, row.query.device)]
                logs[i] = float(forest.predict(row.features[None, :])[0])
                continue
            contributions = row.encoding.contributions
            assert contributions is not None
            levels = [[e.contributions for e in level if e.contributions is not None] for level in row.levels]
            grams = ngram_ridge.combine(contributions, *levels)[ngram_ridge.column(task_parts(part.name))]
            when = row.task, row.date
            if when not in seasons:
                seasons[when] = season(part, ngram_ridge.calendar([row.date])[0])
            logs[i] = part.intercept + float(grams) + seasons[when]
        places = np.zeros(len(rows))
        for task, rows_of_task in members.items():
            places[rows_of_task] = on_axis(self._tasks[task], logs[rows_of_task])
        return places


def make_row(
    index: tuple[int, int], task: int, code: CodeText, query: Query, encodings: dict[Entry, Encoding], date: float
) -> HeadRow:
    """The head's inputs for a query about a unit whose texts are encoded."""
    encoding = encodings[code.text, code.language, code.basis]
    inputs = None
    if feature_names(code.basis):
        inputs = features(encoding.described, code.basis, query.workload, query.device)
    return HeadRow(index, task, code, query, encoding, _callees(code, encodings), date, inputs)


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


def season(part: TaskCard, hats: npt.NDArray[np.float32]) -> float:
    """What a date's calendar basis ``(nodes,)`` adds to the prediction of the n-gram ridge, in log10."""
    return float(hats @ np.asarray(part.calendar))


def on_axis(part: TaskCard, log10: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Values in log10 SI units on the outcome axis of their task."""
    return part.scale.position(10 ** np.clip(log10, -300.0, 300.0))
