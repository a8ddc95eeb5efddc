"""The functions of ``triton.language`` by name: what they give and what they count."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..concrete.values import UNKNOWN, Named, Value
from ..domain.records import replace
from .accesses import access, block_pointers
from .arithmetic import binary, counted, most_of, plain
from .program import Program, joined
from .values import (
    WIDTH,
    BlockPointer,
    Data,
    DType,
    NotUnderstood,
    Pointer,
    PointerType,
    Shape,
    bounded,
    broadcast,
    dtype_of,
    is_floating,
    promoted,
    shape_of,
)

_Rule = Callable[[Program, ast.Call, list[Value], Named], Value]
_SPECIAL = frozenset({
    "exp", "exp2", "expm1", "log", "log2", "log1p", "log10", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin",
    "acos", "atan", "atan2", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "sqrt_rn", "erf", "erfc", "erfinv", "sigmoid",
    "pow", "div_rn", "fast_expf", "fast_logf", "fast_dividef",
    "softplus", "logsigmoid", "log_sigmoid", "silu", "gelu", "div", "fdiv", "cbrt", "lgamma", "tgamma", "fmod", "powf",
    "exp10", "fast_tanhf", "softmax", "rsqrt_rn",
})  # fmt: skip
_PLAIN = frozenset({
    "abs", "fabs", "floor", "ceil", "fma", "clamp", "isnan", "isinf", "finitef", "isfinited", "nearbyint", "rint",
    "round", "trunc", "llrint", "copysign", "signbit", "ffs", "popc", "clz", "umulhi", "mulhi", "ldexp", "nextafter",
    "hypot", "max", "min", "inline_asm_elementwise", "map_elementwise", "float_as_int", "int_as_float", "div_rz",
})  # fmt: skip
_RANDOM = {"rand": 1.0, "randn": 1.0, "randint": 1.0, "philox": 4.0, "rand4x": 4.0, "randn4x": 4.0, "randint4x": 4.0}
_ROUNDS = 60.0  # plain operations of Philox's ten rounds for a number
_KEPT = frozenset({
    "multiple_of", "max_contiguous", "max_constancy", "constexpr", "assume", "detach", "debug_barrier", "value",
    "_unwrap_if_constexpr", "to_tensor", "contiguous", "primitive_bitwidth",
})  # fmt: skip
_SILENT = frozenset({
    "static_assert", "device_assert", "static_print", "device_print", "print", "debug_barrier", "assume",
    "fence_async_shared", "inline_asm", "gdc_wait", "gdc_launch_dependents",
})  # fmt: skip
_REDUCTIONS = frozenset({"sum", "xor_sum", "argmax", "argmin", "reduce", "reduce_or"})
_SCANS = frozenset({"cumsum", "cumprod", "associative_scan", "cummax", "sort", "flip", "histogram", "topk"})
_INTEGERS: dict[str, Callable[..., Any]] = {
    "minimum": np.minimum, "maximum": np.maximum, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_MOST_ARGS = 64


def call(program: Program, node: ast.Call, name: str, args: list[Value], named: Named) -> Value:
    """The result of a function of the language.

    Raises:
        NotUnderstood: there is no rule for it or its arguments.
    """
    rule = _RULES.get("dot" if name.endswith("_dot") else name)  # libraries wrap it, such as safe_dot
    if rule is not None:
        return rule(program, node, args, named)
    if name in _SILENT:
        return None
    if name in _KEPT:
        return args[0]
    blocks = [
        value for value in (*args[:_MOST_ARGS], *named.values()) if isinstance(value, (Data, np.ndarray, int, float))
    ]
    shape = broadcast(*map(shape_of, blocks))
    dtype = promoted(*blocks) if blocks else "fp32"
    # Libraries have functions such as triton_tanh.
    plain_name = name.removeprefix("triton_").removeprefix("fast_").removeprefix("libdevice_")
    if plain_name in _SPECIAL:
        return counted(program.tally, shape, dtype if is_floating(dtype) else "fp32", "special")
    if name in _RANDOM:
        return counted(program.tally, shape, "fp32", times=_ROUNDS * _RANDOM[name])
    if name.startswith("is_") and args and isinstance(args[0], DType):
        return _is_kind(program, node, args, named)
    # A function of types and numbers, such as the least number of a type, does nothing that counts.
    if plain_name not in _PLAIN and (shape or not args or any(value is UNKNOWN for value in args)):
        program.tally.unknown += 1
    result = counted(program.tally, shape, dtype)
    return (result,) * 4 if name in ("philox", "rand4x", "randn4x", "randint4x") else result


def _argument(args: list[Value], named: Named, index: int, name: str, default: Value = None) -> Value:
    value = args[index] if len(args) > index else named.get(name, default)
    return plain(value)


def _shape(value: Value) -> Shape:
    """A shape argument."""
    sizes = value if isinstance(value, (tuple, list)) else (value,)
    return bounded(tuple(int(plain(size)) for size in sizes))


def _sizes(args: list[Value], named: Named) -> Shape:
    """The shape after a block: a tuple, or its sizes one by one."""
    return _shape(args[1] if len(args) == 2 else tuple(args[1:]) or named.get("shape", ()))


def _program_id(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return program.place[_argument(args, named, 0, "axis", 0)]


def _num_programs(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return program.grid[_argument(args, named, 0, "axis", 0)]


def _arange(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    start, end = _argument(args, named, 0, "start"), _argument(args, named, 1, "end")
    bounded((end - start,))
    program.tally.step(end - start)
    return np.arange(start, end, dtype=np.int64)


def _full(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    value, dtype = _argument(args, named, 1, "value"), _argument(args, named, 2, "dtype")
    shape = _shape(args[0] if args else named["shape"])
    name = dtype.name if isinstance(dtype, DType) else "fp32"
    if is_floating(name) or isinstance(value, (Data, float)):
        return Data(shape, name)
    return np.full(shape, value, bool if name == "bool" else np.int64)


def _zeros(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    shape = args[0] if args else named["shape"]
    return _full(program, node, [shape, 0, _argument(args, named, 1, "dtype")], {})


def _like(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return _full(program, node, [shape_of(args[0]), 0, DType(dtype_of(args[0]))], {})


def _pointers(program: Program, pointer: Value, args: list[Value], named: Named, first: int) -> tuple[Value, Value]:
    """The pointers and the mask of a load (``first`` argument after the pointer) or store."""
    mask = _argument(args, named, first, "mask")
    if not isinstance(pointer, BlockPointer):
        return pointer, True if mask is None else mask
    checked = named.get("boundary_check", mask if isinstance(mask, tuple) else ())
    return block_pointers(program.tally, pointer, checked if isinstance(checked, tuple) else (checked,))


def _load(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    pointer = args[0] if args else named.get("pointer", UNKNOWN)
    if isinstance(pointer, BlockPointer) and pointer.checked and len(args) > 1:  # a descriptor's method
        pointer = replace(pointer, offsets=tuple(args[1]))
        args = args[:1]
    pointer, mask = _pointers(program, pointer, args, named, 1)
    if not isinstance(pointer, Pointer) or mask is UNKNOWN:
        program.tally.unknown += 1
        return UNKNOWN if mask is not UNKNOWN else Data(shape_of(pointer), dtype_of(pointer))
    shape = access(program.tally, node.lineno * 1000 + node.col_offset, "loaded", pointer, mask)
    return Data(shape, pointer.dtype)


def _store(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    pointer = args[0] if args else named.get("pointer", UNKNOWN)
    value = args[1] if len(args) > 1 else named.get("value")
    if isinstance(pointer, BlockPointer) and pointer.checked and len(args) > 2:
        pointer = replace(pointer, offsets=tuple(args[1]))
        value, args = args[2], args[:1]
    pointer, mask = _pointers(program, pointer, args, named, 2)
    if not isinstance(pointer, Pointer) or mask is UNKNOWN:
        program.tally.unknown += 1
        return None
    access(program.tally, node.lineno * 1000 + node.col_offset, "stored", pointer, mask, shape_of(value))
    return None


def _atomic(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    pointer = args[0] if args else named.get("pointer", UNKNOWN)
    place = 3 if node.func.attr == "atomic_cas" else 2  # type: ignore[attr-defined]
    mask = True if place == 3 else _argument(args, named, place, "mask", True)
    if not isinstance(pointer, Pointer) or mask is UNKNOWN:
        program.tally.unknown += 1
        return UNKNOWN
    data = shape_of(args[1] if len(args) > 1 else named.get("val"))
    site = node.lineno * 1000 + node.col_offset
    return Data(access(program.tally, site, "atomics", pointer, True if mask is None else mask, data), pointer.dtype)


def _dot(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    is_scaled = isinstance(node.func, ast.Attribute) and node.func.attr == "dot_scaled"
    left, right = args[0], args[3] if is_scaled else args[1]
    one, other = shape_of(left), shape_of(right)
    inner = one[-1]
    shape = bounded((*one[:-1], other[-1]))
    dtype = promoted(left, right)
    is_wide = WIDTH.get(dtype, 4.0) > 2
    program.tally.add("dot_wide" if is_wide else "dot", 2.0 * math.prod(shape) * inner)
    size = sum(math.prod(shape_of(part)) * WIDTH.get(dtype_of(part), 4.0) for part in (left, right))
    program.tally.tiles[node.lineno * 1000 + node.col_offset] = size
    program.tally.widest = max(program.tally.widest, math.prod(shape))
    program.tally.step()
    out = _argument(args, named, 99, "out_dtype")
    return Data(shape, out.name if isinstance(out, DType) else "int32" if not is_floating(dtype) else "fp32")


def _where(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    condition, left, right = args
    shape = broadcast(*map(shape_of, args))
    if isinstance(left, Pointer) or isinstance(right, Pointer):
        return joined(left, right)
    known = (int, float, np.ndarray)
    if isinstance(condition, known):
        if isinstance(left, (int, np.ndarray)) and isinstance(right, (int, np.ndarray)):
            program.tally.step(math.prod(shape))
            return plain(np.where(condition, left, right))
        if not shape:
            return left if condition else right
    dtype = promoted(left, right)
    result = counted(program.tally, shape, dtype)
    return (
        replace(result, most=np.broadcast_to(most_of(condition), shape))
        if _is_mask(condition, right, dtype)
        else result
    )


def _is_mask(condition: Value, right: Value, dtype: str) -> bool:
    return dtype == "bool" and right is False and most_of(condition) is not True


def _extreme(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    """``minimum``, ``maximum``; ``min`` and ``max`` of two values, or the reductions."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id  # type: ignore[attr-defined]
    is_reduction = name in ("min", "max") and (len(args) < 2 or "axis" in named or _is_axis(args))
    if is_reduction:
        return _reduce(program, node, args, named)
    left, right = args[0], args[1] if len(args) > 1 else named["y"]
    if len(args) == 3 and all(isinstance(value, int) for value in args):
        return plain(_INTEGERS[name](_INTEGERS[name](args[0], args[1]), args[2]))
    if isinstance(left, (int, np.ndarray)) and isinstance(right, (int, np.ndarray)):
        return plain(_INTEGERS[name](left, right))
    return counted(program.tally, broadcast(shape_of(left), shape_of(right)), promoted(left, right))


