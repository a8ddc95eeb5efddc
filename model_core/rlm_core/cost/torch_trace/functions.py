"""PyTorch functions and tensor methods by name: elementwise, reductions, normalisations, scans and losses.

A rule takes the recorder, the positional and the keyword arguments, records what the call does to tensors and returns
its result. It may raise ValueError, TypeError, LookupError or ArithmeticError for a call it does not understand.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ..concrete.values import Named, UnknownValue, Value
from .recorder import Recorder, promote
from .values import Shape, Tensor, dtype_of, tensors_in

Rule = Callable[[Recorder, list[Value], Named], Value]
FUNCTIONS: dict[str, Rule] = {}
_Function = TypeVar("_Function", bound=Callable[..., Value])
_Binder = Callable[[Sequence[Value], Named], tuple[Sequence[Value], Named]]
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def rule(*names: str) -> Callable[[_Function], _Function]:
    """Register a function under names of PyTorch, whose parameters it has.

    Arguments that it has no parameter for are left out. Those of parameters annotated as ``Tensor`` must be tensors.
    """

    def register(function: _Function) -> _Function:
        FUNCTIONS.update(dict.fromkeys(names, _applied(_binder(function, 1), function)))
        return function

    return register


def rules(table: Mapping[str, Any]) -> Callable[[_Function], _Function]:
    """Register a function under each name of a table; it receives the name and its entry before the recorder."""

    def register(function: _Function) -> _Function:
        bind = _binder(function, 3)
        FUNCTIONS.update({name: _applied(bind, partial(function, name, entry)) for name, entry in table.items()})
        return function

    return register


def _applied(bind: _Binder, function: Callable[..., Value]) -> Rule:
    def apply(recorder: Recorder, args: Sequence[Value], named: Named) -> Value:
        args, named = bind(args, named)
        return function(recorder, *args, **named)

    return apply


def _binder(function: Callable[..., Value], skipped: int) -> _Binder:
    """Return what chooses the arguments that a function has parameters for; the first ones do not count."""
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    kinds = [parameter.kind for parameter in parameters]
    most = None if inspect.Parameter.VAR_POSITIONAL in kinds else sum(kind in _BY_POSITION for kind in kinds)
    # Keywords by the number of positional arguments up to which the keyword counts.
    places: dict[str, float] = {
        item.name: place if item.kind in _BY_POSITION else math.inf
        for place, item in enumerate(parameters) if item.kind in _BY_NAME
    }  # fmt: skip
    other = math.inf if inspect.Parameter.VAR_KEYWORD in kinds else -1
    tensors = [(place, item.name) for place, item in enumerate(parameters) if item.annotation == "Tensor"]

    def bind(args: Sequence[Value], named: Named) -> tuple[Sequence[Value], Named]:
        args = args[:most]
        count = len(args)
        named = {name: value for name, value in named.items() if places.get(name, other) >= count}
        for place, name in tensors:
            tensor(args[place] if place < count else named[name])
        return args, named

    return bind


def take(args: Sequence[Value], named: Named, index: int, name: str, default: Value = None) -> Value:
    """The argument at a position or under its name."""
    return args[index] if index < len(args) else named.get(name, default)


def tensor(value: Value) -> Tensor:
    """The value as a tensor; raises TypeError."""
    if not isinstance(value, Tensor):
        raise TypeError("not a tensor")
    return value


def axes(value: Value, rank: int) -> tuple[int, ...]:
    """A ``dim`` argument as positions from the front; all of them for None."""
    if value is None:
        return tuple(range(rank))
    if isinstance(value, UnknownValue):  # mostly the last one
        value = -1
    chosen = value if isinstance(value, (list, tuple)) else (value,)
    positions = tuple(int(axis) + rank * (int(axis) < 0) for axis in chosen)
    if any(not 0 <= axis < max(rank, 1) for axis in positions):
        raise IndexError("no such dimension")
    return positions or tuple(range(rank))


def axis_of(dim: Value, x: Tensor) -> int:
    """A ``dim`` argument that names one dimension, from the front."""
    (axis,) = axes(dim, len(x.shape))
    return axis


def with_sizes(x: Tensor, axis: int, *sizes: int) -> Shape:
    """The shape with other sizes in place of a dimension's."""
    return (*x.shape[:axis], *sizes, *x.shape[axis + 1 :])


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that shapes broadcast to; raises ValueError."""
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise ValueError("shapes do not broadcast")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


_CHEAP = (
    "abs absolute relu relu6 neg negative positive square floor ceil round "
    "trunc fix frac sign sgn reciprocal clamp clip hardtanh "
    "clamp_min clamp_max threshold hardshrink softshrink dropout dropout1d dropout2d dropout3d alpha_dropout "
    "feature_alpha_dropout leaky_relu rrelu nan_to_num clone bernoulli prelu hardsigmoid hardswish real imag conj "
    "fill zero random uniform normal exponential copysign deg2rad rad2deg quantize_per_tensor quantize_per_channel"
)
_COSTLY = (
    "gelu sigmoid tanh exp exp2 log log2 log10 log1p expm1 sqrt rsqrt "
    "sin cos tan asin acos atan sinh cosh asinh acosh atanh "
    "arcsin arccos arctan erf erfc erfinv softplus mish silu elu "
    "selu celu logsigmoid softsign tanhshrink logit expit digamma "
    "psi lgamma gammaln polygamma i0 i0e i1 i1e bessel_j0 "
    "bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 airy_ai sinc angle "
    "gumbel_softmax chebyshev_polynomial_t hermite_polynomial_h zeta ndtr log_ndtr entr mvlgamma multigammaln glu_gate"
)
_TRUTHS = "isnan isinf isfinite logical_not signbit isreal"
_BINARY = (
    "add sub subtract mul multiply div divide true_divide floor_divide "
    "remainder fmod pow float_power maximum minimum fmax fmin "
    "atan2 bitwise_and bitwise_or bitwise_xor bitwise_not lerp addcmul addcdiv "
    "rsub hypot logaddexp xlogy heaviside ldexp "
    "masked_fill where copy bitwise_left_shift bitwise_right_shift complex polar binomial nextafter dist_terms"
)
_COMPARISONS = (
    "eq ne lt le gt ge equal greater greater_equal less less_equal not_equal logical_and logical_or logical_xor isclose"
)


def pointwise(
    recorder: Recorder, name: str, inputs: Sequence[Value], flops: float = 1.0, dtype: str | None = None
) -> Tensor:
    """Record an elementwise operation on tensors and plain numbers, which broadcast."""
    operands = [value for value in inputs if isinstance(value, Tensor)]
    shape = broadcast([value.shape for value in operands])
    if dtype is None:
        ranked = [value.dtype for value in operands if value.shape] or [value.dtype for value in operands]
        dtype = promote(ranked) or recorder.dtype
        if "int" in dtype and any(isinstance(value, float) for value in inputs):
            dtype = recorder.dtype
    return recorder.add(name, "elementwise", operands, shape, dtype=dtype, flops=flops * math.prod(shape))


@rules(
    dict.fromkeys(_CHEAP.split(), (1.0, None))
    | dict.fromkeys(_COSTLY.split(), (8.0, None))
    | dict.fromkeys(_TRUTHS.split(), (1.0, "bool"))
)
def _unary(name: str, entry: tuple[float, str | None], recorder: Recorder, input: Tensor, *rest: Value) -> Value:
    flops, dtype = entry
    is_whole = "int" in input.dtype or input.dtype == "bool"
    dtype = dtype or (recorder.dtype if flops > 1 and is_whole else input.dtype)
    return pointwise(recorder, name, [input, *(value for value in rest if isinstance(value, Tensor))], flops, dtype)


@rules(dict.fromkeys(_BINARY.split()) | dict.fromkeys(_COMPARISONS.split(), "bool"))
def _binary(name: str, dtype: str | None, recorder: Recorder, /, *args: Value, **named: Value) -> Value:
    return pointwise(recorder, name, [*args, *named.values()], 1.0, dtype)


@rule("glu")
def _glu(recorder: Recorder, x: Tensor, /, dim: Value = -1) -> Value:
    axis = axis_of(dim, x)
    shape = with_sizes(x, axis, x.shape[axis] // 2)
    return recorder.add("glu", "elementwise", [x], shape, flops=8.0 * math.prod(shape))


def reduce(
    recorder: Recorder, name: str, x: Tensor, dim: Value, keep: bool, *, dtype: str | None = None, passes: float = 1
) -> Tensor:
    """Record a reduction over dimensions (all for None)."""
    gone = set(axes(dim, len(x.shape)))
    shape = [1 if axis in gone else size for axis, size in enumerate(x.shape) if keep or axis not in gone]
    return recorder.add(name, "reduction", [x], shape, dtype=dtype, flops=float(x.elements), passes=passes)


_REDUCTIONS = {
    **dict.fromkeys(
        ("sum", "mean", "prod", "amax", "amin", "std", "var", "logsumexp", "nansum", "nanmean", "median", "nanmedian",
         "mode", "max", "min", "quantile", "kthvalue")
    ),
    **dict.fromkeys(("argmax", "argmin", "count_nonzero"), "int64"), **dict.fromkeys(("all", "any"), "bool"),
}  # fmt: skip
_PAIRS = frozenset({"max", "min", "median", "mode", "nanmedian", "kthvalue"})


@rules(_REDUCTIONS)
def _reduction(
    name: str, dtype: str | None, recorder: Recorder, /, input: Tensor, *rest: Value, **named: Value
) -> Value:
    dim, other = take(rest, named, 0, "dim", named.get("axis")), take(rest, named, 0, "other")
    if name in ("max", "min") and isinstance(other, Tensor):
        return pointwise(recorder, name + "imum", [input, other])
    if isinstance(dim, bool):  # std(x, unbiased)
        dim = None
    if name in ("quantile", "kthvalue"):
        dim = take(rest, named, 1, "dim")
    keep = bool(named.get("keepdim", len(rest) > 1 and rest[1] is True))
    default = dtype or (recorder.dtype if name == "mean" and "int" in input.dtype else input.dtype)
    if name == "logsumexp":
        pointwise(recorder, "exp", [input], 8.0)
    passes = 2.0 if name == "logsumexp" else 1.0
    wanted = dtype_of(named.get("dtype"), default)
    values = reduce(recorder, name, input, dim, keep, dtype=wanted, passes=passes)
    if name in _PAIRS and dim is not None:
        return values, Tensor(values.shape, "int64", values.source)
    return values


@rule("norm", "vector_norm", "matrix_norm", "renorm")
def _norm(recorder: Recorder, x: Tensor, /, p: Value = None, dim: Value = None, keepdim: Value = False) -> Value:
    return reduce(recorder, "norm", x, dim, bool(keepdim))


@rule("std_mean", "var_mean", "aminmax")
def _two(recorder: Recorder, x: Tensor, /, dim: Value = None, *, keepdim: Value = False) -> Value:
    first = reduce(recorder, "std", x, dim, bool(keepdim))
    return first, Tensor(first.shape, first.dtype, first.source)


def normalise(
    recorder: Recorder, name: str, x: Tensor, *, passes: float = 1.0, kernels: int = 1, weights: float = 0.0
) -> Tensor:
    """Record a normalisation, which keeps the shape; ``passes`` over the input, ``weights`` in elements."""
    return recorder.add(
        name, "normalisation", [x], x.shape, flops=8.0 * x.elements, passes=passes, kernels=kernels, weights=weights
    )


_FAST_SOFTMAX = 1024  # longer rows are read twice


@rule("softmax", "log_softmax", "softmin")
def _softmax(recorder: Recorder, input: Tensor, dim: Value = -1) -> Value:
    (axis,) = axes(dim, len(input.shape))[:1]
    long = bool(input.shape) and (input.shape[axis] > _FAST_SOFTMAX or axis < len(input.shape) - 1)
    return normalise(recorder, "softmax", input, passes=2.0 if long else 1.0)


# Normalisations: the name of the operation, passes over the input, and launches.
_NORMALISATIONS = {
    "layer_norm": ("layer_norm", 1.0, 1), "rms_norm": ("layer_norm", 1.0, 1), "batch_norm": ("batch_norm", 2.0, 2),
    "instance_norm": ("batch_norm", 2.0, 2), "group_norm": ("group_norm", 2.0, 3),
}  # fmt: skip


@rules(_NORMALISATIONS)
def _norm_layer(
    name: str, entry: tuple[str, float, int], recorder: Recorder, x: Tensor, /, *rest: Value, **named: Value
) -> Value:
    operation, passes, kernels = entry
    weights = sum(value.elements for value in tensors_in([*rest, *named.values()]))
    return normalise(recorder, operation, x, passes=passes, kernels=kernels, weights=weights)


@rule("local_response_norm")
def _local_response_norm(recorder: Recorder, x: Tensor, /) -> Value:
    return normalise(recorder, "local_response_norm", x, passes=4.0, kernels=5)


@rule("normalize")
def _normalize(recorder: Recorder, x: Tensor, /, p: Value = 2, dim: Value = 1) -> Value:
    norm = pointwise(recorder, "clamp", [reduce(recorder, "norm", x, dim, True)])
    return pointwise(recorder, "div", [x, norm])


@rule("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "sort", "argsort", "msort")
def _scan(recorder: Recorder, x: Tensor, /) -> Value:
    return recorder.add("scan", "scan", [x], x.shape, flops=float(x.elements))


@rule("topk")
def _topk(recorder: Recorder, x: Tensor, /, k: Value, dim: Value = -1) -> Value:
    shape = with_sizes(x, axis_of(dim, x), int(k))
    values = recorder.add("topk", "scan", [x], shape, flops=float(x.elements), passes=2.0, kernels=2)
    return values, Tensor(values.shape, "int64", values.source)


# Losses: elementwise operations in eager mode, how many of them, and over which arguments.
_LOSSES = {
    "mse_loss": 1, "l1_loss": 1, "smooth_l1_loss": 1, "huber_loss": 1, "kl_div": 3, "binary_cross_entropy": 1,
    "binary_cross_entropy_with_logits": 5, "hinge_embedding_loss": 5, "margin_ranking_loss": 4, "soft_margin_loss": 5,
    "poisson_nll_loss": 3, "gaussian_nll_loss": 5, "multilabel_margin_loss": 2, "multi_margin_loss": 2,
}  # fmt: skip


@rules(_LOSSES)
def _loss(
    name: str, steps: int, recorder: Recorder, /, *args: Value, reduction: Value = "mean", **named: Value
) -> Value:
    value = pointwise(recorder, name, tensors_in([*args, *named.values()]))
    for _ in range(steps - 1):
        value = pointwise(recorder, name, [value])
    return value if reduction == "none" else reduce(recorder, "mean", value, None, False)


@rule("cross_entropy", "nll_loss")
def _cross_entropy(recorder: Recorder, x: Tensor, /, target: Tensor, *, reduction: Value = "mean") -> Value:
    logits = normalise(recorder, "softmax", x)
    picked = recorder.add("nll_loss", "gather", [target], target.shape, dtype=logits.dtype)
    return picked if reduction == "none" else reduce(recorder, "mean", picked, None, False)


@rule("cosine_similarity", "pairwise_distance", "triplet_margin_loss", "cosine_embedding_loss")
def _distance(recorder: Recorder, /, *args: Value, **named: Value) -> Value:
    inputs = [value for value in args[:3] if isinstance(value, Tensor)] + tensors_in(list(named.values()))
    wide = [value for value in inputs if len(value.shape) > 1] or inputs
    dim = named.get("dim", 1 if len(wide[0].shape) > 1 else 0)
    rows = [reduce(recorder, "norm", pointwise(recorder, "sub", [wide[0], other]), dim, False) for other in wide[1:]]
    for row in rows[1:]:
        rows[0] = pointwise(recorder, "sub", [rows[0], row])
    if rows and ("margin" in named or len(wide) > 2):
        return reduce(recorder, "mean", pointwise(recorder, "clamp", [rows[0]]), None, False)
    return rows[0]
