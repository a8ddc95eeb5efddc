"""Compact text of graphs: it loses nothing, repeats nothing, and fails with one line."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.errors import DataError
from rlm_core.source.onnx_graph.graph import (
    SYMBOLS,
    Attribute,
    Constant,
    Edge,
    Graph,
    Node,
    Operand,
    Shape,
    Value,
    ordered,
)
from rlm_core.source.onnx_graph.parse import parse
from rlm_core.source.onnx_graph.render import render
from rlm_core.source.onnx_graph.shapes import infer

_DIMENSIONS = st.one_of(st.integers(0, 130), st.sampled_from(["?", "N", "M"]))
_SHAPES = st.one_of(st.none(), st.lists(_DIMENSIONS, max_size=4).map(tuple))
_CONSTANTS = st.one_of(
    st.builds(Constant, st.lists(st.integers(1, 64), max_size=4).map(tuple), st.sampled_from(["float32", "int8"])),
    st.lists(st.integers(-5, 300), max_size=4).map(lambda v: Constant((len(v),), "int64", tuple(v))),
    st.floats(-1e6, 1e6).map(lambda v: Constant((), "float32", (v,))),
    st.just(Constant((), "float32", (float("inf"),))),
)
_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
_ATTRIBUTES = st.one_of(
    st.integers(-9, 999),
    st.floats(-1e3, 1e3).map(lambda v: float(f"{v:.6g}")),
    _WORDS,
    st.lists(st.integers(-3, 9), min_size=1, max_size=4).map(tuple),
    st.lists(_WORDS, min_size=1, max_size=2).map(tuple),
)
_NAMES = ["Relu", "Add", "MatMul", "Gemm", "Conv", "Slice", "Split", "Concat", "my.domain.Op2", "A", "MaxPool", "LSTM"]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Odd graphs: any operands, attributes, outputs and shapes, with runs that repeat."""
    inputs = draw(st.lists(st.builds(Value, _SHAPES, st.sampled_from(["float32", "int64"])), min_size=1, max_size=3))
    nodes: list[Node] = []
    refs = [Edge(-1, number) for number in range(len(inputs))]

    def shape(operand: Operand) -> Shape:
        return Graph(tuple(inputs), tuple(nodes), ()).shape(operand)

    for _ in range(draw(st.integers(0, 12))):
        near = st.sampled_from(refs[-4:])
        operands = tuple(draw(st.lists(st.one_of(near, near, _CONSTANTS, st.none()), max_size=4)))
        name = draw(st.sampled_from(_NAMES))
        attributes: tuple[tuple[str, Attribute], ...] = tuple(
            draw(st.dictionaries(st.sampled_from(["axis", "mode", "group", "transB"]), _ATTRIBUTES, max_size=2)).items()
        )
        count = draw(st.integers(1, 3))
        found = infer(name, operands, [shape(operand) for operand in operands], dict(attributes), count)
        shapes = found if draw(st.booleans()) else tuple(draw(_SHAPES) for _ in range(count))
        for _ in range(draw(st.sampled_from([1, 1, 1, 4]))):
            nodes.append(Node(name, operands, attributes, shapes))
            refs += [Edge(len(nodes) - 1, output) for output in range(count)]
            operands = tuple(refs[-count] if isinstance(operand, Edge) else operand for operand in operands)
    outputs = draw(st.lists(st.one_of(st.sampled_from(refs), _CONSTANTS), min_size=1, max_size=3))
    return Graph(tuple(inputs), tuple(nodes), tuple(outputs))


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_the_text_of_any_graph_reads_back_as_the_graph(graph: Graph) -> None:
    assert parse(render(graph)) == ordered(graph)


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_the_canonical_order_is_its_own_canonical_order(graph: Graph) -> None:
    assert ordered(ordered(graph)) == ordered(graph)


