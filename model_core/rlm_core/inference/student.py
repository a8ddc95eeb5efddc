"""The embedded predictor: the student in onnxruntime, on the CPU.

A text is encoded once and kept by content (``encoder``); a query costs only the n-gram ridge's sum or trees, and
the head. Several threads may call :meth:`OnnxPredictor.predict` at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from rlm_core.boundary import guarded
from rlm_core.errors import DataError, ModelError
from rlm_core.queries.devices import answered_by_sheet
from rlm_core.queries.query_vector import task_name, task_parts
from rlm_core.types import (
    MEDIAN,
    METRICS_OF_BASIS,
    Abstention,
    AbstentionCode,
    Band,
    Basis,
    CalibrationSource,
    CodeText,
    CostRatio,
    GrowthEstimate,
    Metric,
    Prediction,
    Query,
    WorkFacts,
)

from . import ngram_ridge, trees
from .calibration import MIN_GROUPS, TaskCalibration, bands
from .callee_costs import CalleeCosts
from .card import StudentCard, read_card
from .encoder import Encoding, Encodings, Entry
from .features import all_feature_names, answers_alone, forest_key, has_trees, work_is_known
from .growth import GROWTH, GrowthHead, with_growth
from .head import HeadRow, QueryHead, callee_texts, make_row, unsized
from .input_growth import INPUT_GROWTH, InputGrowthHead
from .launch_cost import launch_cost, program_cost
from .model_store import BUILTIN, builtin
from .network_cost import NetworkCosts
from .network_range import out_of_range
from .network_ratio import network_ratio
from .network_settings import NETWORK_COSTS
from .novelty import DISTANCE, NoveltyDetector
from .pair_facts import with_pair_facts
from .pair_ratio import pair_ratio, reading_of
from .predictor import QueryScope, judge_date, too_few_groups, untrained_task
from .propagation import CALLS, Propagation
from .residuals import Residuals, data_sheet_key, forest_of, quantiles, spread_key, work_key
from .tokenizer import Tokenizer
from .unknown_work import without_unknown
from .work_mixture import WorkMixture, facts_of, with_facts, without_end

ENCODER, HEAD, TOKENIZER, NGRAM_RIDGE, TREES, WORK = (
    "encoder.onnx",
    "head.onnx",
    "tokenizer.model",
    "wide.safetensors",
    "trees.safetensors",
    "work.safetensors",
)
_MAX_CONTEXT = 65_536

# Kernels, modules and networks are measured at many sizes and on many devices: their values are not comparable.
_COMPARABLE = frozenset({"call", "program"})


class OnnxPredictor:
    """Predicts with an exported student.

    ``join_facts=False`` leaves the work facts of texts out, ``propagate=False`` the costs of what they call.

    Pickled, it is the path of its directory: another process loads the model again, once, and raises a
    :class:`ModelError` if it has another one there. The model that ships is the one that is installed there.

    Raises:
        ModelError: the directory is missing, incomplete or corrupt.
    """

    def __init__(self, directory: Path, *, threads: int = 0, join_facts: bool = True, propagate: bool = True) -> None:
        self.directory = directory
        self._threads, self._propagates = threads, propagate
        self._joins_facts = join_facts
        self.card: StudentCard = read_card(directory)
        self._networks = NetworkCosts(directory / NETWORK_COSTS if NETWORK_COSTS in self.card.files else None)
        self._scope = self._networks.scope(QueryScope(self.card.defaults, self.card.devices))
        parts = ngram_ridge.load(directory / NGRAM_RIDGE)
        self._forests = trees.load(directory / TREES, all_feature_names())
        for key in self.card.residuals:
            if forest_of(key) not in self._forests:
                raise ModelError(f"{directory / TREES}: no forest for {key}; reinstall the model")
        self._encodings = Encodings(
            directory / ENCODER,
            Tokenizer.load(directory / TOKENIZER),
            parts,
            _context_of(self.card, directory),
            threads,
            self.card.forms,
            self.card.encoded,
        )
        self._head = QueryHead(directory / HEAD, self.card.tasks, self._forests)
        self._tasks = {entry.name: number for number, entry in enumerate(self.card.tasks)}
        self._novelty = NoveltyDetector.load(directory / DISTANCE)
        self._growth = GrowthHead(directory / GROWTH if GROWTH in self.card.files else None)
        self._input_growth = InputGrowthHead(directory / INPUT_GROWTH if INPUT_GROWTH in self.card.files else None)
        self._mixture = WorkMixture.load(directory / WORK) if WORK in self.card.files else None
        self._callees: CalleeCosts | None = None
        if propagate and join_facts and CALLS in self.card.files:
            model = Propagation.load(directory / CALLS)
            self._callees = CalleeCosts(model, self.card.calibration, self._encodings, self._alone)

    def __reduce__(self) -> tuple[Callable[..., OnnxPredictor], tuple[object, ...]]:
        name = BUILTIN if self.directory.resolve() == builtin().resolve() else str(self.directory.resolve())
        return _reloaded, (name, self.model_id, self._threads, self._joins_facts, self._propagates)

    @cached_property
    def model_id(self) -> str:
        """Name and checksum of the weights."""
        return self.card.model_id

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        """The devices that the model was trained on for a basis, for a program in its language."""
        known = tuple(self._scope.devices.get(basis, ()))
        if basis != "program" or language is None:
            return known
        metrics = METRICS_OF_BASIS[basis]
        return tuple(
            name for name in known if any(task_name(basis, language, metric, name) in self._tasks for metric in metrics)
        )

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """One query per metric of the basis, with the card's default device and workload.

        About a network there are also queries about the devices on which real networks were measured.
        """
        others = self._networks.queries() if basis == "network" else ()
        return (*self._scope.default_queries(basis, language), *others)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        answers: list[list[Prediction | None]] = [[None] * len(asked) for asked in queries]
        wanted: list[tuple[int, int, CodeText, Query, int, float]] = []
        for i, (code, asked) in enumerate(zip(texts, queries, strict=True)):
            for j, short in enumerate(asked):
                query = self._scope.filled(code.basis, short, code.language)
                answers[i][j] = self._networks.answer(code, query, self.model_id)
                if answers[i][j] is not None:
                    continue
                admitted = self._admit(code, query)
                if isinstance(admitted, Abstention):
                    missing = Prediction.missing(code, query, self.model_id, admitted)
                    answers[i][j] = _with_program(missing, code)
                else:
                    wanted.append((i, j, code, query, *admitted))
        encodings = self._encode([code for _, _, code, *_ in wanted])
        rows = []
        novelty: dict[tuple[int, str], Abstention | None] = {}  # by text and region
        facts: dict[int, WorkFacts | None] = {}  # by text
        for i, j, code, query, number, date in wanted:
            row = make_row((i, j), number, self.card.tasks[number], code, query, encodings, date)
            region = ngram_ridge.part_name(task_parts(self.card.tasks[number].name))
            if (i, region) not in novelty:
                novelty[i, region] = self._novelty.reason(region, row.encoding.vector)
            if code.basis in ("call", "program") and i not in facts:
                facts[i] = facts_of(code) if self._joins_facts else None
            known = facts.get(i)
            # What the text fixes needs no likeness to the training texts.
            unlike = novelty[i, region] if known is None or not known.fixed or self._mixture is None else None
            reason = unlike or unsized(row)
            if reason is None:
                rows.append(row)
            else:
                answers[i][j] = Prediction.missing(code, query, self.model_id, reason)
        head_rows = []
        for row in rows:
            name = self.card.tasks[row.task].name
            if answers_alone(name) or self._is_by_sheet(name, row.query):
                prediction = self._with_launch(self._forest_prediction(row), row.code)
                i, j = row.index
                answers[i][j] = with_facts(prediction, facts.get(i), self._mixture, self.card.calibration)
            else:
                head_rows.append(row)
        joined = [
            with_facts(prediction, facts.get(row.index[0]), self._mixture, self.card.calibration)
            for row, prediction in zip(head_rows, self._head_predictions(head_rows), strict=True)
        ]
        works = [facts.get(row.index[0]) for row in head_rows]
        if self._callees is not None:
            joined = self._callees.corrected([row.code for row in head_rows], joined, works)
        for row, prediction in zip(head_rows, joined, strict=True):
            i, j = row.index
            answers[i][j] = prediction
        lines = [[answer for answer in line if answer is not None] for line in answers]
        return [
            without_unknown(
                without_end(with_growth(line, self._growth_of(code, facts.get(i))), facts.get(i)), code, facts.get(i)
            )
            for i, (code, line) in enumerate(zip(texts, lines, strict=True))
        ]

    def _growth_of(self, code: CodeText, facts: WorkFacts | None) -> Mapping[str, GrowthEstimate]:
        nothing: Mapping[str, GrowthEstimate] = {}
        if (code.language, code.basis) != ("python", "call"):
            return guarded("the growth of a text", lambda: self._growth.estimates(code), lambda error: nothing)
        with_facts = replace(code, work=facts) if code.work is None else code
        return guarded("the growth of a text", lambda: self._input_growth.estimates(with_facts), lambda error: nothing)

    def _alone(self, texts: Sequence[str], metric: str) -> list[Prediction]:
        """Predictions of functions from their own text, without what they call."""
        codes = [CodeText(text, "python", "call") for text in texts]
        query = self._scope.filled("call", Query(cast(Metric, metric)))
        number = self._tasks[task_name("call", "python", metric)]
        encodings = self._encode(codes)
        task = self.card.tasks[number]
        return self._head_predictions(
            [make_row((i, 0), number, task, code, query, encodings, 0.0) for i, code in enumerate(codes)]
        )

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]]:
        """The ratios of ``queries[i]`` between the texts of ``pairs[i]``; see :mod:`rlm_core.inference.cost_ratio`."""
        pairs = [with_pair_facts(before, after) for before, after in pairs]
        texts = [code for pair in pairs for code in pair]
        answers = self.predict(texts, [asked for asked in queries for _ in range(2)])
        # Encodings are cached: what the change role needs was made for the predictions.
        encodings = self._encodings.of((code.text, code.language, code.basis) for code in texts)
        result = []
        for i, (before, after) in enumerate(pairs):
            parts = [encodings[code.text, code.language, code.basis].contributions for code in (before, after)]
            line = zip(answers[2 * i], answers[2 * i + 1], strict=True)
            is_same = self._reading(before) == self._reading(after)
            result.append(
                [
                    network_ratio(self._networks, (before, after), (first, second), self.model_id)
                    or pair_ratio(self.card, (before, after), (first, second), _change(parts, first), is_same=is_same)
                    for first, second in line
                ]
            )
        return result

    def _reading(self, code: CodeText) -> tuple[Hashable, ...]:
        return reading_of(code, lambda text: self._encodings.canonical((text, code.language, code.basis)))

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        """The share of training values below a prediction; see :class:`rlm_core.inference.predictor.Predictor`."""
        task = task_name(prediction.basis, language, prediction.metric, prediction.device)
        if (
            prediction.median is None
            or prediction.median <= prediction.floor
            or prediction.basis not in _COMPARABLE
            or prediction.device not in self.devices(prediction.basis)
            or task not in self._tasks
        ):
            return None
        return self.card.tasks[self._tasks[task]].scale.share_below(prediction.median)

    def distributions(
        self, texts: Sequence[CodeText], queries: Sequence[Query]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The raw distributions of one query per text, ``(rows, outcomes)``, and their task numbers.

        An exported model is compared with the trained one by them.

        Raises:
            DataError: a query that the model would abstain from.
        """
        admitted: list[tuple[Query, int, float]] = []
        for i, (code, short) in enumerate(zip(texts, queries, strict=True)):
            query = self._scope.filled(code.basis, short, code.language)
            place = self._admit(code, query)
            if isinstance(place, Abstention):
                raise DataError(f"row {i}: the model abstains ({place}: {dict(place.details)})")
            admitted.append((query, *place))
        encodings = self._encode(texts)
        rows = [
            make_row((i, 0), number, self.card.tasks[number], code, query, encodings, date)
            for i, (code, (query, number, date)) in enumerate(zip(texts, admitted, strict=True))
        ]
        return self._head.probabilities(rows), np.array([row.task for row in rows])

    def _admit(self, code: CodeText, query: Query) -> tuple[int, float] | Abstention:
        """The task and date of a query, or the reason to abstain from it."""
        name = task_name(code.basis, code.language, query.metric, query.device)
        # The tasks of a program are those of its judge, so an unknown judge is the reason.
        if name not in self._tasks and not self._scope.lacks_judge(code.basis, query):
            return untrained_task(code, query)
        if not self._scope.knows_device(code.basis, query) and not self._is_by_sheet(name, query):
            return self._scope.unknown_device(code.basis, query.device)
        if has_trees(name) and forest_key(name, query.workload, query.device) not in self._forests:
            workload = ", ".join(f"{key} {value}" for key, value in sorted(query.workload.items()))
            details = {"metric": query.metric, "workload": workload, "device": query.device or ""}
            return Abstention(AbstentionCode.SETTING_NOT_TRAINED, details)
        date = judge_date(code, query)
        return date if isinstance(date, Abstention) else (self._tasks[name], date)

    def _encode(self, codes: Sequence[CodeText]) -> dict[Entry, Encoding]:
        """Encodings of the texts and their callees."""
        levels = ((code, [code.text, *first, *second]) for code in codes for first, second in [callee_texts(code)])
        return self._encodings.of((text, code.language, code.basis) for code, texts in levels for text in texts)

    def _forest_prediction(self, row: HeadRow) -> Prediction:
        """The answer of a basis whose forests answer without the head."""
        code, query = row.code, row.query
        name = self.card.tasks[row.task].name
        key = forest_key(name, query.workload, query.device)
        by_sheet = self._is_by_sheet(name, query)
        assert row.features is not None
        residuals = self._residuals(data_sheet_key(key) if by_sheet else key, code.basis, row.features)
        if residuals is None or (residuals.groups < MIN_GROUPS and not by_sheet):
            reason = too_few_groups(code.basis, residuals.groups if residuals else 0)
            return Prediction.missing(code, query, self.model_id, reason)
        outside = out_of_range(self._forests[key], query, row.features) if code.basis == "network" else None
        if outside is not None:
            return Prediction.missing(code, query, self.model_id, outside)
        most = 1.0 if query.metric == "accuracy" else math.inf
        floor = self.card.tasks[row.task].scale.floor
        spread = self._forests.get(spread_key(key))
        found = quantiles(self._forests[key], spread, residuals, row.features, floor, most)
        source = CalibrationSource(key, by_data_sheet=by_sheet)
        return self._answered(row, found, bands(found, residuals.groups, residuals.rows, source), floor)

    def _residuals(self, key: str, basis: str, features: npt.NDArray[np.float32]) -> Residuals | None:
        """The residuals of texts that fix what is done as this one does, or those of all texts."""
        known = work_is_known(basis, features[None])
        own = self.card.residuals.get(work_key(key, bool(known[0]))) if known is not None else None
        return own if own is not None else self.card.residuals.get(key)

    def _with_launch(self, prediction: Prediction, code: CodeText) -> Prediction:
        if (code.basis, code.language) != ("kernel", "triton"):
            return prediction
        text = self._encodings.canonical((code.text, code.language, code.basis))
        return replace(prediction, launch=launch_cost(text, prediction.workload, prediction.device))

    def _is_by_sheet(self, task_name: str, query: Query) -> bool:
        """Return whether the query's device is known only by its data sheet, and the data sheet is enough."""
        basis, key = task_name.split("/")[0], forest_key(task_name, query.workload, query.device)
        known = self.card.devices.get(basis, ())
        return data_sheet_key(key) in self.card.residuals and answered_by_sheet(basis, query.device, known)

    def _head_predictions(self, rows: Sequence[HeadRow]) -> list[Prediction]:
        """The answers of the head, calibrated."""
        probabilities = self._head.probabilities(rows)
        levels = [
            self.card.calibration.lookup(row.code.basis, row.code.language, row.query.metric, row.query.device or "")
            for row in rows
        ]
        raw = {level.name: level.raw_levels() for level in levels if level is not None}
        found: dict[int, Sequence[float]] = {}
        for number in {row.task for row in rows}:
            mine = [(i, level) for i, level in enumerate(levels) if rows[i].task == number and level is not None]
            if not mine:
                continue
            scale, wanted = self.card.tasks[number].scale, np.array([raw[level.name] for _, level in mine])
            ends = scale.quantiles(probabilities[[i for i, _ in mine]], wanted)
            # A band that reaches above the median reaches at least to the floor.
            ends[:, MEDIAN + 1 :] = np.maximum(ends[:, MEDIAN + 1 :], scale.floor)
            found |= {i: line for (i, _), line in zip(mine, ends.tolist(), strict=True)}
        return [
            self._prediction(row, level, found.get(i, ()))
            for i, (row, level) in enumerate(zip(rows, levels, strict=True))
        ]

    def _prediction(self, row: HeadRow, level: TaskCalibration | None, found: Sequence[float]) -> Prediction:
        if level is None or level.groups < MIN_GROUPS:
            reason = too_few_groups(row.code.basis, level.groups if level else 0)
            return Prediction.missing(row.code, row.query, self.model_id, reason)
        floor = self.card.tasks[row.task].scale.floor
        source = CalibrationSource(level.name)
        return self._answered(row, tuple(found), bands(found, level.groups, level.rows, source), floor)

    def _answered(self, row: HeadRow, found: tuple[float, ...], banded: tuple[Band, ...], floor: float) -> Prediction:
        truncated = row.encoding.truncated or any(e.truncated for level in row.levels for e in level)
        code, query = row.code, row.query
        return Prediction(
            code.basis,
            query.metric,
            query.device,
            query.workload,
            self.model_id,
            found[MEDIAN],
            banded,
            floor,
            truncated,
            quantiles=found,
        )


