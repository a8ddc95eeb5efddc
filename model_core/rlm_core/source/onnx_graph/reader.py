"""An ONNX model -> a graph of operators, attributes, edges and shapes.

Weights count by shape, and neither they nor values of external data are loaded. Nothing is run. The ``onnx`` package is
an extra and imported when first used.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_core.errors import ModelError
from rlm_core.files import open_regular

from .graph import MAX_RANK, MAX_VALUES, Attribute, Constant, Edge, Graph, Node, Operand, Shape, Value, ordered
from .memory import shared_bytes
from .open_sizes import USUAL, assume_sizes
from .shape_values import shape_value, value_of
from .shapes import infer
from .wire import MAX_NODES, Deadline, is_inferable, without_weights

if TYPE_CHECKING:
    import onnx

_NEEDS_ONNX = "reading a .onnx file needs the onnx package; run: pip install '.[onnx]'"
_MAX_BYTES = 2**31  # what protobuf can write; most of it are weights, which are not read
_MAX_SECONDS = 10.0  # of processor time
_MAX_CALLS = 50  # of local functions in each other
_MAX_BODIES = 8  # in each other; the names that a body reads are looked up in every graph around it
_MAX_TEXT, _MAX_LIST = 40, 32  # longer attributes are data of a custom operator, not its meaning
_MAX_NAME = 200  # of an operator with its domain
_OWN_DOMAINS = ("", "ai.onnx", "com.microsoft")
# Irrelevant for cost and meaning.
_IGNORED = {"epsilon", "momentum", "spatial", "training_mode", "consumed_inputs", "storage_order", "saturate"}


def read_onnx(path: Path, root: Path | None = None, sizes: Mapping[str, int] = USUAL) -> Graph:
    """The graph of a ``.onnx`` file, which with its links resolved is below ``root``, if given.

    ``sizes``: those of its inputs where the file leaves them open, see :func:`.open_sizes.assume_sizes`.

    Raises:
        ModelError: the onnx package is missing, the file cannot be read as an ONNX model, or that takes too long.
    """
    onnx = _onnx()
    deadline = Deadline(_MAX_SECONDS)
    try:
        with open_regular(path, _MAX_BYTES, root) as file:
            content = without_weights(file, os.fstat(file.fileno()).st_size, deadline)
        model = onnx.load_model_from_string(content)
    except OSError as error:
        hint = "give the path of a .onnx file, with large weights in other files"
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {hint}") from None
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    except Exception:  # protobuf's errors have no common public class
        raise ModelError(f"{path}: not an ONNX model; export the network to ONNX again") from None
    try:
        return from_model(model, deadline, sizes)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    except (UnicodeDecodeError, TypeError):  # protobuf gives such names as bytes, or raises on them
        raise ModelError(f"{path}: a name in the graph is not UTF-8; export the network to ONNX again") from None


def from_model(model: onnx.ModelProto, deadline: Deadline | None = None, sizes: Mapping[str, int] = USUAL) -> Graph:
    """The graph of a model in memory, in canonical order. The model is left as it is; see :func:`read_onnx`.

    Raises:
        ModelError: the onnx package is missing, the model is too large or takes too long, or an edge of it leads
            nowhere.
    """
    onnx = _onnx()
    if not model.graph.node and not model.graph.output:
        raise ModelError("the ONNX model has no nodes; export the network to ONNX again")
    if _node_count(model.graph) > MAX_NODES:
        raise ModelError(f"the ONNX graph has more than {MAX_NODES:,} nodes; name a part of it")
    shell = _shell(model)
    assumed, named = assume_sizes(shell.graph, sizes)
    shell = _with_shapes(shell)
    versions = {entry.domain: entry.version for entry in shell.opset_import}
    graph = _GraphReader(onnx, versions, deadline or Deadline(_MAX_SECONDS)).graph(shell.graph, {})
    return ordered(replace(graph, assumed=assumed, sizes=named, shared=shared_bytes(graph)))


def _onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise ModelError(_NEEDS_ONNX) from None
    return onnx


def _shell(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without the values of large weights, so that shape inference is fast at any size."""
    onnx = _onnx()
    shell = onnx.ModelProto()
    for field, value in model.ListFields():
        if field.name == "graph":
            for part, content in value.ListFields():
                if part.name != "initializer":
                    _copy(shell.graph, part.name, content)
        else:
            _copy(shell, field.name, value)
    for tensor in model.graph.initializer:
        if _is_large(tensor.dims):
            shell.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        else:
            shell.graph.initializer.append(tensor)
    return shell  # type: ignore[no-any-return]


