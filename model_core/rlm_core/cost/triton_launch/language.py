"""The functions of ``triton.language`` by name: what they give and what they count."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..concrete.values import UNKNOWN, Named, Value
from ..domain.records import replace
from . import blocks, memory
from .arithmetic import binary, counted, most_of, plain
from .blocks import argument, shape_argument
from .program import Program, joined
from .values import (
    WIDTH,
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
_COMPOSED = {"sigmoid": 4.0, "silu": 5.0}  # floating-point operations that these consist of
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
        flops = _COMPOSED.get(plain_name)
        return counted(program.tally, shape, dtype if is_floating(dtype) else "fp32", "special", flops=flops)
    if name in _RANDOM:
        return counted(program.tally, shape, "fp32", times=_ROUNDS * _RANDOM[name], flops=0.0)
    if name.startswith("is_") and args and isinstance(args[0], DType):
        return _is_kind(program, node, args, named)
    # A function of types and numbers, such as the least number of a type, does nothing that counts.
    if plain_name not in _PLAIN and (
        shape or not args or any(value is UNKNOWN or isinstance(value, Pointer) for value in args)
    ):
        program.tally.unknown += 1
    result = counted(program.tally, shape, dtype)
    return (result,) * 4 if name in ("philox", "rand4x", "randn4x", "randint4x") else result


def _program_id(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return program.place[argument(args, named, 0, "axis", 0)]


def _num_programs(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return program.grid[argument(args, named, 0, "axis", 0)]


def _arange(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    start, end = argument(args, named, 0, "start"), argument(args, named, 1, "end")
    bounded((end - start,))
    program.tally.step(end - start)
    return np.arange(start, end, dtype=np.int64)


def _full(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    value, dtype = argument(args, named, 1, "value"), argument(args, named, 2, "dtype")
    shape = shape_argument(args[0] if args else named["shape"])
    name = dtype.name if isinstance(dtype, DType) else "fp32"
    if is_floating(name) or isinstance(value, (Data, float)):
        return Data(shape, name)
    return np.full(shape, value, bool if name == "bool" else np.int64)


def _zeros(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    shape = args[0] if args else named["shape"]
    return _full(program, node, [shape, 0, argument(args, named, 1, "dtype")], {})


def _like(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return _full(program, node, [shape_of(args[0]), 0, DType(dtype_of(args[0]))], {})


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
    out = argument(args, named, 99, "out_dtype")
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
    axis = argument(args, named, 1, "axis")
    shape = shape_of(block)
    dtype = dtype_of(block)
    program.tally.add("scalar", math.prod(shape), flops=None if is_floating(dtype) else 0.0)
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
    work = math.prod(shape) * rounds * (rounds if name in ("sort", "topk") else 1)
    program.tally.add("scalar", work, flops=math.prod(shape) if is_floating(dtype_of(block)) else 0.0)
    program.tally.add("barriers", rounds if name in ("sort", "topk") else 1)
    program.tally.step()
    if name == "histogram":
        return Data(shape_argument(args[1]), "int32")
    return Data(shape, dtype_of(block))


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
    return cast(program, args[0], argument(args, named, 1, "dtype"))


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
    **memory.RULES, **blocks.RULES,
    "program_id": _program_id, "num_programs": _num_programs, "arange": _arange, "full": _full, "zeros": _zeros,
    "zeros_like": _like, "full_like": _like, "dot": _dot, "dot_scaled": _dot, "where": _where, "minimum": _extreme,
    "maximum": _extreme, "min": _extreme, "max": _extreme, "cast": _cast, "to": _cast, "range": _range,
    "static_range": _range, "cdiv": _cdiv, "next_power_of_2": _next_power, "swizzle2d": _swizzle, "float": _number,
    "int": _number, "bool": _number, "gather": _gather, "pointer_type": _pointer_type,
    "len": lambda program, node, args, named: len(args[0]), "tuple": lambda program, node, args, named: tuple(args[0]),
    **dict.fromkeys(_REDUCTIONS, _reduce), **dict.fromkeys(_SCANS, _scan),
    **dict.fromkeys(("is_floating", "is_fp16", "is_bf16", "is_fp32", "is_fp64", "is_int", "is_ptr", "is_block",
                     "is_fp8", "is_int8", "is_int1", "is_int32", "is_int64"), _is_kind),
}  # fmt: skip
