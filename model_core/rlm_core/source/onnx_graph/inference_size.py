"""How many numbers shape inference of the onnx package would have to hold, counted before it is run.

It follows the values of short integer tensors through ``Concat`` and the ranks of tensors through ``Gather``: each can
double at every node, so a file of 40 nodes would take all memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import onnx

_MOST_NUMBERS = 200_000  # ten times those of the most nodes that are read, of rank 5
_MOST = 2**40  # beyond all limits; numbers stay small


class _Extent(NamedTuple):
    """Upper bounds of a value: sizes of its shape, and its own numbers if they are followed."""

    rank: int
    values: int


_Inputs = Sequence[_Extent]
_NOTHING = _Extent(0, 0)
_RULES: dict[str, Callable[[_Inputs, int], _Extent]] = {
    # Inputs and the number of integers in the attributes -> the extent of each output.
    "Concat": lambda inputs, _: _Extent(max(at.rank for at in inputs), sum(at.values for at in inputs)),
    "ConstantOfShape": lambda inputs, _: _Extent(inputs[0].values, inputs[0].values),
    "Expand": lambda inputs, _: _Extent(max(inputs[0].rank, inputs[1].values), inputs[0].values),
    "Flatten": lambda inputs, _: _Extent(2, inputs[0].values),
    "Gather": lambda inputs, _: _Extent(inputs[0].rank + inputs[1].rank, inputs[1].values or inputs[0].values),
    "GatherND": lambda inputs, _: _Extent(inputs[0].rank + inputs[1].rank, inputs[1].values),
    "OneHot": lambda inputs, _: _Extent(inputs[0].rank + 1, 0),
    "Reshape": lambda inputs, shape: _Extent(inputs[1].values if len(inputs) > 1 else shape, inputs[0].values),
    "Shape": lambda inputs, _: _Extent(1, inputs[0].rank),
    "Size": lambda inputs, _: _Extent(0, 1),
    "Squeeze": lambda inputs, _: inputs[0],
    "StringSplit": lambda inputs, _: _Extent(inputs[0].rank + 1, 0),
    "Unsqueeze": lambda inputs, axes: _Extent(
        inputs[0].rank + (inputs[1].values if len(inputs) > 1 else axes), inputs[0].values
    ),
}


def is_inferable(graph: onnx.GraphProto) -> bool:
    """Return whether the shapes of a graph and of the bodies in it can be inferred in little memory."""
    return _Count().outputs(graph, {}) is not None


class _Count:
    """Counts the numbers of all values of a graph."""

    def __init__(self) -> None:
        self._numbers = 0

    def outputs(self, graph: onnx.GraphProto, outer: Mapping[str, _Extent]) -> _Extent | None:
        """The largest extent of the outputs of a graph; None beyond the limit."""
        known = dict(outer)
        for entry in (*graph.value_info, *graph.output, *graph.input):
            known[entry.name] = _Extent(len(entry.type.tensor_type.shape.dim), 0)
        for tensor in graph.initializer:
            known[tensor.name] = _of_tensor(tensor)
        for node in graph.node:
            inputs = [known.get(name, _NOTHING) for name in node.input]
            extent = self._node(node, inputs, known)
            self._numbers += sum(extent) * len(node.output) if extent is not None else 0
            if extent is None or self._numbers > _MOST_NUMBERS:
                return None
            known.update((name, _larger(extent, known.get(name, _NOTHING))) for name in node.output)
        return _largest([known.get(entry.name, _NOTHING) for entry in graph.output])

    def _node(self, node: onnx.NodeProto, inputs: _Inputs, known: Mapping[str, _Extent]) -> _Extent | None:
        if node.op_type == "Constant":
            return _largest([_of_constant(attribute) for attribute in node.attribute])
        bodies: list[_Extent] = []
        integers = texts = 0
        for attribute in node.attribute:
            integers, texts = integers + len(attribute.ints), texts + len(attribute.s)
            for body in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
                extent = self.outputs(body, known)
                if extent is None:
                    return None
                # What an iteration gives is stacked.
                bodies.append(_Extent(extent.rank + 1, extent.values))
        if node.op_type == "Einsum":
            return _Extent(texts, 0)
        rule = _RULES.get(node.op_type)
        if rule is not None:
            try:
                rank, values = rule(inputs, integers)
            except (IndexError, ValueError):  # without the inputs that it needs, nothing is inferred
                return _NOTHING
            return _Extent(min(rank, _MOST), min(values, _MOST))
        # Of most operators no output has more than the largest input, or a rank that the operator fixes.
        return _largest([*inputs, *bodies, _Extent(max(integers, 4), 0)])


def _of_constant(attribute: onnx.AttributeProto) -> _Extent:
    if attribute.type == 4:
        return _of_tensor(attribute.t)
    return _Extent(1, max(1, len(attribute.ints), len(attribute.floats), len(attribute.strings)))


def _of_tensor(tensor: onnx.TensorProto) -> _Extent:
    """Only the numbers of lists and single numbers are followed."""
    rank = len(tensor.dims)
    return _Extent(rank, min(max(math.prod(tensor.dims), 0), _MOST) if rank < 2 else 0)


def _larger(one: _Extent, other: _Extent) -> _Extent:
    return _Extent(max(one.rank, other.rank), max(one.values, other.values))


def _largest(extents: Sequence[_Extent]) -> _Extent:
    return _Extent(max((at.rank for at in extents), default=0), max((at.values for at in extents), default=0))
