"""The predictor of the full model: PyTorch, on a GPU where there is one.

A text is encoded once and kept by content; quantiles are exact and follow from the weights alone, so a hint does not
flicker. Several threads may call :meth:`TorchPredictor.predict` at once; the model works for one of them at a time.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from cachetools import LRUCache

from rlm_core.inference.calibration import MIN_GROUPS, TaskCalibration, bands
from rlm_core.inference.predictor import QueryScope, WithoutComparison, judge_date, too_few_groups, untrained_task
from rlm_core.queries.query_vector import task_name
from rlm_core.source.canonical import canonical
from rlm_core.training.full.encoders.base import reading
from rlm_core.types import MEDIAN, Abstention, AbstentionCode, Basis, CalibrationSource, CodeText, Prediction, Query

from . import store
from .decoding import Quantiles, quantiles
from .model import TextMemory
from .query_tokens import NumberQuery
from .sequences import Slot
from .store import Serving, autocast

_CACHE_BYTES = 1 << 28
_CHUNK = 64  # texts whose vectors are held at once, beyond the cache


@dataclass(frozen=True, slots=True)
class _Question:
    """A complete query about a unit, its index among the answers, and its calibration."""

    index: tuple[int, int]
    code: CodeText
    query: Query
    level: TaskCalibration

    @property
    def number_query(self) -> NumberQuery:
        return NumberQuery.of(self.query, self.code.basis, self.code.language)


class TorchPredictor(WithoutComparison):
    """Predicts with a trained full model.

    Args:
        directory: what ``rlm-lsp train`` wrote.
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
        self._scope = QueryScope(self.serving.defaults, self.serving.devices)
        self._lock = threading.Lock()
        # Encoded texts by content; the lock guards it.
        self._memories: LRUCache[bytes, TextMemory] = LRUCache(cache_bytes, lambda memory: memory.vectors.nbytes)

    @property
    def model_id(self) -> str:
        """Name and checksum of the weights and their calibration."""
        return self._id

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        """The devices that the model was trained on for a basis."""
        return tuple(self.serving.devices.get(basis, ()))

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """One query per metric of the basis, with the default device and workload filled in."""
        return self._scope.default_queries(basis, language)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        answers: dict[tuple[int, int], Prediction] = {}
        by_text: dict[str, list[_Question]] = {}
        for i, (code, incomplete) in enumerate(zip(texts, queries, strict=True)):
            text = self._reading(code) if incomplete else None
            for j, query in enumerate(self._scope.filled(code.basis, query, code.language) for query in incomplete):
                level = self._admit(code, query)
                if isinstance(level, Abstention):
                    answers[i, j] = Prediction.missing(code, query, self._id, level)
                elif text is not None:
                    by_text.setdefault(text, []).append(_Question((i, j), code, query, level))
        # Long texts first: a device that is too small shows at once, and chunks hold texts of similar length.
        ordered = sorted(by_text, key=len, reverse=True)
        for start in range(0, len(ordered), _CHUNK):
            answers |= self._answer({text: by_text[text] for text in ordered[start : start + _CHUNK]})
        return [[answers[i, j] for j in range(len(line))] for i, line in enumerate(queries)]

    def _answer(self, by_text: dict[str, list[_Question]]) -> dict[tuple[int, int], Prediction]:
        """Predictions for the questions about some texts; questions with one calibration share a search."""
        by_level: dict[str, dict[str, list[_Question]]] = {}
        for text, questions in by_text.items():
            for question in questions:
                by_level.setdefault(question.level.name, {}).setdefault(text, []).append(question)
        answers: dict[tuple[int, int], Prediction] = {}
        with self._lock:
            memories = self._encoded(list(by_text))
            for group in by_level.values():
                level = next(iter(group.values()))[0].level
                slots = [[[Slot(question.number_query)] for question in questions] for questions in group.values()]
                group_memories = [memories[text] for text in group]
                found = quantiles(self._model, group_memories, slots, level.raw_levels())
                for memory, questions, line in zip(group_memories, group.values(), found, strict=True):
                    for question, answer in zip(questions, line, strict=True):
                        cropped = memory.cropped > 0
                        answers[question.index] = self._prediction(
                            question.code, question.query, level, answer, cropped
                        )
        return answers

    def _encoded(self, texts: list[str]) -> dict[str, TextMemory]:
        """Encoded texts; those not yet known are encoded together. The lock is held."""
        keys = {text: hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts}
        memories = {text: self._memories[key] for text, key in keys.items() if key in self._memories}
        missing = [text for text in texts if text not in memories]
        with autocast(self._device):
            encoded = self._model.encode(missing) if missing else []
        for text, memory in zip(missing, encoded, strict=True):
            memories[text] = memory
            if memory.vectors.nbytes <= self._memories.maxsize:
                self._memories[keys[text]] = memory
        return memories

    def _reading(self, code: CodeText) -> str | None:
        """What the model reads; None for a language that it does not know."""
        if code.language not in self._model.config.languages:
            return None
        near = sorted(code.callees, key=lambda callee: callee.depth)[: self.serving.callees]
        called = [canonical(callee.text, code.language) for callee in near]
        return reading(canonical(code.text, code.language), code.language, called, self.serving.callees)

    def _admit(self, code: CodeText, query: Query) -> TaskCalibration | Abstention:
        """The calibration of a query, or why we abstain from it."""
        name = task_name(code.basis, code.language, query.metric, query.device)
        # The tasks of a program are those of its judge, so an unknown judge is the reason.
        if name not in self.serving.floors and not self._scope.lacks_judge(code.basis, query):
            return untrained_task(code, query)
        if not self._scope.knows_device(code.basis, query):
            return self._scope.unknown_device(code.basis, query.device)
        date = judge_date(code, query)
        if isinstance(date, Abstention):
            return date
        level = self.serving.calibration.lookup(code.basis, code.language, query.metric, query.device or "")
        if level is None or level.groups < MIN_GROUPS:
            return too_few_groups(code.basis, level.groups if level is not None else 0)
        return level

    def _prediction(
        self, code: CodeText, query: Query, level: TaskCalibration, found: Quantiles, cropped: bool
    ) -> Prediction:
        if np.isnan(found.smooth).any():
            return Prediction.missing(code, query, self._id, Abstention(AbstentionCode.NO_NUMBER))
        floor = self.serving.floors[task_name(code.basis, code.language, query.metric, query.device)]
        values = np.where(found.smooth > floor, found.smooth, 0.0)
        # A band that reaches above the median reaches at least to the floor.
        values[MEDIAN + 1 :] = np.maximum(values[MEDIAN + 1 :], floor)
        if query.metric == "accuracy":
            values = np.minimum(values, 1.0)
        ends = tuple(float(value) for value in np.maximum.accumulate(values))
        return Prediction(
            code.basis,
            query.metric,
            query.device,
            query.workload,
            self._id,
            ends[MEDIAN],
            bands(ends, level.groups, level.rows, CalibrationSource(level.name)),
            floor,
            cropped,
            quantiles=ends,
        )
