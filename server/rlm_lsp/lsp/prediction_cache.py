"""Predictions by content: the same text, callees and queries are never asked twice of the same model."""

from __future__ import annotations

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from rlm_core.types import CodeText, Prediction, Query

# More units than fit into the largest file that we read, so that a client that asks for whole files is always served.
DEFAULT_LIMIT = 50_000
# A server that did not answer is asked again after this time, with the next edit or scroll.
TRANSIENT_SECONDS = 5.0


def content_key(code: CodeText, queries: Sequence[Query], model_id: str) -> bytes:
    """A digest of everything that a prediction depends on."""
    digest = hashlib.blake2b(digest_size=16)
    parts = [model_id, code.language, code.basis, code.text]
    for callee in code.callees:
        parts += [str(callee.level), callee.text]
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
    """The most recently used predictions, at most ``limit`` units; safe to use from several threads."""

    def __init__(self, limit: int = DEFAULT_LIMIT, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock = limit, clock
        self._entries: OrderedDict[bytes, tuple[Prediction, ...]] = OrderedDict()
        self._expiry: dict[bytes, float] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> int:
        """Forget everything; how many units it was."""
        with self._lock:
            count = len(self._entries)
            self._entries.clear()
            self._expiry.clear()
            return count

    def get(self, key: bytes) -> tuple[Prediction, ...] | None:
        """The predictions under ``key``, None when there are none."""
        with self._lock:
            if self._expiry.get(key, math.inf) <= self._clock():
                del self._expiry[key], self._entries[key]
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: bytes, predictions: Sequence[Prediction]) -> None:
        """Keep predictions, forgetting those that were used the longest time ago; transient ones for a moment only."""
        with self._lock:
            self._expiry.pop(key, None)
            if any(prediction.transient for prediction in predictions):
                self._expiry[key] = self._clock() + TRANSIENT_SECONDS
            self._entries[key] = tuple(predictions)
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._expiry.pop(self._entries.popitem(last=False)[0], None)
