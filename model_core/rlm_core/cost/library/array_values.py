"""Abstract numpy arrays: from arguments to shapes, element types and bytes, and what new memory costs.

Sizes are quantities, so an array may have an axis whose length is a parameter of the function. Where memory is given
back to the system after each use, touching it for the first time costs more; that applies only to sizes that the text
fixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..domain.folding import MISSING
from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.values import UNKNOWN, Call, Value, literal
from .rules import argument
from .unit_costs import each, seconds

Shape = tuple[Quantity, ...]

ARRAY = Value("array")
"""An array of unknown shape."""
SHARE = constant(0.0, 1.0, 0.5)
"""The share of elements that a condition keeps."""
HEADER = 112.0
"""Bytes of an array object without its elements."""
ITEMSIZES: dict[str, float] = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "int32": 4, "uint32": 4, "float32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "complex64": 8, "complex128": 16, "object": 8,
}  # fmt: skip
_ALIASES = {
    "int": "int64", "float": "float64", "complex": "complex128", "bool_": "bool", "int_": "int64", "uint": "uint64",
    "double": "float64", "single": "float32", "half": "float16", "byte": "int8", "ubyte": "uint8", "short": "int16",
    "intc": "int32", "intp": "int64", "longlong": "int64", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64",
    "c8": "complex64", "c16": "complex128", "b": "int8", "B": "uint8", "h": "int16", "i": "int32", "l": "int64",
    "q": "int64", "e": "float16", "f": "float32", "d": "float64", "?": "bool", "O": "object", "F": "complex64",
    "D": "complex128",
}  # fmt: skip
_SCALARS = {"int": "int64", "float": "float64", "bool": "bool", "complex": "complex128"}
_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex", "o": "object"}
_RANKS = {"b": 0, "u": 1, "i": 2, "f": 3, "c": 4, "o": 5}
# The allocator keeps freed blocks below this for the next array; larger ones go back to the system, and the pages of a
# new one are cleared when they are first written (M_MMAP_THRESHOLD of glibc grows up to this).
_KEPT_BYTES = 32 * 2**20
_MOST_AXES = 32
UNTOUCHED = "untouched"
"""The payload of an array whose pages were never written."""
# numpy asks for pages of 2 MiB from this size on.
_HUGE_BYTES = 4 * 2**20
# M_TRIM_THRESHOLD of glibc at start.
_TRIMMED_BYTES = 256 * 2**10


def dtype_name(value: Value, default: str = "float64") -> str:
    """The element type that a ``dtype`` argument means."""
    text = value.constant if isinstance(value.constant, str) else value.name
    if value.kind == "none" or not text:
        return default
    text = text.rpartition(".")[2].lstrip("<>=|")
    text = _ALIASES.get(text, text)
    return text if text in ITEMSIZES else default


def number(value: Value) -> Quantity | None:
    """The value of a number; of an unknown argument with a name, the size of that name."""
    if value.number is not None:
        return value.number
    if value.kind == "unknown" and value.name:
        return Quantity({(((value.name, ""), 1.0),): (1.0, 1.0, 1.0)})
    return None


def integer(value: Value) -> int | None:
    """The value of an integer that the text fixes."""
    if value.known and isinstance(value.constant, int):
        return int(value.constant)
    return None


def parts(value: Value) -> tuple[Value, ...] | None:
    """The members of a short tuple or list."""
    if isinstance(value.payload, tuple) and all(isinstance(part, Value) for part in value.payload):
        return tuple(value.payload) if value.kind in ("tuple", "list") else None
    if value.known and isinstance(value.constant, tuple | list):
        return tuple(scalar(part) for part in value.constant)
    return None


def scalar(part: object) -> Value:
    """A Python constant as a value."""
    if isinstance(part, bool | int | float):
        return literal(part)
    if isinstance(part, tuple):
        return Value("tuple", part, size=constant(len(part)))
    return Value("none", None) if part is None else UNKNOWN


def shape_of(value: Value) -> Shape | None:
    """The shape that a ``shape`` argument means, None if an axis is not known."""
    members = parts(value)
    if members is None:
        axis = number(value)
        return None if axis is None else (axis,)
    axes = [number(member) for member in members[:_MOST_AXES]]
    return None if any(axis is None for axis in axes) else tuple(axis for axis in axes if axis is not None)


def count_of(shape: Iterable[Quantity]) -> Quantity:
    """The number of elements."""
    size = ONE
    for axis in shape:
        size = size * axis
    return size


def array(shape: Shape, dtype: str = "float64", *, view: bool = False) -> Value:
    """An array; a view shares its elements."""
    itemsize = ITEMSIZES.get(dtype, 8.0)
    size = count_of(shape)
    held = ZERO if view else size.times(itemsize) + constant(HEADER)
    return Value(
        "array",
        size=size,
        item=_item(shape, dtype),
        bytes=held,
        shape=shape,
        itemsize=itemsize,
        dtype=dtype,
        step=constant(each("numpy.iterate")),
    )


def _item(shape: Shape, dtype: str) -> Value:
    """Return what iteration yields: scalars as objects of 32 bytes, or views of rows."""
    if len(shape) > 1:
        return array(shape[1:], dtype, view=True)
    return boxed(dtype)


def boxed(dtype: str) -> Value:
    """One element as an object."""
    kind = _KINDS[dtype[0]]
    if kind == "object":
        return UNKNOWN
    return Value(kind, bytes=constant(32.0 if kind != "bool" else 0.0), name=f"numpy.{dtype}")


def as_array(call: Call, value: Value) -> Value | None:
    """The array that numpy makes of an argument; a scalar has no axes. None if its size is not known."""
    if value.kind == "array":
        return value if value.shape is not None else None
    if value.kind in _SCALARS:
        return array((), _SCALARS[value.kind], view=True)
    if value.kind in ("list", "tuple", "range"):
        axes: list[Quantity] = []
        member: Value | None = value
        while member is not None and member.kind in ("list", "tuple", "range") and len(axes) < 8:
            axes.append(call.length(member))
            members = parts(member)
            first = members[0] if members else member.item
            member = Value("int") if member.kind == "range" else first
        if member is not None and member.kind == "array" and member.shape is not None:
            return array((*axes, *member.shape), member.dtype)
        dtype = _SCALARS.get(member.kind if member is not None else "", "float64")
        if dtype == "int64" and any(part.kind == "float" for part in parts(value) or ()):
            dtype = "float64"
        return array(tuple(axes), dtype)
    return None


def promoted(left: Value, right: Value) -> str:
    """The element type of an operation; Python's scalars do not widen an array."""
    a, b = left.dtype, right.dtype
    if a == b:
        return a
    if not left.shape and right.shape:
        a, b = b, a
    strong = bool(left.shape) == bool(right.shape)
    rank_a, rank_b = _RANKS[a[0]], _RANKS[b[0]]
    if not strong:
        if rank_b <= rank_a or {rank_a, rank_b} == {1, 2}:
            return a
        return "int64" if b == "int64" else "float64" if rank_b == 3 else b
    if rank_a == rank_b:
        return a if ITEMSIZES[a] >= ITEMSIZES[b] else b
    high, low = (a, b) if rank_a > rank_b else (b, a)
    if high[0] == "f" and low[0] in "iu" and ITEMSIZES[low] >= ITEMSIZES[high]:
        return "float64"
    return high


