"""Rules for numpy that make arrays: filled, from sequences, ranges, grids, and random numbers."""

from __future__ import annotations

from dataclasses import replace

from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.values import NONE, UNKNOWN, Call, Value
from .array_values import (
    ARRAY,
    UNTOUCHED,
    Shape,
    access_far,
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
    moved_bytes,
    number,
    parts,
    shape_of,
)
from .rules import Rule, argument
from .unit_costs import primitive, seconds


def _zeros(call: Call) -> Value:
    """Memory from calloc: small arrays are cleared, the pages of large ones when they are first touched."""
    shape = shape_of(argument(call, 0, "shape"))
    dtype = dtype_name(argument(call, 1, "dtype"))
    return _cleared(call, shape, dtype)


def _cleared(call: Call, shape: Shape | None, dtype: str) -> Value:
    if shape is None:
        call.spend(seconds("numpy.zeros"))
        return replace(ARRAY, dtype=dtype)
    result = array(shape, dtype)
    fixed = result.bytes.constant
    if fixed is not None and fixed[1] > 2**25:
        call.spend(primitive("numpy.zeros.large"))
        return replace(result, payload=UNTOUCHED)
    call.spend(seconds("numpy.zeros", bytes_of(result).times(1 / 8)))
    return result


def _empty(call: Call) -> Value:
    shape = shape_of(argument(call, 0, "shape"))
    dtype = dtype_name(argument(call, 1, "dtype"))
    call.spend(primitive("numpy.empty"))
    if shape is None:
        return replace(ARRAY, dtype=dtype)
    result = array(shape, dtype)
    fixed = result.bytes.constant
    if fixed is not None and fixed[1] > 2**25:
        call.spend(primitive("numpy.zeros.large"))
        return replace(result, payload=UNTOUCHED)
    return result


def _ones(call: Call) -> Value:
    return filled(call, "numpy.ones", shape_of(argument(call, 0, "shape")), dtype_name(argument(call, 1, "dtype")))


def _full(call: Call) -> Value:
    value = argument(call, 1, "fill_value")
    default = {"int": "int64", "bool": "bool"}.get(value.kind, "float64")
    return filled(
        call, "numpy.ones", shape_of(argument(call, 0, "shape")), dtype_name(argument(call, 2, "dtype"), default)
    )


def _like(maker: str) -> Rule:
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


def _arange(call: Call) -> Value:
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


def _linspace(call: Call) -> Value:
    given = argument(call, 2, "num")
    count = constant(50) if given is UNKNOWN else number(given)
    return filled(call, "numpy.linspace", None if count is None else (count,), dtype_name(argument(call, 5, "dtype")))


def _eye(call: Call) -> Value:
    rows = number(argument(call, 0, "N", "n"))
    given = argument(call, 1, "M")
    columns = rows if is_missing(given) else number(given)
    if rows is None or columns is None:
        return replace(ARRAY)
    call.spend(seconds("numpy.iterate", rows.times(0.1)))
    dtype = dtype_name(call.keywords.get("dtype", UNKNOWN))
    result = _cleared(call, (rows, columns), dtype)
    # A diagonal entry touches a separate page.
    if (fixed := result.bytes.constant) is not None and fixed[1] > 2**25:
        call.spend(moved_bytes(fresh=[result.bytes]))
    return result


def _array(call: Call) -> Value:
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
    call.spend(moved_bytes(fresh=[result.bytes]))
    return result


def _asarray(call: Call) -> Value:
    source = argument(call, 0, "a", "object")
    if source.kind == "array" and is_missing(argument(call, 1, "dtype")):
        call.spend(primitive("numpy.view"))
        return replace(source, bytes=ZERO)
    return _array(call)


def _fromiter(call: Call) -> Value:
    count = call.consume(argument(call, 0, "iter", "iterable"))
    dtype = dtype_name(argument(call, 1, "dtype"))
    call.spend(seconds("numpy.array", count))
    return array((count,), dtype)


def _frombuffer(call: Call) -> Value:
    buffer = argument(call, 0, "buffer")
    dtype = dtype_name(argument(call, 1, "dtype"))
    call.spend(primitive("numpy.view"))
    result = array((), dtype, view=True)
    return array((call.length(buffer).times(1 / result.itemsize),), dtype, view=True)


def _fromfunction(call: Call) -> Value:
    shape = shape_of(argument(call, 1, "shape"))
    if shape is None:
        return lost(call, "numpy.ones")
    grid = array(shape)
    for _ in shape:
        call.spend(seconds("numpy.arange", grid.size))
        call.allocate(grid.bytes)
    return call.apply(argument(call, 0, "function"), ONE, [replace(grid, bytes=ZERO)] * len(shape))


def _meshgrid(call: Call) -> Value:
    axes = [as_array(call, value) for value in call.args]
    known = [axis for axis in axes if axis is not None]
    if len(known) != len(axes) or not known:
        return lost(call, "numpy.meshgrid")
    lengths = [axis.size or ONE for axis in known]
    if len(lengths) > 1:
        lengths[0], lengths[1] = lengths[1], lengths[0]
    call.spend(primitive("numpy.meshgrid"))
    grids = tuple(filled(call, "numpy.ones", tuple(lengths), axis.dtype) for axis in known)
    held = ZERO
    for grid in grids:
        held = held + grid.bytes
    return Value("list", size=constant(len(grids)), item=grids[0], bytes=held, payload=grids)


