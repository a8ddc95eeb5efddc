"""Asks the tool about the suite as a user would, and sets each answer against its truth.

Input: a predictor and the suite. Output: one :class:`Verdict` per case and line of the report. ``facts`` verdicts judge
what static analysis says without the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlm_core.inference.predictor import Predictor
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import GROWTH_CLASSES, Growth, GrowthClass, Metric, Prediction, Query, WorkFacts

from .alarms import wait_label
from .suite import ENDLESS, LITERAL, NEUTRAL, Case, Edit, GrowthCase

# Truths below what the measurement resolves count as this.
FLOORS: dict[str, float] = {"latency": 5e-8, "memory": 64.0}
_STATED = 1.01
_GLUE_LIMIT = 1e-4
_GLUE_TRUTH = 1e-5
_WAIT_WORDS = {"network": "network", "process": "process", "user": "user", "thread": "thread"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer: whether it is right, its error in decades where it is a number, and what to show in the report."""

    line: str
    name: str
    good: bool
    error: float = math.nan
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the tool says about a case."""

    unit: AnalysedUnit
    predictions: Mapping[str, Prediction]

    @property
    def work(self) -> WorkFacts | None:
        """The facts of the case's function."""
        return self.unit.code.work


def analysed(case: Case) -> AnalysedUnit:
    """The case's function in its file.

    Raises:
        LookupError: the analysis has no such function.
    """
    for unit in _units(case.source, case.path.with_suffix(".py")):
        if unit.unit.qualname == case.unit:
            return unit
    raise LookupError(f"{case.name}: no function {case.unit}")


@lru_cache(maxsize=8)
def _units(source: str, path: Path) -> Sequence[AnalysedUnit]:
    """The units of a text, which many cases share."""
    return Analyser().analyse(ParsedSource(source.encode(), "python"), path)


def answers(predictor: Predictor, cases: Sequence[Case]) -> list[Answer]:
    """Predictions of latency and memory for all cases."""
    units = [analysed(case) for case in cases]
    queries = [[Query("latency"), Query("memory")] for _ in units]
    predicted = predictor.predict([unit.code for unit in units], queries)
    return [
        Answer(unit, {prediction.metric: prediction for prediction in line})
        for unit, line in zip(units, predicted, strict=True)
    ]


def floor_of(work: WorkFacts | None, metric: str) -> float:
    """The least cost that the text states: computing and known waits."""
    if work is None:
        return 0.0
    waits = sum(w.seconds.least for w in work.waits if w.seconds is not None) if metric == "latency" else 0.0
    return work.of(metric).known.least + waits


def estimate_of(work: WorkFacts | None, metric: str) -> float | None:
    """The likely cost from facts alone; None without facts."""
    if work is None:
        return None
    facts = work.of(metric)
    waits = sum(w.seconds.likely for w in work.waits if w.seconds is not None) if metric == "latency" else 0.0
    return max(facts.typical, facts.known.likely) + waits


def function_verdicts(case: Case, answer: Answer, truth: Mapping[str, Any], *, facts: bool) -> Iterable[Verdict]:
    """The verdicts about one case: on its numbers, its label, and labels that it must not have."""
    label = wait_label(answer.work, answer.predictions.get("latency"))
    for kind in case.waits[:1]:
        yield Verdict(f"waits: {kind}", case.name, _labelled(label, case.waits), shown=label or "no label")
    if not case.waits and case.seconds is None:
        yield Verdict("no wait label where nothing waits", case.name, not label, shown=label)
    for line in case.judged:
        metric: Metric = "memory" if line == "memory" else "latency"
        if metric not in truth:
            continue
        value = max(float(truth[metric]), FLOORS[metric])
        predicted = answer.predictions[metric]
        median = estimate_of(answer.work, metric) if facts else predicted.median
        floor = floor_of(answer.work, metric)
        low, high = (predicted.band.low, predicted.band.high) if predicted.band is not None else (math.nan, math.nan)
        if facts and answer.work is not None:
            known = answer.work.of(metric).known
            low, high = floor, max(known.most, median or 0.0)
        error = math.log10(max(median, FLOORS[metric]) / value) if median is not None else math.inf
        numbers = f"{_text(median)} [{_text(low)}, {_text(high)}] floor {_text(floor)}, truth {_text(value)}"
        if line == "glue":
            yield Verdict("glue", case.name, median is not None and median < _GLUE_LIMIT, error, numbers)
            continue
        # `sleep(1)` takes a second and the call: a stated truth leaves out what the band includes.
        most = value * _STATED if case.seconds is not None else value
        covered = (low <= most and value <= high) or (0 < floor <= most and value <= 3 * floor)
        if line == "latency":
            yield Verdict("latency covered", case.name, covered, error, numbers)
            yield Verdict("latency within 10x", case.name, abs(error) <= 1, error, numbers)
        else:
            yield Verdict("memory within 2x", case.name, abs(error) <= math.log10(2), error, numbers)


def _labelled(label: str, kinds: Iterable[str]) -> bool:
    for kind in kinds:
        if kind == ENDLESS and "may not end" in label:
            return True
        if kind == "time" and ("sleep" in label or " waits" in label or "≥" in label or "≤" in label):
            return True
        if kind in _WAIT_WORDS and _WAIT_WORDS[kind] in label:
            return True
    return False


