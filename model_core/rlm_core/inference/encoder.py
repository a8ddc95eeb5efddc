"""Texts -> encodings: each distinct text is canonicalised, encoded and counted once, and cached by content.

Every text is encoded alone and without padding, so no other text can change its number.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Container, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from cachetools import LRUCache

from rlm_core.errors import ModelError, StoppedError
from rlm_core.files import read_regular
from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.source.syntax_counts import structure

from . import ngram_ridge
from .features import describe
from .model_store import builtin
from .onnx_check import check_onnx
from .tokenizer import Ids, Tokenizer, crop

# On Windows it hands trace events to the system instead of sending them (see `rlm_core.no_telemetry`).
ort.disable_telemetry_events()

_CACHED_TEXTS = 4_096  # more than the units of a file of 30,000 lines and what they call
_MAX_BYTES = 2**29  # eighty times the encoder that ships
# An ONNX model that multiplies two matrices, `a` of unsigned and `b` of signed 8-bit numbers (opset 10).
_PRODUCT = (
    b'\x08\x07\x12\x00:>\n\x18\n\x01a\n\x01b\x12\x01c"\rMatMulInteger\x12\x01pZ\t\n\x01a\x12\x04\n\x02\x08\x02'
    b"Z\t\n\x01b\x12\x04\n\x02\x08\x03b\t\n\x01c\x12\x04\n\x02\x08\x06B\x04\n\x00\x10\n"
)

Key = bytes
Entry = tuple[str, str, str]  # text, language, basis


@dataclass(frozen=True, slots=True)
class Encoding:
    """The cached encoding of a text.

    Vector ``(width,)``, zeros for a text that the encoder does not read; contributions of the n-gram ridge ``(roles,
    columns)`` (None for a basis without a ridge), syntax counts, what the features of a basis with trees need, number
    of tokens, whether it was cropped.
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
        parts: Mapping[str, ngram_ridge.NgramRidge],
        context: int,
        threads: int = 0,
        forms: Mapping[str, CanonicalForm] | None = None,
        encoded: Container[str] | None = None,
    ) -> None:
        self._forms = forms or {}  # by ``basis/language``
        self._encoded = encoded  # likewise; None: the encoder reads all texts
        self._session = open_session(encoder)
        self._nothing = np.zeros(_width_of(self._session), np.float32)
        self._tokenizer, self._parts, self._context = tokenizer, parts, context
        self._pool = ThreadPoolExecutor(threads or os.cpu_count() or 1, thread_name_prefix="rlm-encode")
        self._keys: LRUCache[Key, Key] = LRUCache(_CACHED_TEXTS)  # of texts as they are -> of their canonical form
        self._encodings: LRUCache[Key, Encoding] = LRUCache(_CACHED_TEXTS)
        self._running: dict[Key, Future[Encoding]] = {}  # each text is encoded by one thread; others wait for it
        self._lock = threading.Lock()

    def of(self, entries: Iterable[Entry]) -> dict[Entry, Encoding]:
        """The encodings of (text, language, basis) entries; those not yet known are computed.

        Raises:
            StoppedError: the process ends.
        """
        found = {entry: self._known(entry) for entry in entries}
        missing = [entry for entry, encoding in found.items() if encoding is None]
        try:
            found |= dict(zip(missing, self._pool.map(self._made, missing), strict=True))
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
            # The process ends, and pools take nothing more.
            raise StoppedError from None
        return {entry: encoding for entry, encoding in found.items() if encoding is not None}

    def bag(self, text: str, part: str) -> ngram_ridge.Bag | None:
        """The n-grams of a text as a part (``basis/language``) weights them, of unit length; None if there is none."""
        ridge = self._parts.get(part)
        if ridge is None:
            return None
        basis, language = part.split("/")
        plain = self.canonical((text, language, basis))
        ids = self._tokenizer.encode(plain, language)
        return ngram_ridge.tfidf(ngram_ridge.bag(ids, ngram_ridge.words_of(plain), ridge.bits), ridge.idf)

    def canonical(self, entry: Entry) -> str:
        """The canonical text of a (text, language, basis) entry, in the form that the model reads."""
        text, language, basis = entry
        return canonical(text, language, self._forms.get(f"{basis}/{language}", CanonicalForm.LINES))

    def _known(self, entry: Entry) -> Encoding | None:
        digest = _digest(entry)
        with self._lock:
            key = self._keys.get(digest)
            return self._encodings.get(key) if key is not None else None

    def _made(self, entry: Entry) -> Encoding:
        """The encoding of a text that differs from those known, or only in what the canonical form leaves out."""
        _, language, basis = entry
        plain = self.canonical(entry)
        key = _digest((plain, language, basis))
        digest = _digest(entry)
        with self._lock:
            self._keys[digest] = key
            known, other = self._encodings.get(key), self._running.get(key)
            if known is not None:
                return known
            future = other or self._running.setdefault(key, Future())
        if other is None:
            try:
                encoding = self._encode(plain, language, basis)
                with self._lock:
                    self._encodings[key] = encoding
                future.set_result(encoding)
            except BaseException as error:
                future.set_exception(error)
            finally:
                del self._running[key]
        return future.result()

    def _encode(self, plain: str, language: str, basis: str) -> Encoding:
        ids = self._tokenizer.encode(plain, language)
        vector, truncated = self._nothing, False
        if self._encoded is None or f"{basis}/{language}" in self._encoded:
            short, truncated = crop(ids, self._context)
            vector = encode(self._session, short)
        return Encoding(
            vector,
            ngram_ridge.contributions(self._parts, basis, language, ids, ngram_ridge.words_of(plain)),
            structure(plain, language),
            describe(plain, basis, language),
            len(ids),
            truncated,
        )


