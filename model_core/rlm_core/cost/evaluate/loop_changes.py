"""Changes of the names that a loop binds: what one iteration adds to their sizes, numbers and bytes."""

from __future__ import annotations

from collections.abc import Mapping

from ..bounds.loop_transitions import adds_up, between, kept_size, resized
from ..bounds.solver import without_rest
from ..domain.context import Context
from ..domain.quantities import ZERO, Quantity
from ..domain.records import replace
from ..domain.syntax import BlockSyntax
from ..domain.values import Value, number_of

TEXTS = frozenset({"str", "bytes"})
_COPIED = frozenset({"tuple", "bytes", "frozenset"})
"""What `+=` and its like make a new object of, as large as both; text too, if not only a local name holds it."""
_SIZED = frozenset({
    "list", "tuple", "set", "frozenset", "dict", "str", "bytes", "deque", "bytearray", "object",
})  # fmt: skip
Change = tuple[Quantity | None, Quantity | None, Quantity]
"""The amounts that an iteration adds to the size, number and bytes of a name."""


def changes_of(
    context: Context,
    before: dict[str, Value],
    after: dict[str, Value],
    assigned: Mapping[str, None],
    block: BlockSyntax,
) -> dict[str, Change]:
    """Return what one iteration adds to sizes, numbers and bytes of the names that it changes."""
    changes: dict[str, Change] = {}
    for name in assigned:
        old, new = before.get(name), after.get(name)
        if name in context.frame.chained and old is not None and new is not None:
            changes[name] = (None, None, new.bytes - old.bytes)
            continue
        if old is None or new is None or old is new or (old.kind != new.kind and number_of(old) is None):
            continue
        is_remade = name in block.remade and adds_up(old, new)
        if name in block.updates and block.updates[name] is None and not is_remade:
            # Bound to something else in each iteration: what it becomes does not add up.
            continue
        if old.kind in _SIZED or (old.kind == "array" and is_remade):
            if old.size is not None and new.size is not None:
                size = new.size - old.size
                changes[name] = (size, None, new.bytes - old.bytes)
            elif old.kind == "object" and (new.bytes - old.bytes).terms:
                changes[name] = (None, None, new.bytes - old.bytes)
        elif new.number is not None and (number := number_of(old)) is not None:
            step = without_rest(new.number - number)
            if step.constant is not None:
                changes[name] = (None, step, ZERO)
    return changes


def halfway(names: Mapping[str, Value], changes: Mapping[str, Change], count: Quantity) -> dict[str, Value]:
    """The names that a loop changes as they are in the middle of it."""
    middle, half = dict(names), count.times(0.5)
    for name, (size, number, bytes_) in changes.items():
        value = names[name]
        middle[name] = replace(
            resized(value, kept_size(value, between(value.size, size, count))),
            number=between(number_of(value), number, count) if number is not None else value.number,
            bytes=value.bytes + bytes_ * half,
        )
    return middle


def is_bound_first(before: Value | None, after: Value | None) -> bool:
    """Return whether a name is None before a loop, and something with a size behind an iteration."""
    return before is not None and before.kind == "none" and after is not None and after.kind in _SIZED | {"array"}


def is_copied(place: str, value: Value) -> bool:
    """Return whether ``+=`` on what a name or an attribute holds copies it."""
    return value.kind in _COPIED or ("." in place and value.kind in TEXTS)
