"""PyTorch functions that slide a window: convolutions of any rank, pooling, unfolding, resampling."""

from __future__ import annotations

import math

from ..concrete.values import Named, Value
from .functions import pointwise, rule, rules, take
from .recorder import Recorder
from .shaping import moved, viewed
from .values import Shape, Tensor


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
    if not isinstance(bias, Tensor):
        return y
    return pointwise(recorder, "bias", [y, viewed(recorder, bias, (out, *(1,) * rank))])


_CONVOLUTION = ("stride", "padding", "dilation", "groups")
_TRANSPOSED = ("stride", "padding", "output_padding", "groups", "dilation")


@rules(
    {f"conv{rank}d": _CONVOLUTION for rank in (1, 2, 3)} | {f"conv_transpose{rank}d": _TRANSPOSED for rank in (1, 2, 3)}
)
def _convolution(
    name: str, options: tuple[str, ...], recorder: Recorder, /, input: Tensor, weight: Tensor, bias: Value = None,
    *rest: Value, **named: Value
) -> Value:  # fmt: skip
    given = dict(zip(options, rest, strict=False)) | named
    return convolve(recorder, input, weight, bias, given, transposed=options is _TRANSPOSED)


@rules(
    {f"max_pool{rank}d": (rank, True) for rank in (1, 2, 3)}
    | {f"{name}_pool{rank}d": (rank, False) for name in ("avg", "lp") for rank in (1, 2, 3)}
)
def _pool(
    name: str, entry: tuple[int, bool], recorder: Recorder, /, input: Tensor, kernel_size: Value, stride: Value = None,
    padding: Value = 0, *rest: Value, **named: Value
) -> Value:  # fmt: skip
    rank, largest = entry
    kernel = spread(kernel_size, rank)
    dilation = take(rest, named, 0, "dilation", 1) if largest else 1
    up = bool(take(rest, named, 1 if largest else 0, "ceil_mode", False))
    spatial = _window(input.shape[-rank:], kernel, stride or kernel, padding, dilation, up=up)
    shape = (*input.shape[:-rank], *spatial)
    y = recorder.add(f"pool{rank}d", "pooling", [input], shape, flops=float(math.prod(shape) * math.prod(kernel)))
    indices = largest and (named.get("return_indices") or take(rest, named, 2, "return_indices"))
    return (y, Tensor(y.shape, "int64", y.source)) if indices else y


@rules({f"adaptive_{name}_pool{rank}d": rank for name in ("avg", "max") for rank in (1, 2, 3)})
def _adaptive(name: str, rank: int, recorder: Recorder, x: Tensor, /, output_size: Value = None) -> Value:
    wanted = output_size if isinstance(output_size, (list, tuple)) else (output_size,) * rank
    spatial = [old if new is None else int(new) for old, new in zip(x.shape[-rank:], wanted, strict=True)]
    kind = "reduction" if math.prod(spatial) == 1 else "pooling"
    return recorder.add(f"adaptive_pool{rank}d", kind, [x], (*x.shape[:-rank], *spatial), flops=float(x.elements))


@rule("fractional_max_pool2d")
def _fractional(recorder: Recorder, x: Tensor, /, *, output_size: Value = None, output_ratio: Value = 0.5) -> Value:
    ratios = (output_ratio,) * 2 if isinstance(output_ratio, float) else output_ratio
    sizes = output_size or tuple(int(size * by) for size, by in zip(x.shape[-2:], ratios, strict=True))
    return recorder.add("pool2d", "pooling", [x], (*x.shape[:-2], *spread(sizes, 2)))


@rule("unfold")
def _unfold(
    recorder: Recorder, x: Tensor, /, kernel_size: Value, dilation: Value = 1, padding: Value = 0, stride: Value = 1
) -> Value:
    kernel = spread(kernel_size, 2)
    windows = math.prod(_window(x.shape[-2:], kernel, stride, padding, dilation))
    return moved(recorder, "unfold", [x], (*x.shape[:-3], x.shape[-3] * math.prod(kernel), windows))


@rule("interpolate", "upsample", "grid_sample")
def _interpolate(recorder: Recorder, x: Tensor, /, size: Value = None, scale_factor: Value = None) -> Value:
    if isinstance(size, Tensor):  # grid_sample's grid
        return recorder.add("grid_sample", "gather", [x, size], (*x.shape[:2], *size.shape[1:-1]), dtype=x.dtype)
    rank = len(x.shape) - 2
    if size is not None:
        sizes: Shape = spread(size, rank)
    else:
        factors = scale_factor if isinstance(scale_factor, (list, tuple)) else (scale_factor,) * rank
        sizes = tuple(int(old * by) for old, by in zip(x.shape[2:], factors, strict=True))
    return recorder.add("interpolate", "pooling", [x], (*x.shape[:2], *sizes))
