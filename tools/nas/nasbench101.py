"""NAS-Bench-101 (arXiv 1902.09635, section 2 and appendix): adjacency and operations of a cell -> the CIFAR-10 network.

A 3x3 stem of 128 channels; three stacks of three cells, halved by max pooling and doubled in channels between stacks;
global pooling and a linear classifier. Inside a cell the output's channels are split evenly between the vertices
that it concatenates, and every edge from the cell's input is a 1x1 projection.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

import onnx
from rlm_core.errors import DataError

from .writer import Tensor, Writer

_STEM, _STACKS, _CELLS, _CLASSES = 128, 3, 3, 10
Matrix = tuple[tuple[int, ...], ...]


def parse(adjacency: str, ops: str) -> tuple[Matrix, tuple[str, ...]]:
    """Rows of 0 and 1 joined by ``;`` and operations joined by spaces -> the matrix (source, target) and the names.

    Raises:
        DataError: they are not an upper triangular matrix and a name a vertex.
    """
    try:
        matrix = tuple(tuple(int(cell) for cell in row) for row in adjacency.split(";"))
    except ValueError:
        raise DataError(f"{adjacency!r}: not a matrix of 0 and 1") from None
    names = tuple(ops.split())
    triangular = all(len(row) == len(matrix) and not any(row[: at + 1]) for at, row in enumerate(matrix))
    if not triangular or len(names) != len(matrix) or (names[0], names[-1]) != ("input", "output"):
        raise DataError(f"{adjacency!r} with {ops!r}: not a NAS-Bench-101 cell")
    return matrix, names


def key(adjacency: str, ops: str) -> str:
    """A digest of the cell's graph that does not depend on how its vertices are numbered.

    Every vertex starts from its degrees and operation and takes up its neighbours' labels as often as there are
    vertices (Weisfeiler-Lehman); the benchmark counts cells as equal in the same way.
    """
    matrix, names = parse(adjacency, ops)
    size = range(len(matrix))
    labels = [f"{sum(matrix[v])} {sum(row[v] for row in matrix)} {names[v]}" for v in size]
    for _ in size:
        labels = [
            hashlib.sha256(
                repr(
                    (
                        sorted(labels[u] for u in size if matrix[u][v]),
                        sorted(labels[u] for u in size if matrix[v][u]),
                        labels[v],
                    )
                ).encode()
            ).hexdigest()
            for v in size
        ]
    return hashlib.sha256(repr(sorted(labels)).encode()).hexdigest()[:16]


def vertex_channels(inputs: int, outputs: int, matrix: Matrix) -> list[int]:
    """Channels of every vertex: the output's share for those it concatenates, else the widest of what they feed."""
    last = len(matrix) - 1
    channels = [inputs] + [0] * (last - 1) + [outputs]
    ends = [v for v in range(1, last) if matrix[v][last]]
    if not ends:
        return channels
    share, extra = divmod(outputs, len(ends))
    for at, v in enumerate(ends):
        channels[v] = share + (at < extra)
    for v in range(last - 1, 0, -1):
        if not matrix[v][last]:
            channels[v] = max((channels[u] for u in range(v + 1, last) if matrix[v][u]), default=0)
    return channels


def parameters(adjacency: str, ops: str) -> int:
    """Learned parameters of the network of a cell."""
    matrix, names = parse(adjacency, ops)
    last = len(matrix) - 1
    total, inputs = _conv_parameters(3, _STEM, 3) + ((_STEM << (_STACKS - 1)) + 1) * _CLASSES, _STEM
    for stack in range(_STACKS):
        channels = _STEM << stack
        for _ in range(_CELLS):
            widths = vertex_channels(inputs, channels, matrix)
            total += sum(_conv_parameters(inputs, widths[v], 1) for v in range(1, last + 1) if matrix[0][v])
            for name, width in zip(names, widths, strict=True):
                total += _conv_parameters(width, width, int(name[4])) if name.startswith("conv") else 0
            inputs = channels
    return total


def _conv_parameters(inputs: int, outputs: int, kernel: int) -> int:
    return inputs * outputs * kernel * kernel + 2 * outputs


def renumbered(adjacency: str, ops: str, total: int) -> tuple[str, str]:
    """The same cell with its vertices in an order that gives ``total`` parameters; as it is if there is none.

    Where the output's channels do not divide evenly, the first vertices get one more, so the order matters. Labels
    that tell the graph only up to isomorphism fix the order by the number of parameters.
    """
    if parameters(adjacency, ops) == total:
        return adjacency, ops
    matrix, names = parse(adjacency, ops)
    last = len(matrix) - 1
    for inner in itertools.permutations(range(1, last)):
        order = (0, *inner, last)
        rows = ["".join(str(matrix[u][v]) for v in order) for u in order]
        if all("1" not in row[: at + 1] for at, row in enumerate(rows)):
            other = ";".join(rows), " ".join(names[v] for v in order)
            if parameters(*other) == total:
                return other
    return adjacency, ops


def build(adjacency: str, ops: str) -> onnx.ModelProto:
    """The network of a cell."""
    matrix, names = parse(adjacency, ops)
    w = Writer("nasbench101")
    x = w.conv_bn(w.input("image", (1, 3, 32, 32)), _STEM, 3, activation="Relu")
    channels = _STEM
    for stack in range(_STACKS):
        if stack:
            x = w.pool(x, "MaxPool", 2, 2)
            channels *= 2
        for _ in range(_CELLS):
            x = _cell(w, x, channels, matrix, names)
    return w.model(w.classifier(w.global_pool(x), _CLASSES))


def _cell(w: Writer, x: Tensor, channels: int, matrix: Matrix, names: Sequence[str]) -> Tensor:
    widths = vertex_channels(x.channels, channels, matrix)
    last = len(matrix) - 1
    values: list[Tensor] = [x]
    for v in range(1, last):
        terms = [_truncated(w, values[u], widths[v]) for u in range(1, v) if matrix[u][v]]
        if matrix[0][v]:
            terms.append(_conv(w, x, widths[v], 1))
        total = w.add(*terms)
        operation = names[v]
        values.append(
            w.pool(total, "MaxPool", 3, 1, 1)
            if operation == "maxpool3x3"
            else _conv(w, total, widths[v], 3 if operation == "conv3x3-bn-relu" else 1)
        )
    ends = [values[v] for v in range(1, last) if matrix[v][last]]
    if not ends:
        return _conv(w, x, channels, 1)
    out = ends[0]
    if len(ends) > 1:
        out = w.op("Concat", ends, (x.shape[0], channels, *x.shape[2:]), axis=1)
    return w.add(out, _conv(w, x, channels, 1)) if matrix[0][last] else out


def _conv(w: Writer, x: Tensor, channels: int, kernel: int) -> Tensor:
    return w.conv_bn(x, channels, kernel, activation="Relu")


def _truncated(w: Writer, x: Tensor, channels: int) -> Tensor:
    """The first channels: a vertex with one channel more (an uneven split) feeds one with one less."""
    if x.channels == channels:
        return x
    ends = [w.integers(0), w.integers(channels), w.integers(1)]
    return w.op("Slice", [x, *ends], (x.shape[0], channels, *x.shape[2:]))
