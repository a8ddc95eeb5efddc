"""Functions of PyTorch that multiply: products, attention, recurrences, decompositions, transforms; and einops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..concrete.values import UNKNOWN, Value
from .functions import broadcast, normalise, pointwise, reduce, rule, rules, tensor
from .recorder import Recorder
from .shaping import moved, viewed
from .values import Tensor


def matmul(recorder: Recorder, a: Tensor, b: Tensor, name: str = "matmul") -> Tensor:
    """``a @ b`` with the shapes that torch.matmul takes."""
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        raise ValueError("inner sizes differ")
    batch = broadcast([left[:-2], right[:-2]])
    rows = left[-2:-1] if len(a.shape) > 1 else ()
    columns = right[-1:] if len(b.shape) > 1 else ()
    macs = math.prod(batch) * math.prod(left[-2:]) * right[-1]
    return recorder.add(name, "gemm", [a, b], (*batch, *rows, *columns), macs=macs)


@rule("matmul", "mm", "bmm", "mv", "dot", "inner", "vdot", "multi_dot", "chain_matmul")
def _matmul(recorder: Recorder, *args: Value, **named: Value) -> Value:
    product, *rest = args[0] if isinstance(args[0], (list, tuple)) else [*args, *named.values()][:2]
    for factor in rest:
        product = matmul(recorder, tensor(product), tensor(factor))
    return product


@rule("addmm", "baddbmm", "addmv", "addbmm")
def _addmm(recorder: Recorder, x: Tensor, a: Tensor, b: Tensor, /) -> Value:
    return pointwise(recorder, "add", [x, matmul(recorder, a, b)])


@rule("linear")
def linear(recorder: Recorder, x: Tensor, /, weight: Tensor, bias: Value = None) -> Tensor:
    """A product with a weight (out, in) of features; ``bias`` is read with it."""
    if x.shape[-1] != weight.shape[-1]:
        raise ValueError("inner sizes differ")
    extra = bias.elements if isinstance(bias, Tensor) else 0
    shape = (*x.shape[:-1], *weight.shape[:-1])
    macs = x.elements * math.prod(weight.shape[:-1])
    return recorder.add("linear", "gemm", [x, weight], shape, macs=macs, weights=extra)


@rule("bilinear")
def _bilinear(recorder: Recorder, x: Tensor, y: Tensor, /, weight: Tensor) -> Value:
    macs = math.prod(x.shape[:-1]) * weight.elements
    return recorder.add("bilinear", "gemm", [x, y, weight], (*x.shape[:-1], weight.shape[0]), macs=macs)


@rule("outer", "ger")
def _outer(recorder: Recorder, a: Tensor, b: Tensor, /) -> Value:
    return pointwise(recorder, "mul", [viewed(recorder, a, (a.elements, 1)), b])


@rule("kron")
def _kron(recorder: Recorder, a: Tensor, b: Tensor, /) -> Value:
    return moved(recorder, "kron", [a, b], [left * right for left, right in zip(a.shape, b.shape, strict=True)])


@rule("tensordot")
def _tensordot(recorder: Recorder, a: Tensor, b: Tensor, /, dims: Value = 2) -> Value:
    left, right = (range(len(a.shape) - dims, len(a.shape)), range(dims)) if isinstance(dims, int) else dims
    gone = math.prod(a.shape[axis] for axis in left)
    shape = [size for axis, size in enumerate(a.shape) if axis not in [i % len(a.shape) for i in left]]
    shape += [size for axis, size in enumerate(b.shape) if axis not in [i % len(b.shape) for i in right]]
    return recorder.add("tensordot", "gemm", [a, b], shape, macs=math.prod(shape) * gone)


@rule("einsum")
def _einsum(recorder: Recorder, equation: Value, /, *args: Value) -> Value:
    operands = list(args[0] if isinstance(args[0], (list, tuple)) else args)
    left, arrow, right = str(equation).replace(" ", "").partition("->")
    terms = left.split(",")
    sizes: dict[str, int] = {}
    for index, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        spare = len(operand.shape) - len(term.replace("...", ""))
        terms[index] = term.replace("...", "".join(chr(0x100 + axis) for axis in range(spare)))
        sizes.update(zip(terms[index], operand.shape, strict=True))
    dots = "".join(sorted(name for name in sizes if name >= "\u0100"))
    if not arrow:
        right = "".join(sorted(name for name in sizes if "".join(terms).count(name) == 1))
    right = right.replace("...", dots)
    result, names = operands[0], terms[0]
    for index in range(1, len(operands)):
        kept = set(right).union(*terms[index + 1 :])
        together = dict.fromkeys(names + terms[index])
        names = right if index == len(operands) - 1 else "".join(name for name in together if name in kept)
        macs = math.prod(sizes[name] for name in together)
        result = recorder.add("einsum", "gemm", [result, operands[index]], [sizes[name] for name in names], macs=macs)
    if len(operands) == 1:
        kind = "gather" if len(right) == len(names) else "reduction"
        return recorder.add("einsum", kind, [result], [sizes[name] for name in right], flops=float(result.elements))
    return result


@rule("cdist")
def _cdist(recorder: Recorder, a: Tensor, b: Tensor, /) -> Value:
    shape = (*a.shape[:-1], b.shape[-2])
    return recorder.add("cdist", "gemm", [a, b], shape, macs=math.prod(shape) * a.shape[-1])


@rule("scaled_dot_product_attention")
def attention(recorder: Recorder, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Fused attention on (..., queries, width), (..., keys, width), (..., keys, width)."""
    batch = math.prod(broadcast([query.shape[:-2], key.shape[:-2]]))
    macs = batch * query.shape[-2] * key.shape[-2] * (query.shape[-1] + value.shape[-1])
    shape = (*query.shape[:-1], value.shape[-1])
    return recorder.add("attention", "attention", [query, key, value], shape, macs=macs)


