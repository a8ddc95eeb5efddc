"""Predictions for units: from the cache at once, from the model on a worker thread.

Input: the texts of units and the selection of queries. Output: predictions, kept by a digest of everything that they
depend on, so that the same text is never predicted twice by the same model. The event loop only reads the cache. There
are as many workers as a document's steps run at once: while one prepares its texts or decodes its answers, the other
keeps the encoder busy. The pool is separate because pygls reads stdin on its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar
from weakref import WeakKeyDictionary

from cachetools import LRUCache, TLRUCache
from rlm_core import RlmError
from rlm_core.boundary import absorb
from rlm_core.cost.at_sizes import sums_of
from rlm_core.inference.guarded import text_alone
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.types import CodeText, CostRatio, Prediction, Query

from rlm_lsp.settings.model import Settings

from .scheduler import STEPS_AT_ONCE

_Result = TypeVar("_Result")
# Units whose predictions are kept at least. What is open or listed may be more: ``hold`` makes room for it.
MIN_UNITS = 2_048
# The other half is for texts that are gone: an undo or a switch of branches brings them back.
_SPARE_SHARE = 2
_MAX_CHANGES, _MAX_KINDS = 1_024, 1_024
# A model server that did not answer is asked again after this time, with the next edit or scroll.
TRANSIENT_SECONDS = 5.0


def content_key(code: CodeText, queries: Sequence[Query], model_id: str) -> bytes:
    """A digest of everything that a prediction depends on."""
    digest = hashlib.blake2b(digest_size=16)
    # The facts depend on constants and functions outside the text. Their hash is enough in the memory of one process,
    # and fifty times as fast as writing them out.
    parts = [model_id, code.language, code.basis, code.text, str(hash(code.work))]
    for callee in code.callees:
        parts += [str(callee.depth), callee.text]
    parts.append(repr(code.work))
    if code.sizes:
        parts += [repr(code.sizes), repr(sums_of(code.work))]
    parts.append(str(hash(code.calls)))
    for function in code.calls.functions() if code.calls is not None else ():
        parts += [function.text, repr(function.known)]
    for cost, before in ((anchor.cost, anchor.before) for anchor in code.measured):
        parts += [repr(cost), content_key(before, (), model_id).hex() if before is not None else ""]
    for query in queries:
        parts += [
            query.metric,
            repr(query.device),
            *(f"{name}={value}" for name, value in sorted(query.workload.items())),
        ]
        parts.append("")
    for part in parts:
        data = part.encode("utf-8", errors="surrogatepass")
        # The length before each part keeps ("ab", "c") and ("a", "bc") apart.
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()


class PredictionCache:
    """The most recently used predictions of at most ``max_units`` units; transient ones expire. Thread-safe."""

    def __init__(self, max_units: int = MIN_UNITS, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: TLRUCache[bytes, tuple[Prediction, ...]] = TLRUCache(max_units, _expiry, clock)
        self._lock = Lock()

    def hold(self, units: int) -> None:
        """Make room for at least ``units`` units from now on; what is kept stays."""
        with self._lock:
            if units > self._entries.maxsize:
                # At least twice the room: a list that grows file by file moves each entry a few times.
                entries = self._entries
                self._entries = TLRUCache(max(units, 2 * int(entries.maxsize)), _expiry, self._clock)
                self._entries.update(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> tuple[Prediction, ...] | None:
        """The predictions under ``key``, None when there are none."""
        with self._lock:
            return self._entries.get(key)

    def put(self, key: bytes, predictions: Sequence[Prediction]) -> None:
        """Keep predictions in place of those that were used least recently."""
        with self._lock:
            self._entries[key] = tuple(predictions)

    def clear(self) -> int:
        """Remove everything; returns the number of units."""
        with self._lock:
            count = len(self._entries)
            self._entries.clear()
            return count


def _expiry(key: bytes, predictions: tuple[Prediction, ...], now: float) -> float:
    return now + TRANSIENT_SECONDS if any(prediction.transient for prediction in predictions) else math.inf


def _load(model: str, *, threads: int, token_file: str | None = None, fallback: str = "none") -> Predictor:
    # Imported on a worker: the server answers its first requests before the model's libraries are imported.
    from rlm_core.inference.adaptation.predictor import with_corrections
    from rlm_core.inference.model_store import BUILTIN, find
    from rlm_core.loading import is_remote, load_corrected

    if fallback == BUILTIN and model != BUILTIN:
        from rlm_core.inference.fallback import FallbackPredictor

        first = _load(model, threads=threads, token_file=token_file)
        return FallbackPredictor(first, load_corrected(BUILTIN, threads=threads))
    if token_file is not None and is_remote(model):
        from rlm_core.serving.access import TOKEN, find_token
        from rlm_core.serving.client import RemotePredictor

        token = find_token(Path(token_file).expanduser()) if not os.environ.get(TOKEN) else None
        return with_corrections(RemotePredictor(model, token=token))
    named = model == BUILTIN or is_remote(model)
    return load_corrected(model if named else find(model), threads=threads)


@dataclass(frozen=True, slots=True)
class _UnitQueries:
    """The queries about a unit and the key of their predictions in the cache."""

    queries: tuple[Query, ...]
    key: bytes


class PredictionService:
    """One model, its workers and the cache of its predictions; lives on the event loop.

    Args:
        settings: name the model, its threads, and the metrics and devices to ask for.
        load: loads a model; called on a worker.
    """

    def __init__(self, settings: Settings, load: Callable[..., Predictor] | None = None) -> None:
        self._settings, self._load = settings, load or _load
        self._selection = settings.selection
        self._cache = PredictionCache()
        self._changes: LRUCache[bytes, tuple[CostRatio, ...]] = LRUCache(_MAX_CHANGES)
        self._workers = ThreadPoolExecutor(STEPS_AT_ONCE, thread_name_prefix="rlm-model")
        self._lock = Lock()
        self._predictor: Predictor | None = None
        self._loaded, self._loading = asyncio.Event(), asyncio.Lock()
        self.outdate()

    def outdate(self) -> None:
        """Forget what is shown: another model, another selection, other measurements, a cleared cache."""
        # A new object each time.
        self.generation = object()
        # An entry goes with its unit: it stays while the unit is in a document or waits for the model.
        self._unit_queries: WeakKeyDictionary[CodeText, _UnitQueries] = WeakKeyDictionary()
        self._queries_of_kind: dict[object, tuple[Query, ...]] = {}

    async def load(self) -> str | None:
        """Load the model; returns None when it is ready, else one line with the reason."""
        loop, settings = asyncio.get_running_loop(), self._settings
        options = {"token_file": settings.token_file} if settings.token_file is not None else {}
        if settings.fallback != "none":
            options["fallback"] = settings.fallback
        # One after the other: the model of the last call stays.
        async with self._loading:
            try:
                self._predictor = await loop.run_in_executor(
                    self._workers, lambda: self._load(settings.model, threads=settings.threads, **options)
                )
                return None
            except (RlmError, ImportError, OSError) as error:
                return str(error)
            finally:
                self.outdate()
                self._loaded.set()

    async def reload(self, settings: Settings) -> str | None:
        """Load the model that ``settings`` name; if that fails, the current model stays. Returns as :meth:`load`."""
        self._settings = settings
        return await self.load()

    def select(self, selection: QuerySelection) -> None:
        """Choose what to ask about units."""
        self._selection = selection
        self.outdate()

    @property
    def ready(self) -> bool:
        """Return whether a model is loaded."""
        return self._predictor is not None

    def hold(self, units: int) -> None:
        """Make room for ``units`` open or listed units, so that requests for all of them find them."""
        self._cache.hold(_SPARE_SHARE * units)

    async def wait_loaded(self) -> None:
        """Wait until loading has ended, whether it succeeded or failed."""
        await self._loaded.wait()

    def known(self, code: CodeText, selection: QuerySelection | None = None) -> tuple[Prediction, ...] | None:
        """The cached predictions for a unit, None when there are none; ``selection`` narrows them down."""
        predictor = self._predictor
        if predictor is None:
            return None
        unit = self._queries_of(predictor, code)
        predictions = self._cache.get(unit.key)
        if predictions is None or selection is None or selection == self._selection:
            return predictions
        wanted = queries_for(predictor, code, selection)
        return tuple(answer for query, answer in zip(unit.queries, predictions, strict=True) if query in wanted)

    def _queries_of(self, predictor: Predictor, code: CodeText) -> _UnitQueries:
        """The queries about a unit; kept, since a client asks for the same file many times."""
        unit_queries, queries_of_kind = self._unit_queries, self._queries_of_kind
        known = unit_queries.get(code)
        if known is None:
            # The queries are the same for all units of a kind, except those whose file names sizes.
            kind = code.basis, code.language, code.workloads, code.judge
            queries = queries_of_kind.get(kind)
            if not queries:
                if len(queries_of_kind) >= _MAX_KINDS:
                    queries_of_kind.clear()
                queries = queries_of_kind[kind] = queries_for(predictor, code, self._selection)
            try:
                key = content_key(code, queries, predictor.model_id)
            except Exception as error:
                absorb("the key of a text", error)
                key = content_key(text_alone(code), queries, predictor.model_id)
            known = unit_queries[code] = _UnitQueries(queries, key)
        return known

    async def predict(self, codes: Sequence[CodeText], cancelled: Callable[[], bool] = lambda: False) -> None:
        """Put the predictions for ``codes`` into the cache; does nothing if cancelled before a worker starts."""
        await asyncio.get_running_loop().run_in_executor(self._workers, self._predict, codes, cancelled)

    def _predict(self, codes: Sequence[CodeText], cancelled: Callable[[], bool]) -> None:
        predictor = self._predictor
        if predictor is None or cancelled():
            return
        units = [(code, self._queries_of(predictor, code)) for code in codes]
        self._answer_missing(predictor, {unit.key: (code, unit.queries) for code, unit in units})

    def share_below(self, prediction: Prediction, language: str) -> float | None:
        """The share of comparable units that cost less; None where values are not comparable."""
        return self._predictor.percentile(prediction, language) if self._predictor is not None else None

    async def run(
        self, work: Callable[[Predictor], _Result], cancelled: Callable[[], bool] = lambda: False
    ) -> _Result | None:
        """The result of ``work`` on the model, on a worker; None without a model or if cancelled before it starts."""

        def on_worker() -> _Result | None:
            predictor = self._predictor
            return work(predictor) if predictor is not None and not cancelled() else None

        # Wait for a model that is being loaded.
        async with self._loading:
            pass
        return await asyncio.get_running_loop().run_in_executor(self._workers, on_worker)

    def answer(
        self, predictor: Predictor, units: Sequence[tuple[CodeText, Sequence[Query]]]
    ) -> list[tuple[Prediction, ...]]:
        """The predictions for chosen queries about units, from the cache or the model; call it on a worker."""
        keys = [content_key(code, queries, predictor.model_id) for code, queries in units]
        answers = self._answer_missing(predictor, dict(zip(keys, units, strict=True)))
        return [answers[key] for key in keys]

    def _answer_missing(
        self, predictor: Predictor, units: Mapping[bytes, tuple[CodeText, Sequence[Query]]]
    ) -> dict[bytes, tuple[Prediction, ...]]:
        answers = {key: known for key in units if (known := self._cache.get(key)) is not None}
        missing = [key for key in units if key not in answers]
        if missing:
            texts, queries = zip(*(units[key] for key in missing), strict=True)
            for key, predictions in zip(missing, predictor.predict(texts, queries), strict=True):
                self._cache.put(key, predictions)
                answers[key] = tuple(predictions)
        return answers

    def compare(
        self, predictor: Predictor, pairs: Sequence[tuple[CodeText, CodeText, Sequence[Query]]]
    ) -> list[tuple[CostRatio, ...]] | None:
        """The ratios of costs between two revisions; None when the model cannot compare. Call it on a worker."""
        # Imports numpy, which the server's start must not.
        from rlm_core.inference.revisions import compare_revisions

        keys = [
            content_key(before, (), predictor.model_id) + content_key(after, queries, predictor.model_id)
            for before, after, queries in pairs
        ]
        with self._lock:
            answers = {key: self._changes[key] for key in keys if key in self._changes}
        missing = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in answers}
        texts = [(before, after) for before, after, _ in missing.values()]
        ratios = compare_revisions(predictor, texts, [queries for *_, queries in missing.values()])
        if ratios is None:
            return None
        computed = {key: tuple(line) for key, line in zip(missing, ratios, strict=True)}
        answers |= computed
        with self._lock:
            self._changes.update(computed)
        return [answers[key] for key in keys]

    def clear(self) -> int:
        """Remove all predictions; returns the number of units."""
        with self._lock:
            self._changes.clear()
        self.outdate()
        return self._cache.clear()

    def close(self) -> None:
        """Drop what waits for a worker; running work ends by itself."""
        self._workers.shutdown(wait=False, cancel_futures=True)
