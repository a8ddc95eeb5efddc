"""The theoretical costs of a graph: parameters, multiply-accumulates, activations, memory traffic; per node and total.

Unknown sizes (a batch, mostly) count as one. A weight that two nodes share counts at both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .graph import Constant, Graph, Node, Operand, Shape, constants, elements, users
from .shapes import RECURRENT

_WIDTHS: dict[str, float] = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
}
_WIDTHS |= dict.fromkeys(("int8", "uint8", "bool", "float8e4m3fn", "float8e5m2"), 1) | {"int4": 0.5, "uint4": 0.5}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a node or graph.

    ``parameters``: trainable numbers; ``statistics``: running means and variances of batch normalization; ``macs``:
    multiply-accumulates of products and convolutions, without their bias; ``operations``: elements that any other
    operator computes; ``activations``: elements written; ``traffic``: bytes read and written without a cache.
    """

    parameters: int
    statistics: int
    macs: int
    operations: int
    activations: int
    traffic: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.parameters + other.parameters,
            self.statistics + other.statistics,
            self.macs + other.macs,
            self.operations + other.operations,
            self.activations + other.activations,
            self.traffic + other.traffic,
        )


NOTHING = Cost(0, 0, 0, 0, 0, 0.0)


def costs(graph: Graph) -> tuple[Cost, ...]:
    """The cost of each node; a body of If, Loop or Scan counts once."""
    width = max(
        (width_of(value.dtype) for value in graph.inputs if value.dtype.startswith(("float", "bf"))), default=4.0
    )
    parts = []
    for node in graph.nodes:
        cost = node_cost(node, [graph.shape(operand) for operand in node.operands], width)
        for body in node.bodies:
            cost = cost + total(costs(body))
        parts.append(cost)
    return tuple(parts)


def total(parts: Sequence[Cost]) -> Cost:
    """The sum of costs."""
    return sum(parts, start=NOTHING)


def node_cost(node: Node, shapes: Sequence[Shape], width: float = 4.0) -> Cost:
    """The cost of one node. ``shapes``: of its operands; ``width``: bytes of an element that is not a constant."""
    statistics = sum(constant.elements for constant in constants(node.operands[3:5]) if _normalizes_batches(node))
    weights = [constant for constant in constants(node.operands) if _is_weight(constant)]
    written = sum(elements(shape) for shape in node.shapes)
    macs = multiply_accumulates(node, shapes)
    read = sum(
        operand.elements * width_of(operand.dtype) if isinstance(operand, Constant) else elements(shape) * width
        for operand, shape in zip(node.operands, shapes, strict=True)
        if operand is not None
    )
    return Cost(
        sum(constant.elements for constant in weights) - statistics,
        statistics,
        macs,
        0 if macs else _work(node, shapes, written),
        written,
        read + written * width,
    )


def multiply_accumulates(node: Node, shapes: Sequence[Shape]) -> int:
    """The multiply-accumulates of a convolution, product, recurrent layer or attention; 0 for any other operator."""
    kind = node.operator.removeprefix("QLinear").removesuffix("Integer").removeprefix("Fused")
    out = elements(node.shapes[0])
    weight = shapes[1] if len(shapes) > 1 else None
    if kind in ("Conv", "ConvTranspose", "DeformConv") and node.operator.startswith("QLinear"):
        weight = shapes[3] if len(shapes) > 3 else None
    if kind in ("Conv", "DeformConv"):
        return out * elements(weight[1:]) if weight else 0
    if kind == "ConvTranspose":
        return elements(shapes[0]) * elements(weight[1:]) if weight else 0
    if kind in ("Gemm", "MatMul"):
        first = shapes[0]
        if not first:
            return 0
        inner = first[0] if node.attribute("transA") else first[-1]
        return out * (inner if isinstance(inner, int) else 1)
    if kind in RECURRENT and shapes[0] and len(shapes) > 2:
        steps = elements(shapes[0][:2])
        return steps * (elements(shapes[1]) + elements(shapes[2]))
    if kind.endswith("Attention") and shapes[0]:
        keys = shapes[1] if len(shapes) > 1 and shapes[1] else shapes[0]
        rows = keys[-2] if len(keys) > 1 and isinstance(keys[-2], int) else 1
        return 2 * rows * elements(shapes[0])
    if kind == "Einsum" and len(shapes) > 1:
        return _einsum(str(node.attribute("equation") or ""), shapes)
    return 0


def _einsum(equation: str, shapes: Sequence[Shape]) -> int:
    """One multiply-accumulate for each combination of the indices of the two operands; 0 where they are not clear."""
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=False):
        if shape is None or "." in term or len(term) != len(shape):
            return 0
        sizes.update((index, elements((size,))) for index, size in zip(term, shape, strict=True))
    return elements(tuple(sizes.values()))


def _work(node: Node, shapes: Sequence[Shape], written: int) -> int:
    """Elements computed: those read by a window or reduction, else those written."""
    if node.operator in ("MaxPool", "AveragePool", "LpPool"):
        kernel = node.attribute("kernel_shape")
        return written * (math.prod(int(size) for size in kernel) if isinstance(kernel, tuple) else 1)
    if node.operator.startswith(("Reduce", "Global")):
        return max(elements(shapes[0]) if shapes else 0, written)
    return written


def depth(graph: Graph) -> int:
    """The number of nodes on the longest path."""
    longest: list[int] = []
    for node in graph.nodes:
        longest.append(1 + max((longest[ref.node] for ref in node.refs if ref.node >= 0), default=0))
    return max(longest, default=0)


def live(graph: Graph) -> tuple[bool, ...]:
    """For each node whether it is on a path from an input to an output of the graph."""
    fed: list[bool] = []
    for node in graph.nodes:
        fed.append(any(ref.node < 0 or fed[ref.node] for ref in node.refs))
    read = [False] * len(graph.nodes)
    for operand in graph.outputs:
        _mark(operand, read)
    readers = users(graph)
    for number in reversed(range(len(graph.nodes))):
        read[number] = read[number] or any(read[reader] for reader in readers[number])
    return tuple(a and b for a, b in zip(fed, read, strict=True))


def _mark(operand: Operand, read: list[bool]) -> None:
    node = getattr(operand, "node", -1)
    if node >= 0:
        read[node] = True


def _normalizes_batches(node: Node) -> bool:
    return node.operator == "BatchNormalization"


def _is_weight(constant: Constant) -> bool:
    """Shapes, axes and single numbers are not parameters; quantised weights are."""
    if constant.dtype in ("int64", "bool", "string") or not constant.shape:
        return False
    return constant.values is None or "float" in constant.dtype


def width_of(dtype: str) -> float:
    """The bytes of an element of a type."""
    return _WIDTHS.get(dtype, 4.0)
