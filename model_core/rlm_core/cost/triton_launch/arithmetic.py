"""Arithmetic on the values of a program: known indices are computed, operations on data are counted."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..concrete.values import Value
from ..domain.folding import MISSING, compared, operation
from ..domain.records import replace
from .tally import Tally
from .values import (
    Array,
    BlockPointer,
    Data,
    DType,
    NotUnderstood,
    Pointer,
    Shape,
    broadcast,
    dtype_of,
    is_floating,
    promoted,
    shape_of,
)

_NUMBERS = (int, float, np.ndarray, np.integer, np.floating, np.bool_)
_ARRAYS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.FloorDiv: np.floor_divide, ast.Mod: np.mod,
    ast.BitAnd: np.bitwise_and, ast.BitOr: np.bitwise_or, ast.BitXor: np.bitwise_xor, ast.LShift: np.left_shift,
    ast.RShift: np.right_shift,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_MOST_BITS = 63


def plain(value: Value) -> Value:
    """A scalar of numpy as Python's own number."""
    return (
        value.item()
        if isinstance(value, (np.generic,)) or (isinstance(value, np.ndarray) and not value.shape)
        else value
    )


def binary(tally: Tally, kind: type[ast.operator], left: Value, right: Value) -> Value:
    """``left OP right``; operations on data are counted as arithmetic.

    Raises:
        NotUnderstood: it is not defined for them.
    """
    if isinstance(left, Pointer) or isinstance(right, Pointer):
        return _moved(tally, kind, left, right)
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        return _known(tally, kind, left, right)
    if isinstance(left, (*_NUMBERS, Data)) and isinstance(right, (*_NUMBERS, Data)):
        return _of_data(tally, kind, left, right)
    value = operation(kind, left, right, bits=_MOST_BITS, items=1000)
    if value is MISSING:
        raise NotUnderstood(f"{kind.__name__} of {type(left).__name__} and {type(right).__name__}")
    return value


def _known(tally: Tally, kind: type[ast.operator], left: Value, right: Value) -> Value:
    if not isinstance(left, np.ndarray) and not isinstance(right, np.ndarray):
        value = operation(kind, plain(left), plain(right), bits=_MOST_BITS, items=1000)
        if value is MISSING:
            raise NotUnderstood(kind.__name__)
        return value
    shape = broadcast(shape_of(left), shape_of(right))
    tally.step(int(np.prod(shape)))
    rule = _ARRAYS.get(kind)
    if rule is None or dtype_of(left) == "fp32" or dtype_of(right) == "fp32":
        return counted(tally, shape, "fp32")
    with np.errstate(all="ignore"):
        return rule(left, right)


def _of_data(tally: Tally, kind: type[ast.operator], left: Value, right: Value) -> Data:
    shape = broadcast(shape_of(left), shape_of(right))
    dtype = promoted(left, right)
    if kind is ast.Div and not is_floating(dtype):
        dtype = "fp32"
    if kind is ast.BitAnd and dtype == "bool":
        return Data(shape, dtype, most=_both(most_of(left), most_of(right)))
    result = counted(tally, shape, dtype)
    relative = None if is_floating(dtype) else _relative(kind, left, right)
    return replace(result, relative=np.broadcast_to(relative, shape)) if relative is not None else result


def _relative(kind: type[ast.operator], left: Value, right: Value) -> Array | None:
    """The known part of an index that holds one unknown number."""
    if isinstance(left, Data) and isinstance(right, Data):
        one, other = relative_of(left), relative_of(right)
        if one is None or other is None or kind not in (ast.Add, ast.Sub):
            return None
        return np.asarray(one + other if kind is ast.Add else one - other)
    data, known = (left, right) if isinstance(left, Data) else (right, left)
    part = relative_of(data)
    if part is None or isinstance(known, float):
        return None
    if kind is ast.Add or (kind is ast.Sub and data is left):
        return np.asarray(part + known if kind is ast.Add else part - known)
    # An unknown number that is multiplied by different ones is not one number.
    if kind is ast.Mult and not shape_of(known):
        return np.asarray(part * known)
    return None


def relative_of(value: Data) -> Array | None:
    """The known distances of data from one unknown number; a scalar has none."""
    return np.zeros((), np.int64) if not value.shape or value.elements == 1 else value.relative


def most_of(mask: Value) -> Value:
    """A known mask that holds wherever a mask does; True where nothing is known."""
    if isinstance(mask, Data):
        return True if mask.most is None else mask.most
    return mask


def _both(left: Value, right: Value) -> Array | None:
    known = [np.asarray(part) for part in (left, right) if part is not True]
    return known[0] if len(known) == 1 else known[0] & known[1] if known else None


def _moved(tally: Tally, kind: type[ast.operator], left: Value, right: Value) -> Value:
    pointer, other = (left, right) if isinstance(left, Pointer) else (right, left)
    if kind is ast.Sub and isinstance(left, Pointer) and isinstance(right, Pointer):
        return Data(broadcast(left.shape, right.shape), "int64")
    if kind not in (ast.Add, ast.Sub) or isinstance(other, Pointer) or not isinstance(other, (*_NUMBERS, Data)):
        raise NotUnderstood("arithmetic of pointers")
    if isinstance(other, Data):
        shape = broadcast(pointer.shape, other.shape)
        relative = relative_of(other)
        if relative is None or isinstance(pointer.offset, Data):
            return replace(pointer, offset=Data(shape, "int64"))
        pointer, other = replace(pointer, unknown=pointer.unknown + 1), relative
    offset = binary(tally, kind, pointer.offset, other)
    return replace(pointer, offset=offset)


def counted(
    tally: Tally, shape: Shape, dtype: str, unit: str = "scalar", times: float = 1.0, flops: float | None = None
) -> Data:
    """The result of an operation on data; floating-point work is counted, ``times`` or ``flops`` for each element."""
    result = Data(shape, dtype)
    if is_floating(dtype):
        tally.add(unit, times * result.elements, flops=None if flops is None else flops * result.elements)
    tally.step()
    return result


def compare(tally: Tally, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
    """``left OP right``: a truth value, a known mask, or data.

    Raises:
        NotUnderstood: it is not defined for them.
    """
    if kind in (ast.Is, ast.IsNot):
        same = left is right or (isinstance(left, DType) and left == right)
        return same is (kind is ast.Is)
    if isinstance(left, (Data, Pointer)) or isinstance(right, (Data, Pointer)):
        if isinstance(left, (*_NUMBERS, Data, Pointer)) and isinstance(right, (*_NUMBERS, Data, Pointer)):
            return Data(broadcast(shape_of(left), shape_of(right)), "bool")
        return kind is ast.NotEq  # of data and a name or None
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        rule = _COMPARE.get(kind)
        if rule is None:
            raise NotUnderstood(kind.__name__)
        tally.step(int(np.prod(broadcast(shape_of(left), shape_of(right)))))
        return np.asarray(rule(left, right))
    if isinstance(left, DType) or isinstance(right, DType):
        return (left == right) is (kind is ast.Eq) if kind in (ast.Eq, ast.NotEq) else kind is ast.NotIn
    value = compared(kind, plain(left), plain(right))
    if value is MISSING:
        raise NotUnderstood(kind.__name__)
    return value


def truth(value: Value) -> bool | None:
    """Return whether a value counts as true; None where data decide."""
    if isinstance(value, (Data, Pointer)):
        return None if isinstance(value, Data) else True
    if isinstance(value, np.ndarray):
        return bool(value.all()) if value.size == 1 else None
    return True if isinstance(value, (DType, BlockPointer)) else bool(value)
