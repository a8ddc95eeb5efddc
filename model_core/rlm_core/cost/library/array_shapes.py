"""Rules for numpy that join, repeat and reshape arrays, or turn them into Python objects; a view holds no elements."""

from __future__ import annotations

from collections.abc import Callable

from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.values import NONE, Call, Value
from .array_values import (
    ARRAY,
    Shape,
    array,
    as_array,
    boxed,
    bytes_of,
    copied,
    count_of,
    elementwise,
    filled,
    integer,
    lost,
    number,
    parts,
    promoted,
    receiver,
    shape_of,
)
from .rules import Rule, argument
from .unit_costs import each, primitive, seconds

_BATCH = constant(1.0, 1000.0, 10.0)


def joined(name: str) -> Rule:
    """Arrays next to each other: ``concatenate``, ``vstack``, ``hstack``, ``stack``."""
    kind = name.rpartition(".")[2]

    def rule(call: Call) -> Value:
        given = argument(call, 0, "arrays", "tup")
        members = parts(given)
        if members is not None:
            arrays = [as_array(call, member) for member in members]
        else:
            item = as_array(call, given.item) if given.item is not None else None
            if given.kind == "array" and given.shape and len(given.shape) > 1:
                item = array(given.shape[1:], given.dtype, view=True)
            arrays = [item]
        known = [member for member in arrays if member is not None]
        if not known:
            return lost(call, "numpy.concatenate")
        # A part of unknown shape next to a known one has about as many rows as a batch.
        rest = max((member.shape[1:] for member in known if member.shape), key=len, default=())
        known = [
            member if member is not None else array((_BATCH, *rest), known[0].dtype, view=True) for member in arrays
        ]
        count = call.length(given) if members is None else ONE
        for member, value in zip(members or (), known, strict=False):
            if member.kind in ("list", "tuple"):
                call.spend(seconds("numpy.array", value.size))
        pieces = count if members is None else constant(len(known))
        views = {"concatenate": 0, "hstack": 3, "vstack": 3, "column_stack": 3, "stack": 6}[kind]
        call.spend(pieces.times(primitive("numpy.concatenate.piece") + views * primitive("numpy.view")))
        shapes = [member.shape or (ONE,) for member in known]
        first = shapes[0]
        if kind == "stack" or (kind in ("vstack", "column_stack") and len(first) == 1):
            shape: Shape = (*first, pieces) if kind == "column_stack" else (pieces, *first)
        else:
            axis_value = argument(call, 1, "axis")
            axis = integer(axis_value) or 0
            if kind in ("hstack", "column_stack"):
                axis = 1 if len(first) > 1 else 0
            elif kind == "vstack":
                axis = 0
            axis %= max(len(first), 1)
            total = ZERO
            for axes in shapes:
                total = total + (axes[axis] if axis < len(axes) else ONE)
            shape = (*first[:axis], total * count, *first[axis + 1 :])
        dtype = known[0].dtype
        for member in known[1:]:
            dtype = promoted(array((ONE,), dtype, view=True), member if member.shape else array((ONE,), member.dtype))
        result = array(shape, dtype)
        call.spend(seconds("numpy.concatenate", (result.size or ONE).times(result.itemsize / 8)))
        return result

    return rule


def appended(call: Call) -> Value:
    """``numpy.append``: a new array with the elements of both; one of unknown shape is taken for a number."""
    given = [argument(call, 0, "arr"), argument(call, 1, "values")]
    known = [as_array(call, value) for value in given]
    first, second = known
    if first is None and second is None:
        return lost(call, "numpy.concatenate")
    for value, member in zip(given, known, strict=True):
        if value.kind in ("list", "tuple") and member is not None:
            call.spend(seconds("numpy.array", member.size))
    call.spend(primitive("numpy.concatenate.piece") * 2 + primitive("numpy.view") * 2)
    sizes = [member.size if member is not None and member.shape else ONE for member in known]
    shape: Shape = ((sizes[0] or ONE) + (sizes[1] or ONE),)
    if argument(call, 2, "axis").known and first is not None and first.shape:
        added = second.shape[0] if second is not None and second.shape else ONE
        shape = (first.shape[0] + added, *first.shape[1:])
    kinds = [member.dtype for member in known if member is not None and member.shape]
    result = array(shape, kinds[0] if kinds else "float64")
    call.spend(seconds("numpy.concatenate", (result.size or ONE).times(result.itemsize / 8)))
    return result


def repeated(name: str) -> Rule:
    def rule(call: Call) -> Value:
        value, position = receiver(call, 0, "a", "A")
        times = argument(call, position, "reps", "repeats")
        if value is None:
            return lost(call, name)
        shape = value.shape or (ONE,)
        counts = shape_of(times)
        if not counts:
            return lost(call, name)
        if name == "numpy.tile":
            longest = max(len(shape), len(counts))
            a = (ONE,) * (longest - len(shape)) + shape
            b = (ONE,) * (longest - len(counts)) + counts
            target: Shape = tuple(x * y for x, y in zip(a, b, strict=True))
        else:
            axis = integer(argument(call, position + 1, "axis"))
            if axis is None:
                target = (count_of(shape) * counts[0],)
            else:
                axis %= len(shape)
                target = (*shape[:axis], shape[axis] * counts[0], *shape[axis + 1 :])
        result = array(target, value.dtype)
        size = (result.size or ONE).times(result.itemsize / 8)
        if name == "numpy.repeat":
            call.spend(seconds(name, (value.size or ONE).times(2.0)))
            call.spend(size.times(each("numpy.copy")))
        else:
            call.spend(seconds(name, size))
        return result

    return rule