def _copy(target: Any, name: str, value: Any) -> None:
    if isinstance(value, str | bytes | int | float):
        setattr(target, name, value)
    elif hasattr(value, "CopyFrom"):
        getattr(target, name).CopyFrom(value)
    else:
        getattr(target, name).extend(value)


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Local functions inlined and shapes inferred, each as far as the onnx package can."""
    import onnx.inliner
    import onnx.shape_inference

    if _inlined_count(model) > MAX_NODES:
        model.ClearField("functions")  # inferring shapes would go through all of them too
    if model.functions:
        with contextlib.suppress(Exception):  # the calls then remain operators
            model = onnx.inliner.inline_local_functions(model)
    if not is_inferable(model.graph):
        return model
    try:
        return onnx.shape_inference.infer_shapes(model, strict_mode=False, data_prop=True)
    except Exception:  # a custom operator, an unknown version: our own rules have to do
        return model


class _GraphReader:
    """Reads the graphs of a model, whose operator versions it knows."""

    def __init__(self, onnx: Any, versions: Mapping[str, int], deadline: Deadline) -> None:
        self._onnx = onnx
        self._deadline = deadline
        self._versions = versions
        self._known_defaults: dict[tuple[str, str], dict[str, Attribute | None]] = {}
        self._known_types: dict[int, str] = {}
        self._of_shapes: dict[int, Constant] = {}  # the constants that were computed from shapes, by id

    def graph(self, proto: onnx.GraphProto, outer: Mapping[str, tuple[Operand, Value]]) -> Graph:
        """``outer``: constants that an enclosing graph has; its computed values come in as further inputs."""
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
        captured = [name for name in _captured(proto) if name in outer and name not in names]
        for name in captured:
            names[name], values[name] = Edge(-1, len(inputs)), outer[name][1]
            inputs.append(outer[name][1])
        known = {entry.name: self._value(entry) for entry in (*proto.value_info, *proto.output)}
        nodes: list[Node] = []
        for node in _sorted(proto.node, names):
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
        bodies = []
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
                if attribute.type == 10 and body is attribute.g:
                    continue
                needed = [name for name in _captured(body) if name in names]
                outer = {name: (names[name], values.get(name, Value(None))) for name in needed}
                read = self.graph(body, outer)
                operands += [names[name] for name in needed if isinstance(names[name], Edge)]
                bodies.append(read)
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
        nodes.append(Node(kind, tuple(operands), attributes, tuple(shapes), tuple(bodies)))

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
        if _is_large(shape) or external or not re.match(r"u?int|float(16|32|64)$|double|bool", dtype):
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
            known = self._known_defaults[operator, domain] = self._defaults_in_schema(operator, domain)
        return known

    def _defaults_in_schema(self, operator: str, domain: str) -> dict[str, Attribute | None]:
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


def _is_large(dims: Sequence[int]) -> bool:
    """Return whether a tensor has more values than are kept. The product of a million sizes would take minutes."""
    return len(dims) > MAX_RANK or math.prod(dims) > MAX_VALUES


def _node_count(graph: onnx.GraphProto, depth: int = 0) -> int:
    """The number of nodes of a graph and of all bodies in it.

    Raises:
        ModelError: bodies are nested too deeply.
    """
    if depth > _MAX_BODIES:
        raise ModelError(f"the ONNX graph has more than {_MAX_BODIES} bodies in each other; name a part of it")
    return len(graph.node) + sum(_node_count(body, depth + 1) for node in graph.node for body in _bodies(node))


def _inlined_count(model: onnx.ModelProto) -> int:
    """The number of nodes with local functions inlined: one that is called twice by one that is ... doubles each time.

    Beyond the limit, and for functions that call themselves, it is any number above the limit.
    """
    functions = {(function.domain, function.name): function for function in model.functions}
    counts: dict[tuple[str, str], int] = {}

    def of(nodes: Iterable[onnx.NodeProto], depth: int) -> int:
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in functions and key not in counts:
                counts[key] = of(functions[key].node, depth + 1) if depth < _MAX_CALLS else MAX_NODES + 1
            total += counts.get(key, 1) + sum(of(body.node, depth) for body in _bodies(node))
        return min(total, MAX_NODES + 1)

    return of(model.graph.node, 0)


def _sorted(nodes: Iterable[onnx.NodeProto], names: Mapping[str, Operand]) -> list[onnx.NodeProto]:
    """Nodes after those that they read; ONNX demands this order, but not every writer keeps to it.

    As if the list were read again and again, each time taking the nodes that have all they need.
    """
    every, written = list(nodes), set(names)
    outputs = {name for node in every for name in node.output if name}
    missing: list[int] = []
    readers: dict[str, list[int]] = {}
    for number, node in enumerate(every):
        needed = {*node.input, *(name for body in _bodies(node) for name in _captured(body))}
        waits = (needed & outputs) - written
        missing.append(len(waits))
        for name in waits:
            readers.setdefault(name, []).append(number)
    ready = [(0, number) for number, count in enumerate(missing) if not count]  # with the round that takes it
    order: list[onnx.NodeProto] = []
    while ready:
        turn, number = heappop(ready)
        order.append(every[number])
        for name in every[number].output:
            for reader in readers.pop(name, ()):
                missing[reader] -= 1
                if not missing[reader]:
                    heappush(ready, (turn + (reader < number), reader))
    if len(order) < len(every):
        first = next(node for node, count in zip(every, missing, strict=True) if count)
        raise ModelError(f"the ONNX graph has a cycle at node {first.name or first.op_type!r}; export it again")
    return order


def _bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    single = [attribute.g for attribute in node.attribute if attribute.type == 5]
    return single + [body for attribute in node.attribute for body in attribute.graphs]


def _captured(proto: onnx.GraphProto) -> list[str]:
    """Names that a body reads from the graphs around it, in order of first use."""
    local = {entry.name for entry in (*proto.input, *proto.initializer)}
    captured: dict[str, None] = {}
    for node in proto.node:
        for name in (*node.input, *(inner for body in _bodies(node) for inner in _captured(body))):
            if name and name not in local:
                captured[name] = None
        local.update(node.output)
    for entry in proto.output:
        if entry.name not in local:
            captured[entry.name] = None
    return list(captured)
