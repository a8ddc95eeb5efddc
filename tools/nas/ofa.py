"""Once-for-All MobileNetV3 (arXiv 1908.09791, section 4.1): depths, kernels and expansions -> the ImageNet network.

Five stages of two to four inverted residuals with kernel 3, 5 or 7 and expansion 3, 4 or 6, width multiplier 1.
Kernels and expansions come four a stage; those past a stage's depth are unused.
"""

from __future__ import annotations

import onnx
from rlm_core.errors import DataError

from .writer import Tensor, Writer

_STEM, _EXPAND, _FEATURES, _CLASSES = 16, 960, 1280, 1000
# width, stride, activation, squeeze and excite
_STAGES = (
    (24, 2, "Relu", False),
    (40, 2, "Relu", True),
    (80, 2, "HardSwish", False),
    (112, 1, "HardSwish", True),
    (160, 2, "HardSwish", True),
)
_DEEPEST = 4

Layers = tuple[tuple[tuple[int, int], ...], ...]


def parse(depth: str, kernel: str, expand: str) -> Layers:
    """Columns of numbers -> (kernel, expansion) of the used layers of each stage.

    Raises:
        DataError: the columns have other lengths or values than the space.
    """
    try:
        depths, kernels, expands = ([int(number) for number in column.split()] for column in (depth, kernel, expand))
    except ValueError:
        raise DataError(f"{depth!r}, {kernel!r}, {expand!r}: not numbers") from None
    slots = len(_STAGES) * _DEEPEST
    if len(depths) != len(_STAGES) or len(kernels) != slots or len(expands) != slots:
        raise DataError(f"depth {depth!r}: an architecture of OFA has 5 depths, 20 kernels and 20 expansions")
    if set(depths) - {2, 3, 4} or set(kernels) - {3, 5, 7} or set(expands) - {3, 4, 6}:
        raise DataError(f"depth {depth!r}: depths are 2 to 4, kernels 3, 5, 7 and expansions 3, 4, 6")
    layers = list(zip(kernels, expands, strict=True))
    return tuple(tuple(layers[at * _DEEPEST : at * _DEEPEST + used]) for at, used in enumerate(depths))


def key(depth: str, kernel: str, expand: str) -> str:
    """The used layers, whatever the resolution."""
    return "/".join(" ".join(f"k{k}e{e}" for k, e in stage) for stage in parse(depth, kernel, expand))


def build(resolution: int, depth: str, kernel: str, expand: str) -> onnx.ModelProto:
    """The network of an architecture for square images of ``resolution`` pixels."""
    layers = parse(depth, kernel, expand)
    w = Writer("ofa")
    x = w.conv_bn(w.input("image", (1, 3, resolution, resolution)), _STEM, 3, 2, activation="HardSwish")
    x = _block(w, x, _STEM, 3, 1, 1, "Relu", squeeze=False)
    for (width, stride, activation, squeeze), stage in zip(_STAGES, layers, strict=True):
        for at, (size, expansion) in enumerate(stage):
            x = _block(w, x, width, size, expansion, 1 if at else stride, activation, squeeze=squeeze)
    x = w.global_pool(w.conv_bn(x, _EXPAND, activation="HardSwish"))
    x = w.activation(w.conv(x, _FEATURES), "HardSwish")
    return w.model(w.classifier(x, _CLASSES))


def divisible(channels: float, by: int = 8) -> int:
    """The nearest multiple of ``by`` that loses at most a tenth (MobileNetV2's rule, arXiv 1801.04381)."""
    nearest = max(by, int(channels + by / 2) // by * by)
    return nearest if nearest >= 0.9 * channels else nearest + by


def _block(
    w: Writer, x: Tensor, channels: int, kernel: int, expansion: int, stride: int, activation: str, *, squeeze: bool
) -> Tensor:
    hidden = divisible(x.channels * expansion)
    y = w.conv_bn(x, hidden, activation=activation) if expansion > 1 else x
    y = w.conv_bn(y, hidden, kernel, stride, hidden, activation=activation)
    if squeeze:
        y = w.squeeze_excite(y, divisible(hidden // 4))
    y = w.conv_bn(y, channels)
    return w.add(y, x) if stride == 1 and channels == x.channels else y