def broadcast(left: Shape, right: Shape) -> Shape:
    """The common shape: an axis of length 1 takes the other's length."""
    count = max(len(left), len(right))
    a = (ONE,) * (count - len(left)) + left
    b = (ONE,) * (count - len(right)) + right
    return tuple(_axis(x, y) for x, y in zip(a, b, strict=True))


def _axis(a: Quantity, b: Quantity) -> Quantity:
    if a.exact == 1.0:
        return b
    if b.exact == 1.0:
        return a
    if a.exact is not None:
        return a
    return b if b.exact is not None else a


def without_axes(call: Call, shape: Shape, axis: Value, keepdims: bool = False) -> Shape:
    """The shape of a reduction; without an axis all are reduced."""
    count = len(shape)
    position = integer(axis)
    if position is not None:
        gone = {position % count} if count else set()
    else:
        members = parts(axis) if axis.kind in ("tuple", "list") else None
        if members is None:
            if axis.kind in ("none", "unknown") and not (axis.kind == "unknown" and axis is not UNKNOWN):
                return (ONE,) * count if keepdims else ()
            gone = {0}
        else:
            positions = [integer(member) for member in members]
            gone = {position % count for position in positions if position is not None} if count else set()
    return tuple(
        ONE if index in gone else length for index, length in enumerate(shape) if keepdims or index not in gone
    )


