"""Plain Python arithmetic, comparisons and builtins on known values, with limits on size and time.

Every function raises TypeError or ValueError for an unknown operation or one over the limits; the interpreter then
continues with ``UNKNOWN``.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

from ..concrete.frame import MAX_BITS
from ..concrete.values import UNKNOWN, LibraryName, SourceFunction, UnknownValue, Value
from ..domain.folding import MISSING, compared, operation
from .values import Instance, ModuleContainer, SourceClass, Tensor, TorchLayer

_MAX_LENGTH = 20_000
_NUMBERS = (int, float, complex)
_PLAIN = (*_NUMBERS, str, list, tuple)


def binary(kind: type[ast.operator], left: Value, right: Value) -> Value:
    """Return ``left OP right`` of two plain values."""
    if not (isinstance(left, _PLAIN) and isinstance(right, _PLAIN)):
        raise TypeError("not plain values")
    value = operation(kind, left, right, bits=MAX_BITS, items=_MAX_LENGTH)
    if value is MISSING or (isinstance(value, int) and value.bit_length() > MAX_BITS):
        raise ValueError("too large, or not defined")
    return value


def compare(kind: type[ast.cmpop], left: Value, right: Value) -> Value:
    """``left OP right`` as a truth value, UNKNOWN where it depends on what runs."""
    if kind in (ast.Is, ast.IsNot):
        if isinstance(left, UnknownValue) or isinstance(right, UnknownValue):
            return UNKNOWN
        same = left is right or (isinstance(left, LibraryName) and left == right)
        return same if kind is ast.Is else not same
    if not (_flat(left) and _flat(right)):
        return UNKNOWN
    if kind in (ast.In, ast.NotIn):
        if not isinstance(right, (str, list, tuple, dict, range)):
            return UNKNOWN
        return (left in right) is (kind is ast.In)
    value = compared(kind, left, right)
    return UNKNOWN if value is MISSING else value


def _flat(value: Value, depth: int = 2) -> bool:
    if isinstance(value, (Tensor, UnknownValue)):
        return False
    if isinstance(value, (list, tuple)):
        return depth > 0 and len(value) <= 1000 and all(_flat(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return depth > 0 and all(_flat(item, 0) for item in itertools.chain(value, value.values()))
    return True


def truth(value: Value) -> bool | None:
    """Return whether a value counts as true; None where it depends on what runs."""
    if isinstance(value, UnknownValue):
        return None
    if isinstance(value, Tensor):
        return None if value.value is None else bool(value.value)
    if isinstance(value, ModuleContainer):
        return bool(value.items)
    return bool(value)


def _small(value: Any, limit: int) -> int:
    number = int(value)
    if number > limit:
        raise ValueError("too large")
    return number


def items_of(value: Value) -> list[Value]:
    """The items of a loop over the value; raises TypeError or ValueError."""
    if isinstance(value, ModuleContainer):
        value = list(value.items) if value.name == "ModuleDict" else list(value.items.values())
    if not isinstance(value, (str, list, tuple, dict, range, set, zip, enumerate, map, Iterator)):
        raise TypeError("no items")
    items = list(itertools.islice(value, _MAX_LENGTH + 1))
    _small(len(items), _MAX_LENGTH)
    return items


def _sure(value: Value) -> bool:
    known = truth(value)
    if known is None:
        raise TypeError("not known")
    return known


def _known(value: Value) -> Value:
    if not isinstance(value, _NUMBERS) and not isinstance(value, str):
        raise TypeError("not a plain value")
    return value


def _fold(kind: type[ast.operator], values: Value, total: Value) -> Value:
    for value in items_of(values):
        total = binary(kind, total, value)
    return total


def _number(call: Callable[..., Any]) -> Callable[..., Value]:
    """A function of plain values."""
    return lambda *values: call(*(_known(value) for value in values))


def _extreme(choose: Callable[..., Any]) -> Callable[..., Value]:
    return lambda *values, **_: choose(
        [_known(value) for value in (items_of(values[0]) if len(values) == 1 else values)]
    )


def _length(value: Value) -> int:
    if isinstance(value, Tensor):
        return value.shape[0]
    return len(value.items) if isinstance(value, ModuleContainer) else len(value)


def _integer(value: Value = 0) -> int:
    value = value.value if isinstance(value, Tensor) else value
    return int(_small(value, 2**MAX_BITS) if isinstance(value, float) else _known(value))


def _dictionary(*values: Value, **named: Value) -> dict[Value, Value]:
    pairs = [] if not values else values[0].items() if isinstance(values[0], dict) else items_of(values[0])
    return {**{key: value for key, value in pairs}, **named}  # noqa: C416 - pairs may be lists


BUILTINS: dict[str, Callable[..., Value]] = {
    "abs": _number(abs),
    "all": lambda values: all(_sure(value) for value in items_of(values)),
    "any": lambda values: any(_sure(value) for value in items_of(values)),
    "bool": lambda value=False: _sure(value),
    "callable": lambda value: isinstance(value, (SourceFunction, SourceClass, LibraryName, TorchLayer, Instance)),
    "dict": _dictionary,
    "divmod": lambda left, right: (binary(ast.FloorDiv, left, right), binary(ast.Mod, left, right)),
    "enumerate": lambda values, start=0: list(enumerate(items_of(values), start)),
    "float": _number(float),
    "int": _integer,
    "len": _length,
    "list": lambda values=(): list(items_of(values)),
    "max": _extreme(max),
    "min": _extreme(min),
    "pow": lambda left, right: binary(ast.Pow, left, right),
    "print": lambda *_, **__: None,
    "range": lambda *bounds: range(*(_small(bound, 2**40) for bound in bounds)),
    "reversed": lambda values: items_of(values)[::-1],
    "round": lambda value, digits=0: round(_known(value), max(-20, _small(digits or 0, 20)) or None),
    "set": lambda values=(): list(dict.fromkeys(items_of(values))),
    "sorted": lambda values, **_: sorted(_known(value) for value in items_of(values)),
    "str": _number(str),
    "sum": lambda values, start=0: _fold(ast.Add, values, start),
    "tuple": lambda values=(): tuple(items_of(values)),
    "zip": lambda *values: list(zip(*(items_of(value) for value in values), strict=False)),
}
_MATH = [
    "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "degrees", "erf", "exp", "fabs", "floor", "fmod", "gcd",
    "hypot", "isclose", "isinf", "isnan", "isqrt", "log", "log10", "log1p", "log2", "pow", "radians", "sin", "sinh",
    "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
MATH: dict[str, Callable[..., Value]] = {
    **{name: _number(getattr(math, name)) for name in _MATH},
    "prod": lambda values: _fold(ast.Mult, values, 1),
    "int": _integer,
    "round": lambda value: round(_known(value)),
    "abs": _number(abs),
    "cdiv": lambda left, right: binary(ast.FloorDiv, left + right - 1, right),
}
