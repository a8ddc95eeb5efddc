"""PyTorch functions and tensor methods that make tensors, change their dtype or take them to Python."""

from __future__ import annotations

import math
from typing import Any

from .functions import FUNCTIONS, Rule, rule, take, tensor
from .recorder import Recorder
from .values import DTYPES, UNKNOWN, Shape, Tensor, Value, as_shape, dtype_of

_CREATED = [
    "rand", "randn", "zeros", "ones", "empty", "rand_mix", "randperm", "full", "randint", "eye", "arange", "linspace",
    "logspace", "normal",
]  # fmt: skip


def _sizes(args: list[Value], named: dict[str, Value], start: int = 0) -> Shape:
    given = named.get(
        "size", args[start] if len(args) == start + 1 and isinstance(args[start], (list, tuple)) else args[start:]
    )
    return as_shape([size for size in given or () if not isinstance(size, str)])


def _created_shape(name: str, args: list[Value], named: dict[str, Value]) -> Shape:
    if name in ("rand", "randn", "zeros", "ones", "empty", "rand_mix"):
        return _sizes(args, named)
    if name in ("full", "randint", "normal"):
        given = named.get("size", next((value for value in args if isinstance(value, (list, tuple))), None))
        return as_shape(given if given is not None else ())
    if name in ("linspace", "logspace"):
        return as_shape([take(args, named, 2, "steps", 100)])
    if name == "arange":
        bounds = [take(args, named, 0, "start", 0), take(args, named, 1, "end"), take(args, named, 2, "step", 1)]
        low, high = (0, bounds[0]) if bounds[1] is None else bounds[:2]
        return as_shape([max(0, math.ceil((high - low) / bounds[2]))])
    if name == "eye":
        return as_shape([args[0], take(args, named, 1, "m", args[0])])
    return as_shape(args[:1])


_INTEGERS = frozenset({"randint", "randperm"})


def _create(name: str) -> Rule:
    def apply(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
        counted = name == "arange" and all(isinstance(value, int) for value in args)
        default = "int64" if counted or name in _INTEGERS else recorder.dtype
        shape = _created_shape(name, args, named)
        return recorder.add(name, "elementwise", [], shape, dtype=dtype_of(named.get("dtype"), default))

    return apply


def _create_like(name: str) -> Rule:
    def apply(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
        x = tensor(args[0])
        return recorder.add(name, "elementwise", [], x.shape, dtype=dtype_of(named.get("dtype"), x.dtype))

    return apply


FUNCTIONS.update({name: _create(name) for name in _CREATED})
FUNCTIONS.update({f"{name}_like": _create_like(name) for name in (*_CREATED, "bernoulli")})


@rule("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")
def _new(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    sizes = _sizes(args[:2] if isinstance(args[1], (list, tuple)) else args, named, 1)
    return recorder.add("zeros", "elementwise", [], sizes, dtype=dtype_of(named.get("dtype"), tensor(args[0]).dtype))


@rule("tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "from_numpy", "array", "asarray")
def _literal(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    value, shape = take(args, named, 0, "data"), []
    if isinstance(value, Tensor):
        return value
    first = value
    while isinstance(first, (list, tuple)):
        shape.append(len(first))
        first = first[0] if first else 0.0
    default = "bool" if isinstance(first, bool) else "int64" if isinstance(first, int) else recorder.dtype
    known = value if isinstance(value, (int, float)) else None
    return Tensor(as_shape(shape), dtype_of(named.get("dtype"), default), value=known)


def cast(recorder: Recorder, x: Tensor, dtype: str) -> Tensor:
    """Change the dtype; free when it is that already."""
    return x if dtype == x.dtype else recorder.add("to", "elementwise", [x], x.shape, dtype=dtype)


@rule("to", "type")
def _to(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    x = tensor(args[0])
    wanted = [value for value in [*args[1:], *named.values()] if not isinstance(value, bool)]
    for value in wanted:
        if isinstance(value, Tensor):
            return cast(recorder, x, value.dtype)
    return cast(recorder, x, next((dtype for value in wanted if (dtype := dtype_of(value, ""))), x.dtype))


@rule("type_as")
def _type_as(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    return cast(recorder, tensor(args[0]), tensor(args[1]).dtype)


def _cast_to(dtype: str) -> Rule:
    return lambda recorder, args, named: cast(recorder, tensor(args[0]), dtype)


FUNCTIONS.update({name: _cast_to(dtype) for name, dtype in DTYPES.items()})


@rule(
    "cuda", "cpu", "detach", "requires_grad_", "requires_grad", "pin_memory", "data", "resolve_conj", "checkpoint_name"
)
def _same(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    return tensor(args[0])


@rule("item", "tolist", "numpy")
def _item(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Any:
    known = tensor(args[0]).value
    return UNKNOWN if known is None else known
