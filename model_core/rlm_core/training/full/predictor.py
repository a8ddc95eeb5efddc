"""The predictor of the full model: PyTorch, on a GPU where there is one.

A text is encoded once and kept by content; quantiles are exact and follow from the weights alone, so a hint does not
flicker. Several threads may call :meth:`TorchPredictor.predict` at once; the model works for one of them at a time.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from rlm_core.inference.calibration import MIN_GROUPS, Level, bands
from rlm_core.inference.predictor import QueryScope, judge_date, too_few_groups, untrained_task
from rlm_core.queries.query_vector import task_name
from rlm_core.source.canonical import canonical
from rlm_core.training.full.encoders.base import reading
from rlm_core.types import MEDIAN, Abstention, AbstentionCode, Basis, CalibrationSource, CodeText, Prediction, Query

from . import store
from .decoding import Quantiles, quantiles
from .model import TextMemory
from .query_tokens import Ask
from .sequences import Slot
from .store import Serving, autocast

_CACHE_BYTES = 1 << 28
_CHUNK = 64  # texts whose vectors are held at once, beyond the cache
_Place = tuple[int, int]


class TorchPredictor:
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
        self._memories = _Memories(cache_bytes)

    @property
    def model_id(self) -> str:
        """Name and checksum of the weights and their calibration."""
        return self._id

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """The devices that the model was trained on for a basis."""
        return tuple(self.serving.devices.get(basis, ()))

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """One query a metric of the basis, with the default device and workload filled in."""
        return self._scope.default_queries(basis)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        answers: dict[_Place, Prediction] = {}
        wanted: dict[str, list[tuple[_Place, CodeText, Query, Level]]] = {}
        for i, (code, asked) in enumerate(zip(texts, queries, strict=True)):
            text = self._reading(code) if asked else None
            for j, short in enumerate(asked):
                query = self._scope.filled(code.basis, short)
                level = self._admit(code, query)
                if isinstance(level, Abstention):
                    answers[i, j] = Prediction.missing(code, query, self._id, level)
                elif text is not None:
                    wanted.setdefault(text, []).append(((i, j), code, query, level))
        # Long texts first: a device that is too small shows at once, and chunks hold texts of similar length.
        ordered = sorted(wanted, key=len, reverse=True)
        for start in range(0, len(ordered), _CHUNK):
            chunk = ordered[start : start + _CHUNK]
            answers |= self._answer({text: wanted[text] for text in chunk})
        return [[answers[i, j] for j in range(len(asked))] for i, asked in enumerate(queries)]

    def _answer(self, wanted: dict[str, list[tuple[_Place, CodeText, Query, Level]]]) -> dict[_Place, Prediction]:
        """Predictions of the questions about some texts; questions with one calibration share a search."""
        by_level: dict[str, dict[str, list[tuple[_Place, CodeText, Query, Level]]]] = {}
        for text, questions in wanted.items():
            for question in questions:
                by_level.setdefault(question[3].name, {}).setdefault(text, []).append(question)
        found: dict[_Place, Prediction] = {}
        with self._lock:
            memories = self._encoded(list(wanted))
            for group in by_level.values():
                level = next(iter(group.values()))[0][3]
                slots = [
                    [[Slot(Ask.of(query, code.basis, code.language))] for _, code, query, _ in line]
                    for line in group.values()
                ]
                own = [memories[text] for text in group]
                answers = quantiles(self._model, own, slots, level.raw_levels())
                for memory, line, told in zip(own, group.values(), answers, strict=True):
                    for (place, code, query, _), answer in zip(line, told, strict=True):
                        found[place] = self._prediction(code, query, level, answer, memory.cropped > 0)
        return found

    def _encoded(self, texts: list[str]) -> dict[str, TextMemory]:
        """Encoded texts; those not yet known are encoded together. The lock is held."""
        keys = {text: hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts}
        found = {text: memory for text, key in keys.items() if (memory := self._memories.get(key)) is not None}
        missing = [text for text in texts if text not in found]
        with autocast(self._device):
            fresh = self._model.encode(missing) if missing else []
        for text, memory in zip(missing, fresh, strict=True):
            found[text] = memory
            self._memories.put(keys[text], memory)
        return found

    def _reading(self, code: CodeText) -> str | None:
        """What the model reads; None for a language that it does not know."""
        if code.language not in self._model.config.languages:
            return None
        near = sorted(code.callees, key=lambda callee: callee.level)[: self.serving.callees]
        called = [canonical(callee.text, code.language) for callee in near]
        return reading(canonical(code.text, code.language), code.language, called, self.serving.callees)

    def _admit(self, code: CodeText, query: Query) -> Level | Abstention:
        """The calibration of a query, or why we abstain from it."""
        if task_name(code.basis, code.language, query.metric) not in self.serving.floors:
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

    def _prediction(self, code: CodeText, query: Query, level: Level, found: Quantiles, cropped: bool) -> Prediction:
        if np.isnan(found.smooth).any():
            return Prediction.missing(code, query, self._id, Abstention(AbstentionCode.NO_NUMBER))
        floor = self.serving.floors[task_name(code.basis, code.language, query.metric)]
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


class _Memories:
    """Encoded texts by content, the least recently used dropped first. The predictor's lock guards it."""

    def __init__(self, capacity: int) -> None:
        self._capacity, self._size = capacity, 0
        self._entries: OrderedDict[bytes, TextMemory] = OrderedDict()

    def get(self, key: bytes) -> TextMemory | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: bytes, memory: TextMemory) -> None:
        self._entries[key] = memory
        self._size += memory.vectors.nbytes
        while self._size > self._capacity:
            self._size -= self._entries.popitem(last=False)[1].vectors.nbytes
