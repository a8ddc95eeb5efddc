"""Budgets in the comments of a source file, read and written: ``# rlm: latency < 1 ms``, ``# rlm: ignore``.

A comment belongs to the unit that starts on the next line: above its decorators or attributes, between them and the
definition, or above the first line of a program.

Comments are written as replacements of bytes: a budget above a unit, a budget raised, a unit ignored. A replacement is
given only if the edited text, read again, has the intended directive for the unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from rlm_core.queries.judges import JUDGES
from rlm_core.queries.size_comments import is_size_name, read_quantity
from rlm_core.source import languages
from rlm_core.source.directives import Directive, find_directives
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.solutions import JUDGE, PROGRAM, is_judge_directive
from rlm_core.source.units import find_units
from rlm_core.types import METRICS_OF_BASIS, Basis, Metric, Prediction, Span, Unit
from tree_sitter import Node

from .syntax import METRICS, SCALES, Budget, Mistake, parse, render

_WORD = re.compile(r"[^\s,]+")
_IGNORE = "ignore"
# Read by `rlm_core.queries.kernel_sizes`, `rlm_core.queries.function_sizes` and `rlm_core.source.solutions`.
_OTHER_KEYWORDS = frozenset({"sizes", PROGRAM, JUDGE})
_RUNTIMES = ("cpython", "pypy")
_UNIT_WORDS: dict[Basis, str] = {
    "call": "function",
    "program": "program",
    "kernel": "kernel",
    "module": "module",
    "network": "network",
}
_HASH_LANGUAGES = frozenset({"python", "triton", "pytorch", "ruby"})
_LEADING = (1, 2, 5, 10)
_SPACE = b" \t"


@dataclass(frozen=True, slots=True)
class LocatedBudget:
    """A budget and the span of the comment or configuration that sets it."""

    budget: Budget
    span: Span


@dataclass(frozen=True, slots=True)
class MalformedBudget:
    """Text that is not a valid budget: what is wrong, its span, and the unit below it if there is one."""

    message: str
    span: Span
    text: str
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class UnitComments:
    """The comments above a unit: its budgets, and the metrics that get no findings."""

    budgets: tuple[LocatedBudget, ...] = ()
    ignored: frozenset[Metric] = frozenset()


@dataclass(frozen=True, slots=True)
class FileComments:
    """The comments of a file: those of each unit, in the order of the units, and the malformed ones."""

    units: tuple[UnitComments, ...]
    malformed: tuple[MalformedBudget, ...] = ()


def read_comments(parsed: ParsedSource, units: Sequence[Unit]) -> FileComments:
    """Read the budget comments of a source text above its units (as ``find_units`` returns them).

    Texts without a grammar (Triton IR, ONNX) have no comments; their budgets are in the configuration.

    Raises:
        SourceError: the language is unknown.
    """
    nothing = FileComments(tuple(UnitComments() for _ in units))
    if languages.by_name(parsed.language).grammar is None:
        return nothing
    rows = find_directives(parsed).rows
    if not any(rows.values()):
        return nothing
    root = parsed.root
    comments: list[UnitComments] = []
    malformed: list[MalformedBudget] = []
    claimed: set[int] = set()
    for unit, anchors in zip(units, _anchors(root, units), strict=True):
        directives: list[Directive] = []
        for anchor in sorted(anchors):
            above = _comment_block(rows, anchor)
            directives += [directive for row in above if row not in claimed and (directive := rows[row]) is not None]
            claimed.update(above)
        of_unit, mistakes = _read(directives, unit)
        comments.append(of_unit)
        malformed += mistakes
    if not parsed.has_error:
        malformed += [
            MalformedBudget("no unit starts below this comment; put it directly above the definition", d.span(), d.text)
            for row, d in rows.items()
            if d is not None and row not in claimed and not _is_other(d)
        ]
    malformed += [
        MalformedBudget(mistake.message, directive.span(mistake.start, mistake.end), directive.text)
        for directive in filter(None, rows.values())
        if is_judge_directive(directive)
        for mistake in _judge_mistakes(directive)
    ]
    return FileComments(tuple(comments), tuple(sorted(malformed, key=lambda entry: entry.span.start_byte)))


def _anchors(root: Node, units: Sequence[Unit]) -> list[set[int]]:
    """The rows in which each unit starts; one in which several start belongs to the smallest of them."""
    starts: list[set[int]] = []
    for unit in units:
        rows = {unit.span.start_line}
        node = root.named_descendant_for_byte_range(unit.name.start_byte, unit.name.end_byte)
        while node is not None and node.parent is not None and node.start_byte >= unit.span.start_byte:
            # What is inside a program's text before its name is code, not its head.
            rows.add(node.start_point.row)
            before = node.prev_named_sibling
            while before is not None and "attribute" in before.type:
                rows.add(before.start_point.row)
                before = before.prev_named_sibling
            node = node.parent
        starts.append(rows)
    owners: dict[int, int] = {}
    smallest_first = sorted(range(len(units)), key=lambda i: units[i].span.end_byte - units[i].span.start_byte)
    for number in smallest_first:
        for row in starts[number]:
            owners.setdefault(row, number)
    return [{row for row in rows if owners[row] == number} for number, rows in enumerate(starts)]


def _comment_block(rows: Mapping[int, Directive | None], anchor: int) -> range:
    """The rows of the comment lines directly above a row, from top to bottom."""
    first = anchor
    while first - 1 in rows:
        first -= 1
    return range(first, anchor)


def _read(directives: Sequence[Directive], unit: Unit) -> tuple[UnitComments, list[MalformedBudget]]:
    budgets: list[LocatedBudget] = []
    ignored: set[Metric] = set()
    malformed: list[MalformedBudget] = []
    for directive in directives:
        if _is_other(directive):
            continue
        mistakes = _ignore(directive, ignored) if directive.keyword == _IGNORE else _add(directive, unit, budgets)
        malformed += [
            MalformedBudget(mistake.message, directive.span(mistake.start, mistake.end), directive.text, unit)
            for mistake in mistakes
        ]
    return UnitComments(tuple(budgets), frozenset(ignored)), malformed


def _is_other(directive: Directive) -> bool:
    """Return whether a directive is about something other than budgets."""
    return directive.keyword.partition("=")[0] in _OTHER_KEYWORDS


def _judge_mistakes(directive: Directive) -> Iterator[Mistake]:
    """Yield the mistakes in a comment such as ``judge=atcoder runtime=pypy``."""
    known = {JUDGE: tuple(JUDGES), "runtime": _RUNTIMES}
    for word in _WORD.finditer(directive.text):
        name, _, value = word[0].partition("=")
        if value.lower() not in known.get(name, ()):
            choices = " or ".join(f"`{name}={choice}`" for choice in known.get(name, ()))
            yield Mistake(
                f"unknown {name} {value!r}; write {choices or '`judge=NAME` or `runtime=NAME`'}", *word.span()
            )


def _ignore(directive: Directive, ignored: set[Metric]) -> Iterator[Mistake]:
    words = list(_WORD.finditer(directive.text))[1:]
    known = {metric: metric for metric in METRICS}
    for word in words:
        if word[0] in known:
            ignored.add(known[word[0]])
        else:
            yield Mistake(f"unknown metric {word[0]!r}; ignore {', '.join(METRICS)} or nothing else", *word.span())
    if not words:
        ignored.update(METRICS)


def _add(directive: Directive, unit: Unit, budgets: list[LocatedBudget]) -> Iterator[Mistake]:
    written, mistakes = parse(directive.text)
    yield from mistakes
    metrics = METRICS_OF_BASIS[unit.basis]
    for entry in written:
        wrong = _wrong_size(entry.budget) if unit.kind == "function" else None
        if wrong is not None:
            yield Mistake(wrong, entry.start, entry.end)
        elif entry.budget.metric in metrics:
            budgets.append(LocatedBudget(entry.budget, directive.span(entry.start, entry.end)))
        else:
            message = f"a {_UNIT_WORDS[unit.basis]} has no {entry.budget.metric}; it has {' and '.join(metrics)}"
            yield Mistake(message, entry.start, entry.end)


def _wrong_size(budget: Budget) -> str | None:
    """Return what is wrong with the sizes of a function's inputs in a budget; None if nothing is."""
    for name, value in budget.workload:
        if not is_size_name(name):
            return f"{name!r} is not the name of an input; write one like items or rows[]"
        try:
            read_quantity(value)
        except ValueError as error:
            return str(error)
    return None


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
