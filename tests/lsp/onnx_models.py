"""Small networks for CIFAR-10 as ONNX models, written with the onnx package alone: residual cells in three stages.

Weights have shapes and zeros for values, which is all that a prediction reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_WIDTHS, _CELLS = (16, 32, 64), 5


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.zeros(shape, np.float32), name))
        return name

    def layer(self, x: str, channels: int, wanted: int, kernel: int, stride: int = 1) -> str:
        """ReLU, convolution, batch normalization."""
        padding = [kernel // 2] * 4
        weight = self.weight(wanted, channels, kernel, kernel)
        x = self.node("Conv", self.node("Relu", x), weight, strides=[stride, stride], pads=padding)
        return self.node("BatchNormalization", x, *(self.weight(wanted) for _ in range(4)))


def residual_network(kernel: int) -> onnx.ModelProto:
    """A network whose cells add two convolutions of a kernel size to their input."""
    w = _Writer()
    x = w.node("Conv", "image", w.weight(_WIDTHS[0], 3, 3, 3), pads=[1, 1, 1, 1])
    x = w.node("BatchNormalization", x, *(w.weight(_WIDTHS[0]) for _ in range(4)))
    channels = _WIDTHS[0]
    for width in _WIDTHS:
        if width != channels:
            pooled = w.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
            shortcut = w.node("Conv", pooled, w.weight(width, channels, 1, 1))
            x = w.node("Add", shortcut, w.layer(w.layer(x, channels, width, 3, 2), width, width, 3))
            channels = width
        for _ in range(_CELLS):
            x = w.node("Add", x, w.layer(w.layer(x, width, width, kernel), width, width, kernel))
    x = w.node("Relu", w.node("BatchNormalization", x, *(w.weight(channels) for _ in range(4))))
    x = w.node("Flatten", w.node("GlobalAveragePool", x))
    w.nodes.append(helper.make_node("Gemm", [x, w.weight(10, channels), w.weight(10)], ["logits"], transB=1))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 32, 32])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(w.nodes, "residual", [image], [logits], w.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def write_networks(folder: Path) -> None:
    """``large.onnx`` and ``small.onnx``."""
    for name, kernel in (("large", 3), ("small", 1)):
        (folder / f"{name}.onnx").write_bytes(residual_network(kernel).SerializeToString())
