"""Rules for numpy that work element by element: operators, universal functions, conditions and copies."""

from __future__ import annotations

from ..domain.quantities import ONE, ZERO, constant
from ..domain.records import replace
from ..domain.values import UNKNOWN, Call, Value
from .array_values import (
    SHARE,
    array,
    as_array,
    dtype_name,
    elementwise,
    lost,
    promoted,
    receiver,
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


def binary(name: str, dtype: str | None = None, *, by_bytes: bool = True) -> Rule:
    """An operation of two operands."""

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
        return _into(call, elementwise(call, chosen, pair, target, by_bytes=narrow))

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
    index = array((found,), "int64")
    held = index.bytes.times(float(axes))
    return Value("tuple", size=constant(axes), item=index, bytes=held, payload=(index,) * axes)


def astype(call: Call) -> Value:
    value, position = receiver(call)
    if value is None:
        return lost(call, "numpy.copy")
    dtype = dtype_name(argument(call, position, "dtype"), value.dtype)
    name = "numpy.copy" if dtype[0] == value.dtype[0] else "numpy.cast"
    return elementwise(call, name, [value], dtype)
