"""Parameters and operations of an ONNX model, from initializers and inferred shapes, as NAS labels count them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx
from onnx import TensorProto

_STATISTICS = (3, 4)  # inputs of BatchNormalization that are measured, not learned


@dataclass(frozen=True, slots=True)
class Counts:
    """``parameters`` without running statistics; ``macs`` of Conv, Gemm, MatMul and Attention at the graph's batch.

    ``norm_elements`` are the elements that batch normalizations write, ``pool_elements`` those that global pools read
    and write: what tools add to the multiply-accumulates by different conventions.
    """

    parameters: int
    macs: int
    norm_elements: int
    pool_elements: int

    @property
    def thop_operations(self) -> int:
        """As thop counts a network in training mode: four operations an element of a normalization, pools summed."""
        return self.macs + 4 * self.norm_elements + self.pool_elements


def count(model: onnx.ModelProto) -> Counts:
    """Counts of a model whose shapes are all known.

    Raises:
        KeyError: shape inference does not reach a tensor that is counted.
    """
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    shapes = {t.name: tuple(t.dims) for t in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        shapes[value.name] = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
    macs = norms = pools = 0
    statistics: set[str] = set()
    for node in graph.node:
        out = math.prod(shapes[node.output[0]])
        if node.op_type == "Conv":
            macs += out * math.prod(shapes[node.input[1]][1:])
        elif node.op_type in ("Gemm", "MatMul"):
            macs += out * shapes[node.input[0]][-1]
        elif node.op_type == "Attention":
            macs += 2 * math.prod(shapes[node.input[0]]) * shapes[node.input[1]][-2]
        elif node.op_type == "BatchNormalization":
            norms += out
            statistics.update(node.input[at] for at in _STATISTICS)
        elif node.op_type == "GlobalAveragePool":
            pools += out + math.prod(shapes[node.input[0]])
    parameters = sum(
        math.prod(t.dims)
        for t in graph.initializer
        if t.data_location == TensorProto.DataLocation.EXTERNAL and t.name not in statistics
    )
    return Counts(parameters, macs, norms, pools)
