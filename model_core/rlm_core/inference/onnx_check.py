"""Checks the ONNX files of a model before onnxruntime reads them.

onnxruntime runs whatever a file says: loops without end, files next to it, libraries of custom operators. A model needs
none of these, so only the operators of :data:`OPERATORS` are allowed. The file is read as protobuf, by field numbers of
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto; the onnx package is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlm_core.errors import ModelError

# What the exported encoders and heads use, and their close relatives: each takes time in proportion to its tensors.
# fmt: off
OPERATORS = frozenset({
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "Constant", "Cos", "DequantizeLinear", "Div",
    "DynamicQuantizeLinear", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements",
    "GatherND", "Gelu", "Gemm", "Greater", "GreaterOrEqual", "Identity", "LayerNormalization", "Less", "LessOrEqual",
    "Log", "LogSoftmax", "MatMul", "MatMulInteger", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow",
    "QuantizeLinear", "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Relu", "Reshape",
    "Shape", "Sigmoid", "Sign", "Sin", "Slice", "Softmax", "Softplus", "Split", "Sqrt", "Squeeze", "Sub", "Sum",
    "Tanh", "Transpose", "Unsqueeze", "Where",
})
# fmt: on
_DOMAINS = frozenset({"", "ai.onnx"})
_MOST_NODES = 20_000  # fifty times the encoder that ships
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Fields of ModelProto, GraphProto, NodeProto, AttributeProto and TensorProto.
_GRAPH, _OPSETS, _TRAINING, _FUNCTIONS = 7, 8, 20, 25
_NODE, _INITIALIZER, _SPARSE_INITIALIZER = 1, 5, 15
_OPERATOR, _ATTRIBUTE, _DOMAIN = 4, 5, 7
_TENSOR, _BODY, _TENSORS, _BODIES, _REFERENCE, _SPARSE, _SPARSES = 5, 6, 10, 11, 21, 22, 23
_EXTERNAL_DATA = 13
_OPSET_DOMAIN = 1


class _DamagedError(Exception):
    """The bytes are not a protobuf message."""


def check_onnx(content: bytes, where: str) -> None:
    """Refuse an ONNX file that is damaged or has more than operators of :data:`OPERATORS` and values in the file.

    Raises:
        ModelError: it is such a file; ``where`` names it.
    """
    try:
        found = _problem(memoryview(content))
    except _DamagedError:
        found = "it is damaged"
    if found is not None:
        advice = "reinstall rlm-lsp or export the model again"
        raise ModelError(f"{where}: not a usable ONNX model ({found}); {advice}")


def _problem(model: memoryview) -> str | None:
    nodes = 0
    has_graph = False
    for number, content in _fields(model):
        if number in (_TRAINING, _FUNCTIONS):
            return "it has local functions"
        if number == _OPSETS:
            for part, domain in _fields(content):
                if part == _OPSET_DOMAIN and _text(domain) not in _DOMAINS:
                    return f"its operators are of the domain {_text(domain)!r}"
        if number != _GRAPH:
            continue
        has_graph = True
        for part, entry in _fields(content):
            found = None
            if part == _NODE:
                nodes += 1
                found = _problem_of_node(entry)
            elif part == _INITIALIZER:
                found = _problem_of_tensor(entry)
            elif part == _SPARSE_INITIALIZER:
                found = "it has sparse weights"
            if found is not None:
                return found
            if nodes > _MOST_NODES:
                return f"it has more than {_MOST_NODES:,} nodes"
    return None if has_graph and nodes else "it has no graph"


def _problem_of_node(node: memoryview) -> str | None:
    for number, content in _fields(node):
        if number == _OPERATOR and _text(content) not in OPERATORS:
            return f"its operator {_text(content)!r} is not allowed"
        if number == _DOMAIN and _text(content) not in _DOMAINS:
            return f"its operators are of the domain {_text(content)!r}"
        if number != _ATTRIBUTE:
            continue
        for part, entry in _fields(content):
            if part in (_BODY, _BODIES, _REFERENCE):
                return "it has control flow"
            if part in (_SPARSE, _SPARSES):
                return "it has sparse weights"
            if part in (_TENSOR, _TENSORS) and (found := _problem_of_tensor(entry)):
                return found
    return None


def _problem_of_tensor(tensor: memoryview) -> str | None:
    has_other_files = any(number == _EXTERNAL_DATA for number, _ in _fields(tensor))
    return "its weights are in other files" if has_other_files else None


def _text(content: memoryview) -> str:
    return bytes(content[:100]).decode("utf-8", "replace")


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a message; numbers have empty content."""
    at, end = 0, len(message)
    nothing = message[:0]
    while at < end:
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = _varint(message, at)
            yield tag >> 3, nothing
        elif kind == _BYTES:
            size, at = _varint(message, at)
            if size > end - at:
                raise _DamagedError
            yield tag >> 3, message[at : at + size]
            at += size
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
            if at > end:
                raise _DamagedError
            yield tag >> 3, nothing
        else:
            raise _DamagedError


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise _DamagedError
