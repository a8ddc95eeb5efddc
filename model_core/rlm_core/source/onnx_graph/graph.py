"""A network as a graph: operators, their attributes, edges and shapes, without the values of its weights.

``ordered`` brings a graph into the canonical order of the text, so that two exports of a network give the same text.
The operators of ONNX and the symbols of the text are listed here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

ARROW = "\u00b7"
ASSUMED = "# sizes assumed: "
"""The line of a text that names the inputs whose sizes are assumed."""
SHARED = "# bytes of weights in several places: "
"""The line of a text with the bytes of weights beyond the first node that reads each of them."""


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


ELEMENTWISE = words(
    """
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh Dropout Elu Erf Exp Floor
    Gelu HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LeakyRelu Log LogSoftmax Mish Neg Not PRelu Reciprocal
    Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu
    CumSum FastGelu QuickGelu BiasGelu QuantizeLinear DequantizeLinear
    """
)
BROADCAST = words(
    """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min
    Mod Mul Or Pow Sub Sum Where Xor
    """
)
NORMALIZATION = words(
    """
    BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization
    MeanVarianceNormalization RMSNormalization SimplifiedLayerNormalization SkipLayerNormalization
    SkipSimplifiedLayerNormalization
    """
)
POOLS = words("AveragePool LpPool MaxPool")
GLOBAL_POOLS = words("GlobalAveragePool GlobalLpPool GlobalMaxPool")
REDUCTIONS = words(
    """
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare
    """
)
PRODUCTS = words(
    """
    Attention Conv ConvInteger ConvTranspose DeformConv Einsum FusedConv FusedMatMul GRU Gemm GroupQueryAttention
    LSTM MatMul MatMulInteger MatMulNBits MultiHeadAttention QAttention QLinearConv QLinearMatMul RNN
    """
)
MOVES = words(
    """
    ArgMax ArgMin CenterCropPad Col2Im Compress Concat ConstantOfShape DepthToSpace Expand EyeLike Flatten Gather
    GatherElements GatherND GridSample AffineGrid MaxRoiPool MaxUnpool Multinomial NonMaxSuppression NonZero OneHot
    Pad RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range Reshape Resize ReverseSequence RoiAlign
    RotaryEmbedding Scatter ScatterElements ScatterND Shape Size Slice SpaceToDepth Split Squeeze STFT DFT Tile TopK
    Transpose Unique Unsqueeze Upsample DynamicQuantizeLinear If Loop Scan QLinearAdd QLinearMul
    QLinearGlobalAveragePool
    """
)

#: Operators whose order of operands does not matter: the text sorts them.
COMMUTATIVE = frozenset(words("Add And BitwiseAnd BitwiseOr BitwiseXor Equal Max Mean Min Mul Or Sum Xor"))

#: Operators with a symbol; any other name is still written and read.
OPERATORS: tuple[str, ...] = tuple(
    sorted({*ELEMENTWISE, *BROADCAST, *NORMALIZATION, *POOLS, *GLOBAL_POOLS, *REDUCTIONS, *PRODUCTS, *MOVES})
)

_WEIGHTED = frozenset((*PRODUCTS, *NORMALIZATION))
_WINDOWED = frozenset(("Conv", "ConvTranspose", *POOLS))

#: What the tokenizer should hold as single tokens.
SYMBOLS: tuple[str, ...] = (
    ARROW,
    *(ARROW + name for name in OPERATORS),
    *(f"{ARROW}Conv{size}x{size}" for size in (1, 3, 5, 7)),
    *(f"{ARROW}{kind}{size}x{size}" for kind in ("AveragePool", "MaxPool") for size in (2, 3)),
    *(ARROW + letter for letter in "ABCDEFGH"),
)

Shape = tuple["int | str", ...] | None
"""Sizes; a string where a size is unknown (``?``) or symbolic (``N``); None where not even the rank is known."""

Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]

_MOST_ELEMENTS = 2**100  # of hostile shapes; products of three stay numbers that a float can hold
MAX_RANK = 64  # of shapes that are followed; ONNX's own operators have at most five sizes
MAX_VALUES = 8  # of a constant are kept: axes, shapes, scalars; never weights
_SYMBOLS = "NMKPQRSTUVWYZABCDEFGHIJL"


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from output number ``output`` of node number ``node``; node -1 is the inputs of the graph."""

    node: int
    output: int = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """A weight or another constant, folded to its shape; ``values`` only of small ones."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    values: tuple[float, ...] | None = None

    @property
    def elements(self) -> int:
        """The number of elements."""
        return elements(self.shape)


Operand = Edge | Constant | None
"""None: an optional input that is left out."""


@dataclass(frozen=True, slots=True)
class Value:
    """Shape and dtype (``float32``, ``int64`` ...) of an input."""

    shape: Shape
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class Node:
    """One operator. ``shapes``: of its outputs. ``bodies``: of If, Loop and Scan, captured values as last inputs."""

    operator: str
    operands: tuple[Operand, ...]
    attributes: tuple[tuple[str, Attribute], ...]
    shapes: tuple[Shape, ...]
    bodies: tuple[Graph, ...] = ()

    def attribute(self, name: str) -> Attribute | None:
        """The attribute called ``name``; None where it has its default."""
        return next((value for key, value in self.attributes if key == name), None)

    @property
    def refs(self) -> tuple[Edge, ...]:
        """The operands that are computed, not constant."""
        return tuple([operand for operand in self.operands if isinstance(operand, Edge)])


@dataclass(frozen=True, slots=True)
class Graph:
    """A network: nodes in an order in which each reads only what nodes before it wrote.

    ``assumed``: numbers of the inputs that have usual or given sizes because the model leaves them open, a batch aside;
    ``sizes``: these sizes by name. ``shared``: bytes of weights that are counted at each node that reads them, without
    the first.
    """

    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Operand, ...]
    assumed: tuple[int, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    shared: int = 0

    def shape(self, operand: Operand) -> Shape:
        """The shape of an operand; None where unknown."""
        if operand is None:
            return None
        if isinstance(operand, Constant):
            return operand.shape
        if operand.node < 0:
            return self.inputs[operand.output].shape
        return self.nodes[operand.node].shapes[operand.output]


def elements(shape: Shape) -> int:
    """The number of elements, unknown sizes (a batch, mostly) counted as one."""
    count = 1
    for size in shape or ():
        if isinstance(size, int):
            count *= max(size, 0)
    return min(count, _MOST_ELEMENTS)


def users(graph: Graph) -> list[list[int]]:
    """For each node the nodes that read it, each once, in order."""
    readers: list[list[int]] = [[] for _ in graph.nodes]
    for number, node in enumerate(graph.nodes):
        for source in {ref.node for ref in node.refs if ref.node >= 0}:
            readers[source].append(number)
    return readers


def ordered(graph: Graph) -> Graph:
    """The same graph in canonical form.

    Depth first from the nodes that nothing reads, so that chains stay together; operands of commutative operators by
    position; attributes by name; outputs that nothing reads dropped from the end, and so constants that nothing reads;
    symbolic sizes renamed.
    """
    order = _depth_first(graph)
    positions = {number: position for position, number in enumerate(order)}
    used = _used_outputs(graph)
    symbols: dict[str, str] = {}
    inputs = tuple(Value(_renamed(value.shape, symbols), value.dtype) for value in graph.inputs)
    nodes = []
    for number in order:
        node = graph.nodes[number]
        operands = [_moved(operand, positions) for operand in node.operands]
        if node.operator in _WEIGHTED:
            operands[1:] = [_without_values(operand) for operand in operands[1:]]
        if node.operator in COMMUTATIVE:
            operands.sort(key=_position)
        while operands and operands[-1] is None:
            operands.pop()
        shapes = tuple([_renamed(shape, symbols) for shape in node.shapes[: max(1, used[number])]])
        bodies = tuple([ordered(body) for body in node.bodies])
        nodes.append(Node(node.operator, tuple(operands), _plain_attributes(node), shapes, bodies))
    outputs = tuple(_moved(operand, positions) for operand in graph.outputs)
    return Graph(inputs, tuple(nodes), outputs, graph.assumed, graph.sizes, graph.shared)


def _depth_first(graph: Graph) -> list[int]:
    fed: list[bool] = []
    for node in graph.nodes:
        fed.append(any(ref.node < 0 or fed[ref.node] for ref in node.refs))
    kept = _kept(graph, fed)
    read = {ref.node for number, node in enumerate(graph.nodes) if kept[number] for ref in node.refs}
    sinks = [number for number in range(len(graph.nodes)) if kept[number] and number not in read]
    done: set[int] = set()
    order = [number for sink in sinks if fed[sink] for number in _below(graph, sink, fed, done)]
    # A node that no input feeds and nothing reads comes after the last node that it reads.
    positions = {number: position for position, number in enumerate(order)}
    after: dict[int, list[int]] = {}
    anchors: dict[int, int] = {number: number for number in order}
    for sink in sinks:
        if fed[sink]:
            continue
        chain = list(_below(graph, sink, fed, done))
        known = {anchors[ref.node] for number in chain for ref in graph.nodes[number].refs if ref.node in anchors}
        anchor = max(known - {-1}, key=lambda number: positions[number], default=-1)
        after.setdefault(anchor, []).extend(chain)
        anchors.update(dict.fromkeys(chain, anchor))
    return [late for number in [*order, -1] for late in ([number] if number >= 0 else []) + after.get(number, [])]


def _kept(graph: Graph, fed: Sequence[bool]) -> list[bool]:
    """All nodes but constants that neither a fed node nor an output needs and that need nothing of what those need."""
    needed = list(fed)
    for operand in graph.outputs:
        if isinstance(operand, Edge) and operand.node >= 0:
            needed[operand.node] = True
    _need_below(graph, needed)
    for number, node in enumerate(graph.nodes):
        needed[number] = needed[number] or any(needed[ref.node] for ref in node.refs)
    _need_below(graph, needed)
    return needed


def _need_below(graph: Graph, needed: list[bool]) -> None:
    for number in reversed(range(len(graph.nodes))):
        for ref in graph.nodes[number].refs if needed[number] else ():
            if ref.node >= 0:
                needed[ref.node] = True


def _below(graph: Graph, sink: int, fed: Sequence[bool], done: set[int]) -> Iterator[int]:
    """A node and everything that it reads, in order of execution, without ``done``."""
    stack = [sink]
    while stack:
        number = stack[-1]
        waiting = [ref.node for ref in graph.nodes[number].refs if ref.node >= 0 and ref.node not in done]
        if number in done or not waiting:
            stack.pop()
            if number not in done:
                done.add(number)
                yield number
        else:
            # What depends on no input of the graph comes right before its reader.
            stack.append(next((number for number in waiting if fed[number]), waiting[0]))


def _used_outputs(graph: Graph) -> list[int]:
    used = [0] * len(graph.nodes)
    for operand in (*graph.outputs, *(ref for node in graph.nodes for ref in node.refs)):
        if isinstance(operand, Edge) and operand.node >= 0:
            used[operand.node] = max(used[operand.node], operand.output + 1)
    return used


def _moved(operand: Operand, positions: dict[int, int]) -> Operand:
    if isinstance(operand, Edge):
        return Edge(positions[operand.node], operand.output) if operand.node >= 0 else operand
    if isinstance(operand, Constant) and operand.values is not None:
        if operand.elements > MAX_VALUES or any(math.isnan(value) for value in operand.values):
            return Constant(operand.shape, operand.dtype)
        return Constant(operand.shape, operand.dtype, tuple([_short(value) for value in operand.values]))
    return operand


def _without_values(operand: Operand) -> Operand:
    """The values of a weight do not matter for cost, however few they are."""
    is_weight = isinstance(operand, Constant) and operand.dtype != "int64" and operand.values is not None
    return Constant(operand.shape, operand.dtype) if is_weight and isinstance(operand, Constant) else operand


def _plain_attributes(node: Node) -> tuple[tuple[str, Attribute], ...]:
    """By name, without lists of defaults (stride 1, no padding)."""
    if not node.attributes:
        return ()
    kept = {key: _rounded(value) for key, value in node.attributes}
    if node.operator in _WINDOWED:
        for name, usual in (("strides", 1), ("dilations", 1), ("pads", 0)):
            value = kept.get(name)
            if isinstance(value, tuple) and set(value) == {usual}:
                del kept[name]
        if node.operator not in POOLS and len(node.operands) > 1 and isinstance(node.operands[1], Constant):
            kept.pop("kernel_shape", None)
    return tuple(sorted(kept.items()))


def _position(operand: Operand) -> tuple[int, int, int]:
    if isinstance(operand, Edge):
        return (0, operand.node, operand.output)
    return (1, 0, 0) if operand is not None else (2, 0, 0)


def _rounded(value: Attribute) -> Attribute:
    if isinstance(value, tuple):
        return tuple(_short(item) if isinstance(item, float) else item for item in value)  # type: ignore[return-value]
    return _short(value) if isinstance(value, float) else value


def _short(value: float) -> float:
    """Six digits of a number are enough for cost and meaning, and keep the text short."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _renamed(shape: Shape, symbols: dict[str, str]) -> Shape:
    if shape is None or all(isinstance(size, int) for size in shape):
        return shape
    return tuple([size if isinstance(size, int) else _symbol(size, symbols) for size in shape])


def _symbol(size: str, symbols: dict[str, str]) -> str:
    if size == "?" or not re.fullmatch(r"\w+", size):
        return "?"
    if size not in symbols:
        symbols[size] = _SYMBOLS[len(symbols)] if len(symbols) < len(_SYMBOLS) else "?"
    return symbols[size]


def constants(operands: Iterable[Operand]) -> tuple[Constant, ...]:
    """The constants among operands."""
    return tuple(operand for operand in operands if isinstance(operand, Constant))
