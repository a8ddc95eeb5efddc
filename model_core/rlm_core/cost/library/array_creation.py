"""Rules for numpy that make arrays: filled, from sequences, ranges, and random numbers."""

from __future__ import annotations

from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.values import NONE, UNKNOWN, Call, Value
from .array_values import (
    ARRAY,
    UNTOUCHED,
    Shape,
    array,
    as_array,
    boxed,
    bytes_of,
    count_of,
    dtype_name,
    elementwise,
    filled,
    is_missing,
    lost,
    new_pages,
    number,
    parts,
    shape_of,
)
from .rules import Rule, argument
from .unit_costs import each, primitive, seconds


def zeros(call: Call) -> Value:
    """Memory from calloc: small arrays are cleared, the pages of large ones when they are first touched."""
    shape = shape_of(argument(call, 0, "shape"))
    dtype = dtype_name(argument(call, 1, "dtype"))
    return _cleared(call, shape, dtype)


def _cleared(call: Call, shape: Shape | None, dtype: str) -> Value:
    if shape is None:
        call.spend(seconds("numpy.zeros"))
        return replace(ARRAY, dtype=dtype)
    result = array(shape, dtype)
    if new_pages(result.bytes).terms:
        # The system clears its pages when they are first written.
        call.spend(primitive("numpy.zeros.large"))
        return replace(result, payload=UNTOUCHED)
    call.spend(seconds("numpy.zeros", bytes_of(result).times(1 / 8)))
    return result


def empty(call: Call) -> Value:
    shape = shape_of(argument(call, 0, "shape"))
    dtype = dtype_name(argument(call, 1, "dtype"))
    call.spend(primitive("numpy.empty"))
    if shape is None:
        return replace(ARRAY, dtype=dtype)
    return replace(array(shape, dtype), payload=UNTOUCHED)


def ones(call: Call) -> Value:
    return filled(call, "numpy.ones", shape_of(argument(call, 0, "shape")), dtype_name(argument(call, 1, "dtype")))


def full(call: Call) -> Value:
    value = argument(call, 1, "fill_value")
    default = {"int": "int64", "bool": "bool"}.get(value.kind, "float64")
    return filled(
        call, "numpy.ones", shape_of(argument(call, 0, "shape")), dtype_name(argument(call, 2, "dtype"), default)
    )


def like(name: str) -> Rule:
    """``zeros_like`` and others."""
    maker = name.rpartition(".")[2].removesuffix("_like")

    def rule(call: Call) -> Value:
        source = as_array(call, argument(call, 0, "a", "prototype"))
        if source is None or source.shape is None:
            return lost(call, "numpy.ones")
        position = 2 if maker == "full" else 1
        dtype = dtype_name(argument(call, position, "dtype"), source.dtype)
        if maker == "ones" or maker == "full":
            return filled(call, "numpy.ones", source.shape, dtype)
        if maker == "empty":
            call.spend(primitive("numpy.empty"))
            return array(source.shape, dtype)
        # zeros_like writes its elements, unlike zeros.
        return filled(call, "numpy.ones", source.shape, dtype)

    return rule


def arange(call: Call) -> Value:
    numbers = [number(value) for value in call.args[:3]]
    kinds = {value.kind for value in call.args[:3]}
    dtype = dtype_name(argument(call, 3, "dtype"), "float64" if "float" in kinds else "int64")
    size = _steps(numbers)
    return filled(call, "numpy.arange", None if size is None else (size,), dtype)


