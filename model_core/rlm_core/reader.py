"""Python files read anew after an edit: only the top-level statements that changed are looked into.

A file without syntax errors is the sum of its top-level statements, so each is read once and kept by its text. The
parser is told what changed and keeps the rest of its tree. Everything else is read as a whole.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node, Parser, Point, Tree

from . import languages
from .callgraph import ModuleIndex, index_units, merged
from .types import Span, Unit
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
    """A top-level statement that was read where it starts at ``start`` and ``row``."""

    start: int
    row: int
    units: list[Unit]
    index: ModuleIndex


@dataclass(frozen=True, slots=True)
class _File:
    """The last version of a file: its tree, and its statements by their texts."""

    source: bytes
    tree: Tree
    parts: dict[bytes, _Part]


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
        tree = _parse(source, last)
        root = tree.root_node
        if root.has_error or any(word in source for word in _SPECIAL):
            functions = find_python(source, root)
            index = index_units(functions, root, dotted, is_package=is_package)
            found, file = Read(with_special(source, root, functions), index), _File(source, tree, {})
        else:
            known = last.parts if last is not None else {}
            parts = list(_parts(source, root, known, dotted, is_package))
            units = [unit for _, part in parts for unit in part.units]
            found = Read(units, merged((part.index for _, part in parts), dotted))
            file = _File(source, tree, dict(parts))
        if name is not None:
            self._files[key] = file
            self._files.move_to_end(key)
            if len(self._files) > _REMEMBERED:
                self._files.popitem(last=False)
        return found


def _parts(
    source: bytes, root: Node, known: Mapping[bytes, _Part], dotted: str, is_package: bool
) -> Iterator[tuple[bytes, _Part]]:
    """The top-level statements of a file and their texts; those that are known are moved to where they are now."""
    for statement in root.children:
        start, row = statement.start_byte, statement.start_point.row
        text = source[start : statement.end_byte]
        part = known.get(text)
        if part is None:
            units = find_python(source, statement)
            part = _Part(start, row, units, index_units(units, statement, dotted, is_package=is_package))
        elif (part.start, part.row) != (start, row):
            units = [_moved(unit, row - part.row, start - part.start) for unit in part.units]
            part = _Part(start, row, units, part.index)
        yield text, part


def _parse(source: bytes, last: _File | None) -> Tree:
    parser = Parser(languages.grammar("python"))
    # How an error is recovered from may depend on the tree from before.
    if last is None or last.tree.root_node.has_error:
        return parser.parse(source)
    before = last.source
    start = _common(before, source)
    end = _common(before[start:][::-1], source[start:][::-1])
    old_end, new_end = len(before) - end, len(source) - end
    while start and (_continues(source, start) or _continues(before, start)):
        start -= 1
    while _continues(source, new_end):
        old_end, new_end = old_end + 1, new_end + 1
    last.tree.edit(start, old_end, new_end, _point(source, start), _point(before, old_end), _point(source, new_end))
    tree = parser.parse(source, last.tree)
    return parser.parse(source) if tree.root_node.has_error else tree


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


def _continues(source: bytes, at: int) -> bool:
    """Whether a byte is not the first of its character."""
    return at < len(source) and source[at] & 0xC0 == 0x80


def _point(source: bytes, at: int) -> Point:
    return Point(source.count(b"\n", 0, at), at - source.rfind(b"\n", 0, at) - 1)


def _moved(unit: Unit, rows: int, size: int) -> Unit:
    span, name, header = (_further(one, rows, size) for one in (unit.span, unit.name, unit.header))
    return replace(unit, span=span, name=name, header=header)


def _further(span: Span, rows: int, size: int) -> Span:
    return Span(
        span.start_line + rows,
        span.start_column,
        span.end_line + rows,
        span.end_column,
        span.start_byte + size,
        span.end_byte + size,
    )
