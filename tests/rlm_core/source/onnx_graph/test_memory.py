"""The memory of a graph: what is alive at once, by type, and what only renames."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rlm_core.source.onnx_graph.graph import Constant, Edge, Graph, Node, Value
from rlm_core.source.onnx_graph.memory import memory, shared_bytes, types
from rlm_core.source.onnx_graph.parse import parse
from rlm_core.source.onnx_graph.render import render


def activations(text: str) -> float:
    return memory(parse(text)).activations


def test_the_peak_is_what_is_alive_at_once_and_the_input_stays() -> None:
    assert activations("in a 1x100\n·Relu·Relu·Relu") == 4 * 300
    assert activations("in a 1x100\nb=·Relu\n·Tanh·Exp·Add b") == 4 * 400


def test_a_view_takes_nothing_and_keeps_what_it_names() -> None:
    assert activations("in a 1x100\n·Relu·Reshape[4,25]·Relu") == activations("in a 1x100\n·Relu·Relu")
    kept = "in a 1x100\nb=·Relu·Flatten\n·Tanh·Exp·Add b"
    assert activations(kept) == activations(kept.replace("·Flatten", ""))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("in a 1x8 float16\n·Relu", "float16"),
        ("in a 1x8\n·Cast to=10", "float16"),
        ("in a 1x8\n·Greater{=0}", "bool"),
        ("in a 1x8\n·ArgMax axis=1", "int64"),
        ("in a 1x8\n·QuantizeLinear{=0.1}{:int8=0}", "int8"),
        ("in a 1x8 int8\n·DequantizeLinear{=0.1}{:int8=0}", "float32"),
        ("in a 1x8\n·DynamicQuantizeLinear", "uint8"),
        ("in a 1x8 bool\n·Where{1x8}{1x8}", "float32"),
    ],
)
def test_types_follow_the_operators(text: str, found: str) -> None:
    assert types(parse(text))[-1] == found


def test_an_activation_takes_the_bytes_of_its_type() -> None:
    assert activations("in a 1x100 float16\n·Relu") == 2 * 200
    assert activations("in a 1x100\n·Cast to=2") == 4 * 100 + 100


def test_weights_take_the_bytes_that_the_file_gives_them() -> None:
    assert memory(parse("in a 1x64\n·Gemm 10 bias")).weights == 4 * 650
    assert memory(parse("in a 1x64\n·MatMul{64x10:float16}")).weights == 2 * 640
    assert memory(parse("in a 1x64\n·MatMul{64x10:float16}"), weight_width=4).weights == 4 * 640


def test_a_setting_gives_its_types_to_floating_point_numbers_only() -> None:
    graph = parse("in a 1x100\n·ArgMax axis=1")
    assert memory(graph).activations == 4 * 100 + 8
    assert memory(graph, activation_width=2).activations == 2 * 100 + 8


def test_what_no_input_reaches_is_computed_once_and_not_counted() -> None:
    assert activations("in a 4x8\nb=0·ConstantOfShape[8,16]\na·MatMul b") == 4 * (4 * 8 + 4 * 16)


def test_a_weight_that_several_nodes_read_is_counted_once() -> None:
    weight = Constant((64, 64))
    nodes = tuple(Node("MatMul", (Edge(place - 1), weight), (), ((1, 64),)) for place in range(4))
    graph = Graph((Value((1, 64)),), nodes, (Edge(3),))
    assert shared_bytes(graph) == 3 * 4 * 64 * 64
    text = render(replace(graph, shared=shared_bytes(graph)))
    assert memory(parse(text)).weights == 4 * 64 * 64
    assert render(parse(text)) == text
    half = memory(parse(text), weight_width=2)
    assert half.weights == 2 * 64 * 64
    apart = Graph((Value((1, 64)),), (nodes[0], replace(nodes[1], operands=(Edge(0), Constant((64, 64))))), (Edge(1),))
    assert shared_bytes(apart) == 0
