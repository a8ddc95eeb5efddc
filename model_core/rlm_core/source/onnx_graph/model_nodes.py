"""The nodes of an ONNX graph and the graphs inside them: how many, what they read, an order to read them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from rlm_core.errors import ModelError

from .graph import Operand
from .wire import MAX_NODES

if TYPE_CHECKING:
    import onnx

_MAX_CALLS = 50  # of local functions in each other
_MAX_BODIES = 8  # in each other; the names that a body reads are looked up in every graph around it


def node_count(graph: onnx.GraphProto, depth: int = 0) -> int:
    """The number of nodes of a graph and of all bodies in it.

    Raises:
        ModelError: bodies are nested too deeply.
    """
    if depth > _MAX_BODIES:
        raise ModelError(f"the ONNX graph has more than {_MAX_BODIES} bodies in each other; name a part of it")
    return len(graph.node) + sum(node_count(body, depth + 1) for node in graph.node for body in bodies(node))


def inlined_count(model: onnx.ModelProto) -> int:
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
            total += counts.get(key, 1) + sum(of(body.node, depth) for body in bodies(node))
        return min(total, MAX_NODES + 1)

    return of(model.graph.node, 0)


def sorted_nodes(nodes: Iterable[onnx.NodeProto], names: Mapping[str, Operand]) -> list[onnx.NodeProto]:
    """Nodes after those that they read; ONNX demands this order, but not every writer keeps to it.

    As if the list were read again and again, each time taking the nodes that have all they need.
    """
    every, written = list(nodes), set(names)
    outputs = {name for node in every for name in node.output if name}
    missing: list[int] = []
    readers: dict[str, list[int]] = {}
    for number, node in enumerate(every):
        needed = {*node.input, *(name for body in bodies(node) for name in captured_names(body))}
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


def bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs inside a node: of If, Loop and Scan."""
    single = [attribute.g for attribute in node.attribute if attribute.type == 5]
    return single + [body for attribute in node.attribute for body in attribute.graphs]


def captured_names(proto: onnx.GraphProto) -> list[str]:
    """Names that a body reads from the graphs around it, in order of first use."""
    local = {entry.name for entry in (*proto.input, *proto.initializer)}
    captured: dict[str, None] = {}
    for node in proto.node:
        for name in (*node.input, *(inner for body in bodies(node) for inner in captured_names(body))):
            if name and name not in local:
                captured[name] = None
        local.update(node.output)
    for entry in proto.output:
        if entry.name not in local:
            captured[entry.name] = None
    return list(captured)
