"""The embedded predictor: the student in onnxruntime, on the CPU.

A text is encoded once and kept by content (:mod:`rlm_core.encodings`); a query costs only the wide part's sum or trees
and the head. Several threads may call :meth:`OnnxPredictor.predict` at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import trees, wide
from .bins import Scale
from .calibration import COVERAGES, MIN_GROUPS, Level
from .callgraph import MAX_CALLEES
from .card import Card, SliceCard, read_card
from .devices import canonical_device
from .distance import DISTANCE, Familiarity
from .encodings import Encoding, Encodings, Entry, open_session
from .errors import DataError
from .features import estimate_name, feature_names, features, forest_key
from .structure import FACTS, facts
from .tokenizer import Tokenizer
from .types import METRICS_OF_BASIS, Band, Basis, CodeText, Prediction, Query
from .workload import QUERY, decimal_year, has_sizes, query_vector, slice_name

ENCODER, HEAD, TOKENIZER, WIDE, TREES = (
    "encoder.onnx",
    "head.onnx",
    "tokenizer.model",
    "wide.safetensors",
    "trees.safetensors",
)
_HEAD_ROWS = 240
# Head rows come in whole blocks: matrix kernels round the last rows of a batch differently when they do not fill a
# block (of 4, 6, 8 or 12 rows), and a number must not depend on what else is asked.
_ROW_BLOCK = 24


@dataclass(frozen=True, slots=True)
class _Row:
    """One head row: where its answer goes and its inputs; ``told`` are the features of a slice that has trees."""

    place: tuple[int, int]
    slice: int
    code: CodeText
    query: Query
    encoding: Encoding
    levels: tuple[list[Encoding], list[Encoding]]
    date: float
    told: npt.NDArray[np.float32] | None


class OnnxPredictor:
    """Predicts with an exported student.

    Raises:
        ModelError: the directory is missing, incomplete or corrupt.
    """

    def __init__(self, directory: Path, *, threads: int = 0) -> None:
        self.directory = directory
        self.card: Card = read_card(directory)
        parts = wide.load(directory / WIDE)
        names = {entry.name: feature_names(entry.name.split("/")[0]) for entry in self.card.slices}
        self._forests = trees.load(directory / TREES, names)
        self._encodings = Encodings(
            directory / ENCODER,
            Tokenizer.load(directory / TOKENIZER),
            parts,
            int(self.card.sizes["context"]),
            threads,
        )
        self._head = open_session(directory / HEAD)
        self._slices = {entry.name: number for number, entry in enumerate(self.card.slices)}
        self._familiarity = Familiarity.load(directory / DISTANCE)

    @property
    def model_id(self) -> str:
        """Name and checksum of the weights."""
        return self.card.model_id

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """The devices that the model was trained on for a basis."""
        return tuple(self.card.devices.get(basis, ()))

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
        rows = []
        for i, j, code, query, number, date in wanted:
            row = _row((i, j), number, code, query, encodings, date)
            reason = self._familiarity.reason(f"{code.basis}/{code.language}", row.encoding.vector) or _unsized(row)
            if reason is None:
                rows.append(row)
            else:
                answers[i][j] = self._abstain(code, query, reason)
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
        admitted: list[tuple[Query, int, float]] = []
        for i, (code, short) in enumerate(zip(texts, queries, strict=True)):
            query = self._filled(code.basis, short)
            number, date, reason = self._admit(code, query)
            if reason is not None:
                raise DataError(f"row {i}: {reason}")
            admitted.append((query, number, date))
        encodings = self._encode(texts)
        rows = [
            _row((i, 0), number, code, query, encodings, date)
            for i, (code, (query, number, date)) in enumerate(zip(texts, admitted, strict=True))
        ]
        parts = [self._probabilities(rows[i : i + _HEAD_ROWS]) for i in range(0, len(rows), _HEAD_ROWS)]
        return np.concatenate(parts), np.array([row.slice for row in rows])

    def _filled(self, basis: str, query: Query) -> Query:
        defaults = self.card.defaults.get(f"{basis}/{query.metric}") or self.card.defaults.get(basis, {})
        # An accuracy belongs to a data set, not to a device.
        device = (query.device or defaults.get("device")) if query.metric != "accuracy" else None
        if device is not None:
            device = canonical_device(device) or device
        return Query(query.metric, device, {**defaults.get("workload", {}), **query.workload})

    def _admit(self, code: CodeText, query: Query) -> tuple[int, float, str | None]:
        """The slice and date of a query, or why we abstain from it."""
        name = slice_name(code.basis, code.language, query.metric)
        if name not in self._slices:
            return -1, 0.0, f"the model was not trained on {query.metric} of basis {code.basis} in {code.language}"
        known = self.card.devices.get(code.basis, ())
        if query.device not in known and query.metric != "accuracy":
            some = ", ".join(known[:3]) + (f" and {len(known) - 3} more" if len(known) > 3 else "")
            reason = f"the model was not trained on device {query.device}; for basis {code.basis} it knows {some}"
            return -1, 0.0, reason
        if feature_names(code.basis) and forest_key(name, query.workload, query.device) not in self._forests:
            asked = ", ".join(f"{key} {value}" for key, value in sorted(query.workload.items())) or "no workload"
            return -1, 0.0, f"the model was not trained on {query.metric} with {asked} on device {query.device}"
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

    def _encode(self, codes: Sequence[CodeText]) -> dict[Entry, Encoding]:
        """Encodings of the texts and their callees."""
        levels = ((code, [code.text, *first, *second]) for code in codes for first, second in [_callee_texts(code)])
        return self._encodings.of((text, code.language, code.basis) for code, texts in levels for text in texts)

    def _position(self, row: _Row, hats: npt.NDArray[np.float32]) -> float:
        """The wide part's prediction on the outcome axis, from n-grams or from trees."""
        part = self.card.slices[row.slice]
        if row.told is not None:
            forest = self._forests[forest_key(part.name, row.query.workload, row.query.device)]
            return _on_axis(part, float(forest.predict(row.told[None, :])[0]))
        own = row.encoding.contributions
        assert own is not None
        levels = [[e.contributions for e in level if e.contributions is not None] for level in row.levels]
        grams = wide.combine(own, *levels)[wide.METRICS.index(row.query.metric)]
        return wide_position(part, float(grams), hats)

    def _probabilities(self, rows: Sequence[_Row]) -> npt.NDArray[np.float64]:
        """Distributions over the outcomes, ``(rows, outcomes)``."""
        width = len(rows[0].encoding.vector)
        size = -(-len(rows) // _ROW_BLOCK) * _ROW_BLOCK
        inputs: dict[str, npt.NDArray[Any]] = {
            "unit": np.zeros((size, width), np.float32),
            "callees": np.zeros((size, 4 * width), np.float32),
            "counts": np.zeros((size, 2), np.float32),
            "wide": np.zeros(size, np.float32),
            "facts": np.zeros((size, FACTS), np.float32),
            "slice": np.zeros(size, np.int64),
            "date": np.zeros(size, np.float32),
            "query": np.zeros((size, QUERY), np.float32),
        }
        hats = wide.calendar([row.date for row in rows])
        for i, row in enumerate(rows):
            for level, encodings in enumerate(row.levels):
                if encodings:
                    vectors = np.stack([encoding.vector for encoding in encodings])
                    inputs["callees"][i, 2 * level * width : (2 * level + 1) * width] = vectors.mean(0)
                    inputs["callees"][i, (2 * level + 1) * width : (2 * level + 2) * width] = vectors.max(0)
                    inputs["counts"][i, level] = len(encodings)
            lengths = ([e.tokens for e in level] for level in row.levels)
            inputs["unit"][i], inputs["slice"][i], inputs["date"][i] = row.encoding.vector, row.slice, row.date
            inputs["facts"][i] = facts(row.encoding.counts, row.encoding.tokens, *lengths)
            inputs["query"][i] = query_vector(row.query.device, row.query.workload)
            inputs["wide"][i] = self._position(row, hats[i])
        (logits,) = self._head.run(None, inputs)
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
        if level is None or level.groups < MIN_GROUPS:
            found = level.groups if level is not None else 0
            return self._abstain(
                code,
                query,
                f"{found} held-out groups of basis {code.basis} are too few to calibrate on ({MIN_GROUPS} are needed)",
            )
        return Prediction(
            code.basis,
            query.metric,
            query.device,
            query.workload,
            self.model_id,
            float(scale.quantiles(probabilities[None, :], [0.5])[0, 0]),
            _bands(level, scale, probabilities),
            scale.floor,
            row.encoding.truncated or any(e.truncated for level in row.levels for e in level),
        )


def _bands(level: Level, scale: Scale, probabilities: npt.NDArray[np.float64]) -> tuple[Band, ...]:
    wanted = [edge for t in level.levels for edge in ((1 - t) / 2, (1 + t) / 2)]
    ends = scale.quantiles(probabilities[None, :], wanted)[0]
    return tuple(
        Band(
            float(ends[2 * i]),
            float(max(ends[2 * i + 1], scale.floor)),
            coverage,
            level.groups,
            level.rows,
            level.name,
        )
        for i, coverage in enumerate(COVERAGES)
    )


def _row(
    place: tuple[int, int], number: int, code: CodeText, query: Query, encodings: dict[Entry, Encoding], date: float
) -> _Row:
    encoding = encodings[code.text, code.language, code.basis]
    told = None
    if feature_names(code.basis):
        told = features(encoding.described, code.basis, query.workload, query.device)
    return _Row(place, number, code, query, encoding, _callees(code, encodings), date, told)


def _unsized(row: _Row) -> str | None:
    """Why a kernel or module cannot be predicted: nothing says how large its tensors are."""
    estimate = estimate_name(row.code.basis)
    if row.told is None or estimate is None or row.query.metric != "latency":
        return None
    known = np.isfinite(row.told[feature_names(row.code.basis).index(estimate)])
    # A module's sizes may stand in its text; a kernel's never do.
    if known and (row.code.basis != "kernel" or has_sizes(row.query.workload)):
        return None
    return "its sizes are unknown; give them in the workload, like M=4096 or arg0=4096x4096"


def _callees(code: CodeText, encodings: dict[Entry, Encoding]) -> tuple[list[Encoding], list[Encoding]]:
    first, second = _callee_texts(code)
    return (
        [encodings[text, code.language, code.basis] for text in first],
        [encodings[text, code.language, code.basis] for text in second],
    )


def _callee_texts(code: CodeText) -> tuple[list[str], list[str]]:
    """The texts of the callees that the head reads: level 1 and level 2, at most ``MAX_CALLEES`` each."""
    first, second = ([c.text for c in code.callees if c.level == level][:MAX_CALLEES] for level in (1, 2))
    return first, second


def wide_position(part: SliceCard, grams: float, hats: npt.NDArray[np.float32]) -> float:
    """The wide prediction on the outcome axis from its n-gram sum and the calendar basis ``(nodes,)`` of the date."""
    return _on_axis(part, part.intercept + grams + float(hats @ np.asarray(part.calendar)))


def _on_axis(part: SliceCard, log10: float) -> float:
    return float(part.scale.position(10 ** min(max(log10, -300.0), 300.0)))
