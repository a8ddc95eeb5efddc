"""Python files analysed again after an edit: only the top-level statements that changed are analysed.

A file without syntax errors is the sum of its top-level statements. The text is parsed from the tree of its previous
version, the units of statements with unchanged text are shifted to their new position, and the others are analysed. A
file with a syntax error, or with kernels, modules or solutions, is analysed as a whole.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from cachetools import LRUCache

from rlm_core.types import Span, Unit

from .call_graph import ModuleIndex, index_units, merged
from .parsed import ParsedSource
from .units import find_functions, python_units

_REMEMBERED = 8  # files
# Whether a class or function is more than that may depend on any other statement of a file with one of these words.
_SPECIAL = (b"triton", b"torch", b"Solution")


@dataclass(frozen=True, slots=True)
class PythonFile:
    """The units of a Python file in the order in which they start, and the index of its definitions and calls."""

    units: list[Unit]
    index: ModuleIndex


@dataclass(frozen=True, slots=True)
class _Statement:
    """A top-level statement: its first byte and row, its functions, and their index."""

    start: int
    row: int
    units: list[Unit]
    index: ModuleIndex


@dataclass(frozen=True, slots=True)
class _Version:
    """The last version of a file that had no syntax error, and its statements by their text."""

    parsed: ParsedSource
    statements: dict[bytes, _Statement]


class PythonReader:
    """Analyses Python files and remembers the last version of some. Not thread-safe."""

    def __init__(self) -> None:
        self._versions: LRUCache[Hashable, _Version] = LRUCache(_REMEMBERED)

    def read(
        self, parsed: ParsedSource, dotted: str = "", *, is_package: bool = False, name: Hashable = None
    ) -> PythonFile:
        """Analyse a Python text.

        Args:
            parsed: the text.
            dotted: the module's name, needed to follow relative imports.
            is_package: whether the file is a package's ``__init__``.
            name: identifies the file across versions; None for a text that is read once.
        """
        key = (name, dotted, is_package)
        last = self._versions.get(key) if name is not None else None
        if last is not None:
            parsed.parse_after(last.parsed)
        source, root = parsed.source, parsed.root
        if root.has_error:
            return _whole(parsed, dotted, is_package)
        if any(word in source for word in _SPECIAL):
            if name is not None:
                self._versions[key] = _Version(parsed, {})
            return _whole(parsed, dotted, is_package)
        known = last.statements if last is not None else {}
        statements: list[_Statement] = []
        by_text: dict[bytes, _Statement] = {}
        for node in root.children:
            text = source[node.start_byte : node.end_byte]
            statement = known.get(text)
            if statement is None:
                units = find_functions(source, node)
                index = index_units(units, node, dotted, is_package=is_package)
                statement = _Statement(node.start_byte, node.start_point.row, units, index)
            else:
                statement = _shifted(statement, node.start_byte, node.start_point.row)
            by_text[text] = statement
            statements.append(statement)
        if name is not None:
            self._versions[key] = _Version(parsed, by_text)
        units = [unit for statement in statements for unit in statement.units]
        return PythonFile(units, merged((statement.index for statement in statements), dotted))


def _whole(parsed: ParsedSource, dotted: str, is_package: bool) -> PythonFile:
    functions = find_functions(parsed.source, parsed.root)
    index = index_units(functions, parsed.root, dotted, is_package=is_package)
    return PythonFile(python_units(parsed, functions), index)


def _shifted(statement: _Statement, start: int, row: int) -> _Statement:
    """A statement at another position."""
    offset, rows = start - statement.start, row - statement.row
    if not offset and not rows:
        return statement

    def shift(span: Span) -> Span:
        return replace(
            span,
            start_line=span.start_line + rows,
            end_line=span.end_line + rows,
            start_byte=span.start_byte + offset,
            end_byte=span.end_byte + offset,
        )

    units = [
        replace(unit, span=shift(unit.span), name=shift(unit.name), header=shift(unit.header))
        for unit in statement.units
    ]
    return _Statement(start, row, units, statement.index)
