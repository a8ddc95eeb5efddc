"""Finds the units of a Python file with syntax errors, and the first error of the file.

The grammar reads on behind an error, and reads Python 2: such units have predictions, which mean nothing. What only a
newer Python than this one parses is kept.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from rlm_core.errors import TooComplexError

from .parsed import ParsedSource

_PYTHON_2 = frozenset({"print_statement", "exec_statement"})
_Unit = TypeVar("_Unit")


def without_errors(parsed: ParsedSource, units: Sequence[_Unit], text_of: Callable[[_Unit], str]) -> list[_Unit]:
    """The units whose text has no error by itself; all of them where the file has none, or is not Python."""
    if parsed.language != "python" or _parses(parsed.source.decode("utf-8", errors="replace")):
        return list(units)
    return [unit for unit in units if _parses(text_of(unit)) or not _is_broken(text_of(unit))]


def first_error(parsed: ParsedSource) -> str:
    """``line 3: Missing parentheses in call to 'print'``; the place of the error of a Python file, or an empty text."""
    try:
        _parse(parsed.source.decode("utf-8", errors="replace"))
    except SyntaxError as error:
        # Of a message such as "... Did you mean print(...)?" the first sentence is enough.
        return f"line {error.lineno or 1}: {(error.msg or 'invalid syntax').partition('. ')[0]}"
    except (ValueError, RecursionError, MemoryError):
        pass
    return ""


def _is_broken(text: str) -> bool:
    """Return whether the grammar, which covers Python 2 and newest Python, finds an error or a Python 2 statement."""
    parsed = ParsedSource(text.encode("utf-8", errors="replace"), "python")
    try:
        if parsed.has_error:
            return True
    except TooComplexError:
        return False
    stack = [parsed.root]
    while stack:
        node = stack.pop()
        if node.type in _PYTHON_2:
            return True
        stack += node.named_children
    return False


def _parses(text: str) -> bool:
    try:
        _parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _parse(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(text)
