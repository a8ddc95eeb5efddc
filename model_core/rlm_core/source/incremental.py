"""Python files analysed again after an edit: only the top-level statements that changed are parsed and analysed.

A file without syntax errors is the sum of its top-level statements, and each can be parsed alone if it starts at the
start of a line and the edit ends with a line. So the statements that an edit touches are parsed alone, and the units
of the others are shifted to their new position. Where that is not possible the whole text is parsed, and statements
with unchanged text are reused. A file with kernels, modules or solutions is analysed as a whole, and so is one with a
syntax error that more than a statement causes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from cachetools import LRUCache

from rlm_core.types import Span, Unit

from .module_index import ModuleIndex, index_units, merged
from .parsed import ParsedSource, common_prefix
from .solutions import path_evidence
from .units import find_functions, is_stub, python_units

_REMEMBERED = 8  # files
# Whether a class or function is more than that may depend on any other statement of a file with one of these words.
_SPECIAL = (b"triton", b"torch", b"Solution", b"rlm: program")


@dataclass(frozen=True, slots=True)
class PythonFile:
    """The units of a Python file in the order in which they start, and the index of its definitions and calls."""

    units: list[Unit]
    index: ModuleIndex


@dataclass(frozen=True, slots=True)
class _Statement:
    """A top-level statement: its bytes ``[start, end)``, its first row, its functions, and their index."""

    start: int
    end: int
    row: int
    units: list[Unit]
    index: ModuleIndex


@dataclass(frozen=True, slots=True)
class _Version:
    """The last version of a file that had no syntax error, its statements in source order, and where it is."""

    parsed: ParsedSource
    statements: list[_Statement]
    place: tuple[str, bool, PurePath | None]


class PythonReader:
    """Analyses Python files and remembers the last version of some. Not thread-safe."""

    def __init__(self) -> None:
        self._versions: LRUCache[Hashable, _Version] = LRUCache(_REMEMBERED)

    def read(
        self,
        parsed: ParsedSource,
        dotted: str = "",
        *,
        is_package: bool = False,
        name: Hashable = None,
        path: PurePath | None = None,
    ) -> PythonFile:
        """Analyse a Python text.

        Args:
            parsed: the text.
            dotted: the module's name, needed to follow relative imports.
            is_package: whether the file is a package's ``__init__``.
            name: identifies the file across versions; None for a text that is read once.
            path: where the file is stored; a judge's solutions are programs.
        """
        last = self._versions.get(name) if name is not None else None
        place = (dotted, is_package, path)
        if last is not None and last.place != place:
            last = None
        source = parsed.source
        is_special = any(word in source for word in _SPECIAL) or (path is not None and any(path_evidence(path)))
        statements, is_valid = None, True
        if last is not None:
            parsed.follow(last.parsed)
            statements = _after_edit(source, last, dotted, is_package) if not is_special else None
        if statements is None:
            is_valid = not parsed.has_error
            if parsed.root.has_error or is_special:
                if name is not None and is_valid:
                    self._versions[name] = _Version(parsed, [], place)
                return _whole(parsed, dotted, is_package, path)
            before = last.statements if last is not None else []
            known = _by_text(last.parsed.source, before) if last is not None else {}
            functions = merged(entry.index for entry in before)
            statements = _statements(parsed, known, functions, dotted, is_package)
        if name is not None and is_valid:
            self._versions[name] = _Version(parsed, statements, place)
        units = [unit for statement in statements for unit in statement.units]
        return PythonFile(units, merged((statement.index for statement in statements), dotted))

    def forget(self, name: Hashable) -> None:
        """Forget the versions of a file."""
        self._versions.pop(name, None)


def _by_text(source: bytes, statements: list[_Statement]) -> dict[bytes, _Statement]:
    """Map the text of statements that start a line to them; the text of an indented function has its indentation."""
    starts_line = (entry for entry in statements if entry.start == 0 or source[entry.start - 1] == ord("\n"))
    return {source[entry.start : entry.end]: entry for entry in starts_line}


def _statements(
    parsed: ParsedSource, known: Mapping[bytes, _Statement], functions: ModuleIndex, dotted: str, is_package: bool
) -> list[_Statement]:
    """The statements of a text; those with a known text are shifted, the others are analysed.

    Of their functions, those that are in the index ``functions`` with the same text are not read again.
    """
    source, readable = parsed.source, parsed.readable
    statements = []
    for node in parsed.root.children:
        start, end, row = node.start_byte, node.end_byte, node.start_point.row
        text = source[start:end]
        is_read = readable is source or readable[start:end] == text
        statement = known.get(text) if is_read and not node.start_point.column else None
        if statement is None:
            units = find_functions(source, node)
            index = index_units(units, node, dotted, is_package=is_package, known=functions)
            shown = [unit for unit in units if not is_stub(unit)]
            statements.append(_Statement(start, end, row, shown, index))
        else:
            statements.append(_shifted(statement, start - statement.start, row - statement.row))
    return statements


def _after_edit(source: bytes, last: _Version, dotted: str, is_package: bool) -> list[_Statement] | None:
    """The statements of a text after an edit; None where what the edit touches cannot be parsed alone."""
    before, statements = last.parsed.source, last.statements
    same = common_prefix(before, source)
    end = len(before) - min(common_prefix(before[::-1], source[::-1]), min(len(before), len(source)) - same)
    starts = [statement.start for statement in statements]
    first, following = bisect_left(starts, same) - 1, bisect_right(starts, end)
    if first < 0:
        return None
    offset = len(source) - len(before)
    start = statements[first].start
    is_last = following == len(statements)
    text = source[start : len(source) if is_last else statements[following].start + offset]
    starts_line = start == 0 or before[start - 1 : start] == b"\n"
    ends_line = is_last or text.endswith(b"\n")
    # A line that ends with a backslash continues on the next one.
    if not starts_line or not ends_line or text.rstrip(b"\r\n").endswith(b"\\"):
        return None
    touched = ParsedSource(text, "python")
    if touched.has_error or any(node.start_point.column for node in touched.root.children):
        return None
    row = statements[first].row
    functions = merged(entry.index for entry in statements[first:following])
    read = _statements(touched, {}, functions, dotted, is_package)
    rows = source.count(b"\n", same, end + offset) - before.count(b"\n", same, end)
    return [
        *statements[:first],
        *(_shifted(entry, start, row) for entry in read),
        *(_shifted(entry, offset, rows) for entry in statements[following:]),
    ]


def _whole(parsed: ParsedSource, dotted: str, is_package: bool, path: PurePath | None) -> PythonFile:
    functions = find_functions(parsed.source, parsed.root)
    index = index_units(functions, parsed.root, dotted, is_package=is_package)
    return PythonFile(python_units(parsed, functions, path), index)


def _shifted(statement: _Statement, offset: int, rows: int) -> _Statement:
    """A statement at another position."""
    if not offset and not rows:
        return statement

    def shift(span: Span) -> Span:
        # Thousands of spans and units are shifted per edit: dataclasses.replace takes twice the time.
        return Span(
            span.start_line + rows,
            span.start_column,
            span.end_line + rows,
            span.end_column,
            span.start_byte + offset,
            span.end_byte + offset,
        )

    units = [
        Unit(
            unit.kind,
            unit.language,
            unit.qualname,
            unit.text,
            shift(unit.span),
            shift(unit.name),
            shift(unit.header),
        )
        for unit in statement.units
    ]
    return _Statement(statement.start + offset, statement.end + offset, statement.row + rows, units, statement.index)