def _width_of(session: ort.InferenceSession) -> int:
    """The width of the encoder's vectors; 0 where its file does not state one."""
    *_, width = session.get_outputs()[0].shape or [0]
    return width if isinstance(width, int) else 0


def encode(session: ort.InferenceSession, ids: Ids) -> npt.NDArray[np.float32]:
    """The encoder's vector of one cropped text, ``(width,)``.

    Raises:
        ModelError: the model cannot be run, for example because it asks for more memory than there is.
    """
    vectors = run(session, {"ids": ids[None, :].astype(np.int64)}, "encoder")
    if vectors.ndim != 2:
        raise ModelError("the encoder of the model gives no vector per text; export the model again")
    result: npt.NDArray[np.float32] = vectors[0]
    return result


def run(session: ort.InferenceSession, inputs: dict[str, npt.NDArray[Any]], part: str) -> npt.NDArray[Any]:
    """The only output of a session, an array; ``part`` names the part of the model in messages.

    Raises:
        ModelError: the session cannot be run on these inputs, or gives something else.
    """
    try:
        (output,) = session.run(None, inputs)
    except Exception as error:  # onnxruntime raises a separate type for each kind of failure
        reason = (str(error).splitlines() or [""])[0][:120]
        raise ModelError(f"the {part} of the model cannot be run ({reason}); export the model again") from None
    if not isinstance(output, np.ndarray):
        raise ModelError(f"the {part} of the model gives no array; export the model again")
    return output


@cache
def saturates() -> bool:
    """Return whether onnxruntime's sums of 8-bit products saturate on this CPU, as on x86 without VNNI."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(_PRODUCT, options, providers=["CPUExecutionProvider"])
    rows, columns = np.full((1, 64), 255, np.uint8), np.full((64, 1), 127, np.int8)
    (product,) = session.run(None, {"a": rows, "b": columns})
    return int(product[0, 0]) != 64 * 255 * 127


def open_session(path: Path) -> ort.InferenceSession:
    """An onnxruntime session on the CPU, one thread per run.

    Raises:
        ModelError: the file is not a usable model.
    """
    options = ort.SessionOptions()
    # One thread per run: texts are spread over our own pool, and a server must not spin while it idles.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Exact sums give the same predictions on every CPU. Where they are exact anyway, asking for them takes 1.6 times as
    # long.
    options.add_session_config_entry("session.x64quantprecision", str(int(saturates())))
    options.log_severity_level = 3
    # Runs take their memory from an arena. From malloc it would be mixed with the encodings that are kept, and hundreds
    # of MB that a long file leaves free could not be returned. Memory patterns would be kept for each length of text.
    options.enable_cpu_mem_arena = True
    options.enable_mem_pattern = False
    source: str | bytes = str(path)
    if path.parent != builtin():  # whose files are part of the program
        try:
            source = read_regular(path, _MAX_BYTES)
        except OSError as error:
            raise ModelError(
                f"{path}: cannot be read ({error.strerror}); reinstall rlm-lsp or export the model again"
            ) from None
        check_onnx(source, str(path))
    try:
        return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises a separate type for each kind of damage
        reason = (str(error).splitlines() or [""])[0][:120]
        raise ModelError(
            f"{path}: not a usable ONNX model ({reason}); reinstall rlm-lsp or export the model again"
        ) from None


def _digest(entry: Entry) -> Key:
    text, language, basis = entry
    return hashlib.blake2b(f"{basis}/{language}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
