"""Attributes that lead from one node of a structure to others, as far as their names show it, and how long ways are."""

from __future__ import annotations

from ..domain.quantities import Quantity, constant, of_size

_ONWARDS = ("next", "prev")
_BELOW = ("child", "left", "right")


def is_link(attribute: str) -> bool:
    """Return whether an attribute leads from a node to others: ``left``, ``next_node``, ``children``."""
    return is_way_down(attribute) or any(word in attribute.lower() for word in _ONWARDS)


def is_way_down(attribute: str) -> bool:
    """Return whether an attribute leads from a node of a tree to one or all of those below it."""
    return any(word in attribute.lower() for word in _BELOW)


def way_down(name: str) -> Quantity:
    """The steps down a tree of a named size: about the logarithm of its nodes, in the worst case all of them."""
    size = of_size(name)
    return size.log() * constant(0.0, 1.0, 1.0) + size * constant(0.0, 1.0, 0.0)
