"""A graph -> the memory that its weights take, and its activations where most of them are alive at once.

Nodes run in the graph's order. A value is alive from the node that computes it to the last one that reads it; inputs
and outputs stay, since the caller holds them, and a view keeps what it names. Types are those of the graph. Nothing is
fitted: what a runtime keeps in addition (copies of weights in another layout, workspaces, its arena) is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .costs import width_of
from .graph import Constant, Edge, Graph, Node, Operand, constants, elements, words
from .kernels import fixed_nodes

_VIEWS = frozenset(words("DequantizeLinear Dropout Flatten Identity Reshape Squeeze Unsqueeze"))
_BOOLEANS = frozenset(words("And Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Not Or Xor"))
_INTEGERS = frozenset(words("ArgMax ArgMin NonMaxSuppression NonZero Shape Size"))
_SUMS = frozenset(("ConvInteger", "MatMulInteger"))
# The operand whose type the results have, where it is not the first.
_LIKE = {"CastLike": 1, "DequantizeLinear": 1, "OneHot": 2, "QuantizeLinear": 2, "Where": 1}
# Of ONNX's numbers of types, those that a cast can name.
_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
}


_LEAST_SHARED = 0.01  # of all weights: scalars and masks are shared by most exports


@dataclass(frozen=True, slots=True)
class GraphMemory:
    """Bytes of the weights, and the most bytes of activations that are alive at once."""

    weights: float
    activations: float


def memory(graph: Graph, *, weight_width: float = 0.0, activation_width: float = 0.0) -> GraphMemory:
    """The memory of a graph for the sizes of its inputs; open sizes (a batch, mostly) count as one.

    The widths are bytes of a floating-point number, 0 for those of the graph: a setting may compute in other types.
    """
    everywhere = sum(_bytes(constant) for constant in _constants(graph))
    # Of shared weights the types are not known apart: as large a part of them is shared in any.
    once = 1 - graph.shared / everywhere if everywhere else 1.0
    weights = once * sum(_bytes(constant, weight_width) for constant in _constants(graph))
    return GraphMemory(
        weights, _peak(graph, [_width(name, activation_width) for name in types(graph)], activation_width)
    )


def shared_bytes(graph: Graph) -> int:
    """The bytes of weights of a graph as it was read, beyond the first node that reads each; 0 for a small part."""
    found: dict[int, float] = {}
    everywhere = 0.0
    for constant in _constants(graph):
        found[id(constant)] = _bytes(constant)
        everywhere += found[id(constant)]
    shared = everywhere - sum(found.values())
    return round(shared) if shared > _LEAST_SHARED * everywhere else 0


def _constants(graph: Graph) -> Iterator[Constant]:
    for node in graph.nodes:
        yield from constants(node.operands)
        for body in node.bodies:
            yield from _constants(body)


def _bytes(constant: Constant, of_floats: float = 0.0) -> float:
    return constant.elements * _width(constant.dtype, of_floats)


def _width(dtype: str, of_floats: float) -> float:
    return of_floats if of_floats and dtype.startswith(("float", "bfloat")) else width_of(dtype)


def types(graph: Graph) -> list[str]:
    """The type of the results of each node, such as ``float32``."""
    found: list[str] = []
    for node in graph.nodes:
        found.append(_type(graph, node, found))
    return found


def _type(graph: Graph, node: Node, before: list[str]) -> str:
    name = node.operator
    if name in _BOOLEANS:
        return "bool"
    if name in _INTEGERS:
        return "int64"
    if name in _SUMS:
        return "int32"
    if name == "Cast" or (name.startswith(("EyeLike", "Random")) and node.attribute("dtype")):
        return _TYPES.get(_number(node.attribute("to") or node.attribute("dtype")), "float32")
    place = _LIKE.get(name, 0)
    if place >= len(node.operands) or node.operands[place] is None or name == "ConstantOfShape":
        return "uint8" if name in ("QuantizeLinear", "DynamicQuantizeLinear") else "float32"
    if name == "DynamicQuantizeLinear":
        return "uint8"
    return _type_of(graph, node.operands[place], before)


def _type_of(graph: Graph, operand: Operand, before: list[str]) -> str:
    if isinstance(operand, Constant):
        return operand.dtype
    if operand is None:
        return "float32"
    return before[operand.node] if operand.node >= 0 else graph.inputs[operand.output].dtype


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _peak(graph: Graph, widths: Sequence[float], of_floats: float) -> float:
    home, fixed = _homes(graph), fixed_nodes(graph)
    last: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        for ref in node.refs:
            if ref.node >= 0:
                last[home[ref.node]] = number
    for operand in graph.outputs:
        if isinstance(operand, Edge) and operand.node >= 0:
            last[home[operand.node]] = len(graph.nodes)
    alive = most = sum(elements(value.shape) * _width(value.dtype, of_floats) for value in graph.inputs)
    ending: dict[int, float] = {}
    for number, node in enumerate(graph.nodes):
        if home[number] == number and not fixed[number]:
            size = sum(elements(shape) for shape in node.shapes) * widths[number]
            alive += size
            end = last.get(number, number)
            ending[end] = ending.get(end, 0.0) + size
            most = max(most, alive)
        alive -= ending.pop(number, 0.0)
    return most


def _homes(graph: Graph) -> list[int]:
    """For each node the one that holds its result: itself, or what a view names; -1 for an input."""
    found: list[int] = []
    for number, node in enumerate(graph.nodes):
        ref = node.operands[0] if node.operands else None
        if node.operator in _VIEWS and isinstance(ref, Edge):
            found.append(found[ref.node] if ref.node >= 0 else -1)
        else:
            found.append(number)
    return found