def _steps(numbers: list[Quantity | None]) -> Quantity | None:
    if not numbers or any(item is None for item in numbers):
        return None
    known = [item for item in numbers if item is not None]
    if len(known) == 1:
        return known[0]
    width = known[1] - known[0]
    step = known[2].exact if len(known) == 3 else 1.0
    if not step:
        return None
    width = width.times(1 / step)
    fixed = width.exact
    return width if fixed is None else constant(max(float(-(-fixed // 1)), 0.0))


def linspace(call: Call) -> Value:
    given = argument(call, 2, "num")
    count = constant(50) if given is UNKNOWN else number(given)
    return filled(call, "numpy.linspace", None if count is None else (count,), dtype_name(argument(call, 5, "dtype")))


def eye(call: Call) -> Value:
    rows = number(argument(call, 0, "N", "n"))
    given = argument(call, 1, "M")
    columns = rows if is_missing(given) else number(given)
    if rows is None or columns is None:
        return replace(ARRAY)
    # Each row of ones is on a page of memory that nothing has touched yet.
    call.spend(rows * columns * constant(each("numpy.eye")))
    dtype = dtype_name(call.keywords.get("dtype", UNKNOWN))
    return _cleared(call, (rows, columns), dtype)


def array_rule(call: Call) -> Value:
    """``np.array`` copies; ``np.asarray`` of an array does not."""
    source = argument(call, 0, "object", "a")
    value = as_array(call, source)
    if value is None:
        return lost(call, "numpy.copy")
    dtype = dtype_name(argument(call, 1, "dtype"), value.dtype)
    if source.kind == "array":
        result = elementwise(call, "numpy.copy", [value], dtype, by_bytes=True)
        return result if value.shape else replace(ARRAY, dtype=dtype)
    return _from_sequence(call, source, value, dtype)


def _from_sequence(call: Call, source: Value, value: Value, dtype: str) -> Value:
    shape = value.shape or ()
    size = count_of(shape)
    result = array(shape, dtype)
    members = parts(source)
    inner = members[0] if members else source.item
    if inner is not None and inner.kind == "array":
        call.spend(seconds("numpy.copy", size))
        call.spend(seconds("numpy.array", shape[0] if shape else ONE))
    else:
        call.spend(seconds("numpy.array", size))
    return result


def asarray(call: Call) -> Value:
    source = argument(call, 0, "a", "object")
    if source.kind == "array" and is_missing(argument(call, 1, "dtype")):
        call.spend(primitive("numpy.view"))
        return replace(source, bytes=ZERO)
    return array_rule(call)


def frombuffer(call: Call) -> Value:
    buffer = argument(call, 0, "buffer")
    dtype = dtype_name(argument(call, 1, "dtype"))
    call.spend(primitive("numpy.view"))
    result = array((), dtype, view=True)
    return array((call.length(buffer).times(1 / result.itemsize),), dtype, view=True)


def random(name: str, dtype: str = "float64", position: int | None = None) -> Rule:
    """Random numbers whose shape is at a position or in ``size``."""

    def rule(call: Call) -> Value:
        given = call.keywords.get("size", UNKNOWN)
        if given is UNKNOWN and position is not None and position < len(call.args):
            given = call.args[position]
        if is_missing(given):
            call.spend(seconds(name))
            return Value("int" if dtype == "int64" else "float", bytes=constant(32))
        return _drawn(call, name, shape_of(given), dtype)

    return rule


def random_by_axes(name: str) -> Rule:
    """Random numbers whose shape is the arguments."""

    def rule(call: Call) -> Value:
        if not call.args:
            call.spend(seconds(name))
            return Value("float", bytes=constant(24))
        axes = [number(value) for value in call.args]
        shape = None if any(axis is None for axis in axes) else tuple(axis for axis in axes if axis is not None)
        return _drawn(call, name, shape, "float64")

    return rule


def _drawn(call: Call, name: str, shape: Shape | None, dtype: str) -> Value:
    if shape is None:
        call.spend(seconds(name))
        return replace(ARRAY, dtype=dtype)
    result = array(shape, dtype)
    call.spend(seconds(name, result.size))
    return result


def shuffle(call: Call) -> Value:
    given = argument(call, 0, "x")
    value = as_array(call, given)
    if value is None or not value.shape:
        call.unknown(ONE)
        return NONE
    if given.kind == "list":
        call.spend(seconds("numpy.iterate", value.shape[0].times(5)))
    else:
        call.spend(seconds("numpy.permutation", value.shape[0]))
    return NONE


def choice(call: Call) -> Value:
    given = argument(call, 0, "a")
    source = as_array(call, given) if given.kind not in ("int", "unknown") else None
    size = argument(call, 1, "size")
    dtype = source.dtype if source is not None else "int64"
    if is_missing(size):
        call.spend(seconds("numpy.random.choice"))
        return boxed(dtype)
    shape = shape_of(size)
    if shape is None:
        return lost(call, "numpy.random.choice")
    if given.kind in ("list", "tuple") and source is not None:
        call.spend(seconds("numpy.array", source.size))
    replacing = argument(call, 2, "replace")
    total = count_of(shape)
    population = source.size if source is not None else number(given)
    if replacing.known and not replacing.constant and population is not None:
        call.spend(seconds("numpy.permutation", population))
        call.allocate(population.times(8))
    call.spend(seconds("numpy.random.choice", total))
    if source is not None and source.shape:
        call.allocate(total.times(8))
    return array(shape, dtype)


def diag(call: Call) -> Value:
    value = as_array(call, argument(call, 0, "v"))
    if value is None or not value.shape:
        return lost(call, "numpy.view")
    call.spend(primitive("numpy.view") * 3)
    if len(value.shape) > 1:
        return array(value.shape[:1], value.dtype, view=True)
    return _cleared(call, (value.shape[0], value.shape[0]), value.dtype)


def scalar_type(name: str) -> Rule:
    """The class of a number, such as ``numpy.float32``."""
    dtype = name.rpartition(".")[2]

    def rule(call: Call) -> Value:
        call.spend(primitive("numpy.item"))
        given = argument(call, 0, "x")
        value = as_array(call, given) if given.kind in ("array", "list", "tuple") else None
        if value is not None and value.shape:
            return elementwise(call, "numpy.cast", [value], dtype)
        fixed = number(given) if given.kind in ("int", "float", "bool") else None
        return replace(boxed(dtype), number=fixed)

    return rule
