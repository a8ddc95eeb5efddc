"""Rules for subscripts of arrays, stores into them, and their attributes."""

from __future__ import annotations

from ..domain.folding import MISSING
from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.values import NONE, Call, Value
from .array_values import (
    ARRAY,
    SHARE,
    Shape,
    array,
    as_array,
    boxed,
    broadcast,
    bytes_of,
    count_of,
    integer,
    lost,
    number,
    parts,
    receiver,
)
from .rules import Attribute, argument
from .unit_costs import each, primitive, seconds


def subscript(call: Call) -> Value:
    """``array[index]``: numbers and slices make views, arrays of numbers or truth values make copies."""
    base, index = call.args[0], call.args[1]
    if base.shape is None:
        call.spend(primitive("numpy.slice"))
        return replace(ARRAY, dtype=base.dtype, itemsize=base.itemsize)
    members = parts(index) if index.kind == "tuple" else (index,)
    members = (index,) if members is None else members
    arrays = [as_array(call, member) for member in members if member.kind in ("array", "list")]
    if arrays:
        return _gathered(call, base, members)
    rest = _indexed_shape(call, base.shape, members)
    if not rest:
        call.spend(primitive("numpy.item"))
        return boxed(base.dtype)
    call.spend(primitive("numpy.slice"))
    return array(rest, base.dtype, view=True)


def _indexed_shape(call: Call, shape: Shape, members: tuple[Value, ...]) -> Shape:
    axes = list(shape)
    result: list[Quantity] = []
    used = sum(member.kind != "none" for member in members if member.constant is not Ellipsis)
    for member in members:
        if member.kind == "none":
            result.append(ONE)
        elif member.constant is Ellipsis:
            while len(axes) > used:
                result.append(axes.pop(0))
        elif member.kind == "slice":
            used -= 1
            if axes:
                result.append(_sliced(axes.pop(0), member))
        else:
            used -= 1
            if axes:
                axes.pop(0)
    return (*result, *axes)


def _sliced(length: Quantity, bounds: Value) -> Quantity:
    given = bounds.payload if isinstance(bounds.payload, tuple) and len(bounds.payload) == 3 else ()
    if not given:
        return length * SHARE
    fixed = length.exact
    numbers = [integer(item) if isinstance(item, Value) else None for item in given]
    missing = [not isinstance(item, Value) or item.kind == "none" for item in given]
    if all(absent or value is not None for absent, value in zip(missing, numbers, strict=True)):
        if fixed is not None and 0 <= fixed < 1e15:
            try:
                return constant(float(len(range(*slice(*numbers).indices(int(fixed))))))
            except ValueError:
                return ZERO
        step = abs(numbers[2] or 1)
        if missing[0] and numbers[1] is not None and numbers[1] >= 0:
            return constant(numbers[1] / step)
        return length.times(1 / step)
    stop = number(given[1]) if isinstance(given[1], Value) else None
    if missing[0] and missing[2] and stop is not None:
        return stop
    return length * SHARE


def _gathered(call: Call, base: Value, members: tuple[Value, ...]) -> Value:
    """A copy of chosen elements; a mask keeps an unknown share."""
    shape = base.shape or ()
    chosen: Shape = ()
    rest = shape[len(members) :]
    for member in members:
        value = as_array(call, member)
        if value is None or value.shape is None or member.kind not in ("array", "list"):
            continue
        if value.dtype == "bool":
            size = value.size or ONE
            kept = size * SHARE
            rest = shape[len(value.shape) :]
            result = array((kept, *rest), base.dtype)
            call.spend(seconds("numpy.mask", size))
            if rest:
                call.spend(seconds("numpy.copy", result.size))
            return result
        if member.kind == "list":
            call.spend(seconds("numpy.array", value.size))
        chosen = broadcast(chosen, value.shape)
    kept_axes = tuple(
        _sliced(axis, member) for axis, member in zip(shape, members, strict=False) if member.kind == "slice"
    )
    result = array((*chosen, *kept_axes, *rest), base.dtype)
    rows = count_of(chosen)
    call.spend(seconds("numpy.take", rows))
    if rest or kept_axes:
        call.spend(seconds("numpy.copy", result.size))
    return result


def store(call: Call) -> Value:
    """``array[index] = value`` writes in place."""
    base, index, value = call.args[0], call.args[1], call.args[2]
    if base.shape is None:
        call.spend(primitive("numpy.store"))
        return NONE
    members = parts(index) if index.kind == "tuple" else (index,)
    members = (index,) if members is None else members
    for member in members:
        if member.kind in ("array", "list"):
            chosen = as_array(call, member)
            size = chosen.size if chosen is not None and chosen.size is not None else ONE
            call.spend(seconds("numpy.store", size.times(0.5)))
            return NONE
    rest = _indexed_shape(call, base.shape, members)
    call.spend(primitive("numpy.store"))
    if rest:
        given = as_array(call, value)
        size = count_of(rest)
        name = "numpy.copy" if given is not None and given.shape else "numpy.ones"
        call.spend(size.times(each(name) * base.itemsize / 8))
    return NONE


def _shape_attribute(value: Value) -> Value | None:
    if value.shape is None:
        return Value("tuple")
    axes = tuple(_whole(axis) for axis in value.shape)
    if all(axis.known for axis in axes):
        return Value("tuple", tuple(axis.constant for axis in axes), size=constant(len(axes)), payload=axes)
    return Value("tuple", size=constant(len(axes)), item=axes[0] if axes else None, payload=axes)


def _whole(count: Quantity | None) -> Value:
    if count is None:
        return Value("int")
    exact = count.exact
    fixed = int(exact) if exact is not None and 0 <= exact < 2**53 else MISSING
    return Value("int", fixed, number=count)


_ATTRIBUTES: dict[str, Attribute] = {
    "shape": _shape_attribute,
    "size": lambda value: _whole(value.size),
    "nbytes": lambda value: _whole(bytes_of(value) if value.size is not None else None),
    "itemsize": lambda value: _whole(constant(value.itemsize)),
    "ndim": lambda value: _whole(constant(len(value.shape)) if value.shape is not None else None),
    "T": lambda value: (
        array(tuple(reversed(value.shape)), value.dtype, view=True) if value.shape is not None else value
    ),
    "flat": lambda value: replace(value, shape=(value.size,), bytes=ZERO) if value.size is not None else value,
    "real": lambda value: replace(value, bytes=ZERO),
    "imag": lambda value: replace(value, bytes=ZERO),
    "dtype": lambda value: Value("class", name=f"numpy.{value.dtype}"),
}


def attribute(name: str) -> Attribute:
    """An attribute of an array."""
    return _ATTRIBUTES[name]


def take(call: Call) -> Value:
    value, position = receiver(call)
    index = argument(call, position, "indices")
    if value is None or value.shape is None:
        return lost(call, "numpy.take")
    chosen = as_array(call, index)
    if chosen is None or not chosen.shape:
        call.spend(primitive("numpy.take"))
        return boxed(value.dtype)
    return _gathered(call, value, (replace(chosen, dtype="int64"),))