@lru_cache(maxsize=4)
def _reloaded(name: str, model_id: str, threads: int, join_facts: bool, propagate: bool) -> OnnxPredictor:
    """The predictor that was pickled; a process loads it once, however many tasks bring it.

    Raises:
        ModelError: this machine has no such model, or another one under the same name.
    """
    directory = builtin() if name == BUILTIN else Path(name)
    predictor = OnnxPredictor(directory, threads=threads, join_facts=join_facts, propagate=propagate)
    if predictor.model_id != model_id:
        raise ModelError(
            f"{name}: is {predictor.model_id} here and {model_id} where it was pickled; name one that all machines have"
        )
    return predictor


def _change(parts: Sequence[npt.NDArray[np.float32] | None], prediction: Prediction) -> float:
    """What the change role of the n-gram ridge says of two texts, from the contributions of both."""
    first, second = parts
    if prediction.basis not in ngram_ridge.CHANGING or first is None or second is None:
        return 0.0
    place = ngram_ridge.column(task_parts(task_name(prediction.basis, "", prediction.metric, prediction.device)))
    return float(second[-1, place] - first[-1, place])


def _context_of(card: StudentCard, directory: Path) -> int:
    """The number of tokens that the encoder reads."""
    context = card.sizes.get("context")
    if not isinstance(context, int) or not 1 <= context <= _MAX_CONTEXT:
        raise ModelError(f"{directory}: the card's `sizes.context` is not a number of tokens; reinstall the model")
    return context


def _with_program(prediction: Prediction, code: CodeText) -> Prediction:
    """A missing prediction of Triton IR with what the first program does."""
    if (code.basis, code.language) != ("kernel", "ttir"):
        return prediction
    return replace(prediction, launch=program_cost(code.text, prediction.workload))
