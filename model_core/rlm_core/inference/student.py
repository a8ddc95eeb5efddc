"""The embedded predictor: the student in onnxruntime, on the CPU.

A text is encoded once and kept by content (``encoder``); a query costs only the n-gram ridge's sum or trees, and
the head. Several threads may call :meth:`OnnxPredictor.predict` at once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

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
    CalledFunction,
    Calls,
    CodeText,
    CostRatio,
    GrowthEstimate,
    MeasuredFunctions,
    Metric,
    Prediction,
    Query,
    WorkFacts,
)

from . import ngram_ridge, propagation, trees
from .calibration import MIN_GROUPS, TaskCalibration, bands
from .card import StudentCard, read_card
from .cost_ratio import centred, cost_ratio, log_median, ratio_task, unchanged
from .encoder import Encoding, Encodings, Entry
from .features import all_feature_names, answers_alone, forest_key, has_trees
from .growth import GROWTH, GrowthHead, with_growth
from .head import HeadRow, QueryHead, callee_texts, make_row, unsized
from .input_growth import INPUT_GROWTH, InputGrowthHead
from .model_store import BUILTIN, builtin
from .novelty import DISTANCE, NoveltyDetector
from .pair_facts import is_decided, takes_the_same_memory, with_pair_facts, work_moved
from .predictor import QueryScope, judge_date, too_few_groups, untrained_task
from .residuals import data_sheet_key, forest_of_data_sheet, quantiles, spread_key
from .revisions import agreement, revised
from .similar_texts import SimilarTexts, most_similar
from .tokenizer import Tokenizer
from .work_mixture import (
    FIXED,
    WorkMixture,
    facts_of,
    is_fixed,
    with_facts,
    without_end,
)

ENCODER, HEAD, TOKENIZER, NGRAM_RIDGE, TREES, WORK = (
    "encoder.onnx",
    "head.onnx",
    "tokenizer.model",
    "wide.safetensors",
    "trees.safetensors",
    "work.safetensors",
)
_CACHED_ESTIMATES = 2 * 4_096  # of called functions and metrics: of as many texts as encodings are kept
_MAX_CONTEXT = 65_536
_CACHED_RESIDUALS = 1_024  # of files and classes
_CACHED_SETS = 8  # of measured functions, about 2 MB each
_CACHED_BAGS = 2_048  # about 4 KB each
_COMPARED = 3 * propagation.MOST_SIMILAR  # of each set: not all have every metric
_FUNCTIONS = "call/python"

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
        self._scope = QueryScope(self.card.defaults, self.card.devices)
        parts = ngram_ridge.load(directory / NGRAM_RIDGE)
        self._forests = trees.load(directory / TREES, all_feature_names())
        for key in self.card.residuals:
            if (forest_of_data_sheet(key) or key) not in self._forests:
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
        has_calls = propagate and join_facts and propagation.CALLS in self.card.files
        self._propagation = propagation.Propagation.load(directory / propagation.CALLS) if has_calls else None
        self._estimates: LRUCache[tuple[str, str], propagation.CostEstimate | None] = LRUCache(_CACHED_ESTIMATES)
        self._residuals: LRUCache[Hashable, propagation.Residuals] = LRUCache(_CACHED_RESIDUALS)
        self._similar_texts: LRUCache[MeasuredFunctions, SimilarTexts] = LRUCache(_CACHED_SETS)
        self._bags: LRUCache[str, ngram_ridge.Bag | None] = LRUCache(_CACHED_BAGS)
        self._estimates_lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[..., OnnxPredictor], tuple[object, ...]]:
        name = BUILTIN if self.directory.resolve() == builtin().resolve() else str(self.directory.resolve())
        return _reloaded, (name, self.model_id, self._threads, self._joins_facts, self._propagates)

    @cached_property
    def model_id(self) -> str:
        """Name and checksum of the weights."""
        return self.card.model_id

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        """The devices that the model was trained on for a basis, for a program in its language."""
        known = tuple(self.card.devices.get(basis, ()))
        if basis != "program" or language is None:
            return known
        metrics = METRICS_OF_BASIS[basis]
        return tuple(
            name for name in known if any(task_name(basis, language, metric, name) in self._tasks for metric in metrics)
        )

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """One query per metric of the basis, with the card's default device and workload."""
        return self._scope.default_queries(basis, language)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        answers: list[list[Prediction | None]] = [[None] * len(asked) for asked in queries]
        wanted: list[tuple[int, int, CodeText, Query, int, float]] = []
        for i, (code, asked) in enumerate(zip(texts, queries, strict=True)):
            for j, short in enumerate(asked):
                query = self._scope.filled(code.basis, short, code.language)
                admitted = self._admit(code, query)
                if isinstance(admitted, Abstention):
                    answers[i][j] = Prediction.missing(code, query, self.model_id, admitted)
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
                prediction = self._forest_prediction(row)
                i, j = row.index
                answers[i][j] = with_facts(prediction, facts.get(i), self._mixture, self.card.calibration)
            else:
                head_rows.append(row)
        joined = [
            with_facts(prediction, facts.get(row.index[0]), self._mixture, self.card.calibration)
            for row, prediction in zip(head_rows, self._head_predictions(head_rows), strict=True)
        ]
        works = [facts.get(row.index[0]) for row in head_rows]
        for row, prediction in zip(head_rows, self._propagated(head_rows, joined, works), strict=True):
            i, j = row.index
            answers[i][j] = prediction
        lines = [[answer for answer in line if answer is not None] for line in answers]
        return [
            without_end(with_growth(line, self._growth_of(code, facts.get(i))), facts.get(i))
            for i, (code, line) in enumerate(zip(texts, lines, strict=True))
        ]

    def _growth_of(self, code: CodeText, facts: WorkFacts | None) -> Mapping[str, GrowthEstimate]:
        nothing: Mapping[str, GrowthEstimate] = {}
        if (code.language, code.basis) != ("python", "call"):
            return guarded("the growth of a text", lambda: self._growth.estimates(code), lambda error: nothing)
        with_facts = replace(code, work=facts) if code.work is None else code
        return guarded("the growth of a text", lambda: self._input_growth.estimates(with_facts), lambda error: nothing)

    def _propagated(
        self, rows: Sequence[HeadRow], predictions: Sequence[Prediction], works: Sequence[WorkFacts | None]
    ) -> list[Prediction]:
        """The predictions with the costs of what their units call."""
        model = self._propagation
        if model is None:
            return list(predictions)
        chosen = [
            row.code.calls if propagation.is_open(prediction, work) else None
            for row, prediction, work in zip(rows, predictions, works, strict=True)
        ]
        called: dict[str, set[CalledFunction]] = {}
        for row, calls in zip(rows, chosen, strict=True):
            for site in calls.sites if calls is not None else ():
                called.setdefault(row.query.metric, set()).update(site.candidates)
        costs = {metric: self._costs_of(functions, metric) for metric, functions in called.items()}
        similar = self._similar(rows, chosen)
        return [
            prediction
            if calls is None
            else propagation.with_calls(
                prediction,
                work,
                calls,
                costs.get(prediction.metric, {}),
                (
                    self._residuals_of(calls.of_file, prediction.metric, propagation.SHRINK_FILE),
                    self._residuals_of(calls.of_class, prediction.metric, propagation.SHRINK_CLASS),
                    nearest,
                ),
                model,
                self.card.calibration,
            )
            for prediction, work, calls, nearest in zip(predictions, works, chosen, similar, strict=True)
        ]

    def _similar(self, rows: Sequence[HeadRow], chosen: Sequence[Calls | None]) -> list[propagation.Similar]:
        """The residuals of the measured functions of the package that are most similar to each unit."""
        compared: dict[tuple[str, Calls], list[tuple[float, CalledFunction]]] = {}
        nearest: list[list[tuple[float, CalledFunction]]] = []
        texts: dict[str, set[str]] = {}
        for row, calls in zip(rows, chosen, strict=True):
            if calls is None or not (calls.of_file.functions or calls.of_package.functions):
                nearest.append([])
                continue
            key = row.code.text, calls
            if key not in compared:
                compared[key] = self._compared(row.code.text, (calls.of_file, calls.of_package))
            metric = row.query.metric
            known = ((at, one) for at, one in compared[key] if any(cost.metric == metric for cost in one.known))
            nearest.append(list(islice(known, propagation.MOST_SIMILAR)))
            texts.setdefault(metric, set()).update(one.text for _, one in nearest[-1])
        estimates = {metric: self._estimates_of(sorted(asked), metric) for metric, asked in texts.items()}
        return [
            propagation.similar_of(functions, row.query.metric, estimates.get(row.query.metric, {}))
            for row, functions in zip(rows, nearest, strict=True)
        ]

    def _compared(self, text: str, measured: Sequence[MeasuredFunctions]) -> list[tuple[float, CalledFunction]]:
        """Measured functions other than a text itself, with their similarity to it, the most similar first."""
        bag = self._bag_of(text)
        if bag is None:
            return []
        found: list[tuple[float, CalledFunction]] = []
        for some in measured:
            at = self._texts_of(some).similarities(bag)
            found += [
                (float(at[place]), some.functions[place])
                for place in most_similar(at, _COMPARED)
                if some.functions[place].text != text
            ]
        return sorted(found, key=lambda entry: (-entry[0], entry[1].text))

    def _bag_of(self, text: str) -> ngram_ridge.Bag | None:
        with self._estimates_lock:
            known = self._bags.get(text)
        if known is None:
            known = self._encodings.bag(text, _FUNCTIONS)
            with self._estimates_lock:
                self._bags[text] = known
        return known

    def _texts_of(self, measured: MeasuredFunctions) -> SimilarTexts:
        with self._estimates_lock:
            known = self._similar_texts.get(measured)
        if known is None:
            bags = [self._bag_of(function.text) for function in measured.functions]
            known = SimilarTexts([bag for bag in bags if bag is not None])
            with self._estimates_lock:
                self._similar_texts[measured] = known
        return known

    def _residuals_of(self, measured: MeasuredFunctions, metric: str, shrink: float) -> propagation.Residuals:
        """Return the residuals of measured functions; cached, since the units of a file share them."""
        if not measured.functions:
            return propagation.Residuals()
        key = measured, metric, shrink
        with self._estimates_lock:
            known = self._residuals.get(key)
        if known is None:
            estimates = self._estimates_of([function.text for function in measured.functions], metric)
            known = propagation.residuals(measured, metric, estimates, shrink)
            with self._estimates_lock:
                self._residuals[key] = known
        return known

    def _costs_of(
        self, functions: Iterable[CalledFunction], metric: str
    ) -> dict[CalledFunction, propagation.CostEstimate]:
        """Return the costs of called functions, measured or else predicted from their text; some have none."""
        known = {function: propagation.known_estimate(function, metric) for function in functions}
        predicted = self._estimates_of([function.text for function, cost in known.items() if cost is None], metric)
        costs = {function: cost or predicted.get(function.text) for function, cost in known.items()}
        return {function: cost for function, cost in costs.items() if cost is not None}

    def _estimates_of(self, texts: Sequence[str], metric: str) -> dict[str, propagation.CostEstimate | None]:
        """Return the costs of functions predicted from their own text alone; None where there is no prediction."""
        with self._estimates_lock:
            known = {text: self._estimates[text, metric] for text in texts if (text, metric) in self._estimates}
        return known | self._estimate(list(dict.fromkeys(text for text in texts if text not in known)), metric)

    def _estimate(self, texts: Sequence[str], metric: str) -> dict[str, propagation.CostEstimate | None]:
        if not texts:
            return {}
        codes = [CodeText(text, "python", "call") for text in texts]
        query = self._scope.filled("call", Query(cast(Metric, metric)))
        number = self._tasks[task_name("call", "python", metric)]
        encodings = self._encode(codes)
        task = self.card.tasks[number]
        rows = [make_row((i, 0), number, task, code, query, encodings, 0.0) for i, code in enumerate(codes)]
        found = {
            row.code.text: propagation.estimate_of(prediction.quantiles, metric) if prediction.quantiles else None
            for row, prediction in zip(rows, self._head_predictions(rows), strict=True)
        }
        with self._estimates_lock:
            self._estimates.update({(text, metric): estimate for text, estimate in found.items()})
        return found

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
            pair = before, after
            result.append([self._ratio(first, second, parts[0], parts[1], pair, is_same) for first, second in line])
        return result

    def _reading(self, code: CodeText) -> tuple[Hashable, ...]:
        """All that predictions for a unit depend on: canonical texts, and what the analysis knows of its cost."""

        def text_of(text: str) -> str:
            return self._encodings.canonical((text, code.language, code.basis))

        levels = enumerate(callee_texts(code))
        callees = sorted((level, text_of(text)) for level, texts in levels for text in texts)
        sites = code.calls.sites if code.calls is not None else ()
        called = tuple(
            (
                tuple(sorted((text_of(function.text), repr(function.known)) for function in site.candidates)),
                site.loops,
                site.branches,
                site.times,
            )
            for site in sites
        )
        work = code.work
        if work is None:
            return code.language, code.basis, text_of(code.text), tuple(callees), called
        costs = [(work.of(metric).known, work.of(metric).typical) for metric in ngram_ridge.METRICS]
        waits = [(wait.kind, wait.seconds, wait.share) for wait in work.waits]
        rest = work.endless is None, work.unknown_calls, work.unknown_sizes
        return code.language, code.basis, text_of(code.text), tuple(callees), *costs, *waits, *rest, called

    def _ratio(
        self,
        before: Prediction,
        after: Prediction,
        first: npt.NDArray[np.float32] | None,
        second: npt.NDArray[np.float32] | None,
        texts: tuple[CodeText, CodeText],
        is_same: bool,
    ) -> CostRatio:
        basis, metric = before.basis, before.metric
        task = ratio_task(basis, metric)
        if is_fixed(before) and is_fixed(after) and ratio_task(FIXED, metric) in self.card.changes:
            task = ratio_task(FIXED, metric)
        model = self.card.changes.get(task)
        if model is not None and (is_fixed(before) or is_fixed(after)):
            # What the text fixes is arithmetic: no pair of the calibration bounds it.
            model = replace(model, most=math.inf)
        reason = before.abstained or after.abstained
        if reason is None and (model is None or model.residuals.groups < MIN_GROUPS):
            reason = Abstention(AbstentionCode.RATIO_NOT_CALIBRATED, {"basis": basis, "metric": metric})
        if reason is not None or model is None or before.median is None or after.median is None:
            return CostRatio(basis, metric, after.device, self.model_id, None, (), (), reason)
        if is_same:
            return unchanged(basis, metric, after.device, self.model_id, model)
        role = 0.0
        if basis in ngram_ridge.CHANGING and first is not None and second is not None:
            place = ngram_ridge.column(task_parts(task_name(basis, "", metric, after.device)))
            role = float(second[-1, place] - first[-1, place])
        moved = log_median(after.median, after.floor) - log_median(before.median, before.floor)
        work = texts[0].work, texts[1].work
        worked = work_moved(*work, metric) if basis == "call" else 0.0
        if metric == "memory" and basis == "call" and takes_the_same_memory(*work):
            # The text decides: what the model reads into other changes is not a change of the memory.
            return centred(cost_ratio(basis, metric, after.device, self.model_id, model, (0.0, 0.0, 0.0), task))
        ratio = cost_ratio(basis, metric, after.device, self.model_id, model, (moved, role, worked), task)
        if basis != "call" or None in work or (is_fixed(before) and is_fixed(after)):
            return ratio
        if not is_decided(*texts, metric):
            # What differs is not known: as for two revisions of which the facts say nothing.
            return revised(replace(ratio, agreed=0.0))
        return replace(ratio, agreed=agreement(moved, worked))

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
        residuals = self.card.residuals.get(data_sheet_key(key) if by_sheet else key)
        if residuals is None or (residuals.groups < MIN_GROUPS and not by_sheet):
            reason = too_few_groups(code.basis, residuals.groups if residuals else 0)
            return Prediction.missing(code, query, self.model_id, reason)
        assert row.features is not None
        most = 1.0 if query.metric == "accuracy" else math.inf
        floor = self.card.tasks[row.task].scale.floor
        spread = self._forests.get(spread_key(key))
        found = quantiles(self._forests[key], spread, residuals, row.features, floor, most)
        source = CalibrationSource(key, by_data_sheet=by_sheet)
        return self._answered(row, found, bands(found, residuals.groups, residuals.rows, source), floor)

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


def _context_of(card: StudentCard, directory: Path) -> int:
    """The number of tokens that the encoder reads."""
    context = card.sizes.get("context")
    if not isinstance(context, int) or not 1 <= context <= _MAX_CONTEXT:
        raise ModelError(f"{directory}: the card's `sizes.context` is not a number of tokens; reinstall the model")
    return context
