"""How many bytes the values take that a trial run has left: what a function still holds when it returns."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from typing import Any

from ..object_sizes import instance, scalar, text
from .objects import Instance
from .values import CONTAINERS, MAPPINGS, SCALARS

_MOST_OBJECTS = 60_000


def held_bytes(values: Iterable[Any], bodies: Iterable[ast.AST]) -> float:
    """The bytes of values and of all that they hold; what is written in the text of ``bodies`` exists already.

    Bounded: beyond 60,000 objects the others are left out.
    """
    seen = {id(node.value) for body in bodies for node in ast.walk(body) if isinstance(node, ast.Constant)}
    total, count = 0.0, 0
    stack = list(values)
    while stack and count < _MOST_OBJECTS:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        count += 1
        kind = type(value)
        if kind is str:
            total += text(value)
        elif kind is int or kind is float:
            total += scalar(kind.__name__, value)
        elif kind in CONTAINERS:
            total += sys.getsizeof(value)
            if kind is not bytearray:
                stack += value
                if kind in MAPPINGS:
                    stack += value.values()
        elif kind is Instance:
            total += instance(len(value.values))
            stack += value.values.values()
        elif kind is bytes or (kind in SCALARS and kind not in (bool, range) and value is not None):
            total += sys.getsizeof(value)
    return total
