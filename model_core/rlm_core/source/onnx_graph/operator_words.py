"""A kernel of a graph in a few words, for people: ``Conv 3x3/2 64→128 · 1x128x28x28``."""

from __future__ import annotations

from .graph import POOLS, Constant, Graph, Node
from .kernels import Kernel
from .node_codec import shape_text

_MOST_NAMES = 3
_WINDOWED = frozenset(("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", *POOLS))


def kernel_words(graph: Graph, kernel: Kernel) -> str:
    """The operators of a kernel, its window and widths, and the shape of its output."""
    if kernel.kind == "attention":
        name = "Attention"
    else:
        names = dict.fromkeys(graph.nodes[number].operator for number in kernel.nodes)
        name = " + ".join(list(names)[:_MOST_NAMES])
    parts = [name, *_details(graph, graph.nodes[kernel.nodes[0]], kernel.kind)]
    shapes = graph.nodes[kernel.nodes[-1]].shapes
    return " ".join(parts) + (f" · {shape_text(shapes[0])}" if shapes else "")


def _details(graph: Graph, node: Node, kind: str) -> list[str]:
    found = [kind] if kind in ("depthwise", "grouped") else []
    weight = _weight(node)
    if node.operator in _WINDOWED:
        window = node.attribute("kernel_shape") or (weight[2:] if weight else ())
        if isinstance(window, tuple) and window:
            strides = node.attribute("strides")
            stride = f"/{_sides(strides)}" if isinstance(strides, tuple) and set(strides) != {1} else ""
            found.append(_sides(window, always=True) + stride)
    if kind == "product" or (weight and node.operator in _WINDOWED and kind != "depthwise"):
        before, after = graph.shape(node.operands[0]), node.shapes[0] if node.shapes else None
        place = -1 if kind == "product" else 1
        if before is not None and after is not None and min(len(before), len(after)) > 1:
            found.append(f"{before[place]}→{after[place]}")
    return found


def _weight(node: Node) -> tuple[int, ...]:
    place = 3 if node.operator.startswith("QLinear") else 1
    operand = node.operands[place] if len(node.operands) > place else None
    return operand.shape if isinstance(operand, Constant) else ()


def _sides(sizes: tuple[object, ...], *, always: bool = False) -> str:
    """``3x3``; ``2`` for equal strides."""
    return str(sizes[0]) if len(set(sizes)) == 1 and not always else "x".join(map(str, sizes))