def glue_is_glue(case: Case, truth: Mapping[str, Any]) -> bool:
    """Whether a case of glue code is as cheap as the suite says."""
    return "glue" not in case.judged or float(truth["latency"]) < _GLUE_TRUTH


def edit_verdicts(
    predictor: Predictor, edits: Sequence[Edit], truths: Mapping[str, Mapping[str, Any]], *, facts: bool
) -> list[Verdict]:
    """The verdicts about all edits."""
    before = answers(predictor, [edit.before for edit in edits])
    after = answers(predictor, [edit.after for edit in edits])
    pairs = [(one.unit.code, other.unit.code) for one, other in zip(before, after, strict=True)]
    ratios = predictor.compare(pairs, [[Query("latency"), Query("memory")] for _ in pairs])
    verdicts = []
    for number, edit in enumerate(edits):
        line: dict[str, float | None] = {}
        if ratios is not None:
            line = {ratio.metric: ratio.ratio for ratio in ratios[number]}
        changes = {metric: _change(before[number], after[number], metric, facts=facts) for metric in FLOORS}
        if edit.kind == NEUTRAL:
            compared = [] if facts else [ratio for ratio in line.values() if ratio is not None]
            largest = max((abs(math.log10(r)) for r in [*changes.values(), *compared] if r), default=math.inf)
            shown = ", ".join(f"{metric} {_text(ratio)}" for metric, ratio in changes.items())
            shown += f"; compared {', '.join(map(_text, compared))}"
            verdicts.append(Verdict("neutral", edit.name, largest <= math.log10(1.05), largest, shown))
            continue
        values = [float(truths[case.name][edit.metric]) for case in (edit.before, edit.after)]
        true = max(values[1], FLOORS[edit.metric]) / max(values[0], FLOORS[edit.metric])
        ratio = changes[edit.metric] if facts else line.get(edit.metric)
        error = math.log10(ratio / true) if ratio else math.inf
        shown = f"{_text(ratio)}x, truth {_text(true)}x"
        if abs(math.log10(true)) >= math.log10(2):
            right = ratio is not None and (ratio > 1) == (true > 1) and abs(math.log10(ratio or 1)) > math.log10(1.05)
            verdicts.append(Verdict("edit direction", edit.name, right, error, shown))
        if edit.kind in (LITERAL, "wait"):
            verdicts.append(Verdict("edit within 3x", edit.name, abs(error) <= math.log10(3), error, shown))
    return verdicts


def _change(before: Answer, after: Answer, metric: str, *, facts: bool) -> float | None:
    """The ratio of two predictions, or of two estimates from facts."""
    if facts:
        values = [estimate_of(answer.work, metric) for answer in (before, after)]
    else:
        values = [answer.predictions[metric].median for answer in (before, after)]
    first, second = values
    if first is None or second is None:
        return None
    return max(second, FLOORS[metric]) / max(first, FLOORS[metric])


def growth_verdicts(predictor: Predictor, cases: Sequence[GrowthCase], *, facts: bool) -> list[Verdict]:
    """The verdicts about classes of growth."""
    verdicts = []
    for case in cases:
        unit = _solution(Analyser().analyse(ParsedSource(case.text.encode(), "python")))
        answer: GrowthClass | None = None
        if unit is not None and facts:
            answer = class_of(unit.code.work.latency.growth) if unit.code.work is not None else None
        elif unit is not None:
            [[prediction]] = predictor.predict([unit.code], [[Query("latency")]])
            answer = prediction.growth.growth_class if prediction.growth is not None else None
        distance = abs(_class_index(answer) - _class_index(case.growth_class)) if answer is not None else math.inf
        name = f"{case.name} {case.text.strip().splitlines()[0]}"
        shown = f"{answer}, truth {case.growth_class}"
        verdicts.append(Verdict("growth exact", name, distance == 0, distance, shown))
        verdicts.append(Verdict("growth within one class", name, distance <= 1, distance, shown))
    return verdicts


def _solution(units: Sequence[AnalysedUnit]) -> AnalysedUnit | None:
    """The unit that a text is about: the program, or its last function."""
    programs = [unit for unit in units if unit.unit.kind == "program"]
    functions = [unit for unit in units if unit.unit.kind == "function" and not unit.unit.qualname.endswith("__init__")]
    return next(iter([*programs, *functions[::-1]]), None)


def _class_index(growth_class: str) -> int:
    names: Sequence[str] = GROWTH_CLASSES
    return names.index(growth_class)


def class_of(growth: Sequence[Growth]) -> GrowthClass:
    """The class of what facts say about growth."""
    if any(term.base > 1 for term in growth):
        return "2^n"
    degree, logs = sum(term.degree for term in growth), sum(term.logs for term in growth)
    if degree == 2 and len({term.size for term in growth}) == 2:
        return "mn"
    classes: dict[tuple[float, bool], GrowthClass] = {
        (0.0, False): "1",
        (0.0, True): "log n",
        (0.5, False): "sqrt n",
        (1.0, False): "n",
        (1.0, True): "n log n",
        (2.0, False): "n^2",
        (3.0, False): "n^3",
    }
    return classes.get((degree, logs > 0), "other")


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
