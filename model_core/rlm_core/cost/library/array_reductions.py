"""Rules for numpy that reduce, accumulate, sort and count."""

from __future__ import annotations

from ..domain.quantities import ONE, ZERO, constant, mixed
from ..domain.values import NONE, UNKNOWN, Call, Value
from .array_values import (
    array,
    as_array,
    boxed,
    bytes_of,
    count_of,
    elementwise,
    is_missing,
    lost,
    number,
    receiver,
    without_axes,
)
from .rules import Rule, argument
from .unit_costs import each, primitive, seconds


def reduction(
    name: str,
    dtype: str | None = None,
    *,
    temporaries: float = 0.0,
    by_bytes: bool = False,
    axis_position: int = 0,
) -> Rule:
    """A reduction over an axis or over all elements; ``temporaries`` are arrays of the operand's size."""

    def rule(call: Call) -> Value:
        value, position = receiver(call)
        if value is None:
            return lost(call, name)
        size = value.size or ONE
        if name in ("numpy.sum", "numpy.mean") and value.dtype == "bool":
            call.spend(seconds("numpy.sum.bool", size))
        else:
            call.spend(seconds(name, size.times(value.itemsize / 8) if by_bytes else size))
        extra = size.times(8.0 * temporaries) if temporaries else ZERO
        if temporaries:
            call.allocate(extra)
        axis = argument(call, position + axis_position, "axis")
        kept = call.keywords.get("keepdims", UNKNOWN)
        shape = without_axes(call, value.shape or (), axis, bool(kept.known and kept.constant))
        target = dtype or value.dtype
        if dtype == "sum":
            target = "int64" if value.dtype[0] in "bi" else "uint64" if value.dtype[0] == "u" else value.dtype
        elif dtype == "float":
            target = value.dtype if value.dtype[0] in "fc" else "float64"
        if not shape:
            return boxed(target)
        # A separate row has a fixed part, too.
        call.spend(count_of(shape).times(each("numpy.row")))
        return array(shape, target)

    return rule


def norm(call: Call) -> Value:
    value = as_array(call, argument(call, 0, "x"))
    if value is None:
        return lost(call, "numpy.linalg.norm")
    order = argument(call, 1, "ord")
    axis = argument(call, 2, "axis")
    call.spend(seconds("numpy.linalg.norm", value.size))
    if value.shape and len(value.shape) == 2 and (order.constant in (2, -2, "nuc")) and is_missing(axis):
        call.spend(seconds("numpy.linalg.svd", value.shape[0]))
    if is_missing(axis):
        return boxed("float64")
    call.allocate(bytes_of(value))
    return array(without_axes(call, value.shape or (), axis))


def sorted_rule(name: str, dtype: str | None = None, *, in_place: bool = False) -> Rule:
    def rule(call: Call) -> Value:
        value, _ = receiver(call)
        if value is None:
            return lost(call, name)
        last = (value.shape or (ONE,))[-1]
        rows = count_of((value.shape or (ONE,))[:-1])
        one_row = seconds(name, last)
        start = constant(primitive(name))
        call.spend(start + (one_row - start) * rows)
        if rows.exact != 1.0:
            call.spend(rows.times(each("numpy.row")))
        result = array(value.shape or (), dtype or value.dtype)
        return NONE if in_place else result

    return rule


def unique(call: Call) -> Value:
    value, _ = receiver(call, 0, "ar")
    if value is None:
        return lost(call, "numpy.unique")
    size = value.size or ONE
    counts = [name for name in ("return_counts", "return_index", "return_inverse") if name in call.keywords]
    integers = value.dtype[0] in "iu"
    if counts:
        call.spend(seconds("numpy.argsort" if len(counts) > 1 or "return_counts" not in counts else "numpy.sort", size))
        call.spend(seconds("numpy.nonzero", size))
    else:
        call.spend(seconds("numpy.unique.int" if integers else "numpy.unique", size))
    call.allocate(size.times(value.itemsize + 1))
    # Floats hardly repeat; integers mostly do.
    kept = mixed([(0.9, ONE), (0.1, size)]) if integers else mixed([(0.05, ONE), (0.95, size)])
    result = array((kept,), value.dtype)
    if not counts:
        return result
    others = (array((kept,), "int64"),) * len(counts)
    return Value("tuple", size=constant(1 + len(counts)), item=result, bytes=result.bytes, payload=(result, *others))


def bincount(call: Call) -> Value:
    value = as_array(call, argument(call, 0, "x"))
    if value is None:
        return lost(call, "numpy.bincount")
    call.spend(seconds("numpy.bincount", value.size))
    shortest = number(argument(call, 2, "minlength")) or constant(1, 100, 100)
    return array((shortest,), "int64")


def accumulate(call: Call) -> Value:
    value, position = receiver(call)
    if value is None:
        return lost(call, "numpy.cumsum")
    axis = argument(call, position, "axis")
    dtype = "int64" if value.dtype[0] in "bi" else value.dtype
    result = elementwise(call, "numpy.cumsum", [value], dtype)
    if is_missing(axis) and value.size is not None and value.shape:
        return array((value.size,), dtype)
    return result


def searchsorted(call: Call) -> Value:
    value, position = receiver(call)
    given = argument(call, position, "v", "x")
    wanted = as_array(call, given)
    if value is None or wanted is None:
        return lost(call, "numpy.searchsorted")
    count = wanted.size or ONE
    call.spend(constant(primitive("numpy.searchsorted")))
    call.spend((count * (value.size or ONE).log()).times(each("numpy.searchsorted")))
    return array(wanted.shape, "int64") if wanted.shape else boxed("int64")


def histogram(call: Call) -> Value:
    value = as_array(call, argument(call, 0, "a", "x"))
    if value is None:
        return lost(call, "numpy.histogram")
    given = argument(call, 1, "bins")
    bins = constant(10) if is_missing(given) else number(given) or constant(10)
    call.spend(seconds("numpy.histogram", value.size))
    counts, edges = array((bins,), "int64"), array((bins + ONE,))
    return Value("tuple", size=constant(2), bytes=counts.bytes + edges.bytes, payload=(counts, edges))
