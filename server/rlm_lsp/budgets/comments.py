"""Budgets in the comments of a source file: ``# rlm: latency < 1 ms`` above a unit, ``# rlm: ignore``.

A comment belongs to the unit that starts on the next line: above its decorators or attributes, between them and the
definition, or above the first line of a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlm_core.queries.judges import JUDGES
from rlm_core.source import languages
from rlm_core.source.directives import Directive, find_directives
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.solutions import JUDGE, PROGRAM, is_judge_directive
from rlm_core.types import METRICS_OF_BASIS, Basis, Metric, Span, Unit
from tree_sitter import Node

from .syntax import METRICS, Budget, Mistake, parse

_WORD = re.compile(r"[^\s,]+")
_IGNORE = "ignore"
# Read by `rlm_core.queries.kernel_sizes` and `rlm_core.source.solutions`.
_OTHER_KEYWORDS = frozenset({"sizes", PROGRAM, JUDGE})
_RUNTIMES = ("cpython", "pypy")
_UNIT_WORDS: dict[Basis, str] = {
    "call": "function",
    "program": "program",
    "kernel": "kernel",
    "module": "module",
    "network": "network",
}


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
        if entry.budget.metric in metrics:
            budgets.append(LocatedBudget(entry.budget, directive.span(entry.start, entry.end)))
        else:
            message = f"a {_UNIT_WORDS[unit.basis]} has no {entry.budget.metric}; it has {' and '.join(metrics)}"
            yield Mistake(message, entry.start, entry.end)
