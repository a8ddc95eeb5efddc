"""The ``# rlm:`` directives in the comments of a source text, found with its syntax tree.

Input: a parsed source text. Output: what follows ``rlm:`` in each comment line, with its
position. What a directive means is decided elsewhere: sizes of kernels in ``queries``, budgets in the language server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from rlm_core.types import Span

from .parsed import ParsedSource

_MARK = b"rlm:"
_PREFIX = re.compile(r"[^\w\n]*?\brlm:[ \t]*")
_KEYWORD = re.compile(r"[^\s,]*")
_CLOSINGS = ("*/", "-->", "=end")


@dataclass(frozen=True, slots=True)
class Directive:
    """The text after ``rlm:`` in one line of a comment; ``comment`` and ``start`` are byte offsets in the file.

    ``comment`` is where the line's comment begins, ``start`` where the text does.
    """

    text: str
    row: int
    line_start: int
    comment: int
    start: int

    @property
    def keyword(self) -> str:
        """The first word."""
        match = _KEYWORD.match(self.text)
        return match[0] if match else ""

    def span(self, start: int = 0, end: int | None = None) -> Span:
        """The span of the characters ``[start, end)`` of the text."""
        first, last = (self.start + len(self.text[:index].encode()) for index in (start, end))
        return self._bytes(first, last)

    @property
    def whole(self) -> Span:
        """The span of the comment line."""
        return self._bytes(self.comment, self.start + len(self.text.encode()) if self.text else self.start)

    def _bytes(self, first: int, last: int) -> Span:
        return Span(self.row, first - self.line_start, self.row, last - self.line_start, first, last)


@dataclass(frozen=True, slots=True)
class Directives:
    """The directives of a file.

    ``rows`` has an entry for each line that holds nothing but a comment, None where it is not a directive;
    ``trailing`` are the directives after code.
    """

    rows: Mapping[int, Directive | None] = field(default_factory=dict)
    trailing: tuple[Directive, ...] = ()

    def __iter__(self) -> Iterator[Directive]:
        every = [*filter(None, self.rows.values()), *self.trailing]
        return iter(sorted(every, key=lambda directive: directive.start))


def find_directives(parsed: ParsedSource) -> Directives:
    """The directives in the comments (not in strings) of a source text."""
    # Few files have a directive, and asking for all comments is most of the work.
    if _MARK not in parsed.source:
        return Directives()
    rows: dict[int, Directive | None] = {}
    trailing: list[Directive] = []
    for node in parsed.comments():
        if "comment" not in node.type:
            continue
        for row, alone, directive in _lines(parsed.source, node):
            if alone:
                rows[row] = directive
            elif directive is not None:
                trailing.append(directive)
    return Directives(rows, tuple(trailing))


def _lines(source: bytes, node: Node) -> Iterator[tuple[int, bool, Directive | None]]:
    """The lines of a comment: row, whether the comment is alone in it, and the directive."""
    start, end, first = node.start_byte, node.end_byte, node.start_point.row
    row, row_start = first, source.rfind(b"\n", 0, start) + 1
    while row_start < end:
        newline = source.find(b"\n", row_start)
        row_end = newline if newline >= 0 else len(source)
        begin = max(row_start, start)
        alone = (row > first or not source[row_start:start].strip()) and not source[min(end, row_end) : row_end].strip()
        yield row, alone, _directive(source[begin : min(end, row_end)], row, row_start, begin)
        row, row_start = row + 1, row_end + 1


def _directive(line: bytes, row: int, line_start: int, begin: int) -> Directive | None:
    text = line.decode("utf-8", errors="replace")
    match = _PREFIX.match(text)
    if match is None:
        return None
    content = text[match.end() :].rstrip()
    for closing in _CLOSINGS:
        content = content.removesuffix(closing).rstrip()
    indent = len(line) - len(line.lstrip())
    return Directive(content, row, line_start, begin + indent, begin + len(text[: match.end()].encode()))
