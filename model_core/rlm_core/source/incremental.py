"""Python files read anew after an edit: only the top-level statements that changed are looked into.

A file without syntax errors is the sum of its top-level statements, and each stands for itself as long as it begins at
a line's start and ends with a line. So what an edit touches is parsed alone, from a statement's start to another one's,
and all others are moved along. A file is parsed as a whole when that cannot be, and read as a whole while it has a
syntax error; the last version without one is remembered meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node, Parser

from rlm_core.types import Span, Unit

from . import languages
from .call_graph import ModuleIndex, index_units, merged
from .units.finder import with_special
from .units.python import find_python

_REMEMBERED = 8  # files
# What decides whether a class or function is more than that may stand anywhere in a file.
_SPECIAL = (b"triton", b"torch", b"Solution")


@dataclass(frozen=True, slots=True)
class Read:
    """The units of a file in the order in which they start, and the index of what it defines and calls."""

    units: list[Unit]
    index: ModuleIndex


@dataclass(frozen=True, slots=True)
class _Part:
    """A top-level statement: its bytes, the row in which it starts, and what was read of it."""

    start: int
    end: int
    row: int
    units: list[Unit]
    index: ModuleIndex


@dataclass(frozen=True, slots=True)
class _File:
    """The last version of a file that had no syntax error, and its statements in their order."""

    source: bytes
    parts: list[_Part]


class Reader:
    """Reads Python files and remembers the last version of some. Not thread-safe."""

    def __init__(self) -> None:
        self._files: OrderedDict[Hashable, _File] = OrderedDict()

    def read(self, source: bytes, dotted: str = "", *, is_package: bool = False, name: Hashable = None) -> Read:
        """Read a UTF-8 source text.

        Args:
            source: the text.
            dotted: the module's name, needed to follow relative imports.
            is_package: whether the file is a package's ``__init__``.
            name: what an older version went by; None for a text that is read once.
        """
        key = (name, dotted, is_package)
        last = self._files.get(key) if name is not None else None
        parts = None
        if not any(word in source for word in _SPECIAL):
            parts = _edited(source, last, dotted, is_package) if last is not None else None
            if parts is None:
                root = _parse(source)
                parts = _whole(source, root, last, dotted, is_package) if not root.has_error else None
        else:
            root = _parse(source)
        if parts is None:
            functions = find_python(source, root)
            index = index_units(functions, root, dotted, is_package=is_package)
            return Read(with_special(source, root, functions), index)
        if name is not None:
            self._files[key] = _File(source, parts)
            self._files.move_to_end(key)
            if len(self._files) > _REMEMBERED:
                self._files.popitem(last=False)
        return Read([unit for part in parts for unit in part.units], merged((part.index for part in parts), dotted))


def _parse(source: bytes) -> Node:
    return Parser(languages.grammar("python")).parse(source).root_node


def _whole(source: bytes, root: Node, last: _File | None, dotted: str, is_package: bool) -> list[_Part]:
    """The statements of a file; those that were there before are moved to where they are now."""
    known = {last.source[part.start : part.end]: part for part in last.parts} if last is not None else {}
    return list(_parts(source, root.children, known, dotted, is_package))


def _parts(
    source: bytes, statements: Sequence[Node], known: Mapping[bytes, _Part], dotted: str, is_package: bool
) -> Iterator[_Part]:
    for statement in statements:
        start, end, row = statement.start_byte, statement.end_byte, statement.start_point.row
        part = known.get(source[start:end])
        if part is None:
            units = find_python(source, statement)
            yield _Part(start, end, row, units, index_units(units, statement, dotted, is_package=is_package))
        else:
            yield _moved(part, row - part.row, start - part.start)


def _edited(source: bytes, last: _File, dotted: str, is_package: bool) -> list[_Part] | None:
    """The statements of a file after an edit; None where what the edit touches does not stand for itself."""
    before, parts = last.source, last.parts
    same = _common(before, source)
    end = len(before) - min(_common(before[::-1], source[::-1]), min(len(before), len(source)) - same)
    starts = [part.start for part in parts]
    first, behind = bisect_left(starts, same) - 1, bisect_right(starts, end)
    if first < 0:
        return None
    size = len(source) - len(before)
    start = parts[first].start
    text = source[start : parts[behind].start + size if behind < len(parts) else len(source)]
    is_last = behind == len(parts)
    begins, ends = start == 0 or before[start - 1 : start] == b"\n", is_last or text.endswith(b"\n")
    # Behind a backslash a line goes on.
    if not begins or not ends or text.rstrip(b"\r\n").endswith(b"\\"):
        return None
    root = _parse(text)
    if root.has_error or any(statement.start_point.column for statement in root.children):
        return None
    row = parts[first].row
    found = [_moved(part, row, start) for part in _parts(text, root.children, {}, dotted, is_package)]
    rows = source.count(b"\n", same, end + size) - before.count(b"\n", same, end)
    return [*parts[:first], *found, *(_moved(part, rows, size) for part in parts[behind:])]


def _common(one: bytes, other: bytes) -> int:
    """The length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _moved(part: _Part, rows: int, size: int) -> _Part:
    if not rows and not size:
        return part
    units = [
        replace(
            unit,
            span=_further(unit.span, rows, size),
            name=_further(unit.name, rows, size),
            header=_further(unit.header, rows, size),
        )
        for unit in part.units
    ]
    return _Part(part.start + size, part.end + size, part.row + rows, units, part.index)


def _further(span: Span, rows: int, size: int) -> Span:
    return Span(
        span.start_line + rows,
        span.start_column,
        span.end_line + rows,
        span.end_column,
        span.start_byte + size,
        span.end_byte + size,
    )
