"""An ONNX file -> the bytes of its model without weights and fields that are not used, within limits.

The messages of the file (protobuf's wire format) are walked before protobuf makes objects of them: values of large
tensors are skipped without reading them, and a file with too many parts is refused before it takes memory.

Before shape inference of the onnx package, :func:`is_inferable` counts how many numbers it would have to hold. It
follows the values of short integer tensors through ``Concat`` and the ranks of tensors through ``Gather``: each can
double at every node, so a file of 40 nodes would take all memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from io import BufferedReader
from typing import TYPE_CHECKING, NamedTuple

from rlm_core.errors import ModelError

if TYPE_CHECKING:
    import onnx

MAX_NODES = 25_000  # with those of bodies; the largest measured networks have 4,000
# Of fields, with those of messages in messages. Networks with as many nodes as are read have half as many.
_MOST_PARTS = 800_000
_NUMBERS_PER_PART = 2  # that are in a list and take as much memory as a field; of numbers with one byte each
_MOST_KEPT = 32 * 2**20  # bytes; without weights, a network of 20,000 nodes has 10 MiB
_MOST_DEPTH = 100  # of messages in each other, as in protobuf
_LONG_TENSOR = 4096  # bytes; the values of longer ones are weights
_BLOCK_BYTES = 256 * 2**10
_HEAD_BYTES = 20  # a key and a length
_STEPS = 64  # between two looks at the clock

# The fields that are kept, by kind of message and number in onnx.proto: with the kind of message in the field, if any.
_FIELDS = {
    "model": {1: "", 7: "graph", 8: "version", 25: "function"},
    "version": {1: "", 2: ""},
    "graph": {1: "node", 2: "", 5: "tensor", 11: "value", 12: "value", 13: "value", 15: "sparse tensor"},
    "function": dict.fromkeys((1, 4, 5, 6, 10, 13), "") | {7: "node", 9: "version", 11: "attribute", 12: "value"},
    "node": {**dict.fromkeys((1, 2, 3, 4, 7, 8), ""), 5: "attribute"},
    "attribute": dict.fromkeys((1, 2, 3, 4, 7, 8, 9, 20, 21), "")
    | {5: "tensor", 10: "tensor", 6: "graph", 11: "graph", 14: "type", 15: "type"}
    | {22: "sparse tensor", 23: "sparse tensor"},
    "tensor": dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14), ""),
    "sparse tensor": {1: "tensor", 2: "tensor", 3: ""},
    "value": {1: "", 2: "type"},
    "type": {1: "tensor type", 8: "tensor type", 4: "element type", 9: "element type", 5: "map type", 6: "", 7: ""},
    "tensor type": {1: "", 2: "shape"},
    "element type": {1: "type"},
    "map type": {1: "", 2: "type"},
    "shape": {1: "size"},
    "size": {1: "", 2: ""},
}
_TENSOR_VALUES = frozenset({4, 5, 6, 7, 9, 10, 11})
# The fields that hold lists of numbers: protobuf makes an object of some bytes, and Python another, of each.
_NUMBERS = {"tensor": frozenset({1, 4, 5, 7, 10, 11}), "sparse tensor": frozenset({3}), "attribute": frozenset({7, 8})}
_MOST_NUMBERS, _NUMBERS_PER_NODE = 150_000, 50  # ten times those of as many nodes that give one value of rank 5
_MOST = 2**40  # beyond all limits; numbers stay small


class Deadline:
    """The end of the processor time that a thread may take for a file."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._end = seconds, time.thread_time() + seconds
        self._steps = 0

    def check(self) -> None:
        """Raise a ``ModelError`` if the time is over."""
        if time.thread_time() > self._end:
            raise ModelError(f"too complex to analyse: reading takes more than {self._seconds:g} s; name a part of it")

    def step(self) -> None:
        """Check at the first step and after every so many: asking for the time takes as long as reading a node."""
        if not self._steps % _STEPS:
            self.check()
        self._steps += 1


def without_weights(file: BufferedReader, size: int, deadline: Deadline) -> bytes:
    """The model in a file of ``size`` bytes, as bytes for protobuf.

    Raises:
        ModelError: it has too many parts, or the time is over.
        ValueError: it is not a message.
    """
    return bytes(_Walk(file, deadline).message("model", 0, size))


class _Walk:
    def __init__(self, file: BufferedReader, deadline: Deadline) -> None:
        self._file, self._deadline = file, deadline
        self._block, self._base = b"", 0
        self._kept = self._parts = 0

    def message(self, kind: str, at: int, end: int, depth: int = 0) -> bytearray:
        """The kept part of the message in the bytes ``[at, end)``."""
        if depth > _MOST_DEPTH:
            raise ValueError("nested too deeply")
        fields, numbers = _FIELDS[kind], _NUMBERS.get(kind, ())
        dropped = _TENSOR_VALUES if kind == "tensor" and end - at > _LONG_TENSOR else frozenset[int]()
        kept = bytearray()
        while at < end:
            self._count(1)
            head = self._read(at, min(_HEAD_BYTES, end - at))
            key, after_key = _varint(head, 0)
            number, wire_type = key >> 3, key & 7
            length, start = _length(head, after_key, wire_type)
            stop = at + start + length
            if not number or stop > end:
                raise ValueError("no field, or longer than the message around it")
            inner = fields.get(number) if number not in dropped else None
            if inner and wire_type == 2:
                content = self.message(inner, at + start, stop, depth + 1)
                kept += head[:after_key] + _varint_of(len(content))
                kept += content
            elif inner is not None:
                self._kept += stop - at
                if self._kept > _MOST_KEPT:
                    limit = f"{_MOST_KEPT // 2**20} MiB"
                    raise ModelError(f"the ONNX graph takes more than {limit} without its weights; name a part of it")
                if number in numbers:
                    self._count(length // _NUMBERS_PER_PART)
                kept += self._read(at, stop - at)
            at = stop
        return kept

    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > _MOST_PARTS:
            what = "nodes, attributes, sizes and numbers in lists, together"
            raise ModelError(f"the ONNX graph has more than {_MOST_PARTS:,} parts ({what}); name a part of it")
        if not self._parts % 1024:
            self._deadline.check()

    def _read(self, at: int, size: int) -> bytes:
        """Bytes of the file; it is read forward, in blocks."""
        first = at - self._base
        if first < 0 or first + size > len(self._block):
            self._file.seek(at)
            self._block, self._base, first = self._file.read(max(size, _BLOCK_BYTES)), at, 0
        content = self._block[first : first + size]
        if len(content) < size:
            raise ValueError("shorter than it says")
        return content


def _length(head: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """The length of a value, and where it starts."""
    if wire_type == 2:
        return _varint(head, at)
    if wire_type == 0:
        return _varint(head, at)[1] - at, at
    if wire_type in (1, 5):
        return 8 if wire_type == 1 else 4, at
    raise ValueError("not a type of the wire format")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits per byte, and where it ends."""
    number = shift = 0
    for byte in data[at : at + 10]:
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
    raise ValueError("not a number")


def _varint_of(number: int) -> bytes:
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)


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
    return _Count(_MOST_NUMBERS + _NUMBERS_PER_NODE * len(graph.node)).outputs(graph, {}) is not None


class _Count:
    """Counts the numbers of all values of a graph, up to ``most``."""

    def __init__(self, most: int) -> None:
        self._numbers, self._most = 0, most

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
            if extent is None or self._numbers > self._most:
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
