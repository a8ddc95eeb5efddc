"""Reads the tables of the library: text files of one statement per function, method, attribute or measured cost.

    let NAME = "text"                   text that snippets share
    cost NAME = 2e-08 + 3e-09 * n | run "a.upper()" | after NAME       a measured cost, and the snippet that measures it
    math.{sin, cos}(x) -> float | cost math.sin | fold                 functions: the result, and what a call does
    str, bytes:                         kinds of value, or types of object, that have the indented members below
        strip() -> text[len(self)] | cost str.strip(len(self)) | fold  a method
        .name -> str[10]                an attribute; ``.*`` is any other one, if it has a clause ``cost``
        operator + by array_elementwise.add                            an operator, by a function of this package

Braces list alternatives. A line that begins with ``|`` or ``->`` continues the one
above it, one with ``#`` is a comment. The heading ``module random`` means functions of that prefix, ``class
builtins.str`` those whose first argument is the object.
:mod:`.entries` explains results and clauses, :mod:`.unit_costs` the costs, ``tools.unit_costs`` the snippets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("tables")
_GROUP = re.compile(r"\{([^}]*)\}")
_COMMA = re.compile(r",\s*(?![^{]*\})")
_CLAUSE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^"|])+|(\|)|(")')
_NAMES = re.compile(r"(?:[^\s({,]+|\{[^}]*\}|, )+")


class TableError(ValueError):
    """A statement of a table that cannot be read; the message begins with its file and line."""


class Statement(NamedTuple):
    """A statement with its continuation lines; ``owners`` are the kinds of the heading above it."""

    file: str
    line: int
    owners: tuple[str, ...]
    text: str

    def error(self, message: str) -> TableError:
        """An error that names file and line."""
        return TableError(f"{self.file}:{self.line}: {message}")

    def names(self) -> tuple[list[str], str]:
        """The names that an entry is about, and the rest of it."""
        if self.text[0] == '"':
            name, _, rest = self.text[1:].partition('"')
            return [name], rest
        if self.text.startswith("operator "):
            names, by, rest = self.text.partition(" by ")
            return expanded(names), by + rest
        found = _NAMES.match(self.text)
        if found is None:
            raise self.error("no name")
        return expanded(found[0]), self.text[found.end() :]

    def states_result(self) -> bool:
        """Return whether an entry says what it returns; otherwise the annotations of typeshed do."""
        return " by " in self.text or "->" in self.text or "| serve " in self.text

    def clauses(self, text: str | None = None) -> list[str]:
        """The parts between the signs ``|`` that are in no text."""
        parts = [""]
        for found in _CLAUSE.finditer(self.text if text is None else text):
            if found[2]:
                raise self.error("a text has no end")
            if found[1]:
                parts.append("")
            else:
                parts[-1] = found[0].strip()
        return parts


def expanded(text: str) -> list[str]:
    """The names that a list with alternatives in braces means."""
    if "{" not in text:
        return [name.strip('"') for name in text.split(", ")] if "," in text or '"' in text else [text]
    before, _, rest = text.partition("{")
    inner, _, after = rest.partition("}")
    if "," not in before and "," not in after and "{" not in after:  # the usual case, read faster
        return [f"{before}{name}{after}" for name in inner.split(", ")]
    names = []
    for part in _COMMA.split(text):
        pieces = _GROUP.split(part)
        choices: Sequence[Sequence[str]] = [
            _COMMA.split(piece) if index % 2 else (piece,) for index, piece in enumerate(pieces)
        ]
        names += ["".join(chosen) for chosen in product(*choices)]
    return names


def parsed(file: str, text: str) -> Iterator[Statement]:
    """The statements of a table.

    Raises:
        TableError: a line is indented without a heading above it, or continues nothing.
    """
    owners: tuple[str, ...] = ()
    pending: Statement | None = None
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] == "#":
            continue
        if stripped.startswith(("| ", "-> ")):
            if pending is None:
                raise TableError(f"{file}:{number}: nothing to continue")
            pending = Statement(file, pending.line, pending.owners, f"{pending.text} {stripped}")
            continue
        if pending is not None:
            yield pending
            pending = None
        if line[0] != " ":
            owners = ()
            if stripped[-1] == ":":
                owners = tuple(expanded(stripped[:-1]))
                continue
        elif not owners:
            raise TableError(f"{file}:{number}: an indented line without a heading")
        pending = Statement(file, number, owners, stripped)
    if pending is not None:
        yield pending


@cache
def read_tables() -> dict[str, list[Statement]]:
    """The statements of all tables by what they are: ``let``, ``cost`` or ``entry``."""
    found: dict[str, list[Statement]] = {"let": [], "cost": [], "entry": []}
    for path in sorted(FOLDER.glob("*.txt")):
        for statement in parsed(path.name, path.read_text(encoding="utf-8")):
            first = statement.text.partition(" ")[0]
            found[first if first in ("let", "cost") else "entry"].append(statement)
    return found