def _likely(value: Quantity) -> float:
    fixed = value.constant
    return fixed[1] if fixed is not None else 0.0


def refaulted(largest: Quantity, peak: Quantity) -> Quantity:
    """Seconds for pages that the allocator gives back at the end of every call.

    Once it has returned a block of ``largest`` bytes, glibc keeps up to twice as many bytes; a function that holds more
    at its peak gets new pages in each call. Blocks above 32 MiB are counted by :func:`new_pages`.
    """
    block, total = _likely(largest), _likely(peak)
    if block > _KEPT_BYTES or total < max(1.98 * block, _TRIMMED_BYTES):
        return ZERO
    return constant(total * each("numpy.page" if block >= _HUGE_BYTES else "numpy.page.small"))


def new_pages(block: Quantity, cost: str = "numpy.page.small") -> Quantity:
    """Seconds for the pages of a block that the allocator never keeps, because it is larger than 32 MiB.

    Those of an array cost ``numpy.page``.
    """
    size = _likely(block)
    return constant(size * each(cost)) if size > _KEPT_BYTES else ZERO


def elementwise(
    call: Call,
    name: str,
    operands: Sequence[Value],
    dtype: str,
    *,
    by_bytes: bool = False,
) -> Value:
    """A new array of the operands' common shape; ``by_bytes``: a narrower type costs proportionally less."""
    shape: Shape = ()
    width = 1.0
    for operand in operands:
        shape = broadcast(shape, operand.shape or ())
        if operand.shape:
            width = max(operand.itemsize if width == 1.0 else width, operand.itemsize)
    result = array(shape, dtype)
    if not shape:
        call.spend(seconds(name))
        return boxed(dtype)
    size = result.size or ONE
    call.spend(seconds(name, size.times(width / 8) if by_bytes else size))
    return result


def filled(call: Call, name: str, shape: Shape | None, dtype: str) -> Value:
    """A new array whose elements are written."""
    if shape is None:
        call.spend(seconds(name))
        return Value("array", dtype=dtype, itemsize=ITEMSIZES.get(dtype, 8.0))
    result = array(shape, dtype)
    call.spend(seconds(name, (result.size or ONE).times(result.itemsize / 8)))
    return result


def is_missing(value: Value) -> bool:
    """Return whether an argument was left out or is None."""
    return value is UNKNOWN or (value.constant is not MISSING and value.constant is None)


def receiver(call: Call, position: int = 0, *names: str) -> tuple[Value | None, int]:
    """The array that a function or a method works on, and the position of its next argument."""
    if call.receiver is not None:
        return (as_array(call, call.receiver), 0)
    return converted(call, argument(call, position, *(names or ("a", "x", "arr")))), position + 1


def converted(call: Call, given: Value) -> Value | None:
    """The array that a function makes of its argument: a list is copied item by item."""
    value = as_array(call, given)
    if value is not None and given.kind in ("list", "tuple", "range"):
        call.spend(seconds("numpy.array", value.size))
        call.allocate(value.bytes)
        return replace(value, bytes=ZERO)
    return value


def lost(call: Call, name: str) -> Value:
    """The result of a function whose operand is not understood."""
    call.spend(seconds(name))
    call.unknown(ONE)
    return UNKNOWN


def bytes_of(value: Value) -> Quantity:
    """Bytes of the elements."""
    return (value.size or ONE).times(value.itemsize)


def copied(call: Call) -> Value:
    """The rule of a copy."""
    value, _ = receiver(call)
    if value is None:
        return lost(call, "numpy.copy")
    return elementwise(call, "numpy.copy", [value], value.dtype, by_bytes=True)
