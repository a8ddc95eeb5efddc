"""The embedded predictor: the student in onnxruntime, on the CPU.

Each distinct text is encoded once, alone and without padding (so no other text can change its number), and kept by
content; a query costs only the head. Several threads may call :meth:`OnnxPredictor.predict` at once.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from . import wide
from .calibration import COVERAGES
from .callgraph import MAX_CALLEES
from .canonical import canonical
from .card import Card, SliceCard, read_card
from .errors import DataError, ModelError
from .tokenizer import Ids, Tokenizer, crop
from .types import METRICS_OF_BASIS, Band, Basis, CodeText, Prediction, Query
from .workload import decimal_year, slice_name

ENCODER, HEAD, TOKENIZER, WIDE = "encoder.onnx", "head.onnx", "tokenizer.model", "wide.safetensors"
_CACHED_TEXTS = 20_000
_HEAD_ROWS = 240
# Head rows come in whole blocks: matrix kernels round the last rows of a batch differently when they do not fill a
# block (of 4, 6, 8 or 12 rows), and a number must not depend on what else is asked.
_ROW_BLOCK = 24

Key = bytes
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Encoding:
    """What is kept of a text: vector ``(width,)``, wide contributions ``(roles, metrics)``, tokens, whether cropped."""

    vector: npt.NDArray[np.float32]
    contributions: npt.NDArray[np.float32]
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """One head row: where its answer goes and its inputs."""

    place: tuple[int, int]
    slice: int
    code: CodeText
    query: Query
    encoding: Encoding
    levels: tuple[list[Encoding], list[Encoding]]
    date: float


class OnnxPredictor:
    """Predicts with an exported student.

    Raises:
        ModelError: the directory is missing, incomplete or corrupt.
    """

    def __init__(self, directory: Path, *, threads: int = 0) -> None:
        self.directory = directory
        self.card: Card = read_card(directory)
        self._tokenizer = Tokenizer.load(directory / TOKENIZER)
        self._wide = wide.load(directory / WIDE)
        self._encoder = open_session(directory / ENCODER)
        self._head = open_session(directory / HEAD)
        self._slices = {entry.name: number for number, entry in enumerate(self.card.slices)}
        self._context = int(self.card.sizes["context"])
        self._threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="rlm-encode")
        self._canonicals: _Cache[Key, str] = _Cache(_CACHED_TEXTS)
        self._encodings: _Cache[Key, Encoding] = _Cache(_CACHED_TEXTS)

    @property
    def model_id(self) -> str:
        """Name and checksum of the weights."""
        return self.card.model_id

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """One query a metric of the basis, with the card's default device and workload filled in."""
        return tuple(self._filled(basis, Query(metric)) for metric in METRICS_OF_BASIS[basis])

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.predictor.Predictor`."""
        answers: list[list[Prediction | None]] = [[None] * len(asked) for asked in queries]
        wanted: list[tuple[int, int, CodeText, Query, int, float]] = []
        for i, (code, asked) in enumerate(zip(texts, queries, strict=True)):
            for j, short in enumerate(asked):
                query = self._filled(code.basis, short)
                number, date, reason = self._admit(code, query)
                if reason is None:
                    wanted.append((i, j, code, query, number, date))
                else:
                    answers[i][j] = self._abstain(code, query, reason)
        encodings = self._encode([code for _, _, code, *_ in wanted])
        rows = [
            _Row(
                (i, j),
                number,
                code,
                query,
                encodings[code.text, code.language, code.basis],
                self._callees(code, encodings),
                date,
            )
            for i, j, code, query, number, date in wanted
        ]
        for start in range(0, len(rows), _HEAD_ROWS):
            chunk = rows[start : start + _HEAD_ROWS]
            for row, probabilities in zip(chunk, self._probabilities(chunk), strict=True):
                answers[row.place[0]][row.place[1]] = self._prediction(row, probabilities)
        return [[answer for answer in line if answer is not None] for line in answers]

    def distributions(
        self, texts: Sequence[CodeText], queries: Sequence[Query]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The raw distributions of one query a text, ``(rows, outcomes)``, and their slice numbers.

        An exported model is compared with the trained one by them.

        Raises:
            DataError: a query that the model would abstain from.
        """
        admitted: list[tuple[int, float]] = []
        for i, (code, query) in enumerate(zip(texts, queries, strict=True)):
            number, date, reason = self._admit(code, self._filled(code.basis, query))
            if reason is not None:
                raise DataError(f"row {i}: {reason}")
            admitted.append((number, date))
        encodings = self._encode(texts)
        rows = []
        for i, (code, query, (number, date)) in enumerate(zip(texts, queries, admitted, strict=True)):
            encoding = encodings[code.text, code.language, code.basis]
            rows.append(_Row((i, 0), number, code, query, encoding, self._callees(code, encodings), date))
        parts = [self._probabilities(rows[i : i + _HEAD_ROWS]) for i in range(0, len(rows), _HEAD_ROWS)]
        return np.concatenate(parts), np.array([row.slice for row in rows])

    def _filled(self, basis: str, query: Query) -> Query:
        defaults = self.card.defaults.get(basis, {})
        workload = {**defaults.get("workload", {}), **query.workload}
        return Query(query.metric, query.device or defaults.get("device"), workload)

    def _admit(self, code: CodeText, query: Query) -> tuple[int, float, str | None]:
        """The slice and date of a query, or why we abstain from it."""
        name = slice_name(code.basis, code.language, query.metric)
        if name not in self._slices:
            return -1, 0.0, f"the model was not trained on {query.metric} of basis {code.basis} in {code.language}"
        device = self.card.defaults[code.basis]["device"]
        if query.device != device:
            return (
                -1,
                0.0,
                f"the model was not trained on device {query.device}; for basis {code.basis} it knows {device}",
            )
        if not code.text.strip():
            return -1, 0.0, "the text is empty"
        try:
            return self._slices[name], decimal_year(query.workload), None
        except DataError as error:
            return -1, 0.0, str(error)

    def _abstain(self, code: CodeText, query: Query, reason: str) -> Prediction:
        return Prediction(
            code.basis, query.metric, query.device, query.workload, self.model_id, None, (), 0.0, False, reason
        )

    def _encode(self, codes: Sequence[CodeText]) -> dict[tuple[str, str, str], Encoding]:
        """Encodings of the texts and their callees, by (text, language, basis); those not yet known are computed."""
        wanted = dict.fromkeys(
            (text, code.language, code.basis)
            for code in codes
            for text in (code.text, *itertools.chain(*_callee_texts(code)))
        )
        plain = {entry: self._canonical(entry[0], entry[1]) for entry in wanted}
        keys = {entry: _digest(f"{entry[2]}/{entry[1]}\0{plain[entry]}") for entry in wanted}
        found: dict[Key, Encoding] = {}
        missing: dict[Key, tuple[str, str, str]] = {}
        for entry, key in keys.items():
            known = self._encodings.get(key)
            if known is not None:
                found[key] = known
            else:
                missing[key] = (plain[entry], entry[1], entry[2])
        for key, encoding in zip(missing, self._pool.map(self._encode_one, missing.values()), strict=True):
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

    def _encode_one(self, entry: tuple[str, str, str]) -> Encoding:
        plain, language, basis = entry
        ids = self._tokenizer.encode(plain, language)
        short, truncated = crop(ids, self._context)
        contributions = self._wide[f"{basis}/{language}"].contributions(ids, wide.words_of(plain))
        return Encoding(encode(self._encoder, short), contributions, len(ids), truncated)

    def _callees(
        self, code: CodeText, encodings: dict[tuple[str, str, str], Encoding]
    ) -> tuple[list[Encoding], list[Encoding]]:
        first, second = _callee_texts(code)
        return (
            [encodings[text, code.language, code.basis] for text in first],
            [encodings[text, code.language, code.basis] for text in second],
        )

    def _probabilities(self, rows: Sequence[_Row]) -> npt.NDArray[np.float64]:
        """Distributions over the outcomes, ``(rows, outcomes)``."""
        width = len(rows[0].encoding.vector)
        size = -(-len(rows) // _ROW_BLOCK) * _ROW_BLOCK
        units = np.zeros((size, width), np.float32)
        callees = np.zeros((size, 4 * width), np.float32)
        counts = np.zeros((size, 2), np.float32)
        positions = np.zeros(size, np.float32)
        sizes = np.zeros((size, wide.SIZES), np.float32)
        slices = np.zeros(size, np.int64)
        dates = np.zeros(size, np.float32)
        hats = wide.calendar([row.date for row in rows])
        for i, row in enumerate(rows):
            units[i], slices[i], dates[i] = row.encoding.vector, row.slice, row.date
            for level, encodings in enumerate(row.levels):
                if encodings:
                    vectors = np.stack([encoding.vector for encoding in encodings])
                    callees[i, 2 * level * width : (2 * level + 1) * width] = vectors.mean(0)
                    callees[i, (2 * level + 1) * width : (2 * level + 2) * width] = vectors.max(0)
                    counts[i, level] = len(encodings)
            sizes[i] = wide.sizes(row.encoding.tokens, *([e.tokens for e in level] for level in row.levels))
            part = self.card.slices[row.slice]
            contributions = [[encoding.contributions for encoding in level] for level in row.levels]
            grams = wide.combine(row.encoding.contributions, *contributions)[wide.METRICS.index(row.query.metric)]
            positions[i] = wide_position(part, float(grams), hats[i])
        (logits,) = self._head.run(
            None,
            {
                "unit": units,
                "callees": callees,
                "counts": counts,
                "wide": positions,
                "sizes": sizes,
                "slice": slices,
                "date": dates,
            },
        )
        logits = logits[: len(rows)].astype(np.float64)
        for i, row in enumerate(rows):
            if self.card.slices[row.slice].scale.floor == 0:
                logits[i, 0] = -np.inf
        weights = np.exp(logits - logits.max(1, keepdims=True))
        result: npt.NDArray[np.float64] = weights / weights.sum(1, keepdims=True)
        return result

    def _prediction(self, row: _Row, probabilities: npt.NDArray[np.float64]) -> Prediction:
        code, query = row.code, row.query
        scale = self.card.slices[row.slice].scale
        level = self.card.calibration.lookup(code.basis, code.language, query.metric, query.device or "")
        if level is None:
            return self._abstain(code, query, f"basis {code.basis} has no calibration")
        wanted = [0.5]
        for t in level.levels:
            wanted += [(1 - t) / 2, (1 + t) / 2]
        values = scale.quantiles(probabilities[None, :], wanted)[0]
        bands = tuple(
            Band(
                float(values[2 * i + 1]),
                float(max(values[2 * i + 2], scale.floor)),
                coverage,
                level.groups,
                level.rows,
                level.name,
            )
            for i, coverage in enumerate(COVERAGES)
        )
        return Prediction(
            code.basis,
            query.metric,
            query.device,
            query.workload,
            self.model_id,
            float(values[0]),
            bands,
            scale.floor,
            row.encoding.truncated or any(e.truncated for level in row.levels for e in level),
        )


def encode(session: ort.InferenceSession, ids: Ids) -> npt.NDArray[np.float32]:
    """The encoder's vector of one cropped text, ``(width,)``."""
    (vector,) = session.run(None, {"ids": ids[None, :].astype(np.int64)})
    result: npt.NDArray[np.float32] = vector[0]
    return result


def _callee_texts(code: CodeText) -> tuple[list[str], list[str]]:
    """The texts of the callees that the head reads: level 1 and level 2, at most ``MAX_CALLEES`` each."""
    first, second = ([c.text for c in code.callees if c.level == level][:MAX_CALLEES] for level in (1, 2))
    return first, second


def _digest(content: str) -> Key:
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def wide_position(part: SliceCard, grams: float, hats: npt.NDArray[np.float32]) -> float:
    """The wide prediction on the outcome axis from its n-gram sum and the calendar basis ``(nodes,)`` of the date."""
    value = part.intercept + grams + float(hats @ np.asarray(part.calendar))
    return float(part.scale.position(10 ** min(max(value, -300.0), 300.0)))


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
