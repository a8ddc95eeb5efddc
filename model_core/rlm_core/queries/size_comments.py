"""Sizes of functions' inputs in the comments of a file.

    # rlm: sizes orders=10k rows[]=20

above a function or inside it is about its inputs; above the first definition of a file it is about all functions there.
Those of kernels and modules are read by :mod:`.kernel_sizes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rlm_core.cost.domain.quantities import raised
from rlm_core.source.directives import Directive, Directives
from rlm_core.types import SizeValue, Span, Unit

KEYWORD = "sizes"
MOST_SIZE = 1e15
_WORD = re.compile(r"(?P<name>[^\W\d][\w.]*(?:\[\])*)\s*=\s*(?P<value>[^\s,=]+)|(?P<stray>[^\s,]+)")
_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+|\[\])*")
_QUANTITY = re.compile(
    r"(?P<number>\d[\d_]*(?:\.\d+)?)(?P<unit>[kKMGT]?)|(?P<base>\d{1,6})\*\*(?P<power>\d{1,2})", re.ASCII
)
_UNITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LIKE = "write it like items=10k or rows=2**20"

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class SizesProblem:
    """A mistake in a comment about sizes: one line of text, and the span that it is about."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class SizeComments:
    """The sizes in the comments of a file: of all its functions, and of each by its place among the units.

    ``read`` are the places of the comments that are about functions, ``problems`` the mistakes in them.
    """

    of_file: Mapping[str, SizeValue] = field(default_factory=dict)
    of_units: Mapping[int, Mapping[str, SizeValue]] = field(default_factory=dict)
    read: frozenset[int] = frozenset()
    problems: tuple[SizesProblem, ...] = ()


NO_COMMENTS = SizeComments()


def read_quantity(text: str) -> float:
    """The value of a size as it is written: ``10_000``, ``10k``, ``1.5M``, ``2**20``.

    Raises:
        ValueError: it is not a size; the message is the end of a sentence.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"`{text}` is not a size; write it like 500, 10k, 1.5M or 2**20")
    if match["base"] is not None:
        value = raised(float(match["base"]), float(match["power"]))
    else:
        value = float(match["number"].replace("_", "")) * _UNITS[match["unit"]]
    if not 0 <= value <= MOST_SIZE:
        raise ValueError(f"`{text}` is not a size; sizes are at most 1e15")
    return value


def is_size_name(name: str) -> bool:
    """Return whether a text may name a size: ``items``, ``rows[]``, ``self.queue``."""
    return _NAME.fullmatch(name) is not None


def read_size_comments(directives: Directives, units: Sequence[Unit]) -> SizeComments:
    """The sizes that the comments of a file give its functions, and the mistakes in them.

    A comment inside a function, or directly above it, is about its inputs. One above the first definition of the file
    that belongs to no unit is about all functions. Those of kernels and modules are read by :mod:`.kernel_sizes`.
    """
    of_file: dict[str, SizeValue] = {}
    of_units: dict[int, dict[str, SizeValue]] = {}
    problems: list[SizesProblem] = []
    read: set[int] = set()
    for directive in directives:
        if directive.keyword != KEYWORD:
            continue
        owner = owner_of(directive, units, directives)
        if owner is not None and units[owner].kind != "function":
            continue
        if owner is None and not _is_about_file(directive, units):
            continue
        sizes, mistakes = _sizes(directive)
        read.add(directive.start)
        problems += mistakes
        if not mistakes:
            (of_file if owner is None else of_units.setdefault(owner, {})).update(sizes)
    return SizeComments(of_file, of_units, frozenset(read), tuple(problems))


def owner_of(directive: Directive, units: Sequence[Unit], directives: Directives) -> int | None:
    """The place of the unit that a comment is about; None where it is about none.

    It is the innermost around the comment, a kernel or module before a function in it, else the one below it and below
    other lines of comments.
    """
    around = [number for number, unit in enumerate(units) if _is_inside(directive, unit)]
    sized = [number for number in around if units[number].kind in ("kernel", "module")] or around
    if sized:
        return min(sized, key=lambda number: units[number].span.end_byte - units[number].span.start_byte)
    row = directive.row
    while row in directives.rows:
        row += 1
    below = [number for number, unit in enumerate(units) if unit.span.start_line == row]
    return max(below, key=lambda number: units[number].kind in ("kernel", "module"), default=None)


def _is_inside(directive: Directive, unit: Unit) -> bool:
    return unit.kind != "program" and unit.span.start_byte <= directive.start < unit.span.end_byte


def _is_about_file(directive: Directive, units: Sequence[Unit]) -> bool:
    """Return whether a comment that belongs to no unit is about all functions of the file."""
    functions = [unit for unit in units if unit.kind == "function"]
    first = min((unit.span.start_byte for unit in units), default=0)
    return bool(functions) and directive.start < first and directive.comment == directive.line_start


def read_words(
    directive: Directive, words: re.Pattern[str], like: str, value_of: Callable[[str, str], Value]
) -> tuple[dict[str, Value], list[SizesProblem]]:
    """The NAME=VALUE words of a comment about sizes, and the mistakes in them.

    ``words`` matches a word with the groups ``name`` and ``value``, else ``stray``; ``like`` says how to write one.
    ``value_of`` is given a name and the text of its value, and raises ``ValueError`` with what is wrong with the text.
    """
    values: dict[str, Value] = {}
    problems: list[SizesProblem] = []

    def report(text: str, start: int, end: int) -> None:
        problems.append(SizesProblem(text, directive.span(start, end)))

    for word in words.finditer(directive.text, len(KEYWORD)):
        name, written = word["name"], word["value"]
        if name is None:
            report(f"`{word['stray']}` is not NAME=VALUE; {like}", *word.span("stray"))
        elif name in values:
            report(f"`{name}` is given twice; keep one", *word.span("name"))
        else:
            try:
                values[name] = value_of(name, written)
            except ValueError as error:
                report(str(error), *word.span("value"))
    return values, problems


def _sizes(directive: Directive) -> tuple[dict[str, SizeValue], list[SizesProblem]]:
    """The sizes of one comment, and its mistakes."""
    line = f"line {directive.row + 1}"
    sizes, problems = read_words(
        directive, _WORD, _LIKE, lambda name, text: SizeValue(name, read_quantity(text), "comment", line)
    )
    if not sizes and not problems:
        problems.append(SizesProblem(f"no size; {_LIKE}", directive.whole))
    return sizes, problems
