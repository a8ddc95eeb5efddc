"""The predictor of the full model, in PyTorch, on a GPU where there is one, and the queries that it can answer.

Models that ``rlm-lsp train`` wrote read canonical text and a query vector (:class:`TrainedAsking`). Converted ones read
the text behind the prefix of the data set that the query is about (:class:`SpaceAsking`).

A text is encoded once and kept by content; quantiles are exact and follow from the weights alone, so a hint does not
flicker. Several threads may call :meth:`TorchPredictor.predict` at once; the model works for one of them at a time.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from cachetools import LRUCache

from rlm_core.inference.calibration import INTERVALS, MIN_GROUPS, TaskCalibration, bands
from rlm_core.inference.model_store import space_task
from rlm_core.inference.predictor import QueryScope, WithoutComparison, judge_date, too_few_groups, untrained_task
from rlm_core.queries.query_vector import task_name
from rlm_core.source.canonical import canonical
from rlm_core.types import (
    MEDIAN,
    METRICS_OF_BASIS,
    Abstention,
    AbstentionCode,
    Basis,
    CalibrationSource,
    CodeText,
    Prediction,
    Query,
)

from . import store
from .decoder import NumberQuery
from .decoding import Quantiles, quantiles
from .encoders.base import reading
from .model import TextMemory
from .quantile_search import served_tolerance
from .sequences import Slot
from .spaces import Space, codenet_language
from .store import Serving, autocast, fast_products

# The raw distribution: its own quantiles, which nothing was checked on.
UNCALIBRATED = TaskCalibration("", INTERVALS, 0, 0)
_CACHE_BYTES = 1 << 28
# Texts whose vectors are held at once, beyond the cache: a GPU needs many to be busy.
_CHUNK = {"cpu": 64, "cuda": 1024}
# F may be off by this much at a quantile; more would be another one.
_MOST_ERROR = 0.02
# Two digits are shown.
_RESOLUTION = 0.01


@dataclass(frozen=True, slots=True)
class Asked:
    """A query about a text as the model gets it.

    Attributes:
        text: what it reads.
        query: the meaning of the number; None for a model without query vectors.
        level: the calibration.
        unit: SI units of 1 of its answer.
        floor: the smallest value that is resolved, in SI units.
        max_tokens: how much of the text is read; None for as much as the model can.
    """

    text: str
    query: NumberQuery | None
    level: TaskCalibration
    unit: float = 1.0
    floor: float = 0.0
    max_tokens: int | None = None


class Asking(Protocol):
    """The queries that a model can answer."""

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """The known devices of a basis."""
        ...

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """One query per metric of the basis, with device and workload filled in."""
        ...

    def filled(self, basis: Basis, query: Query, language: str) -> Query:
        """A query with the defaults in place of what it leaves open."""
        ...

    def ask(self, code: CodeText, query: Query) -> Asked | Abstention:
        """A complete query as the model gets it, or why it gets none."""
        ...


class TrainedAsking:
    """Asks a model that was trained here; ``languages`` are those that its query vectors know."""

    def __init__(self, serving: Serving, languages: Sequence[str]) -> None:
        self._serving, self._languages = serving, frozenset(languages)
        self._scope = QueryScope(serving.defaults, serving.devices)

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """See :class:`Asking`."""
        return tuple(self._serving.devices.get(basis, ()))

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """See :class:`Asking`."""
        return self._scope.default_queries(basis, language)

    def filled(self, basis: Basis, query: Query, language: str) -> Query:
        """See :class:`Asking`."""
        return self._scope.filled(basis, query, language)

    def ask(self, code: CodeText, query: Query) -> Asked | Abstention:
        """See :class:`Asking`."""
        name = task_name(code.basis, code.language, query.metric, query.device)
        # The tasks of a program are those of its judge, so an unknown judge is the reason.
        untrained = name not in self._serving.floors and not self._scope.lacks_judge(code.basis, query)
        if untrained or code.language not in self._languages:
            return untrained_task(code, query)
        if not self._scope.knows_device(code.basis, query):
            return self._scope.unknown_device(code.basis, query.device)
        date = judge_date(code, query)
        if isinstance(date, Abstention):
            return date
        level = self._serving.calibration.lookup(code.basis, code.language, query.metric, query.device or "")
        if level is None or level.groups < MIN_GROUPS:
            return too_few_groups(code.basis, level.groups if level is not None else 0)
        number_query = NumberQuery.of(query, code.basis, code.language)
        return Asked(self._reading(code), number_query, level, floor=self._serving.floors[name])

    def _reading(self, code: CodeText) -> str:
        near = sorted(code.callees, key=lambda callee: callee.depth)[: self._serving.callees]
        called = [canonical(callee.text, code.language) for callee in near]
        return reading(canonical(code.text, code.language), code.language, called, self._serving.callees)


class SpaceAsking:
    """Asks a converted model about the data sets that it was trained on."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._scope = QueryScope({}, {})

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """See :class:`Asking`."""
        return tuple(
            dict.fromkeys(space.device for space in self._serving.spaces if space.basis == basis and space.device)
        )

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """See :class:`Asking`."""
        return tuple(self.filled(basis, Query(metric), language) for metric in METRICS_OF_BASIS[basis])

    def filled(self, basis: Basis, query: Query, language: str) -> Query:
        """See :class:`Asking`."""
        space = self.space(basis, query, language)
        if space is None:
            return self._scope.filled(basis, query, language)
        device = query.device or space.device if query.metric != "accuracy" else None
        # The numbers of a space are for its own inputs, whatever sizes the text names.
        return self._scope.filled(basis, Query(query.metric, device, space.workload), language)

    def ask(self, code: CodeText, query: Query) -> Asked | Abstention:
        """See :class:`Asking`."""
        space = self.space(code.basis, query, code.language)
        if space is None:
            return untrained_task(code, query)
        if query.device != space.device and query.metric != "accuracy":
            return QueryScope({}, {code.basis: self.devices(code.basis)}).unknown_device(code.basis, query.device)
        if not code.text.strip():
            return Abstention(AbstentionCode.EMPTY_TEXT)
        # No parent counts: what was measured for one space says nothing about the answers for another.
        level = self._serving.calibration.exactly(task_of(space, code.language)) or UNCALIBRATED
        text = space.reading(code.text, codenet_language(code.language))
        return Asked(text, None, level, space.unit, 0.0, space.max_tokens)

    def space(self, basis: str, query: Query, language: str) -> Space | None:
        """The first space that answers a query."""
        for space in self._serving.spaces:
            if space.answers(basis, query.metric, language, query.workload):
                return space
        return None


