"""The model behind the server: loaded in the background, asked on one worker thread, answers kept in the cache.

The event loop only reads the cache. The worker is our own, since pygls reads stdin on its pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from rlm_core import RlmError
from rlm_core.predictor import Predictor
from rlm_core.types import CodeText, Prediction

from .cache import PredictionCache, content_key
from .rows import Asked, queries_for
from .settings import Settings


def _load(model: str, *, threads: int) -> Predictor:
    # Imported on the worker: the server answers its first requests before the model's libraries are there.
    from rlm_core.adapt import load_personal

    return load_personal(model, threads=threads)


class Engine:
    """Predictions for units: from the cache at once, from the model on the worker."""

    def __init__(self, settings: Settings, load: Callable[..., Predictor] | None = None) -> None:
        self._settings, self._load = settings, load or _load
        self._asked = Asked(settings.metrics, settings.devices)
        self._cache = PredictionCache()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rlm-model")
        self._predictor: Predictor | None = None
        self._loaded = asyncio.Event()

    async def load(self) -> str | None:
        """Load the model; None when it is ready, else one line saying why not."""
        loop, settings = asyncio.get_running_loop(), self._settings
        try:
            self._predictor = await loop.run_in_executor(
                self._worker, lambda: self._load(settings.model, threads=settings.threads)
            )
            return None
        except (RlmError, ImportError, OSError) as error:
            return str(error)
        finally:
            self._loaded.set()

    @property
    def ready(self) -> bool:
        """Whether a model is loaded."""
        return self._predictor is not None

    async def wait_loaded(self) -> None:
        """Wait until loading has ended, well or badly."""
        await self._loaded.wait()

    def cached(self, code: CodeText) -> tuple[Prediction, ...] | None:
        """The known predictions for a unit."""
        return self._cache.get(self._key(self._predictor, code)) if self._predictor is not None else None

    async def predict(self, codes: Sequence[CodeText], cancelled: Callable[[], bool] = lambda: False) -> None:
        """Put the predictions for ``codes`` into the cache; does nothing if cancelled before the worker gets to it."""
        await asyncio.get_running_loop().run_in_executor(self._worker, self._predict, codes, cancelled)

    def _predict(self, codes: Sequence[CodeText], cancelled: Callable[[], bool]) -> None:
        predictor = self._predictor
        if predictor is None or cancelled():
            return
        wanted = {self._key(predictor, code): code for code in codes}
        missing = {key: code for key, code in wanted.items() if self._cache.get(key) is None}
        if not missing:
            return
        texts = list(missing.values())
        answers = predictor.predict(texts, [queries_for(predictor, code, self._asked) for code in texts])
        for key, predictions in zip(missing, answers, strict=True):
            self._cache.put(key, predictions)

    def _key(self, predictor: Predictor, code: CodeText) -> bytes:
        return content_key(code, queries_for(predictor, code, self._asked), predictor.model_id)

    def close(self) -> None:
        """Drop what waits for the worker; what it is doing now comes to its end."""
        self._worker.shutdown(wait=False, cancel_futures=True)
