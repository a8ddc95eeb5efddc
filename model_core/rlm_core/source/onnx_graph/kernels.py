"""A graph -> the kernels that a device runs: operators by what limits them, with those that are computed along.

A convolution or product is limited by arithmetic where it does much with each element that it reads; anything else by
the elements that it moves. A compiler computes activations, additions and scales together with the operator before
them; without one each operator is a kernel. Operators that only rename their input (a reshape) cost nothing, nor do
those that no input of the graph reaches: their results are constants like weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .costs import multiply_accumulates, node_cost
from .graph import (
    BROADCAST,
    ELEMENTWISE,
    GLOBAL_POOLS,
    NORMALIZATION,
    POOLS,
    PRODUCTS,
    REDUCTIONS,
    Constant,
    Graph,
    Node,
    Operand,
    elements,
    users,
    words,
)
from .shapes import RECURRENT

KINDS = (
    "conv",
    "pointwise",
    "grouped",
    "depthwise",
    "product",
    "attention",
    "batched",
    "recurrent",
    "norm",
    "softmax",
    "elementwise",
    "pool",
    "reduce",
    "layout",
    "move",
    "other",
)
_VIEWS = frozenset(
    words(
        "Cast Constant Dropout Flatten Identity Reshape Shape Squeeze Unsqueeze"
        " DequantizeLinear DynamicQuantizeLinear QuantizeLinear"
    )
)
_CONVOLUTIONS = frozenset(words("Conv ConvInteger ConvTranspose DeformConv FusedConv QLinearConv"))
# Frameworks give these without a copy where the reader can do with strides.
_LAYOUTS = frozenset(words("Expand Slice Split Transpose"))
_MOVES = frozenset(
    words(
        """
        CenterCropPad Col2Im Compress Concat ConstantOfShape DepthToSpace Gather GatherElements GatherND GridSample
        OneHot Pad Resize Scatter ScatterElements ScatterND SpaceToDepth Tile Upsample
        """
    )
)
_KIND = {
    **dict.fromkeys((*ELEMENTWISE, *BROADCAST), "elementwise"),
    **dict.fromkeys(NORMALIZATION, "norm"),
    **dict.fromkeys((*POOLS, *GLOBAL_POOLS), "pool"),
    **dict.fromkeys((*REDUCTIONS, "ArgMax", "ArgMin"), "reduce"),
    **dict.fromkeys(_LAYOUTS, "layout"),
    **dict.fromkeys(_MOVES, "move"),
    **dict.fromkeys(("Softmax", "LogSoftmax"), "softmax"),
}
# Their arithmetic hides behind that of the kernel that they follow.
_FOLLOWERS = frozenset(("elementwise",))
_GATES = frozenset(("HardSigmoid", "Sigmoid"))


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a device runs at once. Sizes are for a batch of one where the graph leaves the batch open.

    ``nodes``: numbers of the operators, the first gives the kind; ``macs``: multiply-accumulates; ``operations``:
    elements that other operators compute; ``weights``: elements of constants that are read; ``read`` and ``written``:
    elements of activations.
    """

    kind: str
    nodes: tuple[int, ...]
    macs: int
    operations: int
    weights: int
    read: int
    written: int

    @property
    def moved(self) -> int:
        """Elements read and written, weights among them."""
        return self.weights + self.read + self.written


def kernels(graph: Graph, *, fused: bool) -> tuple[Kernel, ...]:
    """The kernels of a graph in its order; ``fused``: with what a compiler computes along. Bodies count once."""
    readers = users(graph)
    source = _sources(graph)
    fixed = fixed_nodes(graph)
    leaders = _leaders(graph, source, readers, fixed)
    groups: list[list[int]] = []
    group_of: dict[int, int] = {}
    for number in range(len(graph.nodes)):
        if source[number] != number or fixed[number]:
            continue
        home = group_of.get(leaders.get(number, number))
        if home is None and fused:
            home = _home(graph, number, source, readers, group_of, groups)
        if home is None:
            group_of[number] = len(groups)
            groups.append([number])
        else:
            group_of[number] = home
            groups[home].append(number)
    return tuple(_kernel(graph, group, source, fixed) for group in groups)


def _leaders(
    graph: Graph, source: Sequence[int], readers: Sequence[Sequence[int]], fixed: Sequence[bool]
) -> dict[int, int]:
    """For each operator that is always computed together with one before it, the first of them."""
    found: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        before = [source[ref.node] for ref in node.refs if ref.node >= 0]
        if node.operator == "Mul" and len(before) == 2:
            for gate, other in (before, before[::-1]):
                is_gate = gate >= 0 and graph.nodes[gate].operator in _GATES and len(readers[gate]) == 1
                if is_gate and [source[ref.node] for ref in graph.nodes[gate].refs if ref.node >= 0] == [other]:
                    found[number] = gate
        elif node.operator == "Softmax" and before and kind_of(graph, node):
            chain = _scores(graph, number, source, fixed)
            values = [reader for reader in readers[number] if kind_of(graph, graph.nodes[reader], fixed) == "batched"]
            if chain and len(values) == 1 and all(len(readers[inner]) == 1 for inner in (*chain, number)):
                found.update(dict.fromkeys((*chain[:-1], number, values[0]), chain[-1]))
    return found