def _random(name: str, dtype: str = "float64", position: int | None = None, *, many: bool = False) -> Rule:
    """Random numbers: the shape is at a position, in ``size``, or (``many``) the arguments."""

    def rule(call: Call) -> Value:
        if many:
            axes = [number(value) for value in call.args]
            shape: Shape | None = (
                None if any(axis is None for axis in axes) else tuple(axis for axis in axes if axis is not None)
            )
            if not call.args:
                call.spend(seconds(name))
                return Value("float", bytes=constant(24))
        else:
            given = call.keywords.get("size", UNKNOWN)
            if given is UNKNOWN and position is not None and position < len(call.args):
                given = call.args[position]
            if is_missing(given):
                call.spend(seconds(name))
                return Value("int" if dtype == "int64" else "float", bytes=constant(32))
            shape = shape_of(given)
        if shape is None:
            call.spend(seconds(name))
            return replace(ARRAY, dtype=dtype)
        result = array(shape, dtype)
        call.spend(seconds(name, result.size))
        call.spend(moved_bytes(fresh=[result.bytes]))
        return result

    return rule


def _permutation(call: Call) -> Value:
    given = argument(call, 0, "x")
    value = as_array(call, given) if given.kind not in ("int", "unknown") else None
    count = number(given) if value is None else value.size
    if count is None:
        return lost(call, "numpy.permutation")
    call.spend(seconds("numpy.permutation", count))
    result = array((count,), "int64") if value is None else array(value.shape or (), value.dtype)
    access_far(call, result)
    return result


def _shuffle(call: Call) -> Value:
    given = argument(call, 0, "x")
    value = as_array(call, given)
    if value is None or not value.shape:
        call.unknown(ONE)
        return NONE
    if given.kind == "list":
        call.spend(seconds("numpy.iterate", value.shape[0].times(5)))
    else:
        call.spend(seconds("numpy.permutation", value.shape[0]))
        access_far(call, value)
    return NONE


def _choice(call: Call) -> Value:
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


def _generator(call: Call) -> Value:
    call.spend(primitive("numpy.random.default_rng"))
    return Value("object", name="numpy.random.Generator")


def _diag(call: Call) -> Value:
    value = as_array(call, argument(call, 0, "v"))
    if value is None or not value.shape:
        return lost(call, "numpy.view")
    call.spend(primitive("numpy.view") * 3)
    if len(value.shape) > 1:
        return array(value.shape[:1], value.dtype, view=True)
    return _cleared(call, (value.shape[0], value.shape[0]), value.dtype)


def _spent(call: Call, name: str) -> Value:
    call.spend(primitive(name))
    return NONE


def _scalar_type(dtype: str) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(primitive("numpy.item"))
        given = argument(call, 0, "x")
        value = as_array(call, given) if given.kind in ("array", "list", "tuple") else None
        if value is not None and value.shape:
            return elementwise(call, "numpy.cast", [value], dtype)
        fixed = number(given) if given.kind in ("int", "float", "bool") else None
        return replace(boxed(dtype), number=fixed)

    return rule


_FUNCTIONS: dict[str, Rule] = {
    "zeros": _zeros,
    "empty": _empty,
    "ones": _ones,
    "full": _full,
    "zeros_like": _like("zeros"),
    "ones_like": _like("ones"),
    "full_like": _like("full"),
    "empty_like": _like("empty"),
    "arange": _arange,
    "linspace": _linspace,
    "logspace": _linspace,
    "geomspace": _linspace,
    "eye": _eye,
    "identity": _eye,
    "array": _array,
    "asarray": _asarray,
    "ascontiguousarray": _asarray,
    "asanyarray": _asarray,
    "fromiter": _fromiter,
    "frombuffer": _frombuffer,
    "fromfunction": _fromfunction,
    "meshgrid": _meshgrid,
    "diag": _diag,
    "random.rand": _random("numpy.random.rand", many=True),
    "random.randn": _random("numpy.random.normal", many=True),
    **dict.fromkeys(
        ("random.random", "random.random_sample", "random.sample", "random.ranf"),
        _random("numpy.random.rand", position=0),
    ),
    "random.randint": _random("numpy.random.randint", "int64", 2),
    "random.random_integers": _random("numpy.random.randint", "int64", 2),
    "random.normal": _random("numpy.random.normal", position=2),
    "random.standard_normal": _random("numpy.random.normal", position=0),
    "random.uniform": _random("numpy.random.rand", position=2),
    **dict.fromkeys(
        ("random.exponential", "random.poisson", "random.gamma", "random.beta", "random.binomial", "random.lognormal"),
        _random("numpy.random.gamma", position=2),
    ),
    "random.permutation": _permutation,
    "random.shuffle": _shuffle,
    "random.choice": _choice,
    "random.default_rng": _generator,
    "random.RandomState": _generator,
    "random.seed": lambda call: _spent(call, "numpy.random.seed"),
}
FUNCTIONS: dict[str, Rule] = {f"numpy.{name}": rule for name, rule in _FUNCTIONS.items()}
FUNCTIONS |= {
    f"numpy.{name}": _scalar_type(name)
    for name in [
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
}
FUNCTIONS |= {f"numpy.{alias}": _scalar_type(name) for alias, name in (("bool_", "bool"), ("intp", "int64"))}
METHODS: dict[tuple[str, str], Rule] = {
    ("numpy.random.Generator", name): rule
    for name, rule in {
        "random": _random("numpy.random.random", position=0),
        "integers": _random("numpy.random.integers", "int64", 2),
        "normal": _random("numpy.random.normal", position=2),
        "standard_normal": _random("numpy.random.normal", position=0),
        "uniform": _random("numpy.random.random", position=2),
        "exponential": _random("numpy.random.normal", position=1),
        "poisson": _random("numpy.random.gamma", "int64", 1),
        "choice": _choice,
        "permutation": _permutation,
        "shuffle": _shuffle,
        "rand": _random("numpy.random.rand", many=True),
        "randn": _random("numpy.random.normal", many=True),
        "randint": _random("numpy.random.randint", "int64", 2),
    }.items()
}
