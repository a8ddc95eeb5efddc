"""Sentences about growth and its lines: how a cost grows with the inputs, and which lines have a cheaper rewrite.

Input: a unit and the growth of its predictions. Output: clauses that name lines of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rlm_core.inference.cost_origins import curable_places, growth_origins
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import CodeText, CostOrigin, Cure, GrowthEstimate, Metric, Prediction, Unit

from rlm_lsp.history.comparison import GrowthRise

from . import labels
from .work_words import MOST_LINES, and_words, code, file_line, lines_of, worst_cases

# A probability that is shown as 100 % is not shown.
_CERTAIN = 0.995
_AXIS = re.compile(r"\.(\d+)$")
CURES: Mapping[Cure, str] = {
    Cure.SET: "a `set` finds an item without looking at all others",
    Cure.DICT: "a `dict` or `Counter` finds an item without looking at all others",
    Cure.LOOKUP: "a `dict` by what is compared, filled before the outer loop, replaces the inner one",
    Cure.DEQUE: "at the left end a `collections.deque` moves no other item",
    Cure.JOIN: "parts in a list and one `join` at the end copy each only once",
    Cure.EXTEND: "a list that is extended in place copies each item only once",
    Cure.CHAIN: "`itertools.chain.from_iterable` copies each item only once",
    Cure.HOIST: "it is the same in each iteration, so once before the loop is enough",
    Cure.CACHE: "`functools.cache` computes each result only once",
    Cure.TUPLES: "`itertuples`, or a `zip` of the columns, makes no `Series` for each row",
    Cure.COLUMNS: "an expression of whole columns computes all rows at once",
    Cure.VALUES: "a column as a list, made before the loop, is read without looking up a row",
    Cure.COLUMN: "a list of all values, assigned as a column once, does not store each separately",
    Cure.CONCAT: "a list of all parts and one `concat` after the loop copy each row only once",
}


def growth_lines(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> list[str]:
    """Describe how the latency of a unit grows with its inputs, and its memory if that differs.

    A unit that may not end has no latency.
    """
    work = analysed.code.work
    by_metric = {prediction.metric: prediction for prediction in reversed(predictions)}
    said: dict[Metric, str] = {}
    lines: list[str] = []
    for metric in ("latency", "memory"):
        estimate = by_metric[metric].growth if metric in by_metric else None
        if estimate is None or (metric == "latency" and work is not None and work.endless is not None):
            continue
        text = growth_words(estimate)
        # That memory is constant is usual: only the latency says so.
        if text and text not in said.values() and not (metric == "memory" and estimate.growth_class == "1"):
            said[metric] = text
            places = from_lines(analysed.unit, analysed.code, estimate) if metric == "latency" else ""
            lines.append(f"{labels.METRIC_WORDS[metric]} {text}{places}")
    return lines


def from_lines(unit: Unit, code_text: CodeText, estimate: GrowthEstimate) -> str:
    """``, from line 14, `x in seen`, in the loop of line 13: a `set` finds ...``; empty where no line explains it."""
    origins = growth_origins(code_text, estimate)
    if not origins:
        return ""
    first = origins[0]
    text = f", from line {file_line(unit, first.place.line)}, {code(first.place.text)}"
    around = sorted({file_line(unit, loop.line) for loop in first.loops if loop.line != first.place.line})
    if around:
        text += f", in the loop{'s' if len(around) > 1 else ''} of {lines_of(around)}"
    if first.cure is not None:
        text += f": {CURES[first.cure]}"
    own = {file_line(unit, line.line) for line in (first.place, *first.loops)}
    others = sorted({file_line(unit, origin.place.line) for origin in origins[1:]} - own)
    return f"{text}; also from {lines_of(others)}" if others else text


def curable_lines(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> list[str]:
    """``much of the latency is from line 14, `df.iterrows()`: `itertuples` ...``, per kind of cure.

    Lines that a growth names are not named again.
    """
    found: dict[Cure, list[CostOrigin]] = {}
    for place in _curable(analysed, predictions):
        if place.cure is not None:
            found.setdefault(place.cure, []).append(place)
    clauses = []
    for cure, places in found.items():
        lines = sorted({file_line(analysed.unit, one.place.line) for one in places})
        text = f", {code(places[0].place.text)}" if len(lines) == 1 else ""
        clauses.append(f"much of the latency is from {lines_of(lines)}{text}: {CURES[cure]}")
    return clauses


def _curable(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> list[CostOrigin]:
    """The places with a cheaper rewrite that no growth names; none of a unit whose latency is not asked for."""
    latency = next((prediction for prediction in predictions if prediction.metric == "latency"), None)
    if latency is None:
        return []
    growing = growth_origins(analysed.code, latency.growth) if latency.growth is not None else []
    named = {origin.place.line for origin in growing}
    return [place for place in curable_places(analysed.code) if place.place.line not in named]


def growth_place(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> tuple[int, str] | None:
    """The 0-based line of the file that makes a latency grow most, and its text; None where no line explains it."""
    growth = next((one.growth for one in predictions if one.metric == "latency"), None)
    if growth is not None and growth.in_worst_case and growth.is_claim:
        worst = next(iter(worst_cases(analysed.code.work)), None) if analysed.code.work is not None else None
        return (file_line(analysed.unit, worst.line) - 1, worst.name) if worst is not None else None
    origins = growth_origins(analysed.code, growth) if growth is not None else []
    return (file_line(analysed.unit, origins[0].place.line) - 1, origins[0].place.text) if origins else None


def curable_place(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> tuple[int, str] | None:
    """The 0-based line of the file with the most expensive cheaper rewrite, and its text."""
    places = _curable(analysed, predictions)
    return (file_line(analysed.unit, places[0].place.line) - 1, places[0].place.text) if places else None


def growth_note(analysed: AnalysedUnit, prediction: Prediction) -> str:
    """``grows about as n^2 in `values`, from line 14 (85 % probability)``, for a table and for agents."""
    words = growth_words(prediction.growth) if prediction.growth is not None else ""
    place = growth_place(analysed, [prediction]) if words else None
    if place is None:
        return words
    form, sign, probable = words.partition(" (")
    return f"{form}, from line {place[0] + 1}{sign}{probable}"


def growth_words(estimate: GrowthEstimate) -> str:
    """``grows about as n^2 in `values` (85 % probability)``; empty where the class is not certain enough."""
    if not estimate.is_claim:
        return ""
    probable = f" ({estimate.probability * 100:.0f} % probability)" if estimate.probability < _CERTAIN else ""
    if estimate.growth_class == "1":
        return f"does not grow with the inputs{probable}"
    return f"grows about as {growth_form(estimate)}{probable}"


def growth_form(estimate: GrowthEstimate) -> str:
    """A class with its inputs: ``n^2 in `values```, ```rows` × `cols```, ``2^n in `text` in the worst case``."""
    return f"{_class_in_inputs(estimate)}{' in the worst case' if estimate.in_worst_case else ''}"


def _class_in_inputs(estimate: GrowthEstimate) -> str:
    growth_class, named = estimate.growth_class, estimate.named_sizes
    if growth_class == "mn" and len(named) > 1:
        return " × ".join(map(_named, named[:MOST_LINES]))
    # Of a product all sizes are named, or none is.
    if not named or (growth_class == "mn" and len(named) < len(estimate.sizes)):
        return "mn in the sizes of inputs" if growth_class == "mn" else f"{growth_class} in the size of an input"
    return f"{growth_class} in {and_words([_named(size) for size in named[:MOST_LINES]])}"


def _named(size: str) -> str:
    """A size as the code writes it: ``X.shape[1]`` for the axis ``X.1`` of an array."""
    return code(_AXIS.sub(r".shape[\1]", size))


def rise_words(rise: GrowthRise) -> str:
    """``growth of latency from n to n^2 in `values```."""
    metric = labels.METRIC_WORDS[rise.metric]
    before = f" from {rise.before.growth_class}" if rise.before.is_claim else ""
    return f"growth of {metric}{before} to {growth_form(rise.after)}"


def rise_mark(rise: GrowthRise) -> str:
    """``n → n^2``; ``→ n^2`` where the earlier growth is not certain enough to be stated."""
    return f"{rise.before.growth_class if rise.before.is_claim else ''} → {rise.after.growth_class}".lstrip()
