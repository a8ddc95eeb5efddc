"""PyTorch functions and tensor methods by name: elementwise, reductions, normalisations, scans, losses, creation.

A rule takes the recorder, the positional and the keyword arguments, records what the call does to tensors and returns
its result. It may raise ValueError, TypeError, LookupError or ArithmeticError for a call it does not understand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .recorder import Recorder, promote
from .values import Shape, Tensor, UnknownValue, Value, dtype_of, tensors_in

Rule = Callable[[Recorder, list[Value], dict[str, Value]], Value]
FUNCTIONS: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule under names."""

    def register(function: Rule) -> Rule:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


def take(args: Sequence[Value], named: dict[str, Value], index: int, name: str, default: Value = None) -> Value:
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


def _unary(name: str, flops: float, dtype: str | None = None) -> Rule:
    def apply(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
        x = tensor(take(args, named, 0, "input"))
        floating = dtype or (recorder.dtype if flops > 1 and ("int" in x.dtype or x.dtype == "bool") else x.dtype)
        return pointwise(
            recorder, name, [x, *(value for value in args[1:] if isinstance(value, Tensor))], flops, floating
        )

    return apply


def _binary(name: str, dtype: str | None = None) -> Rule:
    def apply(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
        return pointwise(recorder, name, [*args, *named.values()], 1.0, dtype)

    return apply


FUNCTIONS.update({name: _unary(name, 1.0) for name in _CHEAP.split()})
FUNCTIONS.update({name: _unary(name, 8.0) for name in _COSTLY.split()})
FUNCTIONS.update({name: _unary(name, 1.0, "bool") for name in _TRUTHS.split()})
FUNCTIONS.update({name: _binary(name) for name in _BINARY.split()})
FUNCTIONS.update({name: _binary(name, "bool") for name in _COMPARISONS.split()})


@rule("glu")
def _glu(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    x = tensor(args[0])
    (axis,) = axes(take(args, named, 1, "dim", -1), len(x.shape))
    shape = (*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :])
    return recorder.add("glu", "elementwise", [x], shape, flops=8.0 * math.prod(shape))


def reduce(
    recorder: Recorder, name: str, x: Tensor, dim: Value, keep: bool, *, dtype: str | None = None, passes: float = 1
) -> Tensor:
    """Record a reduction over dimensions (all for None)."""
    gone = set(axes(dim, len(x.shape)))
    shape = [1 if axis in gone else size for axis, size in enumerate(x.shape) if keep or axis not in gone]
    return recorder.add(name, "reduction", [x], shape, dtype=dtype, flops=float(x.elements), passes=passes)


_REDUCTIONS = {
    "sum": None, "mean": None, "prod": None, "amax": None, "amin": None, "argmax": "int64", "argmin": "int64",
    "std": None,
    "var": None, "logsumexp": None, "all": "bool", "any": "bool", "nansum": None, "nanmean": None,
    "count_nonzero": "int64",
    "median": None, "nanmedian": None, "mode": None, "max": None, "min": None, "quantile": None, "kthvalue": None,
}  # fmt: skip
_PAIRS = frozenset({"max", "min", "median", "mode", "nanmedian", "kthvalue"})


def _reduction(name: str, dtype: str | None) -> Rule:
    def apply(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
        x = tensor(take(args, named, 0, "input"))
        dim = take(args, named, 1, "dim", named.get("axis"))
        if name in ("max", "min") and isinstance(take(args, named, 1, "other"), Tensor):
            return pointwise(recorder, name + "imum", [x, take(args, named, 1, "other")])
        if isinstance(dim, bool):  # std(x, unbiased)
            dim = None
        if name in ("quantile", "kthvalue"):
            dim = take(args, named, 2, "dim")
        keep = bool(named.get("keepdim", len(args) > 2 and args[2] is True))
        wanted = dtype_of(
            named.get("dtype"), dtype or (recorder.dtype if name == "mean" and "int" in x.dtype else x.dtype)
        )
        if name == "logsumexp":
            pointwise(recorder, "exp", [x], 8.0)
        values = reduce(recorder, name, x, dim, keep, dtype=wanted, passes=2.0 if name == "logsumexp" else 1.0)
        if name in _PAIRS and dim is not None:
            return values, Tensor(values.shape, "int64", values.source)
        return values

    return apply


FUNCTIONS.update({name: _reduction(name, dtype) for name, dtype in _REDUCTIONS.items()})


@rule("norm", "vector_norm", "matrix_norm", "renorm")
def _norm(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    x = tensor(args[0])
    return reduce(recorder, "norm", x, take(args, named, 2, "dim"), bool(take(args, named, 3, "keepdim", False)))


@rule("std_mean", "var_mean", "aminmax")
def _two(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    first = reduce(recorder, "std", tensor(args[0]), take(args, named, 1, "dim"), bool(named.get("keepdim", False)))
    return first, Tensor(first.shape, first.dtype, first.source)


def normalise(
    recorder: Recorder, name: str, x: Value, *, passes: float = 1.0, kernels: int = 1, weights: float = 0.0
) -> Tensor:
    """Record a normalisation, which keeps the shape; ``passes`` over the input, ``weights`` in elements."""
    x = tensor(x)
    return recorder.add(
        name, "normalisation", [x], x.shape, flops=8.0 * x.elements, passes=passes, kernels=kernels, weights=weights
    )


_FAST_SOFTMAX = 1024  # longer rows are read twice


@rule("softmax", "log_softmax", "softmin")
def _softmax(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    x = tensor(take(args, named, 0, "input"))
    (axis,) = axes(take(args, named, 1, "dim", -1), len(x.shape))[:1]
    long = bool(x.shape) and (x.shape[axis] > _FAST_SOFTMAX or axis < len(x.shape) - 1)
    return normalise(recorder, "softmax", x, passes=2.0 if long else 1.0)


@rule("layer_norm", "rms_norm")
def _layer_norm(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    weights = sum(value.elements for value in tensors_in([*args[1:], *named.values()]))
    return normalise(recorder, "layer_norm", args[0], weights=weights)


@rule("batch_norm", "instance_norm")
def _batch_norm(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    weights = sum(value.elements for value in tensors_in([*args[1:], *named.values()]))
    return normalise(recorder, "batch_norm", args[0], passes=2.0, kernels=2, weights=weights)


@rule("group_norm")
def _group_norm(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    weights = sum(value.elements for value in tensors_in([*args[1:], *named.values()]))
    return normalise(recorder, "group_norm", args[0], passes=2.0, kernels=3, weights=weights)


@rule("local_response_norm")
def _local_response_norm(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    return normalise(recorder, "local_response_norm", args[0], passes=4.0, kernels=5)


@rule("normalize")
def _normalize(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    x = tensor(args[0])
    norm = reduce(recorder, "norm", x, take(args, named, 2, "dim", 1), True)
    norm = pointwise(recorder, "clamp", [norm])
    return pointwise(recorder, "div", [x, norm])


@rule("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "sort", "argsort", "msort")
def _scan(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    return recorder.add("scan", "scan", [tensor(args[0])], tensor(args[0]).shape, flops=float(tensor(args[0]).elements))


@rule("topk")
def _topk(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    x = tensor(args[0])
    (axis,) = axes(take(args, named, 2, "dim", -1), len(x.shape))
    shape = (*x.shape[:axis], int(take(args, named, 1, "k")), *x.shape[axis + 1 :])
    values = recorder.add("topk", "scan", [x], shape, flops=float(x.elements), passes=2.0, kernels=2)
    return values, Tensor(values.shape, "int64", values.source)


# Losses: elementwise operations in eager mode, how many of them, and over which arguments.
_LOSSES = {
    "mse_loss": 1, "l1_loss": 1, "smooth_l1_loss": 1, "huber_loss": 1, "kl_div": 3, "binary_cross_entropy": 1,
    "binary_cross_entropy_with_logits": 5, "hinge_embedding_loss": 5, "margin_ranking_loss": 4, "soft_margin_loss": 5,
    "poisson_nll_loss": 3, "gaussian_nll_loss": 5, "multilabel_margin_loss": 2, "multi_margin_loss": 2,
}  # fmt: skip


def _loss(name: str, steps: int) -> Rule:
    def apply(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
        inputs = tensors_in([*args, *named.values()])
        value = pointwise(recorder, name, inputs)
        for _ in range(steps - 1):
            value = pointwise(recorder, name, [value])
        return value if named.get("reduction") == "none" else reduce(recorder, "mean", value, None, False)

    return apply


FUNCTIONS.update({name: _loss(name, steps) for name, steps in _LOSSES.items()})


@rule("cross_entropy", "nll_loss")
def _cross_entropy(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    x, target = tensor(args[0]), tensor(take(args, named, 1, "target"))
    logits = normalise(recorder, "softmax", x)
    picked = recorder.add("nll_loss", "gather", [target], target.shape, dtype=logits.dtype)
    return picked if named.get("reduction") == "none" else reduce(recorder, "mean", picked, None, False)


@rule("cosine_similarity", "pairwise_distance", "triplet_margin_loss", "cosine_embedding_loss")
def _distance(recorder: Recorder, args: list[Value], named: dict[str, Value]) -> Value:
    inputs = [value for value in args[:3] if isinstance(value, Tensor)] + tensors_in(list(named.values()))
    wide = [value for value in inputs if len(value.shape) > 1] or inputs
    dim = named.get("dim", 1 if len(wide[0].shape) > 1 else 0)
    rows = [reduce(recorder, "norm", pointwise(recorder, "sub", [wide[0], other]), dim, False) for other in wide[1:]]
    for row in rows[1:]:
        rows[0] = pointwise(recorder, "sub", [rows[0], row])
    if rows and ("margin" in named or len(wide) > 2):
        return reduce(recorder, "mean", pointwise(recorder, "clamp", [rows[0]]), None, False)
    return rows[0]
