"""Rules for numpy that work element by element: operators, universal functions, conditions, copies and Python calls."""

from __future__ import annotations

from ..domain.quantities import ONE, ZERO, constant
from ..domain.records import replace
from ..domain.values import UNKNOWN, Call, Value
from .array_values import (
    SHARE,
    array,
    as_array,
    boxed,
    bytes_of,
    count_of,
    dtype_name,
    elementwise,
    integer,
    lost,
    moved_bytes,
    promoted,
    receiver,
    without_axes,
)
from .rules import Rule, argument
from .unit_costs import primitive, seconds


def unary(name: str, dtype: str | None = None, *, by_bytes: bool = True) -> Rule:
    """A function of each element; ``float`` makes floats of integers."""

    def rule(call: Call) -> Value:
        value, _ = receiver(call, 0, "x", "a")
        if value is None:
            return lost(call, name)
        target = dtype or value.dtype
        if dtype == "float":
            target = value.dtype if value.dtype[0] in "fc" else "float64"
        return _into(call, elementwise(call, name, [value], target, by_bytes=by_bytes))

    return rule


def _into(call: Call, result: Value) -> Value:
    """With ``out=`` no new array is made."""
    out = call.keywords.get("out", UNKNOWN)
    return replace(result, bytes=ZERO) if out.kind == "array" else result


def binary(name: str, dtype: str | None = None, *, by_bytes: bool = True, reuse: int = 0) -> Rule:
    """An operation of two operands; it may overwrite the first ``reuse`` of them if they have no name."""

    def rule(call: Call) -> Value:
        operands = (
            [call.receiver, *call.args] if call.receiver is not None else [*call.args] or [*call.keywords.values()]
        )
        if len(operands) < 2:
            return lost(call, name)
        first, second = operands[0], operands[1]
        if "array" not in (first.kind, second.kind) and UNKNOWN.kind in (first.kind, second.kind):
            return lost(call, name)
        left, right = as_array(call, first), as_array(call, second)
        # An operand of unknown size is taken for a number: arrays are rarely added to something else.
        left = left if left is not None else array((), right.dtype if right is not None else "float64", view=True)
        right = right if right is not None else array((), left.dtype, view=True)
        for given, value in ((first, left), (second, right)):
            if given.kind in ("list", "tuple"):
                call.spend(seconds("numpy.array", value.size))
            elif given.kind != "array":
                call.spend(primitive("numpy.scalar"))
        common = promoted(left, right)
        target = dtype or common
        if dtype == "float":
            target = common if common[0] in "fc" else "float64"
        chosen = name
        if name == "numpy.modulo" and common[0] in "iub":
            chosen = "numpy.modulo.int"
        elif name == "numpy.floor_divide" and common[0] in "f":
            chosen = "numpy.modulo"
        elif name == "numpy.power":
            chosen = _power_name(second, common)
        pair = [left, right]
        narrow = by_bytes and chosen == name
        return _into(call, elementwise(call, chosen, pair, target, by_bytes=narrow, reusable=pair[:reuse]))

    return rule


def _power_name(exponent: Value, dtype: str) -> str:
    """The cost of a power: squares and roots have short cuts."""
    if exponent.constant in (1, 2, -1, 1.0, 2.0, -1.0):
        return "numpy.add"
    if exponent.constant == 0.5:
        return "numpy.sqrt"
    return "numpy.power.int" if dtype[0] in "iu" else "numpy.power"


def where(call: Call) -> Value:
    condition = as_array(call, argument(call, 0, "condition"))
    if condition is None or condition.shape is None:
        return lost(call, "numpy.where")
    if len(call.args) < 2:
        return nonzero(call)
    left, right = as_array(call, argument(call, 1, "x")), as_array(call, argument(call, 2, "y"))
    left = left if left is not None else array((), view=True)
    right = right if right is not None else array((), view=True)
    return elementwise(call, "numpy.where", [condition, left, right], promoted(left, right))


def nonzero(call: Call) -> Value:
    value, _ = receiver(call, 0, "condition", "a")
    if value is None:
        return lost(call, "numpy.nonzero")
    axes = max(len(value.shape or ()), 1)
    size = value.size or ONE
    found = size * SHARE
    call.spend(seconds("numpy.nonzero", size.times(1.0 if axes == 1 else 2.0)))
    call.spend(moved_bytes(bytes_of(value), [found.times(8.0 * axes)]))
    index = array((found,), "int64")
    held = index.bytes.times(float(axes))
    return Value("tuple", size=constant(axes), item=index, bytes=held, payload=(index,) * axes)


def clip(call: Call) -> Value:
    value, _ = receiver(call)
    if value is None:
        return lost(call, "numpy.clip")
    return _into(call, elementwise(call, "numpy.clip", [value], value.dtype, by_bytes=True))


def astype(call: Call) -> Value:
    value, position = receiver(call)
    if value is None:
        return lost(call, "numpy.copy")
    dtype = dtype_name(argument(call, position, "dtype"), value.dtype)
    name = "numpy.copy" if dtype[0] == value.dtype[0] else "numpy.cast"
    return elementwise(call, name, [value], dtype)


def vectorize(call: Call) -> Value:
    call.spend(primitive("numpy.vectorize"))
    return Value("object", name="numpy.vectorize", payload=argument(call, 0, "pyfunc"))


def apply_along_axis(call: Call) -> Value:
    value = as_array(call, argument(call, 2, "arr"))
    axis = argument(call, 1, "axis")
    if value is None or not value.shape:
        return lost(call, "numpy.iterate")
    rest = without_axes(call, value.shape, axis)
    position = (integer(axis) or 0) % len(value.shape)
    line = array((value.shape[position],), value.dtype, view=True)
    times = count_of(rest)
    result = call.apply(argument(call, 0, "func1d"), times, [line])
    call.spend(times.times(primitive("numpy.apply_along_axis")))
    return array((*rest, *(result.shape or ())), result.dtype if result.kind == "array" else "float64")


def called_vectorized(call: Call) -> Value:
    """A call of what ``np.vectorize`` made: a Python call per element."""
    value = as_array(call, argument(call, 0))
    function = call.receiver.payload if call.receiver is not None else None
    if value is None or not isinstance(function, Value):
        return lost(call, "numpy.vectorize")
    size = value.size or ONE
    result = call.apply(function, size, [boxed(value.dtype)])
    call.spend(size.times(primitive("numpy.vectorize.call")))
    call.allocate(size.times(2 * 8.0 + 32.0))
    dtype = {"int": "int64", "bool": "bool"}.get(result.kind, "float64")
    return array(value.shape or (), dtype)
