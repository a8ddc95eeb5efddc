"""MnasNet's space (arXiv 1807.11626, section 4.1) as Accel-NASBench trains it: four columns -> the ImageNet network.

Seven blocks of one to four inverted residuals, each block with its own expansion, kernel, number of layers and
squeeze-and-excite, at EfficientNet-B0's widths and strides. The activation is ReLU, the gate a hard sigmoid, since
the networks were also compiled for FPGAs.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from rlm_core.errors import DataError

from .writer import Tensor, Writer

_STEM, _HEAD, _CLASSES, _RESOLUTION = 32, 1280, 1000, 224
_WIDTHS, _STRIDES = (16, 24, 40, 80, 112, 192, 320), (1, 2, 2, 2, 1, 2, 1)


@dataclass(frozen=True, slots=True)
class Block:
    """The choices of the search for one block."""

    expansion: int
    kernel: int
    layers: int
    squeeze: bool


def parse(expansion: str, kernel: str, layers: str, squeeze: str) -> tuple[Block, ...]:
    """Columns of seven numbers each -> the blocks.

    Raises:
        DataError: the columns have other lengths or hold something else.
    """
    try:
        columns = [[int(number) for number in column.split()] for column in (expansion, kernel, layers, squeeze)]
        blocks = tuple(Block(e, k, n, bool(s)) for e, k, n, s in zip(*columns, strict=True))
    except ValueError:
        raise DataError(f"{expansion!r}, {kernel!r}, {layers!r}, {squeeze!r}: not seven numbers each") from None
    if len(blocks) != len(_WIDTHS):
        raise DataError(f"{expansion!r}: {len(blocks)} blocks where the space has 7")
    return blocks


def key(expansion: str, kernel: str, layers: str, squeeze: str) -> str:
    """The blocks in short."""
    return " ".join(
        f"e{b.expansion}k{b.kernel}l{b.layers}s{b.squeeze:d}" for b in parse(expansion, kernel, layers, squeeze)
    )


def build(expansion: str, kernel: str, layers: str, squeeze: str) -> onnx.ModelProto:
    """The network of an architecture."""
    blocks = parse(expansion, kernel, layers, squeeze)
    w = Writer("mnasnet")
    x = w.conv_bn(w.input("image", (1, 3, _RESOLUTION, _RESOLUTION)), _STEM, 3, 2, activation="Relu")
    for block, width, stride in zip(blocks, _WIDTHS, _STRIDES, strict=True):
        for at in range(block.layers):
            x = _layer(w, x, width, 1 if at else stride, block)
    x = w.global_pool(w.conv_bn(x, _HEAD, activation="Relu"))
    return w.model(w.classifier(x, _CLASSES))


def _layer(w: Writer, x: Tensor, channels: int, stride: int, block: Block) -> Tensor:
    hidden = block.expansion * x.channels
    y = w.conv_bn(x, hidden, activation="Relu") if block.expansion > 1 else x
    y = w.conv_bn(y, hidden, block.kernel, stride, hidden, activation="Relu")
    if block.squeeze:
        y = w.squeeze_excite(y, max(1, x.channels // 4))
    y = w.conv_bn(y, channels)
    return w.add(y, x) if stride == 1 and channels == x.channels else y
