"""``rlm-lsp model calibrate``: measured rows -> the calibration of a converted model's intervals.

A published model comes without a calibration. Here it is asked about rows with known values, and the conformal scores
``|2 F(y) - 1|`` (F is its distribution, y the measured value in the unit of its data set) give levels per task, as in
the training of our own models. Tasks are those of :func:`rlm_core.inference.model_store.space_task`: a data set
calibrates no other.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rlm_core.errors import DataError, ModelError
from rlm_core.files import atomic_write
from rlm_core.inference.calibration import MIN_GROUPS, Calibration, conformal_level
from rlm_core.inference.card import CARD, SERVING, ModelCard, read_model_card
from rlm_core.inference.model_store import BUILTIN, builtin, pending_serving, serving_file
from rlm_core.queries.judges import JUDGES
from rlm_core.training.evaluation.rows import Row, select
from rlm_core.types import Abstention, Query

from . import store
from .decoding import distribution
from .model import FullModel, TextMemory
from .numbers import NumberFormat
from .predictor import SpaceAsking, task_of
from .store import Serving, autocast, fast_products

Array = npt.NDArray[np.float64]
Names = npt.NDArray[np.str_]
COVERAGE = 0.8
# Texts whose vectors are held at once.
_CHUNK = {"cpu": 64, "cuda": 256}


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The rows of a task and how many of their values its intervals of ``COVERAGE`` cover.

    Attributes:
        task: basis, language, metric and, where it matters, device or data set.
        space: the data set that the model answers for.
        rows, groups: how many there are.
        before: the share that the model's own intervals cover.
        after: the share that calibrated intervals cover, with the levels of each half of the groups taken from the
            other half; None for a task with too few groups to calibrate on.
        kept: whether such a task has a calibration from an earlier run, which stays.
    """

    task: str
    space: str
    rows: int
    groups: int
    before: float
    after: float | None
    kept: bool


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The id of the calibrated model and the results by task, in the order of their names."""

    model_id: str
    tasks: tuple[TaskResult, ...]


@dataclass(frozen=True, slots=True)
class _Question:
    """A row as the model reads it; the value is in the unit of its data set."""

    text: str
    max_tokens: int | None
    value: float
    task: str
    space: str
    group: str


def calibrate(
    directory: Path,
    data: Sequence[Path],
    splits: Sequence[str] | None,
    most: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CalibrationResult:
    """Calibrate a converted model and write its calibration; tasks without rows in the data keep theirs.

    Args:
        directory: of the model.
        data: Parquet files of ``rlm-lsp data build``.
        splits: rows of other splits are left out; None for all splits.
        most: rows per task and device, sampled with a fixed seed; 0 for all.
        progress: receives the number of rows that are done, and of all rows.

    Raises:
        DataError: the model has a calibration from its training, or the data has too few rows that it answers.
        ModelError: the model is missing or corrupt, writes numbers in an unsuitable format, or cannot be written.
    """
    card = _checked(directory)
    serving = Serving.read(directory, card)
    asking = SpaceAsking(serving)
    rows = select(data, splits, most).rows
    questions = [question for row in rows if (question := _question(asking, row)) is not None]
    paths = ", ".join(map(str, data))
    if not questions:
        what = f"none of the {len(rows):,} rows" if rows else "no row"
        within = f" of {'/'.join(splits)}" if splits else ""
        raise DataError(f"{paths}: {card.name} answers {what}{within}; it answers {_answered(serving)}")
    tasks, groups = (np.array(column) for column in zip(*((q.task, q.group) for q in questions), strict=True))
    most_groups = max(len(np.unique(groups[tasks == task])) for task in np.unique(tasks))
    if most_groups < MIN_GROUPS:
        raise DataError(
            f"{paths}: the {len(questions):,} rows that {card.name} answers are of {most_groups} groups at most per "
            f"task, and a calibration needs {MIN_GROUPS}; add rows or use --split all"
        )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, _ = store.load(directory, device)
    _check_format(directory, model.config.numbers)
    scores = _scores(model, questions, progress)
    spaces = {question.task: question.space for question in questions}
    results = []
    for task in np.unique(tasks).tolist():
        of_task = tasks == task
        before, after = _coverage(scores[of_task], groups[of_task])
        count = len(np.unique(groups[of_task]))
        kept = after is None and serving.calibration.exactly(task) is not None
        results.append(TaskResult(task, spaces[task], int(of_task.sum()), count, before, after, kept))
    enough = np.isin(tasks, [result.task for result in results if result.after is not None])
    fitted = Calibration.fit([[task] for task in tasks[enough].tolist()], scores[enough], groups[enough])
    levels = Calibration.from_json({**serving.calibration.to_json(), **fitted.to_json()})
    return CalibrationResult(write_calibration(directory, card, levels).model_id, tuple(results))


def write_calibration(directory: Path, card: ModelCard, calibration: Calibration) -> ModelCard:
    """Replace the calibration of a full model; a reader sees the previous one or the new one, also after a crash.

    The new file is complete under another name before the card describes it, and readers know that name: see
    :func:`rlm_core.inference.model_store.serving_file`.

    Raises:
        ModelError: the model was replaced since ``card`` was read, or cannot be written.
    """
    if read_model_card(directory).model_id != card.model_id:
        raise ModelError(f"{directory}: was replaced in the meantime; run the command again")
    try:
        path = directory / CARD
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        serving = json.loads(serving_file(directory, card.trained).read_text(encoding="utf-8"))
        serving["calibration"] = calibration.to_json()
        content = (json.dumps(serving, indent=1) + "\n").encode()
        data["trained"][SERVING] = hashlib.sha256(content).hexdigest()
        pending = pending_serving(directory, data["trained"][SERVING])
        with atomic_write(pending) as partial:
            partial.write_bytes(content)
        with atomic_write(path) as partial:
            partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        pending.replace(directory / SERVING)
        for left in directory.glob(pending_serving(Path(), "?" * 16).name):
            with suppress(OSError):
                left.unlink()
    except OSError as error:
        raise ModelError(f"{directory}: cannot be written ({error.strerror}); check the disk and the path") from None
    return read_model_card(directory)


def _checked(directory: Path) -> ModelCard:
    """The card of a model that can be calibrated."""
    is_builtin = directory.resolve() == builtin().resolve()
    card = read_model_card(directory)
    if is_builtin or not card.is_full:
        name = BUILTIN if is_builtin else f"{directory}: {card.name}"
        raise DataError(f"{name} is a student, calibrated when it was exported; name a model of rlm-lsp model add")
    if not card.trained.get(store.SPACES):
        raise DataError(
            f"{directory}: {card.name} is not a converted model: its calibration comes from training; "
            "name a model of rlm-lsp model add"
        )
    return card


def _check_format(directory: Path, numbers: NumberFormat) -> None:
    """Refuse formats without an exact distribution function.

    With the exponent last, nearly every mantissa can be on either side of a value until its exponent is known. What a
    search could leave out differs between rows, and the levels of wide intervals would rest on these errors.
    """
    if not numbers.exponent_first:
        raise ModelError(
            f"{directory}: writes numbers with the exponent last, so its distribution cannot be evaluated exactly; "
            "only models with the exponent first can be calibrated"
        )


def _answered(serving: Serving) -> str:
    """Describe in one line which queries a converted model answers."""
    return ", ".join(
        f"{space.name} ({space.basis} {space.metric}, {_some(space.languages)}"
        + (f", {space.device})" if space.device else ")")
        for space in serving.spaces
    )


def _some(languages: Sequence[str]) -> str:
    return languages[0] if len(languages) == 1 else f"{len(languages)} languages"


def _question(asking: SpaceAsking, row: Row) -> _Question | None:
    """Return the question that a row asks the model, or None if the model cannot answer it."""
    query, code = row.query, row.code
    space = asking.space(code.basis, query, code.language)
    if space is None:
        return None
    if code.basis == "program" and space.device is None and query.device not in JUDGES:
        # Rows of the published data name the data set as the judge, and the machine only by its architecture.
        query = Query(query.metric, None, query.workload)
    query = asking.filled(code.basis, query, code.language)
    asked = asking.ask(code, query)
    if isinstance(asked, Abstention) or not math.isfinite(row.value):
        return None
    if row.query.workload.get("judge", space.name).lower() != space.name.lower():
        return None  # of another data set, which measured something else
    value = row.value / asked.unit
    return _Question(asked.text, asked.max_tokens, value, task_of(space, code.language), space.name, row.group)


def _scores(model: FullModel, questions: Sequence[_Question], progress: Callable[[int, int], None]) -> Array:
    """Nonconformity of rows ``(rows,)``: the smallest level whose central interval covers the value.

    A value of 0 or below is covered as soon as the interval's lower end is 0.
    """
    found, done = np.empty(len(questions)), 0
    no_zero = not model.config.numbers.holds_zero
    for places, memories in _encoded(model, questions):
        values = [[max(questions[place].value, 0.0) for place in own] for own in places]
        answers = distribution(model, memories, [[None] * len(own) for own in places], values)
        for own, at, answer in zip(places, values, answers, strict=True):
            # Without a zero, the probability of 0 and less is that of negative numbers.
            at_zero = np.maximum(0.0, 1 - 2 * (answer.below if no_zero else answer.through))
            found[own] = np.where(np.array(at) <= 0, at_zero, np.abs(2 * answer.at - 1))
            done += len(own)
        progress(done, len(questions))
    return found


def _encoded(model: FullModel, questions: Sequence[_Question]) -> Iterator[tuple[list[list[int]], list[TextMemory]]]:
    """The indices of questions by text and the encoded texts, some texts at a time, long ones first."""
    by_text: dict[tuple[str, int | None], list[int]] = {}
    for index, question in enumerate(questions):
        by_text.setdefault((question.text, question.max_tokens), []).append(index)
    ordered = sorted(by_text, key=lambda reading: (reading[1] or 0, len(reading[0]), reading[0]), reverse=True)
    size = _CHUNK.get(model.device.type, _CHUNK["cpu"])
    for limit in dict.fromkeys(limit for _, limit in ordered):
        own = [reading for reading in ordered if reading[1] == limit]
        for chunk in (own[start : start + size] for start in range(0, len(own), size)):
            # As the model is served.
            with fast_products(model.device):
                with autocast(model.device):
                    memories = model.encode([text for text, _ in chunk], limit)
                yield [by_text[reading] for reading in chunk], memories


def _coverage(scores: Array, groups: Names) -> tuple[float, float | None]:
    """The shares of a task's rows that the model's own intervals and calibrated ones cover: see :class:`TaskResult`."""
    before = float((scores <= COVERAGE).mean())
    names = np.unique(groups).tolist()
    if len(names) < MIN_GROUPS:
        return before, None
    # In an order that follows nothing, and is the same in each run.
    order = sorted(names, key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest())
    half = np.isin(groups, order[::2])
    covered = np.empty(len(scores), dtype=bool)
    for own in (half, ~half):
        covered[own] = scores[own] <= conformal_level(scores[~own], groups[~own], COVERAGE)
    return before, float(covered.mean())