def _is_axis(args: Sequence[Value]) -> bool:
    """Return whether the second argument is an axis of the first one, which is a block."""
    rank = len(shape_of(args[0]))
    return rank > 0 and isinstance(args[1], int) and -rank <= args[1] < rank


def _reduce(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    block = args[0]
    if isinstance(block, tuple):
        return tuple(_reduce(program, node, [part, *args[1:]], named) for part in block)
    axis = _argument(args, named, 1, "axis")
    shape = shape_of(block)
    dtype = dtype_of(block)
    program.tally.add("scalar", math.prod(shape))
    program.tally.add("barriers", 1)
    program.tally.step()
    kept = bool(named.get("keep_dims"))
    if axis is None or not isinstance(axis, int):
        left: Shape = (1,) * len(shape) if kept else ()
    else:
        axis %= len(shape)
        left = tuple(1 if place == axis else size for place, size in enumerate(shape) if kept or place != axis)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    result = Data(left, "int32" if name.startswith("arg") or not is_floating(dtype) else dtype)
    is_pair = named.get("return_indices") is True
    return (result, Data(left, "int32")) if is_pair else result


def _scan(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    block = args[0]
    if isinstance(block, tuple):
        return tuple(_scan(program, node, [part, *args[1:]], named) for part in block)
    shape, name = shape_of(block), node.func.attr if isinstance(node.func, ast.Attribute) else ""
    rounds = math.log2(max(math.prod(shape), 2))
    program.tally.add("scalar", math.prod(shape) * rounds * (rounds if name in ("sort", "topk") else 1))
    program.tally.add("barriers", rounds if name in ("sort", "topk") else 1)
    program.tally.step()
    if name == "histogram":
        return Data(_shape(args[1]), "int32")
    return Data(shape, dtype_of(block))


def transposed(value: Value, order: tuple[Any, ...]) -> Value:
    """A block with its dimensions in another order, by default the reverse.

    Raises:
        NotUnderstood: it has none.
    """
    rank = len(shape_of(value))
    if order and isinstance(order[0], tuple):
        order = order[0]
    axes = tuple(order) or (*range(rank - 2), rank - 1, rank - 2)
    return _arranged(value, lambda array: array.transpose(axes), tuple(shape_of(value)[axis] for axis in axes))


def _arranged(value: Value, action: Callable[[Any], Any], shape: Shape) -> Value:
    """A block whose known arrays are arranged in another way."""
    if isinstance(value, np.ndarray):
        return action(value)
    if isinstance(value, Pointer):
        return replace(value, offset=_arranged(value.offset, action, shape))
    if isinstance(value, Data):
        relative, most = (None if part is None else action(part) for part in (value.relative, value.most))
        return replace(value, shape=shape, relative=relative, most=most)
    if isinstance(value, (int, float)):
        return _arranged(np.asarray(value), action, shape)
    raise NotUnderstood("not a block")


def _trans(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return transposed(args[0], tuple(args[1:]))


def _reshape(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    shape = _sizes(args, named)
    whole = math.prod(shape_of(args[0]))
    if -1 in shape:
        shape = tuple(whole // -math.prod(shape) if size == -1 else size for size in shape)
    if math.prod(shape) != whole:
        raise NotUnderstood("reshape")
    return _arranged(args[0], lambda array: array.reshape(shape), shape)


def _ravel(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return _arranged(args[0], lambda array: array.reshape(-1), (math.prod(shape_of(args[0])),))


def _broadcast_to(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    shape = _sizes(args, named)
    broadcast(shape_of(args[0]), shape)
    return _arranged(args[0], lambda array: np.broadcast_to(array, shape), shape)


def _broadcast(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    shape = broadcast(*map(shape_of, args[:2]))
    return tuple(_arranged(value, lambda array: np.broadcast_to(array, shape), shape) for value in args[:2])


def _expand_dims(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    axis = _argument(args, named, 1, "axis")
    rank = len(shape_of(args[0])) + 1
    shape = list(shape_of(args[0]))
    shape.insert(axis % rank, 1)
    return _arranged(args[0], lambda array: np.expand_dims(array, axis), tuple(shape))


def _join(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    shape = broadcast(shape_of(args[0]), shape_of(args[1]))
    result = (*shape, 2) if name == "join" else (*shape[:-1], shape[-1] * 2)
    return Data(bounded(result), promoted(*args[:2]))


def _split(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    part = Data(shape_of(args[0])[:-1], dtype_of(args[0]))
    return part, part


def _make_block_ptr(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    names = ("base", "shape", "strides", "offsets", "block_shape")
    base, sizes, strides, offsets, block = (_argument(args, named, place, name) for place, name in enumerate(names))
    return BlockPointer(base, tuple(sizes), tuple(strides), tuple(offsets), _shape(block))


def _make_descriptor(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    names = ("base", "shape", "strides", "block_shape")
    base, sizes, strides, block = (_argument(args, named, place, name) for place, name in enumerate(names))
    shape = _shape(block)
    return BlockPointer(base, tuple(sizes), tuple(strides), (0,) * len(shape), shape, True)


def _advance(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    block, offsets = args[0], args[1] if len(args) > 1 else named["offsets"]
    moved = (binary(program.tally, ast.Add, old, step) for old, step in zip(block.offsets, offsets, strict=True))
    return replace(block, offsets=tuple(moved))


def cast(program: Program, value: Value, dtype: Value) -> Value:
    """A value as another type; known indices stay known as long as they are integers.

    Raises:
        NotUnderstood: it is not a type or not a number.
    """
    if isinstance(value, Pointer):
        return replace(value, dtype=dtype.element.name) if isinstance(dtype, PointerType) else value
    if isinstance(dtype, PointerType):
        return Pointer("data", dtype.element.name, Data(shape_of(value), "int64"))
    if not isinstance(dtype, DType):
        raise NotUnderstood("not a type")
    if isinstance(value, Data):
        return replace(value, dtype=dtype.name) if dtype.name != "bool" else Data(value.shape, "bool")
    if dtype.name == "bool":
        return value.astype(bool) if isinstance(value, np.ndarray) else bool(value)
    if not is_floating(dtype.name):
        return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)
    return Data(shape_of(value), dtype.name) if isinstance(value, np.ndarray) else float(value)


def _cast(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return cast(program, args[0], _argument(args, named, 1, "dtype"))


def _range(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    bounds = [plain(value) for value in args]
    if any(not isinstance(value, int) for value in bounds):
        return UNKNOWN
    return range(*bounds)


def _cdiv(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    tally = program.tally
    top = binary(tally, ast.Sub, binary(tally, ast.Add, args[0], args[1]), 1)
    return binary(tally, ast.FloorDiv, top, args[1])


def _next_power(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return 1 << max(int(args[0]) - 1, 0).bit_length()


def _swizzle(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    row, column, rows, columns, group = map(plain, args)
    place = row * columns + column
    size = group * columns
    first = place // size * group
    height = min(rows - first, group)
    place %= size
    return first + place % height, place // height


def _number(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    value = args[0]
    if isinstance(value, (Data, np.ndarray)):
        return Data(shape_of(value), "fp32" if name == "float" else "int32")
    return float(value) if name == "float" else int(value) if name == "int" else bool(value)


def _pointer_type(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return PointerType(args[0])


def _gather(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return counted(program.tally, shape_of(args[1]), dtype_of(args[0]))


def bits(dtype: Value) -> int:
    """Bits of an element of a type.

    Raises:
        NotUnderstood: it is not a type.
    """
    if not isinstance(dtype, DType):
        raise NotUnderstood("not a type")
    return int(8 * WIDTH[dtype.name])


def _is_kind(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    """``dtype.is_fp16()`` and others."""
    kind = node.func.attr.removeprefix("is_")  # type: ignore[attr-defined]
    name = args[0].name
    known = {"floating": is_floating(name), "int": name.startswith(("int", "uint")), "ptr": False, "block": False}
    return known.get(kind, name == kind)


_RULES: dict[str, _Rule] = {
    "program_id": _program_id, "num_programs": _num_programs, "arange": _arange, "full": _full, "zeros": _zeros,
    "zeros_like": _like, "full_like": _like, "load": _load, "store": _store, "load_tensor_descriptor": _load,
    "store_tensor_descriptor": _store, "dot": _dot, "dot_scaled": _dot, "where": _where, "minimum": _extreme,
    "maximum": _extreme, "min": _extreme, "max": _extreme, "trans": _trans, "permute": _trans, "reshape": _reshape,
    "view": _reshape, "ravel": _ravel, "broadcast_to": _broadcast_to, "broadcast": _broadcast,
    "expand_dims": _expand_dims, "join": _join, "interleave": _join, "cat": _join, "split": _split,
    "make_block_ptr": _make_block_ptr, "make_tensor_descriptor": _make_descriptor,
    "_experimental_make_tensor_descriptor": _make_descriptor, "advance": _advance, "cast": _cast, "to": _cast,
    "range": _range, "static_range": _range, "cdiv": _cdiv, "next_power_of_2": _next_power, "swizzle2d": _swizzle,
    "float": _number, "int": _number, "bool": _number, "gather": _gather, "pointer_type": _pointer_type,
    "len": lambda program, node, args, named: len(args[0]), "tuple": lambda program, node, args, named: tuple(args[0]),
    **dict.fromkeys(_REDUCTIONS, _reduce), **dict.fromkeys(_SCANS, _scan),
    **dict.fromkeys(("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg",
                     "atomic_cas"), _atomic),
    **dict.fromkeys(("is_floating", "is_fp16", "is_bf16", "is_fp32", "is_fp64", "is_int", "is_ptr", "is_block",
                     "is_fp8", "is_int8", "is_int1", "is_int32", "is_int64"), _is_kind),
}  # fmt: skip
