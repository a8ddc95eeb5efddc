"""Budgets in the comments of a source file: ``# rlm: latency < 1 ms`` above a unit, ``# rlm: ignore``.

Comments are found by the language's grammar, never in strings. A comment belongs to the unit that starts on the next
line: above its decorators or attributes, between them and the definition, or above the first line of a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rlm_core.source import languages
from rlm_core.types import METRICS_OF_BASIS, Metric, Span, Unit
from tree_sitter import Node, QueryCursor

from .syntax import METRICS, Budget, Mistake, parse

_MARK = re.compile(r"[^\w\n]*?\brlm:[ \t]*")
_WORD = re.compile(r"[^\s,]+")
# What other parts of the tool read: the sizes of a kernel.
_OTHERS = ("sizes",)
_KINDS = {"call": "function", "program": "program", "kernel": "kernel", "module": "module", "network": "network"}


@dataclass(frozen=True, slots=True)
class PlacedBudget:
    """A budget and where a comment says it."""

    budget: Budget
    span: Span


@dataclass(frozen=True, slots=True)
class Malformed:
    """What cannot be read as a budget, where it stands, and the unit below it if there is one."""

    message: str
    span: Span
    text: str
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class UnitComments:
    """What the comments above a unit say: budgets, and the metrics without findings."""

    budgets: tuple[PlacedBudget, ...] = ()
    ignored: frozenset[Metric] = frozenset()


@dataclass(frozen=True, slots=True)
class FileComments:
    """What the comments of a file say: about each of its units, in their order, and what cannot be read."""

    units: tuple[UnitComments, ...]
    malformed: tuple[Malformed, ...] = ()


@dataclass(slots=True)
class _Directive:
    """The text behind ``rlm:`` on one line of a comment, and its place in the file."""

    text: str
    row: int
    line_start: int
    start: int
    claimed: bool = False

    def span(self, start: int = 0, end: int | None = None) -> Span:
        """The span of some of the directive's characters."""
        first, last = (self.start + len(self.text[:at].encode()) for at in (start, end))
        return Span(self.row, first - self.line_start, self.row, last - self.line_start, first, last)


@dataclass(slots=True)
class _Block:
    budgets: list[PlacedBudget] = field(default_factory=list)
    ignored: set[Metric] = field(default_factory=set)


def read_comments(source: bytes, language: str, units: Sequence[Unit]) -> FileComments:
    """What the comments of a UTF-8 source text say about its units (as ``find_units`` gives them).

    Texts without a grammar (Triton IR, ONNX) have no comments; their budgets stand in the configuration.

    Raises:
        SourceError: the language is unknown.
    """
    nothing = FileComments(tuple(UnitComments() for _ in units))
    # Few files have a budget, and parsing is most of the work.
    if b"rlm:" not in source or languages.by_name(language).grammar is None:
        return nothing
    root = languages.parse(language, source).root_node
    comments = QueryCursor(languages.comment_query(language, source)).captures(root).get("skip", [])
    rows: dict[int, _Directive | None] = {}
    for node in comments:
        if "comment" in node.type:
            rows |= _rows(source, node)
    if not any(rows.values()):
        return nothing
    told = [UnitComments() for _ in units]
    malformed: list[Malformed] = []
    for number, anchors in _anchors(root, units):
        unit = units[number]
        blocks = [directive for anchor in sorted(anchors) for directive in _above(rows, anchor)]
        told[number], wrong = _read(blocks, unit)
        malformed += wrong
    if not root.has_error:
        malformed += [
            Malformed("no unit starts below this comment; put it right above the definition", d.span(), d.text)
            for d in rows.values()
            if d is not None and not d.claimed and not _is_other(d)
        ]
    return FileComments(tuple(told), tuple(sorted(malformed, key=lambda entry: entry.span.start_byte)))


def _rows(source: bytes, node: Node) -> Iterator[tuple[int, _Directive | None]]:
    """The rows that a comment has for itself, each with the directive that it says."""
    start = node.start_byte
    row_start = source.rfind(b"\n", 0, start) + 1
    row = node.start_point.row
    first = row
    end = node.end_byte
    while row_start < end:
        newline = source.find(b"\n", row_start)
        row_end = newline if newline >= 0 else len(source)
        own = row > first or not source[row_start:start].strip()
        own = own and not source[min(end, row_end) : row_end].strip()
        if own:
            begin = max(row_start, start)
            yield row, _directive(source[begin : min(end, row_end)], row, row_start, begin)
        row, row_start = row + 1, row_end + 1


