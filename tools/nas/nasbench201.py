"""NAS-Bench-201 (arXiv 2001.00326, section 2.1): the architecture string of a cell -> the whole CIFAR network.

A 3x3 stem of 16 channels; three stages of five cells with 16, 32 and 64 channels; a basic residual block of stride 2
between stages; batch normalization, ReLU, global pooling and a linear classifier. Edges that are ``none`` are left
out, so an operation whose result is never used stays in the graph as a node without a reader, as devices ran it.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from rlm_core.errors import DataError

from .writer import Tensor, Writer

_CELLS, _WIDTHS = 5, (16, 32, 64)
_OPERATIONS = frozenset({"none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"})


@dataclass(frozen=True, slots=True)
class Edge:
    """One operation of a cell and the node that it reads (0 is the cell's input)."""

    operation: str
    source: int


Cell = tuple[tuple[Edge, ...], ...]


def parse(arch: str) -> Cell:
    """``|op~0|+|op~0|op~1|+|op~0|op~1|op~2|`` -> the edges into nodes 1, 2 and 3.

    Raises:
        DataError: the string is not of that form.
    """
    try:
        cell = tuple(
            tuple(
                Edge(operation, int(source)) for operation, source in (e.split("~") for e in part.strip("|").split("|"))
            )
            for part in arch.split("+")
        )
    except ValueError:
        raise DataError(f"{arch!r}: not a NAS-Bench-201 architecture string") from None
    for node, edges in enumerate(cell, 1):
        if any(edge.operation not in _OPERATIONS or not 0 <= edge.source < node for edge in edges):
            raise DataError(f"{arch!r}: unknown operation or source in node {node}")
    return cell


def key(arch: str) -> str:
    """The function that a cell computes, as text: equal for cells that differ only in dead, zero or doubled wiring."""
    return repr(_function(parse(arch)))


def has_path(arch: str) -> bool:
    """Return whether the cell's output depends on its input."""
    reached = {0}
    for node, edges in enumerate(parse(arch), 1):
        if any(edge.operation != "none" and edge.source in reached for edge in edges):
            reached.add(node)
    return len(parse(arch)) in reached


_Terms = tuple[object, ...]


def _function(cell: Cell) -> _Terms:
    """A node is the sorted terms of its sum; a skip adds its source's terms, pooling zero adds none."""
    nodes: list[_Terms] = [("input",)]
    for edges in cell:
        terms: list[object] = []
        for edge in edges:
            source = nodes[edge.source]
            if edge.operation == "skip_connect":
                terms.extend(source)
            elif edge.operation.startswith("nor_conv") or (edge.operation == "avg_pool_3x3" and source):
                terms.append((edge.operation, source))
        nodes.append(tuple(sorted(terms, key=repr)))
    return nodes[-1]


def build(arch: str, *, classes: int = 10, resolution: int = 32) -> onnx.ModelProto:
    """The network of an architecture; CIFAR-10 unless said otherwise (ImageNet16-120: 120 classes at 16 pixels)."""
    cell = parse(arch)
    w = Writer("nasbench201")
    x = w.batch_norm(w.conv(w.input("image", (1, 3, resolution, resolution)), _WIDTHS[0], 3))
    for stage, width in enumerate(_WIDTHS):
        if stage:
            x = _reduction(w, x, width)
        for _ in range(_CELLS):
            x = _cell(w, x, cell)
    x = w.global_pool(w.relu(w.batch_norm(x)))
    return w.model(w.classifier(x, classes))


def _relu_conv_bn(w: Writer, x: Tensor, channels: int, kernel: int, stride: int = 1) -> Tensor:
    return w.batch_norm(w.conv(w.relu(x), channels, kernel, stride))


def _reduction(w: Writer, x: Tensor, channels: int) -> Tensor:
    shortcut = w.conv(w.pool(x, "AveragePool", 2, 2), channels)
    return w.add(shortcut, _relu_conv_bn(w, _relu_conv_bn(w, x, channels, 3, 2), channels, 3))


def _cell(w: Writer, x: Tensor, cell: Cell) -> Tensor:
    nodes: list[Tensor | None] = [x]
    for edges in cell:
        terms: list[Tensor] = []
        for edge in edges:
            if edge.operation != "none":
                # A node without edges is zero; it is written when something reads it.
                source = nodes[edge.source] or w.zeros(x.shape)
                nodes[edge.source] = source
                terms.append(_operation(w, source, edge.operation))
        nodes.append(w.add(*terms) if terms else None)
    return nodes[-1] or w.zeros(x.shape)


def _operation(w: Writer, x: Tensor, operation: str) -> Tensor:
    if operation == "skip_connect":
        return x
    if operation == "avg_pool_3x3":
        return w.pool(x, "AveragePool", 3, 1, 1)
    return _relu_conv_bn(w, x, x.channels, int(operation[-1]))
