"""The model behind the server: loaded in the background, asked on worker threads, answers kept in the cache.

The event loop only reads the cache. As many workers as a document's steps run at once: while one prepares its texts or
makes its answers, the other keeps the encoder busy. They are our own, since pygls reads stdin on its pool.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from rlm_core import RlmError
from rlm_core.inference.percentile import share_below
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.types import CodeText, Prediction, Query

from rlm_lsp.history.comparison import comparer_of
from rlm_lsp.settings.model import Settings

from .prediction_cache import PredictionCache, content_key
from .scheduler import STEPS_AT_ONCE

if TYPE_CHECKING:
    from rlm_core.inference.cost_ratio import Change

_Result = TypeVar("_Result")
_MOST_CHANGES, _MOST_QUESTIONS = 10_000, 8_000


def _load(model: str, *, threads: int, token_file: str | None = None) -> Predictor:
    # Imported on a worker: the server answers its first requests before the model's libraries are there.
    from rlm_core.inference.adaptation import personal
    from rlm_core.loading import load_personal

    if token_file is not None and model.lower().startswith(("http://", "https://")):
        from rlm_core.serving import RemotePredictor
        from rlm_core.serving.access import TOKEN, find_token

        token = find_token(Path(token_file).expanduser()) if not os.environ.get(TOKEN) else None
        return personal(RemotePredictor(model, token=token))
    return load_personal(model, threads=threads)


@dataclass(frozen=True, slots=True)
class _Question:
    """The queries about a unit, and what their answers go by in the cache."""

    queries: tuple[Query, ...]
    key: bytes


class Engine:
    """Predictions for units: from the cache at once, from the model on a worker."""

    def __init__(self, settings: Settings, load: Callable[..., Predictor] | None = None) -> None:
        self._settings, self._load = settings, load or _load
        self._asked = QuerySelection(settings.metrics, settings.devices)
        self._cache = PredictionCache()
        self._changes: dict[bytes, tuple[Change, ...]] = {}
        self._workers = ThreadPoolExecutor(STEPS_AT_ONCE, thread_name_prefix="rlm-model")
        self._lock = Lock()
        self._predictor: Predictor | None = None
        self._loaded, self._loading = asyncio.Event(), asyncio.Lock()
        self._renew()

    def _renew(self) -> None:
        # Another object when known predictions are out of date: another model, other questions, a cleared cache.
        self.state = object()
        self._questions: dict[CodeText, _Question] = {}
        self._queries: dict[object, tuple[Query, ...]] = {}

    async def load(self) -> str | None:
        """Load the model; None when it is ready, else one line saying why not."""
        loop, settings = asyncio.get_running_loop(), self._settings
        token = {"token_file": settings.token_file} if settings.token_file is not None else {}
        # One after the other: the last one that was asked for stays.
        async with self._loading:
            try:
                self._predictor = await loop.run_in_executor(
                    self._workers, lambda: self._load(settings.model, threads=settings.threads, **token)
                )
                return None
            except (RlmError, ImportError, OSError) as error:
                return str(error)
            finally:
                self._renew()
                self._loaded.set()

    async def reload(self, settings: Settings) -> str | None:
        """Load the model that ``settings`` name now; if that fails the one from before stays. As :meth:`load`."""
        self._settings = settings
        return await self.load()

    def ask(self, asked: QuerySelection) -> None:
        """Ask this about units from now on."""
        self._asked = asked
        self._renew()

    @property
    def ready(self) -> bool:
        """Whether a model is loaded."""
        return self._predictor is not None

    async def wait_loaded(self) -> None:
        """Wait until loading has ended, well or badly."""
        await self._loaded.wait()

    def cached(self, code: CodeText, wanted: QuerySelection | None = None) -> tuple[Prediction, ...] | None:
        """The known predictions for a unit; ``wanted`` picks some of what is asked."""
        predictor, asked = self._predictor, self._asked
        if predictor is None:
            return None
        question = self._question(predictor, code)
        found = self._cache.get(question.key)
        if found is None or wanted is None or wanted == asked:
            return found
        chosen = queries_for(predictor, code, wanted)
        return tuple(prediction for query, prediction in zip(question.queries, found, strict=True) if query in chosen)

    def _question(self, predictor: Predictor, code: CodeText) -> _Question:
        """What is asked about a unit; a file is asked for many times while it is read."""
        questions, kinds = self._questions, self._queries
        known = questions.get(code)
        if known is None:
            if len(questions) >= _MOST_QUESTIONS:
                questions.clear()
                kinds.clear()
            # What is asked is the same for all units of a kind but those with sizes of their own.
            kind = code.basis, code.language, code.workloads
            queries = kinds.get(kind) or kinds.setdefault(kind, queries_for(predictor, code, self._asked))
            known = questions[code] = _Question(queries, content_key(code, queries, predictor.model_id))
        return known

    async def predict(self, codes: Sequence[CodeText], cancelled: Callable[[], bool] = lambda: False) -> None:
        """Put the predictions for ``codes`` into the cache; does nothing if cancelled before a worker gets to it."""
        await asyncio.get_running_loop().run_in_executor(self._workers, self._predict, codes, cancelled)

    def _predict(self, codes: Sequence[CodeText], cancelled: Callable[[], bool]) -> None:
        predictor = self._predictor
        if predictor is None or cancelled():
            return
        questions = [(code, self._question(predictor, code)) for code in codes]
        self._answer(predictor, {question.key: (code, question.queries) for code, question in questions})

    def share_below(self, prediction: Prediction, language: str) -> float | None:
        """Where a prediction stands among comparable ones; see :func:`rlm_core.inference.percentile.share_below`."""
        return share_below(self._predictor, prediction, language) if self._predictor is not None else None

    async def run(
        self, work: Callable[[Predictor], _Result], cancelled: Callable[[], bool] = lambda: False
    ) -> _Result | None:
        """What ``work`` makes of the model, on a worker; None without a model or if cancelled before its turn."""

        def on_worker() -> _Result | None:
            predictor = self._predictor
            return work(predictor) if predictor is not None and not cancelled() else None

        # A model that is being loaded is the one to ask.
        async with self._loading:
            pass
        return await asyncio.get_running_loop().run_in_executor(self._workers, on_worker)

    def answers(
        self, predictor: Predictor, asked: Sequence[tuple[CodeText, Sequence[Query]]]
    ) -> list[tuple[Prediction, ...]]:
        """The answers to questions about units, from the cache or the model; for a worker."""
        keys = [content_key(code, queries, predictor.model_id) for code, queries in asked]
        found = self._answer(predictor, dict(zip(keys, asked, strict=True)))
        return [found[key] for key in keys]

    def _answer(
        self, predictor: Predictor, asked: Mapping[bytes, tuple[CodeText, Sequence[Query]]]
    ) -> dict[bytes, tuple[Prediction, ...]]:
        found = {key: known for key in asked if (known := self._cache.get(key)) is not None}
        missing = [key for key in asked if key not in found]
        if missing:
            texts, queries = zip(*(asked[key] for key in missing), strict=True)
            for key, predictions in zip(missing, predictor.predict(texts, queries), strict=True):
                self._cache.put(key, predictions)
                found[key] = tuple(predictions)
        return found

    def changes(
        self, predictor: Predictor, asked: Sequence[tuple[CodeText, CodeText, Sequence[Query]]]
    ) -> list[tuple[Change, ...]] | None:
        """How costs change from one text to another; None when the model cannot compare. For a worker."""
        model = comparer_of(predictor)
        if model is None:
            return None
        keys = [
            content_key(before, (), predictor.model_id) + content_key(after, queries, predictor.model_id)
            for before, after, queries in asked
        ]
        found = {key: self._changes.get(key) for key in keys}
        missing = {key: question for key, question in zip(keys, asked, strict=True) if found[key] is None}
        if missing:
            pairs = [(before, after) for before, after, _ in missing.values()]
            answers = model.changes(pairs, [queries for *_, queries in missing.values()])
            for key, changes in zip(missing, answers, strict=True):
                found[key] = tuple(changes)
            with self._lock:
                self._changes |= {key: found[key] or () for key in missing}
                for key in list(self._changes)[: max(0, len(self._changes) - _MOST_CHANGES)]:
                    del self._changes[key]
        return [found[key] or () for key in keys]

    def clear(self) -> int:
        """Forget all predictions; how many units they were of."""
        self._changes = {}
        self._renew()
        return self._cache.clear()

    def close(self) -> None:
        """Drop what waits for a worker; what is being done now comes to its end."""
        self._workers.shutdown(wait=False, cancel_futures=True)
