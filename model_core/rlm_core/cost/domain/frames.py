"""The functions and loops that are being read: their names, and what is known of their iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..scope import Scope
from .folding import MISSING
from .meter import ALWAYS
from .names import lookup
from .quantities import ONE, ZERO, Quantity, Range
from .syntax import Function, LoopNode
from .values import Value


@dataclass(slots=True)
class Loop:
    """A loop that is being read.

    ``exits`` says whether a statement was reached that may end it early. ``trips`` is how often what is read once runs,
    and ``items`` how many items a search puts into its containers at most. ``continued``
    gets the state of the names at each ``continue``, with the share of iterations that get there, if it is asked for.
    ``counts_exit``: the number of iterations is that until its only exit.
    """

    trips: Quantity = ONE
    exits: bool = False
    counts_exit: bool = False
    continued: list[tuple[float, dict[str, Value]]] | None = None
    items: Quantity | None = None
    node: LoopNode | None = None


@dataclass(frozen=True, slots=True)
class Recursive:
    """A recursive call inside a function that is being read.

    The arguments, the share of runs that gets there, and how often the loops around it repeat it. ``direct``: it is in
    the function's own text, not in that of a function that it calls. ``given`` maps parameters to the names of their
    sizes. ``tries``: the function searches, so that a loop repeats the call on the whole, changed, and not on parts.
    """

    arguments: Mapping[str, Value]
    share: tuple[float, float, float]
    times: Quantity = ONE
    direct: bool = True
    given: Mapping[str, str] = field(default_factory=dict)
    tries: bool = False


_CHANGING = (
    "names", "line", "held", "filled", "chained", "around", "put", "results", "yields", "yields_endlessly", "recursive",
    "handlers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a frame: its fields, the attributes of the objects that its names hold, and its open loops."""

    state: Mapping[str, Any]
    objects: Sequence[tuple[dict[str, Any], dict[str, Any]]]
    loops: int


@dataclass(slots=True)
class Frame:
    """A function that is being read."""

    scope: Scope
    qualname: str = ""
    node: Function | None = None
    names: dict[str, Value] = field(default_factory=dict)
    parent: Frame | None = None
    owner: Value | None = None
    line: int = 0
    depth: int = 0
    held: Quantity = ZERO
    # Bytes added to containers inside the containers that names hold.
    filled: dict[str, Quantity] = field(default_factory=dict)
    # Names bound to objects that keep the previous value of the name.
    chained: set[str] = field(default_factory=set)
    # Containers of the functions around, without their bytes, and what a call puts into them: items and bytes.
    around: dict[str, Value] = field(default_factory=dict)
    put: dict[str, tuple[Quantity, Quantity]] = field(default_factory=dict)
    results: list[tuple[float, Value]] = field(default_factory=list)
    yields: Quantity = ZERO
    yields_endlessly: bool = False
    loops: list[Loop] = field(default_factory=list)
    recursive: list[Recursive] = field(default_factory=list)
    recurses: bool = False
    cached: bool = False
    # Of a recursive function: the share of calls that end at once, how many checks end them, the names of the sizes of
    # its parameters, and their values.
    base_share: float = 0.5
    checks: int = 1
    given: Mapping[str, str] = field(default_factory=dict)
    begun: Mapping[str, Value] = field(default_factory=dict)
    handlers: int = 0
    # The share of the runs of the caller that call this function.
    entered: Range = ALWAYS
    # Whether the function's text is in that of the analysed unit.
    is_own: bool = True

    def lookup(self, name: str) -> Value | None:
        """The value of a name bound here or in an enclosing function."""
        value = lookup(self, name)
        return None if value is MISSING else value

    def bind(self, name: str, value: Value) -> None:
        """Bind a name and keep count of the memory that names hold."""
        old = self.names.get(name)
        if old is not None and old.bytes.terms:
            self.held = self.held - old.bytes
        if value.bytes.terms:
            self.held = self.held + value.bytes
        self.names[name] = value

    def restore(self, names: dict[str, Value], held: Quantity) -> None:
        """Go back to an earlier state of the names."""
        self.names, self.held = names, held

    def checkpoint(self) -> Checkpoint:
        """The state of the frame, for :meth:`take_back`."""
        objects = [
            (value.payload, dict(value.payload))
            for value in self.names.values()
            if value.kind == "object" and isinstance(value.payload, dict)
        ]
        state = {name: _copied(getattr(self, name)) for name in _CHANGING}
        return Checkpoint(state, objects, len(self.loops))

    def take_back(self, checkpoint: Checkpoint) -> None:
        """Go back to the state of a checkpoint."""
        for name, value in checkpoint.state.items():
            setattr(self, name, value)
        for attributes, before in checkpoint.objects:
            attributes.clear()
            attributes.update(before)
        del self.loops[checkpoint.loops :]

    def note_put(self, share: float) -> None:
        """Add what has been put into containers around at a place where so many runs leave the function."""
        for name, before in self.around.items():
            after = self.names.get(name, before)
            if after is not before and after.size is not None and before.size is not None:
                items, bytes_ = self.put.get(name, (ZERO, ZERO))
                self.put[name] = items + (after.size - before.size).times(share), bytes_ + after.bytes.times(share)


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, (dict, list, set)) else value
