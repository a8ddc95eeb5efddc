"""The values that a model computes from shapes: ``Shape``, ``Gather``, ``Concat`` ... -> constants.

Exporters write the target of a reshape so where a size was open. With these values known, the shapes of all that
depends on them are. Only tensors of a few numbers are followed, and only those that come from a shape: the rest of a
graph stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .graph import MAX_VALUES, Attribute, Constant, Shape

_Array = npt.NDArray[Any]
_Attributes = Mapping[str, Attribute]
_TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float32, 11: np.float64}
_MOST = 2**53  # beyond it numbers are not sizes


def value_of(operator: str, operands: Sequence[Constant | None], attributes: _Attributes) -> Constant | None:
    """The result of an operator on constants with values; None where it is not one of shapes, or too long."""
    evaluate = _EVALUATED.get(operator)
    arrays = [_array(operand) if operand is not None else None for operand in operands]
    if evaluate is None or any(
        array is None and operand is not None for array, operand in zip(arrays, operands, strict=True)
    ):
        return None
    try:
        with np.errstate(all="ignore"):
            return _constant(np.asarray(evaluate(arrays, attributes)))
    except (ValueError, IndexError, TypeError, ArithmeticError, LookupError):
        return None


def shape_value(shape: Shape, attributes: _Attributes) -> Constant | None:
    """The result of ``Shape`` of a tensor; None where a size is open."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    start, end = attributes.get("start", 0), attributes.get("end")
    part = shape[start if isinstance(start, int) else 0 : end if isinstance(end, int) else None]
    return _constant(np.array(part, np.int64))


def _array(constant: Constant) -> _Array | None:
    if constant.values is None or constant.elements > MAX_VALUES:
        return None
    try:
        return np.array(constant.values, constant.dtype).reshape(constant.shape)
    except (TypeError, ValueError, OverflowError):
        return None


def _constant(array: _Array) -> Constant | None:
    if (
        array.size > MAX_VALUES
        or not np.isfinite(array.astype(float)).all()
        or (np.abs(array.astype(float)) > _MOST).any()
    ):
        return None
    return Constant(tuple(array.shape), str(array.dtype), tuple(array.ravel().tolist()))


def _axes(arrays: Sequence[Any], attributes: _Attributes) -> tuple[int, ...] | None:
    """The axes of an operator: its second operand, or before opset 13 an attribute."""
    if len(arrays) > 1 and arrays[1] is not None:
        return tuple(int(axis) for axis in arrays[1].ravel())
    axes = attributes.get("axes")
    return tuple(int(axis) for axis in axes) if isinstance(axes, tuple) else None


def _number(attributes: _Attributes, name: str, usual: int) -> int:
    value = attributes.get(name, usual)
    return value if isinstance(value, int) else usual


def _unsqueeze(arrays: Sequence[Any], attributes: _Attributes) -> Any:
    return np.expand_dims(arrays[0], _axes(arrays, attributes) or (0,))


def _squeeze(arrays: Sequence[Any], attributes: _Attributes) -> Any:
    return np.squeeze(arrays[0], _axes(arrays, attributes))


def _slice(arrays: Sequence[Any], attributes: _Attributes) -> Any:
    if len(arrays) < 3:
        starts, ends = attributes["starts"], attributes["ends"]
        return arrays[0][starts[0] : ends[0]]  # type: ignore[index]
    step = int(arrays[4].ravel()[0]) if len(arrays) > 4 and arrays[4] is not None else 1
    return arrays[0][int(arrays[1].ravel()[0]) : int(arrays[2].ravel()[0]) : step]


def _divided(arrays: Sequence[Any], _: _Attributes) -> Any:
    first, second = arrays
    if np.issubdtype(first.dtype, np.integer):
        return np.trunc(first / second).astype(first.dtype)
    return first / second


def _reduced(function: Callable[..., Any]) -> Callable[[Sequence[Any], _Attributes], Any]:
    def evaluate(arrays: Sequence[Any], attributes: _Attributes) -> Any:
        keepdims = bool(_number(attributes, "keepdims", 1))
        _check(function(arrays[0].astype(float), keepdims=keepdims))
        return function(arrays[0], keepdims=keepdims)

    return evaluate


def _check(result: Any) -> None:
    """Refuse a result that integers of 64 bits may not hold: numpy would give another one."""
    if (np.abs(result) > _MOST).any():
        raise OverflowError


def _arithmetic(function: Callable[..., Any]) -> Callable[[Sequence[Any], _Attributes], Any]:
    def evaluate(arrays: Sequence[Any], _: _Attributes) -> Any:
        _check(function(*(array.astype(float) for array in arrays)))
        return function(*arrays)

    return evaluate


def _of_arrays(function: Callable[..., Any]) -> Callable[[Sequence[Any], _Attributes], Any]:
    return lambda arrays, _: function(*arrays)


_EVALUATED: Mapping[str, Callable[[Sequence[Any], _Attributes], Any]] = {
    "Abs": _of_arrays(np.abs),
    "Add": _arithmetic(np.add),
    "Cast": lambda arrays, attributes: arrays[0].astype(_TYPES[_number(attributes, "to", 0)]),
    "Ceil": _of_arrays(np.ceil),
    "Concat": lambda arrays, attributes: np.concatenate(arrays, _number(attributes, "axis", 0)),
    "Div": _divided,
    "Equal": _of_arrays(np.equal),
    "Floor": _of_arrays(np.floor),
    "Gather": lambda arrays, attributes: np.take(arrays[0], arrays[1], _number(attributes, "axis", 0)),
    "Greater": _of_arrays(np.greater),
    "Identity": lambda arrays, _: arrays[0],
    "Less": _of_arrays(np.less),
    "Max": lambda arrays, _: np.max(np.broadcast_arrays(*arrays), axis=0),
    "Min": lambda arrays, _: np.min(np.broadcast_arrays(*arrays), axis=0),
    "Mod": _of_arrays(np.mod),
    "Mul": _arithmetic(np.multiply),
    "Neg": _of_arrays(np.negative),
    "ReduceMax": _reduced(np.max),
    "ReduceMin": _reduced(np.min),
    "ReduceProd": _reduced(np.prod),
    "ReduceSum": _reduced(np.sum),
    "Reshape": lambda arrays, _: arrays[0].reshape(arrays[1].ravel()),
    "Slice": _slice,
    "Sqrt": _of_arrays(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _arithmetic(np.subtract),
    "Unsqueeze": _unsqueeze,
    "Where": _of_arrays(np.where),
}
