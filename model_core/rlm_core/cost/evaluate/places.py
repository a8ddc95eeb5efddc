"""Attributes that a loop changes, such as ``self.items``: while the loop is read, they are kept like names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from ..domain.context import Context
from ..domain.dispatch import peek
from ..domain.quantities import ZERO
from ..domain.records import replace
from ..domain.syntax import LoopNode, place_of
from ..domain.values import SIZED, Value

_KEPT = SIZED | {"bytearray", "int", "float", "unknown"}


@contextmanager
def attributes_as_names(context: Context, node: LoopNode) -> Iterator[None]:
    """Keep the attributes that a loop changes, such as ``self.items``, like names while it is read.

    Those of objects that the loop binds are other attributes in each iteration.
    """
    frame, block = context.frame, context.block(node)
    places: dict[str, Value] = {}
    for place in block.assigned:
        base, _, attribute = place.partition(".")
        if attribute and place not in frame.names and base not in block.stores:
            owner = frame.lookup(base)
            value = peek(context, ast.Attribute(ast.Name(base, ast.Load()), attribute, ast.Load()))
            if owner is not None and owner.kind in ("unknown", "object") and value.kind in _KEPT:
                places[place] = owner
                frame.names[place] = replace(value, bytes=ZERO)
    yield
    for place, owner in places.items():
        value, attribute = frame.names.pop(place), place.partition(".")[2]
        if isinstance(owner.payload, dict) and attribute in owner.payload:
            owner.payload[attribute] = value


def kept_place(context: Context, node: ast.expr) -> str:
    """The name that a value is kept under: a name, or an attribute that a loop changes; ``""`` for others."""
    place = place_of(node)
    return place if isinstance(node, ast.Name) or place in context.frame.names else ""
