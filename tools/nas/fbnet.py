"""FBNet (arXiv 1812.03443, tables 1 and 2) in its CIFAR-100 form: 22 block names -> the network.

The latencies were measured on 32x32 images with the first two strides at 1 and a head of 1,504 channels, as
HW-NAS-Bench (arXiv 2103.10584) defines the space. A block is a 1x1 convolution, a depthwise one and a 1x1 one, with
expansion 1, 3 or 6; ``g2`` splits the 1x1 convolutions into two groups and shuffles the channels between them.
"""

from __future__ import annotations

import re

import onnx
from rlm_core.errors import DataError

from .writer import Tensor, Writer

_STEM, _HEAD, _CLASSES = 16, 1504, 100
_STAGES = (
    (1, 16, 1),
    (4, 24, 1),
    (4, 32, 2),
    (4, 64, 2),
    (4, 112, 1),
    (4, 184, 2),
    (1, 352, 1),
)  # layers, width, stride
_BLOCK = re.compile(r"k([35])_e([136])(?:_g(2))?")


def parse(arch: str) -> tuple[tuple[str, ...], ...]:
    """The block names of each stage.

    Raises:
        DataError: not 22 names of the space.
    """
    blocks = arch.split()
    if len(blocks) != sum(layers for layers, _, _ in _STAGES):
        raise DataError(f"{arch!r}: {len(blocks)} blocks where an FBNet has 22")
    if unknown := [block for block in blocks if block != "skip" and not _BLOCK.fullmatch(block)]:
        raise DataError(f"{unknown[0]!r}: not a block of FBNet")
    names = iter(blocks)
    return tuple(tuple(next(names) for _ in range(layers)) for layers, _, _ in _STAGES)


def key(arch: str) -> str:
    """The blocks without skips that do nothing (those that keep width and size)."""
    stages = []
    width = _STEM
    for (_, channels, stride), blocks in zip(_STAGES, parse(arch), strict=True):
        same = stride == 1 and channels == width
        stages.append(" ".join(b for at, b in enumerate(blocks) if b != "skip" or not (at or same)))
        width = channels
    return "/".join(stages)


def build(arch: str) -> onnx.ModelProto:
    """The network of an architecture."""
    w = Writer("fbnet")
    x = w.conv_bn(w.input("image", (1, 3, 32, 32)), _STEM, 3, activation="Relu")
    for (_, channels, stride), blocks in zip(_STAGES, parse(arch), strict=True):
        for at, block in enumerate(blocks):
            x = _block(w, x, channels, 1 if at else stride, block)
    x = w.global_pool(w.conv_bn(x, _HEAD, activation="Relu"))
    return w.model(w.classifier(x, _CLASSES))


def _block(w: Writer, x: Tensor, channels: int, stride: int, block: str) -> Tensor:
    same = stride == 1 and channels == x.channels
    match = _BLOCK.fullmatch(block)
    if match is None:
        return x if same else w.conv_bn(x, channels, 1, stride, activation="Relu")
    kernel, expansion, groups = int(match[1]), int(match[2]), int(match[3] or 1)
    hidden = expansion * x.channels
    y = w.conv_bn(x, hidden, groups=groups, activation="Relu")
    if groups > 1:
        y = _shuffled(w, y, groups)
    y = w.conv_bn(y, hidden, kernel, stride, hidden, activation="Relu")
    y = w.conv_bn(y, channels, groups=groups)
    return w.add(y, x) if same else y


def _shuffled(w: Writer, x: Tensor, groups: int) -> Tensor:
    """Channel shuffle (arXiv 1707.01083): the channels of the groups interleaved."""
    batch, channels, height, width = x.shape
    split = w.reshape(x, batch, groups, channels // groups, height, width)
    return w.reshape(w.transpose(split, 0, 2, 1, 3, 4), *x.shape)
