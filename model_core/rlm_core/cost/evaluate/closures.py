"""Containers that nested functions fill.

A nested function is read with the containers around it, without their bytes; what all its calls put into them is added
afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..bounds.recursion_syntax import filled_around
from ..domain.folding import MISSING
from ..domain.frames import Frame
from ..domain.quantities import ZERO, Quantity
from ..domain.records import replace

_FILLED = frozenset({"list", "set", "dict", "deque"})


def bind_around(frame: Frame) -> None:
    """Bind in a nested function's frame the containers around that it fills, without their bytes."""
    if frame.parent is None or frame.node is None:
        return
    for name in filled_around(frame.node):
        value = frame.parent.lookup(name) if name not in frame.names else None
        if value is not None and value.kind in _FILLED and value.size is not None:
            frame.around[name] = frame.names[name] = replace(value, constant=MISSING, payload=None, bytes=ZERO)


def grow_around(frame: Frame, calls: Quantity, start: Mapping[str, Quantity]) -> None:
    """Add what all calls of a nested function put into the containers of the functions around it."""
    for name, (items, bytes_) in frame.put.items():
        home = frame.parent
        while home is not None and name not in home.names:
            home = home.parent
        outer = home.names[name] if home is not None else None
        if home is None or outer is None or outer.size is None:
            continue
        home.bind(
            name,
            replace(
                outer,
                constant=MISSING,
                payload=None,
                size=outer.size + (items * calls).substituted(start),
                bytes=outer.bytes + (bytes_ * calls).substituted(start),
                item=outer.item if outer.item is not None and outer.item.kind != "unknown" else frame.names[name].item,
            ),
        )
