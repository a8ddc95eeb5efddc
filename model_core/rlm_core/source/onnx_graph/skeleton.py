"""The skeleton of a graph: live operators with weights, pools and joins.

Also the paths between them and labels of their neighbourhoods. Activations and normalizations become edges.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from .costs import live
from .graph import GLOBAL_POOLS, POOLS, PRODUCTS, Constant, Edge, Graph, Node, Shape

JOINS = frozenset({"Add", "Sum", "Mul", "Concat", "Mean", "Max", "Min", "Sub", "Div", "Where"})
_MOST_PATHS = 1e12  # a larger number carries no more information


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of the skeleton. ``sources``: steps that it reads, -1 for an input of the graph."""

    node: int
    label: str
    kind: str
    sources: tuple[int, ...]


def kind(node: Node, shape: Shape) -> str:
    """conv, depthwise, product, pool, global, join or other; empty for nodes left out. ``shape``: of the input."""
    if node.operator in ("Conv", "ConvTranspose", "QLinearConv", "FusedConv", "ConvInteger"):
        group = node.attribute("group")
        channels = shape[1] if shape and len(shape) > 1 else None
        return "depthwise" if isinstance(group, int) and group > 1 and group == channels else "conv"
    if node.operator in POOLS:
        return "pool"
    if node.operator in GLOBAL_POOLS or node.operator == "ReduceMean":
        return "global"
    if node.operator in PRODUCTS:
        return "product"
    if len(node.refs) > 1:
        return "join" if node.operator in JOINS else "other"
    return ""


def kernel_of(node: Node) -> int:
    """The longest side of its window; 1 without one."""
    if len(node.operands) > 1 and node.operator in ("Conv", "ConvTranspose", "FusedConv"):
        weight = node.operands[1]
        return max(weight.shape[2:], default=1) if isinstance(weight, Constant) else 1
    sides = node.attribute("kernel_shape")
    return max((int(side) for side in sides), default=1) if isinstance(sides, tuple) else 1


def stride_of(node: Node) -> int:
    """The longest step of its window; 1 without one."""
    strides = node.attribute("strides")
    return max((int(step) for step in strides), default=1) if isinstance(strides, tuple) else 1


def skeleton(graph: Graph) -> tuple[Step, ...]:
    """The live steps in order."""
    alive = live(graph)
    steps: list[Step] = []
    positions: dict[Edge, int] = {Edge(-1, number): -1 for number in range(len(graph.inputs))}
    for number, node in enumerate(graph.nodes):
        if not alive[number]:
            continue
        sources = tuple(positions[ref] for ref in node.refs if ref in positions)
        name = kind(node, graph.shape(node.operands[0]) if node.operands else None)
        if name == "join" and len(sources) < 2:
            name = ""  # the other side is dead or constant
        at = sources[0] if sources else -1
        if name:
            steps.append(Step(number, _label(node, name), name, sources))
            at = len(steps) - 1
        for output in range(len(node.shapes)):
            positions[Edge(number, output)] = at
    return tuple(steps)


def _label(node: Node, name: str) -> str:
    if name in ("conv", "depthwise", "pool"):
        return f"{name}{kernel_of(node)}{'s' if stride_of(node) > 1 else ''}"
    return node.operator


def bucket(text: str, count: int) -> int:
    """A stable hash."""
    return zlib.crc32(text.encode()) % count


def path_counts(steps: Sequence[Step], longest: int = 4) -> dict[str, float]:
    """Count the directed paths of 1 to ``longest`` operators, by their labels; joins are passed through."""
    ending: list[dict[str, float]] = []
    counts: dict[str, float] = {}
    for step in steps:
        before: dict[str, float] = {}
        for source in step.sources:
            for path, number in (ending[source] if source >= 0 else {"in": 1.0}).items():
                before[path] = min(_MOST_PATHS, before.get(path, 0.0) + number)
        if step.kind == "join":
            ending.append(before)
            continue
        after: dict[str, float] = {}
        for path, number in before.items():
            kept = path.split(">")[-(longest - 1) :]
            key = ">".join((*kept, step.label))
            after[key] = after.get(key, 0.0) + number
        ending.append(after)
        for path, number in after.items():
            parts = path.split(">")
            for length in range(1, len(parts) + 1):
                tail = ">".join(parts[-length:])
                counts[tail] = min(_MOST_PATHS, counts.get(tail, 0.0) + number)
    return counts


def neighbourhoods(steps: Sequence[Step], radius: int = 3) -> dict[str, float]:
    """Counts of Weisfeiler-Lehman labels, downwards and upwards, of radius 0 to ``radius``."""
    counts: dict[str, float] = {}
    readers: list[list[int]] = [[] for _ in steps]
    for number, step in enumerate(steps):
        for source in step.sources:
            if source >= 0:
                readers[source].append(number)
    sides: tuple[list[Sequence[int]], list[Sequence[int]]] = ([step.sources for step in steps], list(readers))
    for direction, around in enumerate(sides):
        labels = [step.label for step in steps]
        for distance in range(radius + 1):
            if distance:
                labels = [_joined(label, labels, near) for label, near in zip(labels, around, strict=True)]
            if distance or not direction:
                for label in labels:
                    key = f"{direction}{distance}:{label}"
                    counts[key] = counts.get(key, 0.0) + 1.0
    return counts


def _joined(label: str, labels: Sequence[str], near: Sequence[int]) -> str:
    around = ",".join(sorted(labels[number] if number >= 0 else "in" for number in near))
    return str(zlib.crc32(f"{label}|{around}".encode()))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of all paths from input to output: operators with weight on the shortest, the longest, mean and deviation."""

    shortest: float
    longest: float
    mean: float
    deviation: float


def lengths(steps: Sequence[Step], weights: Sequence[float], shares: Sequence[Sequence[float]]) -> Lengths:
    """Path lengths up to the last step, a step counting ``weights[step]``.

    ``shares``: with which weight a path comes from each of a step's sources; they are normalised here.
    """
    lengths: list[tuple[float, float, float, float]] = []  # shortest, longest, mean, mean square
    start = (0.0, 0.0, 0.0, 0.0)
    for step, weight, share in zip(steps, weights, shares, strict=True):
        if len(step.sources) < 2:
            source = step.sources[0] if step.sources else -1
            least, most, mean, square = lengths[source] if source >= 0 else start
        else:
            parts = [lengths[source] if source >= 0 else start for source in step.sources]
            whole = sum(share) or 1.0
            least, most = min(part[0] for part in parts), max(part[1] for part in parts)
            mean = sum(part[2] * each for part, each in zip(parts, share, strict=True)) / whole
            square = sum(part[3] * each for part, each in zip(parts, share, strict=True)) / whole
        lengths.append((least + weight, most + weight, mean + weight, square + 2 * weight * mean + weight * weight))
    if not lengths:
        return Lengths(0.0, 0.0, 0.0, 0.0)
    least, most, mean, square = lengths[-1]
    return Lengths(least, most, mean, math.sqrt(max(0.0, square - mean * mean)))


def path_logs(steps: Sequence[Step]) -> list[float]:
    """The natural logarithm of the number of paths from the input to each step."""
    counts: list[float] = []
    for step in steps:
        parts = [counts[source] if source >= 0 else 0.0 for source in step.sources] or [0.0]
        top = max(parts)
        counts.append(top + math.log(sum(math.exp(part - top) for part in parts)))
    return counts
