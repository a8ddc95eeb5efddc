"""The graphs of an ONNX model -> graphs of operators, attributes, edges and shapes, with what is constant folded."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlm_core.errors import ModelError

from .graph import MAX_RANK, MAX_VALUES, Attribute, Constant, Edge, Graph, Node, Operand, Shape, Value
from .model_nodes import bodies, captured_names, sorted_nodes
from .shape_values import shape_value, value_of
from .shapes import infer
from .wire import Deadline

if TYPE_CHECKING:
    import onnx

_MAX_TEXT, _MAX_LIST = 40, 32  # longer attributes are data of a custom operator, not its meaning
_MAX_NAME = 200  # of an operator with its domain
_OWN_DOMAINS = ("", "ai.onnx", "com.microsoft")
# Irrelevant for cost and meaning.
_IGNORED = {"epsilon", "momentum", "spatial", "training_mode", "consumed_inputs", "storage_order", "saturate"}


class GraphReader:
    """Reads the graphs of a model, whose operator versions it knows.

    ``onnx``: the package. ``versions``: of the operators, by domain.
    """

    def __init__(self, onnx: Any, versions: Mapping[str, int], deadline: Deadline) -> None:
        self._onnx = onnx
        self._deadline = deadline
        self._versions = versions
        self._known_defaults: dict[tuple[str, str], dict[str, Attribute | None]] = {}
        self._known_types: dict[int, str] = {}
        self._of_shapes: dict[int, Constant] = {}  # the constants that were computed from shapes, by id

    def graph(self, proto: onnx.GraphProto, outer: Mapping[str, tuple[Operand, Value]]) -> Graph:
        """The graph of a protocol buffer.

        ``outer``: constants that an enclosing graph has; its computed values come in as further inputs.

        Raises:
            ModelError: a node reads a name that nothing writes, the nodes have a cycle, or reading takes too long.
        """
        names: dict[str, Operand] = {}
        values: dict[str, Value] = {}
        for name, (operand, value) in outer.items():
            if isinstance(operand, Constant):
                names[name], values[name] = operand, value
        for tensor in proto.initializer:
            self._constant(tensor.name, tensor, names, values)
        for sparse in proto.sparse_initializer:
            constant = Constant(tuple(sparse.dims[:MAX_RANK]), self._dtype(sparse.values.data_type))
            names[sparse.values.name] = constant
            values[sparse.values.name] = Value(constant.shape, constant.dtype)
        inputs: list[Value] = []
        stored = {tensor.name for tensor in proto.initializer}
        for entry in proto.input:
            if entry.name not in stored:
                value = self._value(entry)
                names[entry.name], values[entry.name] = Edge(-1, len(inputs)), value
                inputs.append(value)
        captured = [name for name in captured_names(proto) if name in outer and name not in names]
        for name in captured:
            names[name], values[name] = Edge(-1, len(inputs)), outer[name][1]
            inputs.append(outer[name][1])
        known = {entry.name: self._value(entry) for entry in (*proto.value_info, *proto.output)}
        nodes: list[Node] = []
        for node in sorted_nodes(proto.node, names):
            self._node(node, nodes, names, values, known)
        missing = [entry.name for entry in proto.output if entry.name not in names]
        if missing:
            raise ModelError(f"output {missing[0]!r} of the ONNX graph is not written by any node; export it again")
        return Graph(tuple(inputs), tuple(nodes), tuple(names[entry.name] for entry in proto.output))

    def _node(
        self,
        node: onnx.NodeProto,
        nodes: list[Node],
        names: dict[str, Operand],
        values: dict[str, Value],
        known: Mapping[str, Value],
    ) -> None:
        self._deadline.step()
        folded = self._folded(node)
        if folded is not None:
            names[node.output[0]], values[node.output[0]] = folded, Value(folded.shape, folded.dtype)
            return
        for name in node.input:
            if name and name not in names:
                raise ModelError(f"node {node.name or node.op_type!r} reads {name!r}, which nothing writes")
        operands = [names[name] if name else None for name in node.input]
        followed = self._followed(node, operands, values)
        if followed is not None:
            names[node.output[0]], values[node.output[0]] = followed, Value(followed.shape, followed.dtype)
            self._of_shapes[id(followed)] = followed
            return
        read: list[Graph] = []
        for body in bodies(node):
            needed = [name for name in captured_names(body) if name in names]
            outer = {name: (names[name], values.get(name, Value(None))) for name in needed}
            read.append(self.graph(body, outer))
            operands += [names[name] for name in needed if isinstance(names[name], Edge)]
        attributes = self._attributes(node)
        shapes_in = [values[name].shape if name else None for name in node.input]
        shapes_in += [None] * (len(operands) - len(shapes_in))
        kind = _name(node)
        inferred = infer(kind, operands, shapes_in, dict(attributes), max(1, len(node.output)))
        shapes: list[Shape] = []
        for index, name in enumerate(node.output or [""]):
            value = known.get(name)
            shape = inferred[index] if value is None or value.shape is None else _merged(value.shape, inferred[index])
            shapes.append(shape)
            if name:
                names[name] = Edge(len(nodes), index)
                values[name] = Value(shape, value.dtype if value is not None else "float32")
        nodes.append(Node(kind, tuple(operands), attributes, tuple(shapes), tuple(read)))

    def _followed(
        self, node: onnx.NodeProto, operands: Sequence[Operand], values: Mapping[str, Value]
    ) -> Constant | None:
        """The result of a node that computes with shapes, where its operands are known; else None."""
        if node.domain not in _OWN_DOMAINS or len(node.output) != 1 or not operands:
            return None
        if node.op_type in ("Shape", "Size"):
            attributes = dict(self._attributes(node))
            found = shape_value(values.get(node.input[0], Value(None)).shape, attributes)
            return value_of("ReduceProd", [found], {"keepdims": 0}) if found and node.op_type == "Size" else found
        constants = [operand for operand in operands if isinstance(operand, Constant)]
        if len(constants) + operands.count(None) < len(operands) or not any(
            id(constant) in self._of_shapes for constant in constants
        ):
            return None
        return value_of(
            node.op_type,
            [operand for operand in operands if not isinstance(operand, Edge)],
            dict(self._attributes(node)),
        )

    def _folded(self, node: onnx.NodeProto) -> Constant | None:
        """The constant of a Constant node; None for other nodes."""
        if node.op_type != "Constant" or node.domain not in _OWN_DOMAINS or len(node.attribute) != 1:
            return None
        attribute = node.attribute[0]
        if attribute.ref_attr_name:  # the value is an argument of the function around the node
            return None
        value = self._onnx.helper.get_attribute_value(attribute)
        if attribute.name == "value" and isinstance(value, self._onnx.TensorProto):
            return self._tensor(value)
        if attribute.name == "sparse_value" and isinstance(value, self._onnx.SparseTensorProto):
            return Constant(tuple(value.dims[:MAX_RANK]), self._dtype(value.values.data_type))
        if not attribute.name.startswith("value_"):
            return None
        many = list(value) if isinstance(value, Iterable) and not isinstance(value, bytes) else [value]
        shape = (len(many),) if isinstance(value, Iterable) and not isinstance(value, bytes) else ()
        if attribute.name in ("value_string", "value_strings"):
            return Constant(shape, "string")
        dtype = "int64" if attribute.name in ("value_int", "value_ints") else "float32"
        return Constant(shape, dtype, tuple(many) if len(many) <= MAX_VALUES else None)

    def _constant(
        self, name: str, tensor: onnx.TensorProto, names: dict[str, Operand], values: dict[str, Value]
    ) -> None:
        constant = self._tensor(tensor)
        names[name], values[name] = constant, Value(constant.shape, constant.dtype)

    def _tensor(self, tensor: onnx.TensorProto) -> Constant:
        shape, dtype = tuple(tensor.dims[:MAX_RANK]), self._dtype(tensor.data_type)
        external = tensor.data_location == self._onnx.TensorProto.EXTERNAL
        if is_large(shape) or external or not re.match(r"u?int|float(16|32|64)$|double|bool", dtype):
            return Constant(shape, dtype)
        try:
            values = self._onnx.numpy_helper.to_array(tensor).ravel().tolist()
        except (ValueError, TypeError, KeyError):  # KeyError: a type of number that onnx does not know
            return Constant(shape, dtype)
        kind = float if dtype.startswith("float") else int
        return Constant(shape, dtype, tuple(kind(value) for value in values))

    def _attributes(self, node: onnx.NodeProto) -> tuple[tuple[str, Attribute], ...]:
        defaults = self._defaults(node.op_type, node.domain)
        kept: list[tuple[str, Attribute]] = []
        for attribute in node.attribute:
            if attribute.name in _IGNORED or attribute.ref_attr_name:
                continue
            value = self._plain(attribute)
            if value is not None and value != defaults.get(attribute.name):
                kept.append((re.sub(r"\W", "_", attribute.name), value))
        return tuple(kept)

    def _plain(self, attribute: onnx.AttributeProto) -> Attribute | None:
        value = self._onnx.helper.get_attribute_value(attribute)
        if attribute.type in (1, 2):
            return float(value) if attribute.type == 1 else int(value)
        if attribute.type == 3:
            text = str(value.decode("utf-8", errors="replace"))
            return text if len(text) <= _MAX_TEXT else None
        if attribute.type in (6, 7, 8) and len(value) <= _MAX_LIST:
            if attribute.type == 8:
                return tuple(item.decode("utf-8", errors="replace")[:_MAX_TEXT] for item in value)
            return tuple(float(item) if attribute.type == 6 else int(item) for item in value)
        return None

    def _defaults(self, operator: str, domain: str) -> dict[str, Attribute | None]:
        known = self._known_defaults.get((operator, domain))
        if known is None:
            known = self._known_defaults[operator, domain] = self._schema_defaults(operator, domain)
        return known

    def _schema_defaults(self, operator: str, domain: str) -> dict[str, Attribute | None]:
        try:
            schema = self._onnx.defs.get_schema(operator, self._versions.get(domain, 1), domain)
        except Exception:  # the error class moved between versions of onnx
            return {}
        return {
            name: self._plain(entry.default_value)
            for name, entry in schema.attributes.items()
            if entry.default_value.name
        }

    def _value(self, entry: onnx.ValueInfoProto) -> Value:
        if not entry.type.HasField("tensor_type"):
            return Value(None, entry.type.WhichOneof("value") or "float32")
        tensor = entry.type.tensor_type
        dtype = self._dtype(tensor.elem_type)
        if not tensor.HasField("shape") or len(tensor.shape.dim) > MAX_RANK:
            return Value(None, dtype)
        return Value(tuple(_size(dim) for dim in tensor.shape.dim), dtype)

    def _dtype(self, number: int) -> str:
        known = self._known_types.get(number)
        if known is None:
            known = self._known_types[number] = self._type_name(number)
        return known

    def _type_name(self, number: int) -> str:
        try:
            name = self._onnx.TensorProto.DataType.Name(number).lower()
        except ValueError:
            return "float32"
        return {"float": "float32", "double": "float64", "undefined": "float32"}.get(name, str(name))


def _size(dim: Any) -> int | str:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    name = dim.dim_param[:_MAX_TEXT]
    return name if name and not name.startswith("unk__") else "?"


def _merged(stored: Shape, inferred: Shape) -> Shape:
    """The stored shape with unknown sizes taken from the inferred one."""
    if stored is None or inferred is None or len(stored) != len(inferred):
        return stored
    return tuple(b if a == "?" else a for a, b in zip(stored, inferred, strict=True))


def _name(node: onnx.NodeProto) -> str:
    name = node.op_type if node.domain in _OWN_DOMAINS else f"{node.domain}.{node.op_type}"
    name = re.sub(r"[^A-Za-z0-9_.]", "_", name[:_MAX_NAME])
    return name if re.match(r"[A-Za-z]", name) else f"Op{name}"


def is_large(dims: Sequence[int]) -> bool:
    """Return whether a tensor has more values than are kept. The product of a million sizes would take minutes."""
    return len(dims) > MAX_RANK or math.prod(dims) > MAX_VALUES