def task_of(space: Space, language: str) -> str:
    """The name of the calibration of what a space answers for a language."""
    return space_task(space.basis, language, space.metric, space.device, space.workload)


@dataclass(frozen=True, slots=True)
class _Question:
    """A complete query about a unit, its index among the answers, and what the model is asked."""

    index: tuple[int, int]
    code: CodeText
    query: Query
    asked: Asked

    @property
    def reading(self) -> tuple[str, int | None]:
        """The key of the encoding: questions with the same key are encoded once."""
        return self.asked.text, self.asked.max_tokens


class TorchPredictor(WithoutComparison):
    """Predicts with a full model that was trained, or converted.

    Args:
        directory: what ``rlm-lsp train``, ``tune`` or ``model add`` wrote.
        device: where to compute, like ``cuda:1``; None for a GPU if there is one.
        threads: of PyTorch on the CPU; 0 leaves the choice to it.
        cache_bytes: encoded texts that are kept.

    Raises:
        ModelError: the directory is missing, incomplete or corrupt, or the encoder's base model cannot be had.
    """

    def __init__(
        self, directory: Path, device: str | None = None, *, threads: int = 0, cache_bytes: int = _CACHE_BYTES
    ) -> None:
        if threads:
            torch.set_num_threads(threads)
        self.directory = directory
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._model, card = store.load(directory, self._device)
        self.serving = Serving.read(directory, card)
        self._id = card.model_id
        config = self._model.config
        self._asking: Asking = (
            SpaceAsking(self.serving) if self.serving.spaces else TrainedAsking(self.serving, config.languages)
        )
        self._tolerance = served_tolerance(config.numbers)
        self._lock = threading.Lock()
        # Encoded texts by content; the lock guards it.
        self._memories: LRUCache[bytes, TextMemory] = LRUCache(cache_bytes, lambda memory: memory.vectors.nbytes)

    @property
    def model_id(self) -> str:
        """Name and checksum of the weights and their calibration."""
        return self._id

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        """The devices that the model was trained on for a basis."""
        return self._asking.devices(basis)

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """One query per metric of the basis, with the default device and workload filled in."""
        return self._asking.default_queries(basis, language)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        answers: dict[tuple[int, int], Prediction] = {}
        by_text: dict[tuple[str, int | None], list[_Question]] = {}
        for i, (code, incomplete) in enumerate(zip(texts, queries, strict=True)):
            for j, query in enumerate(self._asking.filled(code.basis, query, code.language) for query in incomplete):
                asked = self._asking.ask(code, query)
                if isinstance(asked, Abstention):
                    answers[i, j] = Prediction.missing(code, query, self._id, asked)
                else:
                    question = _Question((i, j), code, query, asked)
                    by_text.setdefault(question.reading, []).append(question)
        # Long texts first: a device that is too small shows at once, and chunks hold texts of similar length.
        ordered = sorted(by_text, key=lambda reading: len(reading[0]), reverse=True)
        chunk = _CHUNK.get(self._device.type, _CHUNK["cpu"])
        for start in range(0, len(ordered), chunk):
            answers |= self._answer({reading: by_text[reading] for reading in ordered[start : start + chunk]})
        return [[answers[i, j] for j in range(len(line))] for i, line in enumerate(queries)]

    def _answer(self, by_text: dict[tuple[str, int | None], list[_Question]]) -> dict[tuple[int, int], Prediction]:
        """Predictions for the questions about some texts; questions with one calibration share a search."""
        by_level: dict[str, dict[tuple[str, int | None], list[_Question]]] = {}
        for read, questions in by_text.items():
            for question in questions:
                by_level.setdefault(question.asked.level.name, {}).setdefault(read, []).append(question)
        answers: dict[tuple[int, int], Prediction] = {}
        with self._lock, fast_products(self._device):
            memories = self._encoded(list(by_text))
            for group in by_level.values():
                level = next(iter(group.values()))[0].asked.level
                slots = [[[Slot(question.asked.query)] for question in questions] for questions in group.values()]
                group_memories = [memories[reading] for reading in group]
                found = quantiles(self._model, group_memories, slots, level.raw_levels(), self._tolerance, _RESOLUTION)
                for memory, questions, line in zip(group_memories, group.values(), found, strict=True):
                    for question, answer in zip(questions, line, strict=True):
                        answers[question.index] = self._prediction(question, answer, memory.cropped > 0)
        return answers

    def _encoded(self, readings: list[tuple[str, int | None]]) -> dict[tuple[str, int | None], TextMemory]:
        """Encoded texts; those not yet known are encoded together. The lock is held."""
        keys = {reading: _key(*reading) for reading in readings}
        memories = {reading: self._memories[key] for reading, key in keys.items() if key in self._memories}
        missing = [reading for reading in readings if reading not in memories]
        for limit in dict.fromkeys(limit for _, limit in missing):
            own = [reading for reading in missing if reading[1] == limit]
            with autocast(self._device):
                encoded = self._model.encode([text for text, _ in own], limit)
            for read, memory in zip(own, encoded, strict=True):
                memories[read] = memory
                if memory.vectors.nbytes <= self._memories.maxsize:
                    self._memories[keys[read]] = memory
        return memories

    def _prediction(self, question: _Question, found: Quantiles, cropped: bool) -> Prediction:
        code, query, asked = question.code, question.query, question.asked
        if np.isnan(found.smooth).any() or found.error > _MOST_ERROR:
            return Prediction.missing(code, query, self._id, Abstention(AbstentionCode.NO_NUMBER))
        scaled, floor = found.smooth * asked.unit, asked.floor
        values = np.where(scaled > floor, scaled, 0.0)
        # A band that reaches above the median reaches at least to the floor.
        values[MEDIAN + 1 :] = np.maximum(values[MEDIAN + 1 :], floor)
        if query.metric == "accuracy":
            values = np.minimum(values, 1.0)
        ends = tuple(float(value) for value in np.maximum.accumulate(values))
        level = asked.level
        return Prediction(
            code.basis,
            query.metric,
            query.device,
            query.workload,
            self._id,
            ends[MEDIAN],
            bands(ends, level.groups, level.rows, CalibrationSource(level.name, uncalibrated=not level.rows)),
            floor,
            cropped,
            quantiles=ends,
        )


def _key(text: str, limit: int | None) -> bytes:
    content = f"{limit}\n{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).digest()
