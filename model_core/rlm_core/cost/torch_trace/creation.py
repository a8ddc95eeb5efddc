"""PyTorch functions and tensor methods that make tensors, change their dtype or take them to Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..concrete.values import UNKNOWN, Named, Value
from .functions import rule, rules, take
from .recorder import Recorder
from .values import DTYPES, Shape, Tensor, as_shape, dtype_of

_CREATED = [
    "rand", "randn", "zeros", "ones", "empty", "rand_mix", "randperm", "full", "randint", "eye", "arange", "linspace",
    "logspace", "normal",
]  # fmt: skip


def _sizes(args: Sequence[Value], named: Named) -> Shape:
    given = named.get("size", args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)
    return as_shape([size for size in given or () if not isinstance(size, str)])


def _created_shape(name: str, args: Sequence[Value], named: Named) -> Shape:
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


@rules(dict.fromkeys(_CREATED))
def _create(name: str, _: None, recorder: Recorder, /, *args: Value, **named: Value) -> Value:
    counted = name == "arange" and all(isinstance(value, int) for value in args)
    default = "int64" if counted or name in _INTEGERS else recorder.dtype
    shape = _created_shape(name, args, named)
    return recorder.add(name, "elementwise", [], shape, dtype=dtype_of(named.get("dtype"), default))


@rules({f"{name}_like": name for name in (*_CREATED, "bernoulli")})
def _create_like(_: str, name: str, recorder: Recorder, x: Tensor, /, *, dtype: Value = None) -> Value:
    return recorder.add(name, "elementwise", [], x.shape, dtype=dtype_of(dtype, x.dtype))


@rule("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")
def _new(recorder: Recorder, x: Tensor, /, *args: Value, **named: Value) -> Value:
    sizes = _sizes(args[:1] if isinstance(args[0], (list, tuple)) else args, named)
    return recorder.add("zeros", "elementwise", [], sizes, dtype=dtype_of(named.get("dtype"), x.dtype))


@rule("tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "from_numpy", "array", "asarray")
def _literal(recorder: Recorder, data: Value = None, *, dtype: Value = None) -> Value:
    if isinstance(data, Tensor):
        return data
    first, shape = data, []
    while isinstance(first, (list, tuple)):
        shape.append(len(first))
        first = first[0] if first else 0.0
    default = "bool" if isinstance(first, bool) else "int64" if isinstance(first, int) else recorder.dtype
    known = data if isinstance(data, (int, float)) else None
    return Tensor(as_shape(shape), dtype_of(dtype, default), value=known)


def cast(recorder: Recorder, x: Tensor, dtype: str) -> Tensor:
    """Change the dtype; free when it is that already."""
    return x if dtype == x.dtype else recorder.add("to", "elementwise", [x], x.shape, dtype=dtype)


@rule("to", "type")
def _to(recorder: Recorder, x: Tensor, /, *args: Value, **named: Value) -> Value:
    wanted = [value for value in [*args, *named.values()] if not isinstance(value, bool)]
    for value in wanted:
        if isinstance(value, Tensor):
            return cast(recorder, x, value.dtype)
    return cast(recorder, x, next((dtype for value in wanted if (dtype := dtype_of(value, ""))), x.dtype))


@rule("type_as")
def _type_as(recorder: Recorder, x: Tensor, other: Tensor, /) -> Value:
    return cast(recorder, x, other.dtype)


@rules(DTYPES)
def _cast_to(name: str, dtype: str, recorder: Recorder, x: Tensor, /) -> Value:
    return cast(recorder, x, dtype)


@rule("cuda", "cpu", "detach", "requires_grad_", "requires_grad", "pin_memory", "data", "resolve_conj",
      "checkpoint_name")  # fmt: skip
def _same(recorder: Recorder, x: Tensor, /) -> Value:
    return x


@rule("item", "tolist", "numpy")
def _item(recorder: Recorder, x: Tensor, /) -> Value:
    return UNKNOWN if x.value is None else x.value