def _scores(graph: Graph, softmax: int, source: Sequence[int], fixed: Sequence[bool]) -> tuple[int, ...]:
    """The operators before a softmax of attention, backwards to the product of queries and keys; empty for another.

    Between them is at most a scale by one number and the addition of a mask.
    """
    chain: list[int] = []
    for _ in range(3):
        node = graph.nodes[chain[-1] if chain else softmax]
        before = [source[ref.node] for ref in node.refs if ref.node >= 0 and not fixed[ref.node]]
        if not before or before[0] < 0:
            return ()
        chain.append(before[0])
        last = graph.nodes[before[0]]
        if kind_of(graph, last, fixed) == "batched":
            return tuple(chain)
        factors = [graph.shape(operand) for operand in last.operands if _is_fixed(operand, fixed)]
        is_scale = last.operator in ("Mul", "Div") and factors and elements(factors[0]) == 1
        if not is_scale and last.operator != "Add":
            return ()
    return ()


def fixed_nodes(graph: Graph) -> list[bool]:
    """For each node whether no input of the graph reaches it."""
    found: list[bool] = []
    for node in graph.nodes:
        found.append(all(ref.node >= 0 and found[ref.node] for ref in node.refs))
    return found


def kind_of(graph: Graph, node: Node, fixed: Sequence[bool] = ()) -> str:
    """The kind of kernel that an operator is, one of :data:`KINDS`; empty for one that only renames its input."""
    name = node.operator
    if name in _VIEWS:
        return ""
    if name in _CONVOLUTIONS:
        return _convolution(graph, node)
    if name in RECURRENT:
        return "recurrent"
    if name in PRODUCTS:
        weighted = any(_is_fixed(operand, fixed) and elements(graph.shape(operand)) > 1 for operand in node.operands)
        return "attention" if name.endswith("Attention") else "product" if weighted else "batched"
    return _KIND.get(name, "other")


def _convolution(graph: Graph, node: Node) -> str:
    weight = graph.shape(node.operands[3 if node.operator == "QLinearConv" else 1]) if len(node.operands) > 1 else None
    groups = node.attribute("group")
    if isinstance(groups, int) and groups > 1:
        return "depthwise" if weight and weight[1] == 1 else "grouped"
    return "pointwise" if weight and all(side == 1 for side in weight[2:]) else "conv"


def _sources(graph: Graph) -> list[int]:
    """For each node the one that computes what it gives: itself, or what a view renames; -1 for an input."""
    found: list[int] = []
    for number, node in enumerate(graph.nodes):
        if kind_of(graph, node):
            found.append(number)
            continue
        refs = node.refs
        found.append(found[refs[0].node] if refs and refs[0].node >= 0 else -1)
    return found


def _home(
    graph: Graph,
    number: int,
    source: Sequence[int],
    readers: Sequence[Sequence[int]],
    group_of: dict[int, int],
    groups: Sequence[Sequence[int]],
) -> int | None:
    """The group that an operator is computed along with: that of the last one it reads, if nothing else reads it."""
    node = graph.nodes[number]
    if kind_of(graph, node) not in _FOLLOWERS and node.operator != "BatchNormalization":
        return None
    before = [source[ref.node] for ref in node.refs if ref.node >= 0 and source[ref.node] in group_of]
    for previous in sorted(set(before), reverse=True):
        home = group_of[previous]
        is_last = groups[home][-1] == previous
        if is_last and len(readers[previous]) == 1 and _elements_of(graph, previous) == _elements_of(graph, number):
            return home
    return None


def _elements_of(graph: Graph, number: int) -> int:
    return elements(graph.nodes[number].shapes[0])


def _is_fixed(operand: Operand, fixed: Sequence[bool]) -> bool:
    if isinstance(operand, Constant):
        return True
    return operand is not None and 0 <= operand.node < len(fixed) and fixed[operand.node]


def _kernel(graph: Graph, group: Sequence[int], source: Sequence[int], fixed: Sequence[bool]) -> Kernel:
    inside = set(group)
    operands: dict[Operand, None] = {}
    macs = operations = weights = read = 0
    for number in group:
        node = graph.nodes[number]
        shapes = [graph.shape(operand) for operand in node.operands]
        cost = node_cost(node, shapes)
        macs += cost.macs or multiply_accumulates(node, shapes)
        operations += cost.operations
        operands.update(dict.fromkeys(node.operands))
    for operand in operands:
        if _is_fixed(operand, fixed):
            weights += elements(graph.shape(operand))
        else:
            read += _read(graph, operand, inside, source)
    last = graph.nodes[group[-1]]
    written = sum(elements(shape) for shape in last.shapes)
    kind = kind_of(graph, graph.nodes[group[0]], fixed)
    if kind == "batched" and any(graph.nodes[number].operator == "Softmax" for number in group):
        kind = "attention"
    return Kernel(kind, tuple(group), macs, operations, weights, read, written)


def _read(graph: Graph, operand: Operand, inside: set[int], source: Sequence[int]) -> int:
    if operand is None or isinstance(operand, Constant):
        return 0
    if operand.node >= 0 and source[operand.node] in inside:
        return 0
    return elements(graph.shape(operand))
