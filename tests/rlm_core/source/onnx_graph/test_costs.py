"""Costs of graphs by hand-counted examples; what is live; how a signal passes."""

from __future__ import annotations

import pytest
from rlm_core.source.onnx_graph.costs import Cost, costs, depth, live, total
from rlm_core.source.onnx_graph.graph import Graph
from rlm_core.source.onnx_graph.parse import parse
from rlm_core.source.onnx_graph.propagation import arc_cosine, arc_cosine_slope, propagate
from rlm_core.source.onnx_graph.skeleton import neighbourhoods, path_counts, path_logs, skeleton


def cost(text: str) -> Cost:
    return total(costs(parse(text)))


@pytest.mark.parametrize(
    ("text", "parameters", "macs"),
    [
        ("in a 1x3x32x32\n·Conv3x3 16", 3 * 16 * 9, 3 * 16 * 9 * 32 * 32),
        ("in a 1x3x32x32\n·Conv3x3/2 16 bias", 3 * 16 * 9 + 16, 3 * 16 * 9 * 16 * 16),
        ("in a 1x8x10x10\n·Conv5x5 dw", 8 * 25, 8 * 25 * 100),
        ("in a 1x8x10x10\n·Conv1x1 16 g4", 16 * 2, 16 * 2 * 100),
        ("in a 2x64\n·Gemm 10 bias", 650, 2 * 640),
        ("in a 4x7x64\n·MatMul 32·Add{32}", 64 * 32 + 32, 4 * 7 * 64 * 32),
        ("in a 2x8x5x6, b 2x8x6x7\n·MatMul _ b", 0, 2 * 8 * 5 * 6 * 7),
        ("in a 1x4x5x5\n·ConvTranspose2x2/2 3 p0", 4 * 3 * 4, 4 * 25 * 3 * 4),
        ("in a 1x16x8x8\n·BatchNormalization", 32, 0),
        ("in a Nx64\n·Gemm 10", 640, 640),
        ("in a 2x5x6, b 2x6x7\n·Einsum equation='bik%2Cbkj-%3Ebij _ b:2x5x7", 0, 2 * 5 * 6 * 7),
    ],
)
def test_parameters_and_multiply_accumulates_are_exact(text: str, parameters: int, macs: int) -> None:
    found = cost(text)
    assert (found.parameters, found.macs) == (parameters, macs)


def test_running_statistics_are_no_parameters() -> None:
    assert cost("in a 1x16x8x8\n·BatchNormalization").statistics == 32


def test_traffic_counts_what_is_read_and_written_in_the_dtype_of_the_network() -> None:
    assert cost("in a 1x100\n·Relu").traffic == 800
    assert cost("in a 1x100 float16\n·Relu").traffic == 400


def test_depth_is_the_longest_path() -> None:
    assert depth(parse("in a 1x8\nb=·Relu\na·Tanh·Exp·Log·Add b")) == 4


def test_only_what_lies_between_input_and_output_is_live() -> None:
    graph = parse("in a 1x8\na·Exp\nb=0·ConstantOfShape[1,8]\na·Relu·Add b")
    assert dict(zip((node.operator for node in graph.nodes), live(graph), strict=True)) == {
        "Exp": False,
        "ConstantOfShape": False,
        "Relu": True,
        "Add": True,
    }


def test_paths_pass_through_joins_and_multiply() -> None:
    graph = parse("in a 1x8x4x4\nb=·Conv3x3\na·Conv1x1·Add b·Conv3x3")
    counts = path_counts(skeleton(graph))
    assert counts["conv3"] == 3.0  # the second one lies on two paths
    assert counts["conv1>conv3"] == 1.0
    assert path_logs(skeleton(graph))[-1] == pytest.approx(0.6931, abs=1e-3)


def test_neighbourhoods_distinguish_wiring_but_not_the_order_of_nodes() -> None:
    def labels(text: str) -> dict[str, float]:
        return neighbourhoods(skeleton(parse("in a 1x8x4x4\n" + text)))

    one = labels("b=·Conv3x3\na·Conv1x1·Add b")
    assert one == labels("b=·Conv1x1\na·Conv3x3·Add b")
    assert one != labels("b=·Conv3x3\n·Conv1x1·Add b")


def signal(text: str) -> tuple[float, ...]:
    graph: Graph = parse("in a 1x8x4x4\n" + text)
    return propagate(graph, live(graph)).summary


def test_the_arc_cosine_kernels_have_their_known_values() -> None:
    assert arc_cosine(1.0) == pytest.approx(0.5)
    assert arc_cosine(-1.0) == pytest.approx(0.0, abs=1e-12)
    assert arc_cosine(0.0) == pytest.approx(0.1592, abs=1e-4)
    assert arc_cosine_slope(0.0) == pytest.approx(0.25)


def test_a_value_added_to_itself_has_four_times_its_variance() -> None:
    assert signal("b=·Conv3x3\n·Add b")[0] == pytest.approx(0.60206, abs=1e-4)
    assert signal("b=·Conv3x3\na·Conv3x3·Add b")[0] == pytest.approx(0.30103, abs=1e-4)


def test_relu_halves_the_second_moment_and_draws_unlike_inputs_together() -> None:
    once, twice = signal("·Relu·Conv3x3"), signal("·Relu·Conv3x3·Relu·Conv3x3")
    assert once[0] == pytest.approx(-0.30103, abs=1e-4)
    assert twice[1] < once[1] < 0.9


def test_a_network_without_a_path_has_no_signal() -> None:
    assert signal("0·ConstantOfShape[1,8,4,4]·Conv3x3") == (0.0,) * 6
