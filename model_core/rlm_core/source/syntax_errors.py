"""Which units of a Python file parse, and where its first syntax error is.

Grammars of editors read on behind an error: a text of Python 2 or a half-written function has units too, but what they
say of its cost means nothing.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from .parsed import ParsedSource

_Unit = TypeVar("_Unit")


def without_errors(parsed: ParsedSource, units: Sequence[_Unit], text_of: Callable[[_Unit], str]) -> list[_Unit]:
    """The units whose text parses by itself; all of them where the file has no error, or is not Python."""
    if parsed.language != "python" or _parses(parsed.source.decode("utf-8", errors="replace")):
        return list(units)
    return [unit for unit in units if _parses(text_of(unit))]


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