def _directive(line: bytes, row: int, line_start: int, start: int) -> _Directive | None:
    text = line.decode("utf-8", errors="replace")
    match = _MARK.match(text)
    if match is None:
        return None
    said = text[match.end() :].rstrip()
    for closing in ("*/", "-->", "=end"):
        said = said.removesuffix(closing).rstrip()
    return _Directive(said, row, line_start, start + len(text[: match.end()].encode()))


def _anchors(root: Node, units: Sequence[Unit]) -> Iterator[tuple[int, set[int]]]:
    """The rows in which each unit starts; one in which several start belongs to the smallest of them."""
    found: list[set[int]] = []
    for unit in units:
        rows = {unit.span.start_line}
        node = root.named_descendant_for_byte_range(unit.name.start_byte, unit.name.end_byte)
        while node is not None and node.parent is not None and node.start_byte >= unit.span.start_byte:
            # What stands inside a program's text before its name is code, not its head.
            rows.add(node.start_point.row)
            before = node.prev_named_sibling
            while before is not None and "attribute" in before.type:
                rows.add(before.start_point.row)
                before = before.prev_named_sibling
            node = node.parent
        found.append(rows)
    owner: dict[int, int] = {}
    for number, unit in enumerate(units):
        size = unit.span.end_byte - unit.span.start_byte
        for row in found[number]:
            other = owner.get(row)
            if other is None or size < units[other].span.end_byte - units[other].span.start_byte:
                owner[row] = number
    for number, rows in enumerate(found):
        yield number, {row for row in rows if owner[row] == number}


def _above(rows: dict[int, _Directive | None], anchor: int) -> list[_Directive]:
    """The directives of the comment lines that stand directly above a row, from top to bottom."""
    found = []
    row = anchor - 1
    while row in rows:
        directive = rows[row]
        if directive is not None and not directive.claimed:
            directive.claimed = True
            found.append(directive)
        row -= 1
    return found[::-1]


def _read(directives: Sequence[_Directive], unit: Unit) -> tuple[UnitComments, list[Malformed]]:
    block = _Block()
    malformed: list[Malformed] = []
    for directive in directives:
        if _is_other(directive):
            continue
        mistakes = list(
            _ignored(directive, block) if _first(directive) == "ignore" else _budgets(directive, unit, block)
        )
        malformed += [
            Malformed(mistake.message, directive.span(mistake.start, mistake.end), directive.text, unit)
            for mistake in mistakes
        ]
    return UnitComments(tuple(block.budgets), frozenset(block.ignored)), malformed


def _first(directive: _Directive) -> str:
    match = _WORD.match(directive.text)
    return match[0] if match else ""


def _is_other(directive: _Directive) -> bool:
    return _first(directive) in _OTHERS


def _ignored(directive: _Directive, block: _Block) -> Iterator[Mistake]:
    words = list(_WORD.finditer(directive.text))[1:]
    known = {metric: metric for metric in METRICS}
    for word in words:
        if word[0] in known:
            block.ignored.add(known[word[0]])
        else:
            yield Mistake(f"unknown metric {word[0]!r}; ignore {', '.join(METRICS)} or nothing else", *word.span())
    if not words:
        block.ignored.update(METRICS)


def _budgets(directive: _Directive, unit: Unit, block: _Block) -> Iterator[Mistake]:
    written, mistakes = parse(directive.text)
    yield from mistakes
    metrics = METRICS_OF_BASIS[unit.basis]
    for entry in written:
        span = directive.span(entry.start, entry.end)
        if entry.budget.metric not in metrics:
            message = f"a {_KINDS[unit.basis]} has no {entry.budget.metric}; it has {' and '.join(metrics)}"
            yield Mistake(message, entry.start, entry.end)
        else:
            block.budgets.append(PlacedBudget(entry.budget, span))
