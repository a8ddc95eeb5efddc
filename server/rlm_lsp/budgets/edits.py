"""Comments written for the user: a budget above a unit, a budget raised, a unit ignored.

Input: a UTF-8 source text, its units and one of them. Output: replacements of bytes. An edit is given only if the
edited text, read again, has the intended directive for the unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import Metric, Prediction, Span, Unit

from .comments import UnitComments, read_comments
from .syntax import SCALES, Budget, render

_HASH_LANGUAGES = frozenset({"python", "triton", "pytorch", "ruby"})
_LEADING = (1, 2, 5, 10)
_SPACE = b" \t"


@dataclass(frozen=True, slots=True)
class Replacement:
    """The bytes ``[start, end)`` of a text become ``text``."""

    start: int
    end: int
    text: str


def rounded_up(metric: Metric, value: float) -> float:
    """The next value that a person would write, in SI units: 1, 2 or 5 times a power of ten of a unit."""
    number, scales = Decimal(repr(value)), sorted(SCALES[metric].values())
    scale = next((scale for scale in reversed(scales) if number >= scale), scales[0])
    shown = number / scale
    if shown > 500 and scale < scales[-1]:
        return float(scales[scales.index(scale) + 1])
    power = shown.adjusted() if metric == "latency" or scale != 1 else max(shown.adjusted(), 0)
    steps = (Decimal(leading).scaleb(power) for leading in _LEADING)
    return float(next(step for step in steps if step >= shown) * scale)


def upper_end(predictions: Sequence[Prediction]) -> float | None:
    """Return the largest upper end of the 80 % bands of one metric's predictions (SI units), or None."""
    ends = [max(entry.band.high, entry.floor) for entry in predictions if entry.band is not None]
    end = max(ends, default=0.0)
    return end if 0 < end < math.inf else None


def write_budget(
    source: bytes,
    language: str,
    units: Sequence[Unit],
    unit: Unit,
    budget: Budget,
    path: Path | None = None,
    *,
    at: Span | None = None,
) -> Replacement | None:
    """The edit that gives a unit a budget: in the place ``at`` of another, or above it; None where no comment can."""
    text = render([budget])
    candidates = [Replacement(at.start_byte, at.end_byte, text)] if at else _lines(source, unit, language, text)
    for edit in candidates:
        result = _comments_after(applied(source, [edit]), language, units, unit, path)
        if result is not None and budget in [placed.budget for placed in result.budgets]:
            return edit
    return None


def ignore(
    source: bytes, language: str, units: Sequence[Unit], unit: Unit, path: Path | None = None
) -> Replacement | None:
    """The edit after which a unit has no findings; None where no comment can do that, or one already does."""
    if read_comments(ParsedSource(source, language), units).units[units.index(unit)].ignored:
        return None
    for edit in _lines(source, unit, language, "ignore"):
        result = _comments_after(applied(source, [edit]), language, units, unit, path)
        if result is not None and result.ignored:
            return edit
    return None


def applied(source: bytes, edits: Sequence[Replacement]) -> bytes:
    """A text after edits that do not overlap."""
    for edit in sorted(edits, key=lambda edit: -edit.start):
        source = source[: edit.start] + edit.text.encode() + source[edit.end :]
    return source


def _lines(source: bytes, unit: Unit, language: str, directive: str) -> list[Replacement]:
    """Candidates for a comment line: above the unit, and, as above ``<?php`` none can be, above its name."""
    if languages.by_name(language).grammar is None:
        return []
    candidates = []
    for start in dict.fromkeys((_line_start(source, unit.span.start_byte), _line_start(source, unit.name.start_byte))):
        line = source[start:]
        indent = line[: len(line) - len(line.lstrip(_SPACE))].decode()
        newline = "\r\n" if source[start:].partition(b"\n")[0].endswith(b"\r") else "\n"
        mark = "#" if language in _HASH_LANGUAGES else "//"
        candidates.append(Replacement(start, start, f"{indent}{mark} rlm: {directive}{newline}"))
    return candidates


def _line_start(source: bytes, offset: int) -> int:
    return max(source.rfind(b"\n", 0, offset), source.rfind(b"\r", 0, offset)) + 1


def _comments_after(
    text: bytes, language: str, units: Sequence[Unit], unit: Unit, path: Path | None
) -> UnitComments | None:
    """The directives for a unit in an edited text; None if the edit has changed which units there are."""
    parsed = ParsedSource(text, language)
    after = find_units(parsed, path)
    if [(entry.kind, entry.qualname) for entry in after] != [(entry.kind, entry.qualname) for entry in units]:
        return None
    return read_comments(parsed, after).units[units.index(unit)]
