"""PyTorch functions that slide a window: convolutions of any rank, pooling, unfolding, resampling."""

from __future__ import annotations

import math

from .functions import FUNCTIONS, Rule, pointwise, rule, take, tensor
from .recorder import Recorder
from .shaping import moved, viewed
from .values import Shape, Tensor, Value

Named = dict[str, Value]


def spread(value: Value, rank: int) -> tuple[int, ...]:
    """One number for every dimension, or one for each."""
    return tuple(int(size) for size in value) if isinstance(value, (list, tuple)) else (int(value),) * rank


def _window(sizes: Shape, kernel: Shape, stride: Value, padding: Value, dilation: Value, *, up: bool = False) -> Shape:
    rank = len(sizes)
    stride, dilation = spread(stride, rank), spread(dilation, rank)
    if isinstance(padding, str):
        pads = tuple(d * (k - 1) for d, k in zip(dilation, kernel, strict=True)) if padding == "same" else (0,) * rank
    else:
        pads = tuple(2 * pad for pad in spread(padding, rank))
    spans = zip(sizes, pads, dilation, kernel, stride, strict=True)
    shape = tuple(
        -((p + s - d * (k - 1) - 1) // -t if up else -((p + s - d * (k - 1) - 1) // t)) + 1 for s, p, d, k, t in spans
    )
    if min(shape) < 1:
        raise ValueError("the window is larger than the input")
    return shape


def convolve(recorder: Recorder, x: Tensor, weight: Tensor, bias: Value, options: Named, *, transposed: bool) -> Tensor:
    """A convolution of any rank; a bias is a separate elementwise operation, as PyTorch's GPU backends launch it."""
    kernel = weight.shape[2:]
    rank, groups = len(kernel), int(options.get("groups", 1))
    batched = len(x.shape) == rank + 2
    channels, sizes = x.shape[-rank - 1], x.shape[-rank:]
    if channels != (weight.shape[0] if transposed else weight.shape[1] * groups):
        raise ValueError("channels differ")
    stride, padding, dilation = (
        options.get(name, default) for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    outer = x.shape[:1] if batched else ()
    if transposed:
        extra = spread(options.get("output_padding", 0), rank)
        steps = zip(
            sizes, spread(stride, rank), spread(padding, rank), spread(dilation, rank), kernel, extra, strict=True
        )
        spatial = tuple((s - 1) * t - 2 * p + d * (k - 1) + e + 1 for s, t, p, d, k, e in steps)
        out, macs = weight.shape[1] * groups, x.elements * weight.shape[1] * math.prod(kernel)
    else:
        spatial = _window(sizes, kernel, stride, padding, dilation)
        out = weight.shape[0]
        macs = math.prod(outer) * math.prod(spatial) * weight.elements
    name = f"conv{'_transpose' if transposed else ''}{rank}d{'_grouped' if groups > 1 else ''}"
    y = recorder.add(name, "conv", [x, weight], (*outer, out, *spatial), macs=macs)
    return (
        pointwise(recorder, "bias", [y, viewed(recorder, bias, (out, *(1,) * rank))]) if isinstance(bias, Tensor) else y
    )


@rule("conv1d", "conv2d", "conv3d")
def _conv(recorder: Recorder, args: list[Value], named: Named) -> Value:
    options = dict(zip(("stride", "padding", "dilation", "groups"), args[3:], strict=False)) | named
    weight, bias = tensor(take(args, named, 1, "weight")), take(args, named, 2, "bias")
    return convolve(recorder, tensor(take(args, named, 0, "input")), weight, bias, options, transposed=False)


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(recorder: Recorder, args: list[Value], named: Named) -> Value:
    options = dict(zip(("stride", "padding", "output_padding", "groups", "dilation"), args[3:], strict=False)) | named
    weight, bias = tensor(take(args, named, 1, "weight")), take(args, named, 2, "bias")
    return convolve(recorder, tensor(take(args, named, 0, "input")), weight, bias, options, transposed=True)


def _pool(rank: int, *, largest: bool) -> Rule:
    def apply(recorder: Recorder, args: list[Value], named: Named) -> Value:
        x = tensor(take(args, named, 0, "input"))
        kernel = spread(take(args, named, 1, "kernel_size"), rank)
        stride = take(args, named, 2, "stride") or kernel
        dilation = take(args, named, 4, "dilation", 1) if largest else 1
        up = bool(take(args, named, 5 if largest else 4, "ceil_mode", False))
        spatial = _window(x.shape[-rank:], kernel, stride, take(args, named, 3, "padding", 0), dilation, up=up)
        shape = (*x.shape[:-rank], *spatial)
        y = recorder.add(f"pool{rank}d", "pooling", [x], shape, flops=float(math.prod(shape) * math.prod(kernel)))
        indices = largest and (named.get("return_indices") or take(args, named, 6, "return_indices"))
        return (y, Tensor(y.shape, "int64", y.source)) if indices else y

    return apply


def _adaptive(rank: int) -> Rule:
    def apply(recorder: Recorder, args: list[Value], named: Named) -> Value:
        x, wanted = tensor(args[0]), take(args, named, 1, "output_size")
        wanted = wanted if isinstance(wanted, (list, tuple)) else (wanted,) * rank
        spatial = [old if new is None else int(new) for old, new in zip(x.shape[-rank:], wanted, strict=True)]
        kind = "reduction" if math.prod(spatial) == 1 else "pooling"
        return recorder.add(f"adaptive_pool{rank}d", kind, [x], (*x.shape[:-rank], *spatial), flops=float(x.elements))

    return apply


for _rank in (1, 2, 3):
    FUNCTIONS.update({f"max_pool{_rank}d": _pool(_rank, largest=True)})
    FUNCTIONS.update({f"{name}_pool{_rank}d": _pool(_rank, largest=False) for name in ("avg", "lp")})
    FUNCTIONS.update({f"adaptive_{name}_pool{_rank}d": _adaptive(_rank) for name in ("avg", "max")})


@rule("fractional_max_pool2d")
def _fractional(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x, sizes, ratio = tensor(args[0]), named.get("output_size"), named.get("output_ratio", 0.5)
    sizes = sizes or tuple(
        int(size * by)
        for size, by in zip(x.shape[-2:], (ratio,) * 2 if isinstance(ratio, float) else ratio, strict=True)
    )
    return recorder.add("pool2d", "pooling", [x], (*x.shape[:-2], *spread(sizes, 2)))


@rule("unfold")
def _unfold(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    kernel = spread(take(args, named, 1, "kernel_size"), 2)
    rest = (
        take(args, named, index, name, default)
        for index, name, default in ((4, "stride", 1), (3, "padding", 0), (2, "dilation", 1))
    )
    stride, padding, dilation = rest
    windows = math.prod(_window(x.shape[-2:], kernel, stride, padding, dilation))
    return moved(recorder, "unfold", [x], (*x.shape[:-3], x.shape[-3] * math.prod(kernel), windows))


@rule("interpolate", "upsample", "grid_sample")
def _interpolate(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x, size, scale = tensor(args[0]), take(args, named, 1, "size"), take(args, named, 2, "scale_factor")
    if isinstance(size, Tensor):  # grid_sample's grid
        return recorder.add("grid_sample", "gather", [x, size], (*x.shape[:2], *size.shape[1:-1]), dtype=x.dtype)
    rank = len(x.shape) - 2
    factors = scale if isinstance(scale, (list, tuple)) else (scale,) * rank
    sizes = (
        spread(size, rank)
        if size is not None
        else [int(old * by) for old, by in zip(x.shape[2:], factors, strict=True)]
    )
    return recorder.add("interpolate", "pooling", [x], (*x.shape[:2], *sizes))
