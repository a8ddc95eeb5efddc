"""Comments that a code action writes above a unit: a budget of its prediction, or that it is to be ignored.

An edit is offered only if the edited text, read again, says of the unit what it is meant to say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import Metric, Prediction, Unit

from rlm_lsp.budgets.comments import LocatedBudget, UnitComments, read_comments
from rlm_lsp.budgets.syntax import SCALES, Budget
from rlm_lsp.budgets.syntax import render as budget_text

_HASH = frozenset({"python", "triton", "pytorch", "ruby"})
_DIGITS = 2
_SPACE = b" \t"


@dataclass(frozen=True, slots=True)
class Replacement:
    """The bytes ``[start, end)`` of a text become ``text``."""

    start: int
    end: int
    text: str


def rounded_up(metric: Metric, value: float) -> float:
    """The next value, in SI units, that reads well: two significant digits in the unit that people would use."""
    number = Decimal(repr(value))
    scale = next((one for one in reversed(SCALES[metric].values()) if number >= one), min(SCALES[metric].values()))
    shown = number / scale
    step = Decimal(1).scaleb(max(shown.adjusted() - _DIGITS + 1, 0 if scale == 1 and metric == "memory" else -12))
    return float((shown / step).to_integral_value(ROUND_CEILING) * step * scale)


def budgets_from(predictions: Sequence[Prediction]) -> list[Budget]:
    """A budget a metric that the predictions stay below: the upper end of the 80 % band, the largest of several."""
    ends: dict[Metric, float] = {}
    for prediction in predictions:
        if prediction.metric != "accuracy" and prediction.band is not None:
            end = max(prediction.band.high, prediction.floor)
            ends[prediction.metric] = max(end, ends.get(prediction.metric, 0.0))
    return [Budget(metric, rounded_up(metric, end)) for metric, end in ends.items() if 0 < end < math.inf]


def set_budgets(
    source: bytes, language: str, units: Sequence[Unit], unit: Unit, budgets: Sequence[Budget]
) -> list[Replacement] | None:
    """The edits that make ``budgets`` those of a unit; None where no comment can say so."""
    told = read_comments(ParsedSource(source, language), units).units[units.index(unit)]
    there: Mapping[Metric, LocatedBudget] = {
        placed.budget.metric: placed
        for placed in reversed(told.budgets)
        if placed.budget.device is None and not placed.budget.workload
    }
    edits = [
        Replacement(there[budget.metric].span.start_byte, there[budget.metric].span.end_byte, budget_text([budget]))
        for budget in budgets
        if budget.metric in there
    ]
    missing = [budget for budget in budgets if budget.metric not in there]
    for line in _lines_above(source, unit, language, budget_text(missing)) if missing else [None]:
        tried = [*edits, line] if line is not None else edits
        text = applied(source, tried)
        now = _told(text, language, units, unit)
        if now is not None and all(budget in [placed.budget for placed in now.budgets] for budget in budgets):
            return tried
    return None


def ignore(source: bytes, language: str, units: Sequence[Unit], unit: Unit) -> list[Replacement] | None:
    """The edit after which a unit has no findings; None where no comment can say so, or one does already."""
    if read_comments(ParsedSource(source, language), units).units[units.index(unit)].ignored:
        return None
    for line in _lines_above(source, unit, language, "ignore"):
        now = _told(applied(source, [line]), language, units, unit)
        if now is not None and now.ignored:
            return [line]
    return None


def applied(source: bytes, edits: Sequence[Replacement]) -> bytes:
    """A text after edits that do not overlap."""
    for edit in sorted(edits, key=lambda edit: -edit.start):
        source = source[: edit.start] + edit.text.encode() + source[edit.end :]
    return source


def _lines_above(source: bytes, unit: Unit, language: str, said: str) -> list[Replacement]:
    """A comment line above the unit; where that is no place for one, as above ``<?php``, above its name."""
    if languages.by_name(language).grammar is None:
        return []
    found = []
    for start in dict.fromkeys((_line_start(source, unit.span.start_byte), _line_start(source, unit.name.start_byte))):
        line = source[start:]
        indent = line[: len(line) - len(line.lstrip(_SPACE))].decode()
        newline = "\r\n" if source[start:].partition(b"\n")[0].endswith(b"\r") else "\n"
        mark = "#" if language in _HASH else "//"
        found.append(Replacement(start, start, f"{indent}{mark} rlm: {said}{newline}"))
    return found


def _line_start(source: bytes, offset: int) -> int:
    return max(source.rfind(b"\n", 0, offset), source.rfind(b"\r", 0, offset)) + 1


def _told(text: bytes, language: str, units: Sequence[Unit], unit: Unit) -> UnitComments | None:
    """What the comments of an edited text say about a unit; None if the edit has changed what the units are."""
    parsed = ParsedSource(text, language)
    now = find_units(parsed)
    if [(one.kind, one.qualname) for one in now] != [(one.kind, one.qualname) for one in units]:
        return None
    return read_comments(parsed, now).units[units.index(unit)]