def residual(width: int, kernels: Sequence[int]) -> Graph:
    """Behind a stem, a residual block of two convolutions for each kernel size of the first of them."""
    nodes: list[Node] = []

    def add(operator: str, *operands: Operand, **attributes: Attribute) -> Edge:
        shapes = [Graph((Value((1, 3, 32, 32)),), tuple(nodes), ()).shape(operand) for operand in operands]
        found = infer(operator, operands, shapes, attributes, 1)
        nodes.append(Node(operator, operands, tuple(sorted(attributes.items())), found))
        return Edge(len(nodes) - 1)

    def convolve(x: Edge, channels: int, size: int) -> Edge:
        y = add("Conv", x, Constant((width, channels, size, size)), pads=(size // 2,) * 4)
        return add("BatchNormalization", y, *[Constant((width,))] * 4)

    x = convolve(Edge(-1), 3, 3)
    for kernel in kernels:
        y = convolve(add("Relu", convolve(x, width, kernel)), width, 3)
        x = add("Add", x, y)
    return Graph((Value((1, 3, 32, 32)),), tuple(nodes), (x,))


def test_repeated_blocks_are_written_once_with_their_count() -> None:
    text = render(residual(16, [3] * 9))
    assert text.count("Conv3x3") == 3
    assert "·A x9" in text


def test_a_network_of_20_000_nodes_is_folded_to_its_blocks_and_reads_back() -> None:
    names = ("Conv", "Relu", "BatchNormalization", "Sigmoid")
    nodes, weights = [], {"Conv": (Constant((8, 8, 3, 3)),), "BatchNormalization": (Constant((8,)),) * 4}
    for block in range(1_000):
        first = 20 * block
        for number in range(19):
            kind = names[number % 4] if number < 17 else "Tanh"
            attributes = (("pads", (1, 1, 1, 1)),) if kind == "Conv" else ()
            operands: tuple[Edge | Constant | None, ...] = (Edge(first + number - 1), *weights.get(kind, ()))
            nodes.append(Node(kind, operands, attributes, ((1, 8, 16, 16),)))
        nodes.append(Node("Add", (Edge(first - 1), Edge(first + 18)), (), ((1, 8, 16, 16),)))
    graph = ordered(Graph((Value((1, 8, 16, 16)),), tuple(nodes), (Edge(len(nodes) - 1),)))
    began = time.thread_time()
    text = render(graph)
    assert len(text) < 2_000
    assert parse(text) == graph
    assert time.thread_time() - began < 20


def test_the_text_of_blocks_does_not_depend_on_the_width() -> None:
    assert render(residual(16, [3] * 4)).replace("16", "64") == render(residual(64, [3] * 4))


def test_blocks_that_differ_in_a_word_share_a_definition_with_a_hole() -> None:
    text = render(residual(16, [3, 3, 3, 5, 5]))
    assert re.search(r"Conv\$1", text)
    assert "·A(3x3) x3·A(5x5) x2" in text


def test_the_order_in_which_nodes_are_listed_does_not_change_the_text() -> None:
    graph = Graph(
        (Value((1, 8)),),
        (
            Node("Relu", (Edge(-1),), (), ((1, 8),)),
            Node("Tanh", (Edge(-1),), (), ((1, 8),)),
            Node("Add", (Edge(0), Edge(1)), (), ((1, 8),)),
        ),
        (Edge(2),),
    )
    swapped = Graph(
        graph.inputs,
        (graph.nodes[1], graph.nodes[0], Node("Add", (Edge(1), Edge(0)), (), ((1, 8),))),
        (Edge(2),),
    )
    assert render(graph) == render(swapped)


def test_dead_nodes_stay_in_the_text() -> None:
    graph = Graph(
        (Value((1, 8)),),
        (Node("Exp", (Edge(-1),), (), ((1, 8),)), Node("Relu", (Edge(-1),), (), ((1, 8),))),
        (Edge(1),),
    )
    assert "·Exp" in render(graph)
    assert parse(render(graph)) == ordered(graph)


def test_the_body_of_a_branch_is_written_and_read_back() -> None:
    body = Graph((Value((1, 8)),), (Node("Relu", (Edge(-1),), (), ((1, 8),)),), (Edge(0),))
    other = Graph((Value((1, 8)),), (), (Edge(-1),))
    node = Node("If", (Edge(-1), Edge(-1, 1)), (), ((1, 8),), (body, other))
    graph = Graph((Value((), "bool"), Value((1, 8))), (node,), (Edge(0),))
    assert parse(render(graph)) == ordered(graph)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def f(): pass",
        "in a 1x3\n·Relu b",
        "in a 1x3\n·Gemm 4 frob8",
        "in a 1xq\n·Relu",
        "in a 1x3\nA a\n\t·A\n·A",
        "in a 1x3\n·Relu{3",
        "in a 1x3\nA a\n\t·Gemm $2\n·A(1)",
        "in a 1x3\nA a\n\t>a\nB a\n\t·A x99999\n·B x99999",
    ],
)
def test_what_is_not_the_text_of_a_graph_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(DataError) as error:
        parse(text)
    assert "\n" not in str(error.value)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="inabAB 13x·ReluConv\n\t=$(){}[]:,->0_", max_size=80))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(DataError):
        parse("in a 1x3x8x8\n" + text)


def test_symbols_are_distinct_and_start_with_the_arrow() -> None:
    assert len(set(SYMBOLS)) == len(SYMBOLS)
    assert all(symbol.startswith("·") for symbol in SYMBOLS)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("distinct", [True, False])
def test_an_operator_with_many_operands_is_written_in_a_time_that_grows_with_their_number(distinct: bool) -> None:
    count = 20_000
    inputs = tuple(Value((2,), "float32") for _ in range(count if distinct else 1))
    operands = tuple(Edge(-1, number if distinct else 0) for number in range(count))
    graph = Graph(inputs, (Node("Concat", operands, (("axis", 0),), ((2 * count,),)),), (Edge(0, 0),))
    assert render(graph).count(" ") >= count


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "found"),
    [
        ("LSTM", [(7, 2, 16), (1, 128, 16), (1, 128, 32)], {}, [(7, 1, 2, 32), (1, 2, 32), (1, 2, 32)]),
        ("GRU", [(2, 7, 16), (2, 96, 16), (2, 96, 32)], {"layout": 1}, [(2, 7, 2, 32), (2, 2, 32)]),
        ("DynamicQuantizeLSTM", [(7, 2, 16), (1, 16, 128), (1, 32, 128)], {"hidden_size": 32}, [(7, 1, 2, 32)]),
        ("LSTM", [None, (1, 128, 16), (1, 128, 32)], {}, [None]),
    ],
)
def test_a_recurrent_layer_gives_all_states_and_the_last(
    operator: str, shapes: list[Shape], attributes: dict[str, Attribute], found: list[Shape]
) -> None:
    operands: list[Operand] = [Edge(-1, place) for place in range(len(shapes))]
    assert list(infer(operator, operands, shapes, attributes, len(found))) == found


def test_a_range_has_as_many_values_as_its_bounds_say() -> None:
    bounds: list[Operand] = [Constant((), "int64", (value,)) for value in (1.0, 10.0, 3.0)]
    assert infer("Range", bounds, [(), (), ()], {}, 1) == ((3,),)
    assert infer("Range", [Edge(-1), *bounds[1:]], [(), (), ()], {}, 1) == (("?",),)
