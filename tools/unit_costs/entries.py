"""Entries of the table of unit costs: the snippets of the statements ``cost`` in the tables of the library.

Clauses of such a statement: ``run "snippet"``, or ``make "expression"`` whose value at a size ``n`` is the snippet;
``after``, what runs once before, outside the clock; ``minus`` a baseline; ``at`` the sizes; ``unroll``, how often a
short snippet is repeated within one turn of the measuring loop; ``per``, what the seconds are divided by. Texts are
joined, by name where a statement ``let`` gives them one, or repeated as in ``"x" * 9``; they see ``n``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from rlm_core.cost.library.statements import Statement, read_tables
from rlm_core.cost.library.unit_costs import stated

SIZES = (10, 1_000, 100_000)
_STEPS = (100,)
_PIECE = re.compile(r'("(?:[^"\\]|\\.)*"|[A-Za-z_]\w*)(?: \* (\d+))?')
_NUMBERS = re.compile(r"^cost (\S+) = \S+(?: \+ \S+ \* ([^|\n]+?))?(?= \||$)", re.MULTILINE)
_CLAUSES = frozenset({"run", "make", "after", "minus", "at", "unroll", "per"})


@dataclass(frozen=True, slots=True)
class Entry:
    """Measures what ``name`` costs: seconds of ``snippet`` minus those of ``baseline``, divided by ``per``.

    A snippet that ``is_made`` is an expression of ``n``. Law ``1`` is a fixed cost, measured at one size; other laws
    are those of :func:`rlm_core.cost.library.unit_costs.growth`.
    """

    name: str
    snippet: str
    setup: str = ""
    law: str = "n"
    sizes: tuple[int, ...] = SIZES
    baseline: str = "pass"
    unroll: int = 1
    per: float = 1.0
    is_made: bool = False

    def texts(self, n: int) -> tuple[str, str]:
        """Snippet and baseline at a size."""
        made = eval(self.snippet, {"n": n}) if self.is_made else self.snippet  # noqa: S307 - our own tables
        return str(made), self.baseline


def step(name: str, snippet: str, setup: str = "", *, unroll: int = 10) -> Entry:
    """An entry of fixed cost."""
    return Entry(name, snippet, setup, "1", _STEPS, unroll=unroll)


def all_entries() -> tuple[Entry, ...]:
    """The entries of all tables, by name.

    Raises:
        TableError: a statement cannot be read.
    """
    texts: dict[str, str] = {}
    waiting = {_let_name(statement): statement for statement in read_tables()["let"]}
    for name in waiting:
        _define(name, waiting, texts)
    return tuple(sorted((entry(statement, texts) for statement in read_tables()["cost"]), key=lambda found: found.name))


def _let_name(statement: Statement) -> str:
    return statement.text.removeprefix("let ").partition(" = ")[0]


def _define(name: str, waiting: Mapping[str, Statement], texts: dict[str, str]) -> None:
    """Read a text after those that it names."""
    if name in texts or name not in waiting:
        return
    statement = waiting[name]
    pieces = statement.text.partition(" = ")[2]
    for piece, _ in _PIECE.findall(pieces):
        if piece[0] != '"' and piece != name:
            _define(piece, waiting, texts)
    texts[name] = _joined(pieces, texts, statement)


def _joined(pieces: str, texts: Mapping[str, str], statement: Statement) -> str:
    if _PIECE.sub("", pieces).strip():
        raise statement.error(f"not texts: {pieces}")
    joined = ""
    for found in _PIECE.finditer(pieces):
        piece, times = found.groups()
        if piece[0] != '"' and piece not in texts:
            raise statement.error(f"no text has the name {piece}")
        joined += (ast.literal_eval(piece) if piece[0] == '"' else texts[piece]) * int(times or 1)
    return joined


def entry(statement: Statement, texts: Mapping[str, str]) -> Entry:
    """The entry that a statement describes; ``texts`` are those with a name.

    Raises:
        TableError: a clause is unknown, or there is no snippet.
    """
    name, _, _, law = stated(statement)
    clauses = dict(clause.split(" ", 1) for clause in statement.clauses()[1:])
    unknown = clauses.keys() - _CLAUSES
    if unknown or clauses.keys().isdisjoint(("run", "make")):
        raise statement.error(f"unknown clauses {sorted(unknown)}" if unknown else "a cost without a snippet")
    is_fixed = law == "1"
    try:
        return Entry(
            name,
            _joined(clauses.get("run") or clauses["make"], texts, statement),
            _joined(clauses.get("after", ""), texts, statement),
            law,
            tuple(map(int, clauses["at"].split())) if "at" in clauses else _STEPS if is_fixed else SIZES,
            _joined(clauses["minus"], texts, statement) if "minus" in clauses else "pass",
            int(clauses.get("unroll", 10 if is_fixed else 1)),
            float(clauses.get("per", 1)),
            "make" in clauses,
        )
    except ValueError as error:
        raise statement.error(str(error)) from error


def written(text: str, costs: Mapping[str, Mapping[str, float | str]]) -> str:
    """The text of a table with other measured costs."""

    def numbers(found: re.Match[str]) -> str:
        cost = costs.get(found[1])
        if cost is None:
            return found[0]
        growing = f" + {cost['each']!r} * {found[2]}" if found[2] else ""
        return f"cost {found[1]} = {cost['fixed']!r}{growing}"

    return _NUMBERS.sub(numbers, text)
