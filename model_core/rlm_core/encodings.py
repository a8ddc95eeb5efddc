"""Texts -> what is kept of them: each distinct text is canonicalised, encoded and counted once.

Every text is encoded alone and without padding, so no other text can change its number, and is kept by content.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from . import wide
from .canonical import canonical
from .errors import ModelError
from .features import describe
from .structure import structure
from .tokenizer import Ids, Tokenizer, crop

_CACHED_TEXTS = 20_000

Key = bytes
Entry = tuple[str, str, str]  # text, language, basis
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Encoding:
    """What is kept of a text.

    Vector ``(width,)``, wide contributions ``(roles, metrics)`` (None where trees take their place), syntax counts,
    what the features of a kernel, module or network need of it, number of tokens, whether it was cropped.
    """

    vector: npt.NDArray[np.float32]
    contributions: npt.NDArray[np.float32] | None
    counts: npt.NDArray[np.float32]
    described: Any
    tokens: int
    truncated: bool


class Encodings:
    """Encodes texts on a pool of threads and remembers them. Safe to use from several threads."""

    def __init__(
        self,
        encoder: Path,
        tokenizer: Tokenizer,
        parts: dict[str, wide.WideSlice],
        context: int,
        threads: int = 0,
    ) -> None:
        self._session = open_session(encoder)
        self._tokenizer, self._parts, self._context = tokenizer, parts, context
        self._pool = ThreadPoolExecutor(threads or os.cpu_count() or 1, thread_name_prefix="rlm-encode")
        self._canonicals: _Cache[Key, str] = _Cache(_CACHED_TEXTS)
        self._encodings: _Cache[Key, Encoding] = _Cache(_CACHED_TEXTS)

    def of(self, entries: Iterable[Entry]) -> dict[Entry, Encoding]:
        """The encodings of (text, language, basis) entries; those not yet known are computed."""
        wanted = dict.fromkeys(entries)
        plain = {entry: self._canonical(entry[0], entry[1]) for entry in wanted}
        keys = {entry: _digest(f"{entry[2]}/{entry[1]}\0{plain[entry]}") for entry in wanted}
        found: dict[Key, Encoding] = {}
        missing: dict[Key, Entry] = {}
        for entry, key in keys.items():
            known = self._encodings.get(key)
            if known is not None:
                found[key] = known
            else:
                missing[key] = (plain[entry], entry[1], entry[2])
        for key, encoding in zip(missing, self._pool.map(self._encode, missing.values()), strict=True):
            found[key] = encoding
            self._encodings.put(key, encoding)
        return {entry: found[key] for entry, key in keys.items()}

    def _canonical(self, text: str, language: str) -> str:
        """The canonical text, remembered by content: a caller's callees come again with every edit of it."""
        key = _digest(f"{language}\0{text}")
        plain = self._canonicals.get(key)
        if plain is None:
            plain = canonical(text, language)
            self._canonicals.put(key, plain)
        return plain

    def _encode(self, entry: Entry) -> Encoding:
        plain, language, basis = entry
        ids = self._tokenizer.encode(plain, language)
        short, truncated = crop(ids, self._context)
        part = self._parts.get(f"{basis}/{language}")
        return Encoding(
            encode(self._session, short),
            part.contributions(ids, wide.words_of(plain)) if part is not None else None,
            structure(plain, language),
            describe(plain, basis),
            len(ids),
            truncated,
        )


def encode(session: ort.InferenceSession, ids: Ids) -> npt.NDArray[np.float32]:
    """The encoder's vector of one cropped text, ``(width,)``."""
    (vector,) = session.run(None, {"ids": ids[None, :].astype(np.int64)})
    result: npt.NDArray[np.float32] = vector[0]
    return result


def open_session(path: Path) -> ort.InferenceSession:
    """An onnxruntime session on the CPU, one thread a run.

    Raises:
        ModelError: the file is not a usable model.
    """
    options = ort.SessionOptions()
    # One thread a run: texts are spread over our own pool, and a server must not spin while it idles.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises types of its own for each kind of damage
        reason = str(error).splitlines()[0][:120]
        raise ModelError(
            f"{path}: not a usable ONNX model ({reason}); reinstall rlm-lsp or export the model again"
        ) from None


def _digest(content: str) -> Key:
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Cache(Generic[K, V]):
    """A bounded least-recently-used map that several threads may use."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            value: V | None = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
