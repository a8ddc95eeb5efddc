"""Writes ONNX graphs layer by layer: tensors with known shapes in, an ``onnx.ModelProto`` out.

A weight is an initializer with a shape and no values: its data is declared external and never written, so a network
of 50 million parameters is a few kilobytes. :func:`with_weights` fills such a model with values that run;
:func:`with_weights_as_inputs` declares the weights as graph inputs, for ``onnx.checker`` on many graphs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17  # LayerNormalization; HardSwish came in 14
_IR_VERSION = 10
_EXTERNAL = "weights"
_VALUES = 65536  # random values a weight; larger ones repeat them, which is quicker and runs as well


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of the graph and its shape, batch first: ``(batch, channels, height, width)`` for images."""

    name: str
    shape: tuple[int, ...]

    @property
    def channels(self) -> int:
        """The size of axis 1."""
        return self.shape[1]


class Writer:
    """Collects nodes and weights; each method adds one layer and gives its output."""

    def __init__(self, name: str, opset: int = OPSET) -> None:
        self._name, self._opset = name, opset
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._constants: dict[tuple[str, bytes], str] = {}

    def input(self, name: str, shape: Sequence[int], dtype: int = TensorProto.FLOAT) -> Tensor:
        """A graph input."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return Tensor(name, tuple(shape))

    def weight(self, *shape: int) -> Tensor:
        """A float32 weight without values."""
        name = f"w{len(self._initializers)}"
        tensor = TensorProto(
            name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.DataLocation.EXTERNAL
        )
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", _EXTERNAL
        self._initializers.append(tensor)
        return Tensor(name, shape)

    def constant(self, value: npt.NDArray[np.generic]) -> Tensor:
        """A small constant with its values; equal ones are written once."""
        key = (f"{value.dtype}{value.shape}", value.tobytes())
        if key not in self._constants:
            name = f"c{len(self._constants)}"
            self._initializers.append(numpy_helper.from_array(value, name))
            self._constants[key] = name
        return Tensor(self._constants[key], value.shape)

    def integers(self, *values: int) -> Tensor:
        """An int64 vector: a shape, axes, starts or ends."""
        return self.constant(np.array(values, np.int64))

    def op(self, kind: str, inputs: Sequence[Tensor], shape: Sequence[int], **attributes: Any) -> Tensor:
        """Any operator with one output of a known shape."""
        name = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, [tensor.name for tensor in inputs], [name], **attributes))
        return Tensor(name, tuple(shape))

    def model(self, output: Tensor) -> onnx.ModelProto:
        """The finished model."""
        value = helper.make_tensor_value_info(output.name, TensorProto.FLOAT, list(output.shape))
        graph = helper.make_graph(self._nodes, self._name, self._inputs, [value], self._initializers)
        return helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=[helper.make_opsetid("", self._opset)])

    # Layers

    def conv(
        self, x: Tensor, channels: int, kernel: int = 1, stride: int = 1, groups: int = 1, *, bias: bool = False
    ) -> Tensor:
        """Convolution with odd kernels padded by ``kernel // 2``, so that the stride alone decides the size."""
        batch, inputs, height, width = x.shape
        pad = kernel // 2
        weights = [x, self.weight(channels, inputs // groups, kernel, kernel)]
        if bias:
            weights.append(self.weight(channels))
        size = [batch, channels, *(_pooled(length, kernel, stride, pad) for length in (height, width))]
        return self.op(
            "Conv",
            weights,
            size,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            group=groups,
        )

    def batch_norm(self, x: Tensor) -> Tensor:
        """Batch normalization at inference: scale and bias are parameters, mean and variance are statistics."""
        return self.op("BatchNormalization", [x, *(self.weight(x.channels) for _ in range(4))], x.shape)

    def relu(self, x: Tensor) -> Tensor:
        """Rectified linear unit."""
        return self.op("Relu", [x], x.shape)

    def activation(self, x: Tensor, kind: str) -> Tensor:
        """``Relu``, ``HardSwish`` or another operator of one input; nothing for an empty name."""
        return self.op(kind, [x], x.shape) if kind else x

    def conv_bn(
        self, x: Tensor, channels: int, kernel: int = 1, stride: int = 1, groups: int = 1, activation: str = ""
    ) -> Tensor:
        """Convolution, batch normalization and, if named, an activation."""
        return self.activation(self.batch_norm(self.conv(x, channels, kernel, stride, groups)), activation)

    def add(self, *terms: Tensor) -> Tensor:
        """The sum of one or more tensors, as a chain of additions."""
        total = terms[0]
        for term in terms[1:]:
            total = self.op("Add", [total, term], np.broadcast_shapes(total.shape, term.shape))
        return total

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        """The product, with broadcasting."""
        return self.op("Mul", [a, b], np.broadcast_shapes(a.shape, b.shape))

    def pool(self, x: Tensor, kind: str, kernel: int, stride: int = 1, pad: int = 0) -> Tensor:
        """``MaxPool`` or ``AveragePool``, the latter without counting the padding."""
        size = [*x.shape[:2], *(_pooled(length, kernel, stride, pad) for length in x.shape[2:])]
        return self.op(kind, [x], size, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4)

    def global_pool(self, x: Tensor) -> Tensor:
        """The mean over height and width, which stay as axes of length 1."""
        return self.op("GlobalAveragePool", [x], (*x.shape[:2], 1, 1))

    def classifier(self, x: Tensor, classes: int) -> Tensor:
        """Flattens ``(batch, features, 1, 1)`` and maps it linearly to ``(batch, classes)``."""
        flat = self.op("Flatten", [x], (x.shape[0], math.prod(x.shape[1:])), axis=1)
        weight, bias = self.weight(classes, flat.channels), self.weight(classes)
        return self.op("Gemm", [flat, weight, bias], (x.shape[0], classes), transB=1)

    def squeeze_excite(self, x: Tensor, squeezed: int) -> Tensor:
        """Channel attention (arXiv 1709.01507) with ReLU inside and the hard sigmoid ``relu6(x + 3) / 6`` as gate."""
        gate = self.relu(self.conv(self.global_pool(x), squeezed, bias=True))
        gate = self.conv(gate, x.channels, bias=True)
        return self.multiply(x, self.op("HardSigmoid", [gate], gate.shape, alpha=1 / 6, beta=0.5))

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        """The same elements in another shape."""
        return self.op("Reshape", [x, self.integers(*shape)], shape)

    def transpose(self, x: Tensor, *axes: int) -> Tensor:
        """The axes in another order."""
        return self.op("Transpose", [x], [x.shape[axis] for axis in axes], perm=list(axes))

    def zeros(self, shape: Sequence[int]) -> Tensor:
        """A tensor of zeros."""
        return self.op("ConstantOfShape", [self.integers(*shape)], shape)


def _pooled(length: int, kernel: int, stride: int, pad: int) -> int:
    return (length + 2 * pad - kernel) // stride + 1


def with_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """A copy with values: He-normal weights, batch normalization as the identity, zero biases."""
    filled = onnx.ModelProto()
    filled.CopyFrom(model)
    ones = {node.input[at] for node in model.graph.node if node.op_type == "BatchNormalization" for at in (1, 4)}
    ones |= {node.input[1] for node in model.graph.node if node.op_type == "LayerNormalization"}
    random = np.random.default_rng(seed)
    for tensor in filled.graph.initializer:
        if tensor.data_location != TensorProto.DataLocation.EXTERNAL:
            continue
        shape = tuple(tensor.dims)
        if tensor.name in ones or len(shape) == 1:
            values = np.full(shape, float(tensor.name in ones), np.float32)
        else:
            # Gemm keeps (outputs, inputs), Conv (outputs, inputs, height, width), MatMul (inputs, outputs).
            inputs = math.prod(shape[1:])
            some = random.standard_normal(min(math.prod(shape), _VALUES), np.float32)
            values = np.resize(some * np.float32(math.sqrt(2 / inputs)), shape)
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.DataLocation.DEFAULT
        tensor.raw_data = values.tobytes()
    return filled


def with_weights_as_inputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose weights without values are graph inputs: valid by itself for ``onnx.checker``."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = [tensor for tensor in model.graph.initializer if tensor.data_location != TensorProto.DataLocation.EXTERNAL]
    copy.graph.input.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        for tensor in model.graph.initializer
        if tensor.data_location == TensorProto.DataLocation.EXTERNAL
    )
    del copy.graph.initializer[:]
    copy.graph.initializer.extend(kept)
    return copy
