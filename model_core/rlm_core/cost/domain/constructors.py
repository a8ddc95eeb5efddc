"""The values that ``__init__`` of a class stores in the attributes of an object, read once for all units of a file.

A reading depends on the text of the constructor, on the answers of its scope, and on how much an analysis may still
read. It is used again only where another reading would find the same, and leaves an analysis as that would.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from ..scope import Definition, Question, Trace
from .quantities import Quantity
from .records import record
from .values import STARRED, Entries, Value


@record
class ConstructorReading:
    """The result of reading a constructor, and what it took.

    attributes: the attributes of the class, and by name those of other classes whose constructors it led to.
    line: the line after which sizes in them are named; None where there are none.
    names_lines, names_loops: see :class:`Footprint`.
    nodes, needed: the syntax nodes it counted, and the budget with which it finds the same.
    depth: levels of nested statements.
    """

    attributes: Mapping[str, Value]
    others: Mapping[str, Mapping[str, Value]]
    line: int | None
    names_lines: bool
    names_loops: bool
    nodes: int
    needed: int
    depth: int
    largest_block: Quantity
    dependencies: tuple[Definition, ...]
    answers: Mapping[Question, str]


@dataclass(slots=True)
class Footprint:
    """The dependencies of a part of an analysis besides its text, its names and their scope.

    classes: the classes whose attributes it asked for.
    depth: the most levels of nested statements.
    spare: how much smaller the budget of the current function could be with the same result; negative where none is, or
        where a larger one could change it too.
    names_lines, names_loops: whether a size is named after the line of the current statement, or of a loop.
    """

    classes: set[str] = field(default_factory=set)
    depth: int = 0
    spare: int = sys.maxsize
    names_lines: bool = False
    names_loops: bool = False

    def include(self, other: Footprint) -> None:
        """Add what another part of the same function depends on."""
        self.classes |= other.classes
        self.depth, self.spare = max(self.depth, other.depth), min(self.spare, other.spare)
        self.names_lines |= other.names_lines
        self.names_loops |= other.names_loops


@dataclass(slots=True)
class FileReadings:
    """The readings that the analyses of the units of a file share."""

    trace: Trace
    constructors: dict[Hashable, ConstructorReading] = field(default_factory=dict)


def sizes_in(values: Iterable[Value]) -> set[str] | None:
    """Return the names of the sizes in values; None where one holds what its analysis made: a function, object or cost.

    Such values mean something only in that analysis.
    """
    names: set[str] = set()
    seen: set[int] = set()
    return names if all(_add_sizes(value, names, seen) for value in values) else None


def _add_sizes(value: Value, names: set[str], seen: set[int]) -> bool:
    """``seen`` are the values so far, by identity: the parts of a tuple may be one object many times over."""
    if id(value) in seen:
        return True
    seen.add(id(value))
    payload = value.payload
    parts: list[object] = [value.number, value.size, value.bytes, value.step, value.item, value.entry]
    parts += value.shape or ()
    if isinstance(payload, Entries):
        parts += [part for _, part in payload.pairs]
    elif isinstance(payload, tuple):
        parts += payload
    elif not (payload is None or isinstance(payload, str) or payload is STARRED):
        return False
    for part in parts:
        if isinstance(part, Quantity):
            names |= part.names
        elif isinstance(part, Value):
            if not _add_sizes(part, names, seen):
                return False
        elif not (part is None or isinstance(part, (str, int, float, bytes))):
            return False
    return True
