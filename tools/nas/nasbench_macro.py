"""NAS-Bench-Macro (arXiv 2103.11922, section 4): eight digits -> a CIFAR-10 network of MobileNetV2 blocks.

Stages of two, three and three layers with 64, 128 and 256 channels; the first layer of a stage halves the size. A
layer is the identity (0), an inverted residual of kernel 3 and expansion 3 (1), or of kernel 5 and expansion 6 (2).
"""

from __future__ import annotations

import onnx
from rlm_core.errors import DataError

from .writer import Tensor, Writer

_STEM, _STAGES, _HEAD, _CLASSES = 32, (2, 3, 3), 1280, 10
_BLOCKS = {"1": (3, 3), "2": (5, 6)}  # kernel, expansion


def parse(arch: str) -> tuple[str, ...]:
    """The layers of each stage.

    Raises:
        DataError: not eight digits of 0, 1 and 2.
    """
    if len(arch) != sum(_STAGES) or set(arch) - {"0", "1", "2"}:
        raise DataError(f"{arch!r}: not a NAS-Bench-Macro architecture (eight digits 0 to 2)")
    return arch[:2], arch[2:5], arch[5:]


def key(arch: str) -> str:
    """The stages without layers that do nothing: an identity of unchanged size can be at any position."""
    return ".".join(stage[0] + stage[1:].replace("0", "") for stage in parse(arch))


def build(arch: str) -> onnx.ModelProto:
    """The network of an architecture."""
    w = Writer("nasbench_macro")
    x = w.conv_bn(w.input("image", (1, 3, 32, 32)), _STEM, 3, activation="Relu")
    for stage in parse(arch):
        channels = 2 * x.channels
        for at, layer in enumerate(stage):
            x = _layer(w, x, channels, 1 if at else 2, layer)
    x = w.global_pool(w.conv_bn(x, _HEAD, activation="Relu"))
    return w.model(w.classifier(x, _CLASSES))


def _layer(w: Writer, x: Tensor, channels: int, stride: int, layer: str) -> Tensor:
    same = stride == 1 and channels == x.channels
    if layer == "0":
        return x if same else w.conv_bn(x, channels, 1, stride)
    kernel, expansion = _BLOCKS[layer]
    hidden = expansion * x.channels
    y = w.conv_bn(x, hidden, activation="Relu")
    y = w.conv_bn(y, hidden, kernel, stride, hidden, activation="Relu")
    y = w.conv_bn(y, channels)
    return w.add(y, x) if same else y