def plain_attention(recorder: Recorder, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Attention written out as two products and a softmax: the output and the weights."""
    scores = matmul(recorder, q, viewed(recorder, k, (*k.shape[:-2], k.shape[-1], k.shape[-2])), "attention_scores")
    weights = normalise(recorder, "softmax", scores)
    return matmul(recorder, weights, v, "attention_values"), weights


def recurrent(
    recorder: Recorder, x: Tensor, gates: int, width: int, layers: int, directions: int, first: bool
) -> Value:
    """An RNN, GRU or LSTM (1, 3, 4 gates): the outputs and the last states; one launch a step, layer and direction."""
    if len(x.shape) == 3:
        batch, steps = (x.shape[0], x.shape[1]) if first else (x.shape[1], x.shape[0])
    else:
        batch, steps = 1, x.shape[0]
    inside = x.shape[-1]
    weights = macs = 0
    for layer in range(min(layers, 1000)):
        entering = inside if layer == 0 else width * directions
        weights += directions * gates * width * (entering + width + 2)
        macs += directions * gates * width * (entering + width) * batch * steps
    shape = (*x.shape[:-1], width * directions)
    y = recorder.add("rnn", "rnn", [x], shape, macs=macs, weights=weights, kernels=max(1, layers * directions * steps))
    state = Tensor((layers * directions, batch, width), y.dtype, y.source)
    return y, ((state, state) if gates == 4 else state)


_CUBIC = {
    "inverse": 2.0, "inv": 2.0, "pinv": 8.0, "cholesky": 0.33, "lu": 0.67, "lu_factor": 0.67, "qr": 2.0,
    "svd": 12.0, "eig": 20.0,
    "eigh": 8.0, "eigvals": 10.0, "svdvals": 8.0, "det": 0.67, "slogdet": 0.67, "logdet": 0.67, "matrix_exp": 15.0,
    "ldl_factor": 0.33, "ldl_factor_ex": 0.33, "matrix_power": 4.0, "matrix_rank": 8.0,
}  # fmt: skip
_PARTS = {
    "qr": 2, "svd": 3, "eig": 2, "eigh": 2, "slogdet": 2, "lu": 3, "lu_factor": 2,
    "ldl_factor": 2, "ldl_factor_ex": 3,
}  # fmt: skip


@rules(_CUBIC)
def _decomposition(name: str, weight: float, recorder: Recorder, a: Tensor, /) -> Value:
    rows, columns = a.shape[-2:]
    macs = weight * math.prod(a.shape[:-2]) * rows * columns * min(rows, columns)
    shape = a.shape[:-2] if name in ("det", "slogdet", "logdet", "matrix_rank") else a.shape
    y = recorder.add(name, "other", [a], shape, macs=macs, kernels=max(1, min(rows, columns) // 16))
    parts = _PARTS.get(name, 1)
    if name in ("svd", "eig", "eigh"):
        spectrum = Tensor((*a.shape[:-2], min(rows, columns)), y.dtype, y.source)
        return (y, spectrum, y) if name == "svd" else (spectrum, y)
    return y if parts == 1 else (y,) * parts


@rule("solve", "lstsq", "solve_triangular", "triangular_solve", "cholesky_solve", "lu_solve", "ldl_solve")
def _solve(recorder: Recorder, *args: Value, **named: Value) -> Value:
    a, *others = [value for value in [*args, *named.values()] if isinstance(value, Tensor)]
    macs = float(a.elements * a.shape[-1]) + sum(a.elements * b.shape[-1] for b in others)
    shape = others[0].shape if others else a.shape
    return recorder.add("solve", "other", [a, *others], shape, macs=macs, kernels=max(1, a.shape[-1] // 16))


@rule("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfft2", "irfft2", "stft")
def _fft(recorder: Recorder, x: Tensor, /) -> Value:
    flops = 5.0 * x.elements * math.log2(max(x.elements, 2))
    return recorder.add("fft", "other", [x], x.shape, dtype="complex64", flops=flops)


@rule("trace")
def _trace(recorder: Recorder, x: Tensor, /) -> Value:
    return reduce(recorder, "sum", viewed(recorder, x, (min(x.shape),)), None, False)


def unknown_like(recorder: Recorder, name: str, inputs: Sequence[Tensor]) -> Value:
    """The guess for a call that is not understood: it reads its inputs and gives the shape of the first."""
    recorder.unknown += 1
    if not inputs:
        return UNKNOWN
    return recorder.add(name, "other", inputs[:16], inputs[0].shape)


def _pattern_groups(side: str) -> list[tuple[str, ...]]:
    """One side of an einops pattern as groups of names; raises ValueError for what is not such a pattern."""
    groups: list[tuple[str, ...]] = []
    inside: list[str] | None = None
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            inside = []
        elif word == ")":
            groups.append(tuple(inside or ()))
            inside = None
        elif inside is not None:
            inside.append(word)
        else:
            groups.append((word,))
    return groups


@rule("rearrange", "einops_repeat", "einops_reduce")
def _rearrange(recorder: Recorder, x: Tensor, pattern: Value, /, *_: Value, **named: Value) -> Value:
    """Rearrangement by an einops pattern such as ``b (h d) n -> b h n d``."""
    left, right = (_pattern_groups(side) for side in str(pattern).split("->"))
    if ("...",) in left:
        spare = [(chr(0x100 + axis),) for axis in range(len(x.shape) - len(left) + 1)]
        left, right = (
            [part for group in side for part in (spare if group == ("...",) else [group])] for side in (left, right)
        )
    sizes = {name: int(size) for name, size in named.items() if isinstance(size, int)} | {"1": 1}
    for group, size in zip(left, x.shape, strict=True):
        open_names = [name for name in group if name not in sizes]
        known = math.prod(sizes[name] for name in group if name in sizes)
        sizes.update(dict.fromkeys(open_names[:1], size // max(known, 1)))
    shape = [math.prod(sizes[name] for name in group) for group in right]
    flat = [[name for group in side for name in group if name != "1"] for side in (left, right)]
    kept = [name for name in flat[1] if name in flat[0]]
    if math.prod(shape) < x.elements:
        return recorder.add("sum", "reduction", [x], shape, flops=float(x.elements))
    if kept == flat[0] and len(kept) == len(flat[1]):
        return viewed(recorder, x, shape)
    return moved(recorder, "copy", [x], shape)
