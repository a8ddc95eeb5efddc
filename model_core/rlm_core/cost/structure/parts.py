"""The parts of an outline: routines, loops, calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

MAX_DEPTH = 60
LoopKind = Literal["literal", "count", "each", "halving", "search", "sqrt", "worklist", "amortised", "while", "endless"]


@dataclass(slots=True)
class Loop:
    """A loop: what bounds it, how often it runs where that is a literal, and what it contains.

    ``bound`` is the bound's or container's text without white space; ``line`` is 0-based.
    """

    kind: LoopKind
    line: int
    start: int
    end: int
    bound: str = ""
    count: float | None = None
    variables: tuple[str, ...] = ()
    parent: Loop | None = None
    header: str = ""

    @property
    def depth(self) -> int:
        """The number of loops around this one in its function, itself included."""
        depth = 0
        loop: Loop | None = self
        while loop is not None and depth < MAX_DEPTH:
            depth, loop = depth + 1, loop.parent
        return depth


@dataclass(slots=True)
class CallSite:
    """A call: the last part of the called name, the loop and the function around it, and its arguments as written."""

    name: str
    line: int
    start: int
    loop: Loop | None
    function: Routine
    arguments: str
    receiver: str = ""


@dataclass(slots=True)
class Routine:
    """A function, method or named lambda; the text outside of all functions is one without a name."""

    name: str
    start: int
    end: int
    parameters: int = 0
    memoised: bool = False
    signature: str = ""
    line: int = 0
    loops: list[Loop] = field(default_factory=list)
    calls: list[CallSite] = field(default_factory=list)
    parent: Routine | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """All routines of a text, the top level first, in source order; ``source`` is what was outlined."""

    routines: tuple[Routine, ...]
    source: bytes
    language: str

    def loops(self) -> Iterator[Loop]:
        """All loops."""
        for routine in self.routines:
            yield from routine.loops

    def calls(self) -> Iterator[CallSite]:
        """All calls."""
        for routine in self.routines:
            yield from routine.calls