def pad(call: Call) -> Value:
    value, position = receiver(call, 0, "array")
    width = integer(argument(call, position, "pad_width"))
    if value is None or not value.shape:
        return lost(call, "numpy.pad")
    extra = constant(2.0 * (width if width is not None else 1))
    shape = tuple(axis + extra for axis in value.shape)
    call.spend(primitive("numpy.pad"))
    return filled(call, "numpy.ones", shape, value.dtype)


def reshape(call: Call) -> Value:
    value, position = receiver(call)
    call.spend(primitive("numpy.view"))
    if value is None or value.size is None:
        return replace(ARRAY)
    given = call.args[position:]
    if not given:
        given = [call.keywords[name] for name in ("shape", "newshape") if name in call.keywords]
    members = [integer(item) for item in given]
    axes: list[Quantity | None]
    if len(given) == 1 and (inner := parts(given[0])) is not None:
        members = [integer(item) for item in inner]
        axes = [number(item) for item in inner]
    else:
        axes = [number(item) for item in given]
    if not axes or any(axis is None for axis in axes):
        return Value("array", size=value.size, dtype=value.dtype, itemsize=value.itemsize)
    known = count_of(
        axis for axis, member in zip(axes, members, strict=True) if axis is not None and not _is_rest(member)
    )
    fixed = known.exact
    rest = value.size.times(1 / fixed) if fixed else value.size
    shape = tuple(
        rest if _is_rest(member) else axis for axis, member in zip(axes, members, strict=True) if axis is not None
    )
    return array(shape, value.dtype, view=True)


def _is_rest(member: int | None) -> bool:
    return member is not None and member < 0


_TURNS: dict[str, Callable[[Shape], Shape]] = {
    "same": lambda shape: shape,
    "flat": lambda shape: (count_of(shape),),
    "reversed": lambda shape: tuple(reversed(shape)),
    "squeezed": lambda shape: tuple(axis for axis in shape if axis.exact != 1.0),
}


def view(kind: str) -> Rule:
    """A view with the axes turned: by a name of ``_TURNS``."""
    turn = _TURNS[kind]

    def rule(call: Call) -> Value:
        value, _ = receiver(call, 0, "m", "a", "arr")
        call.spend(primitive("numpy.view"))
        if value is None or value.shape is None:
            return replace(ARRAY)
        return array(turn(value.shape), value.dtype, view=True)

    return rule


def transpose(call: Call) -> Value:
    value, position = receiver(call)
    call.spend(primitive("numpy.view"))
    if value is None or value.shape is None:
        return replace(ARRAY)
    given = argument(call, position, "axes")
    members = [integer(item) for item in (parts(given) or call.args[position:])]
    count = len(value.shape)
    order = [member % count for member in members if member is not None] if count else []
    if sorted(order) == list(range(count)):
        return array(tuple(value.shape[index] for index in order), value.dtype, view=True)
    return array(tuple(reversed(value.shape)), value.dtype, view=True)


def expand_dims(call: Call) -> Value:
    value, position = receiver(call)
    call.spend(primitive("numpy.view"))
    if value is None or value.shape is None:
        return replace(ARRAY)
    axis = (integer(argument(call, position, "axis")) or 0) % (len(value.shape) + 1)
    return array((*value.shape[:axis], ONE, *value.shape[axis:]), value.dtype, view=True)


def flatten(call: Call) -> Value:
    result = copied(call)
    return array((result.size,), result.dtype) if result.kind == "array" and result.size is not None else result


def tolist(call: Call) -> Value:
    value, _ = receiver(call)
    if value is None:
        return lost(call, "numpy.tolist")
    size = value.size or ONE
    shape = value.shape or ()
    each_bytes = {"f": 24.0, "i": 32.0, "u": 32.0, "c": 32.0}.get(value.dtype[0], 0.0)
    call.spend(seconds("numpy.tolist", size))
    if not shape:
        return Value({"f": "float", "i": "int", "b": "bool"}.get(value.dtype[0], "unknown"))
    kind = {"f": "float", "i": "int", "u": "int", "b": "bool"}.get(value.dtype[0], "unknown")
    result = Value(kind, bytes=constant(each_bytes))
    for axis in reversed(shape):
        held = axis * (result.bytes + constant(8.0)) + constant(56.0)
        result = Value("list", size=axis, item=result, bytes=held)
    return result


def tobytes(call: Call) -> Value:
    value, _ = receiver(call)
    if value is None:
        return lost(call, "numpy.copy")
    total = bytes_of(value)
    call.spend(seconds("numpy.copy", total.times(1 / 8)))
    return Value("bytes", size=total, bytes=total + constant(33))


def difference(call: Call) -> Value:
    value, _ = receiver(call)
    if value is None or not value.shape:
        return lost(call, "numpy.add")
    call.spend(primitive("numpy.view") * 4)
    result = elementwise(call, "numpy.add", [value], value.dtype, by_bytes=True)
    last = value.shape[-1]
    return array((*value.shape[:-1], last - ONE), value.dtype) if last.exact else result


def roll(call: Call) -> Value:
    call.spend(primitive("numpy.view") * 20)
    return copied(call)


def fill(call: Call) -> Value:
    value, _ = receiver(call)
    if value is None or value.size is None:
        return NONE
    call.spend(seconds("numpy.ones", value.size.times(value.itemsize / 8)))
    return NONE


def item_of(call: Call) -> Value:
    call.spend(primitive("numpy.item"))
    return boxed(call.receiver.dtype if call.receiver is not None else "float64")
