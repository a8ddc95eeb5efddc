"""Any ONNX model becomes a graph: dynamic sizes, branches, custom operators, functions, weights without values."""

from __future__ import annotations

import builtins
import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
import rlm_core
from onnx import TensorProto, helper, numpy_helper
from rlm_core.errors import ModelError
from rlm_core.source.onnx_graph.graph import MAX_RANK, Constant, Edge, Graph, ordered
from rlm_core.source.onnx_graph.parse import parse
from rlm_core.source.onnx_graph.reader import from_model, read_onnx
from rlm_core.source.onnx_graph.render import render
from rlm_core.source.onnx_graph.wire import is_inferable

FLOAT = TensorProto.FLOAT


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=9)


def value(name: str, *shape: int | str, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, list(shape))


def weight(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def reads_back(graph: Graph) -> bool:
    return parse(render(graph)) == ordered(graph)


def test_a_convolution_keeps_its_weights_as_shapes_and_its_attributes() -> None:
    graph = from_model(
        model(
            [helper.make_node("Conv", ["x", "w", "b"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1])],
            [value("x", 1, 3, 32, 32)],
            [value("y", 1, 8, 16, 16)],
            [weight("w", 8, 3, 3, 3), weight("b", 8)],
        )
    )
    (node,) = graph.nodes
    assert node.operands == (Edge(-1), Constant((8, 3, 3, 3)), Constant((8,)))
    assert node.shapes == ((1, 8, 16, 16),)
    assert render(graph) == "in a 1x3x32x32\n·Conv3x3/2 8 bias"


def test_shapes_that_the_file_leaves_out_are_inferred() -> None:
    graph = from_model(
        model(
            [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
            [value("x", "batch", 16)],
            [helper.make_tensor_value_info("y", FLOAT, None)],
            [weight("w", 16, 4)],
        )
    )
    assert graph.nodes[-1].shapes == ((1, 4),)


def test_weights_listed_as_inputs_are_still_weights() -> None:
    graph = from_model(
        model(
            [helper.make_node("Gemm", ["x", "w"], ["y"])],
            [value("x", 2, 16), value("w", 16, 4)],
            [value("y", 2, 4)],
            [weight("w", 16, 4)],
        )
    )
    assert len(graph.inputs) == 1
    assert graph.nodes[0].operands[1] == Constant((16, 4))


def test_branches_take_what_they_capture_as_inputs() -> None:
    then = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "then", [], [value("t", 4)])
    other = helper.make_graph([helper.make_node("Identity", ["h"], ["e"])], "else", [], [value("e", 4)])
    graph = from_model(
        model(
            [
                helper.make_node("Abs", ["x"], ["h"]),
                helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
            ],
            [value("c", dtype=TensorProto.BOOL), value("x", 4)],
            [value("y", 4)],
        )
    )
    branch = next(node for node in graph.nodes if node.operator == "If")
    assert len(branch.bodies) == 2
    assert set(branch.refs) == {Edge(-1, 0), Edge(-1, 1), Edge(0)}
    assert reads_back(graph)


def test_a_loop_reads_back() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["k"], ["more"])],
        "body",
        [value("i", dtype=TensorProto.INT64), value("k", dtype=TensorProto.BOOL), value("s", 4)],
        [value("more", dtype=TensorProto.BOOL), value("t", 4)],
    )
    trips = numpy_helper.from_array(np.array(5), "n")
    graph = from_model(
        model([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [value("x", 4)], [value("y", 4)], [trips])
    )
    assert graph.nodes[0].operands[:2] == (Constant((), "int64", (5,)), None)
    assert reads_back(graph)


def test_custom_operators_keep_their_domain_and_unknown_shapes() -> None:
    graph = from_model(
        model(
            [helper.make_node("Fancy", ["x"], ["h"], domain="mine", level=3), helper.make_node("Relu", ["h"], ["y"])],
            [value("x", 4)],
            [helper.make_tensor_value_info("y", FLOAT, None)],
        )
    )
    assert graph.nodes[0].operator == "mine.Fancy"
    assert graph.nodes[0].attribute("level") == 3
    assert reads_back(graph)


def test_local_functions_are_inlined() -> None:
    twice = helper.make_function(
        "mine",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Relu", ["a"], ["m"]), helper.make_node("Tanh", ["m"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    graph = from_model(
        model([helper.make_node("Twice", ["x"], ["y"], domain="mine")], [value("x", 4)], [value("y", 4)], (), [twice])
    )
    assert [node.operator for node in graph.nodes] == ["Relu", "Tanh"]


def test_constant_nodes_become_constants_with_their_small_values() -> None:
    shape = helper.make_node("Constant", [], ["s"], value=numpy_helper.from_array(np.array([1, -1])))
    graph = from_model(
        model([shape, helper.make_node("Reshape", ["x", "s"], ["y"])], [value("x", 2, 6)], [value("y", 1, 12)])
    )
    assert render(graph) == "in a 2x6\n·Reshape[1,-1]"


def test_values_outside_the_file_are_never_read(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[16, 4], data_location=TensorProto.EXTERNAL)
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "absent.bin"
    proto = model([helper.make_node("Gemm", ["x", "w"], ["y"])], [value("x", 2, 16)], [value("y", 2, 4)], [tensor])
    path = tmp_path / "network.onnx"
    path.write_bytes(proto.SerializeToString())
    assert read_onnx(path).nodes[0].operands[1] == Constant((16, 4))


def test_the_model_in_memory_is_left_as_it_is() -> None:
    proto = model(
        [helper.make_node("Gemm", ["x", "w"], ["y"])], [value("x", 2, 16)], [value("y", 2, 4)], [weight("w", 16, 4)]
    )
    before = proto.SerializeToString()
    from_model(proto)
    assert proto.SerializeToString() == before


@pytest.mark.parametrize(
    "path", sorted((Path(rlm_core.__file__).parent / "builtin").glob("*.onnx")), ids=lambda p: p.stem
)
def test_the_graphs_of_the_shipped_model_read_back(path: Path) -> None:
    graph = read_onnx(path)
    assert len(graph.nodes) > 10
    assert reads_back(graph)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x00" * 100])
def test_what_is_not_a_model_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"broken\.onnx") as error:
        read_onnx(path)
    assert "\n" not in str(error.value)


def test_an_edge_that_nothing_writes_is_named() -> None:
    with pytest.raises(ModelError, match="'ghost'"):
        from_model(model([helper.make_node("Relu", ["ghost"], ["y"])], [], [value("y", 4)]))


def test_without_the_onnx_package_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.split(".")[0] == "onnx":
            raise ImportError(name)
        return usual(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModelError, match=r"pip install '\.\[onnx\]'"):
        read_onnx(Path("network.onnx"))


def chain(count: int, reverse: bool) -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    return model(nodes[::-1] if reverse else nodes, [value("v0", 2)], [value(f"v{count}", 2)])


def test_nodes_in_reverse_order_are_sorted_in_a_time_that_grows_with_their_number() -> None:
    began = time.process_time()
    assert from_model(chain(2_500, reverse=True)) == from_model(chain(2_500, reverse=False))
    assert time.process_time() - began < 5


def test_a_graph_with_too_many_nodes_is_refused() -> None:
    with pytest.raises(ModelError, match="has more than 25,000 nodes"):
        from_model(chain(25_001, reverse=False))


def doubling(operator: str, count: int) -> list[onnx.NodeProto]:
    """Nodes each of which reads the result of the one before twice; the first reads ``s``, the last writes ``y``."""
    names = ["s", *(f"d{number}" for number in range(count - 1)), "y"]
    return [helper.make_node(operator, [a, a], [b], axis=0) for a, b in itertools.pairwise(names)]


@pytest.mark.parametrize("operator", ["Gather", "Concat"])
def test_sizes_that_double_at_each_node_are_not_inferred(operator: str) -> None:
    start = helper.make_node("Shape" if operator == "Concat" else "Relu", ["x"], ["s"])
    small, large = (
        model([start, *doubling(operator, count)], [value("x", 2, 3)], [onnx.ValueInfoProto(name="y")])
        for count in (3, 17)
    )
    # Of the values of shapes, those of up to eight numbers are known without a node.
    shapes = [node.shapes[0] for node in from_model(small).nodes]
    assert [len(shape or ()) for shape in shapes] == ([2, 3, 5, 9] if operator == "Gather" else [1])
    assert (is_inferable(small.graph), is_inferable(large.graph)) == (True, False)
    assert all(len(node.shapes[0] or ()) <= MAX_RANK for node in from_model(large).nodes)


def test_sizes_that_double_in_a_branch_or_a_function_are_not_inferred() -> None:
    inside = helper.make_graph(doubling("Gather", 17), "inside", [], [onnx.ValueInfoProto(name="y")])
    nodes = [
        helper.make_node("Relu", ["x"], ["s"]),
        helper.make_node("If", ["c"], ["z"], then_branch=inside, else_branch=inside),
    ]
    branch = model(nodes, [value("x", 2), value("c", dtype=TensorProto.BOOL)], [onnx.ValueInfoProto(name="z")])
    assert not is_inferable(branch.graph)
    opset = [helper.make_opsetid("", 17)]
    function = helper.make_function("mine", "f", ["s"], ["y"], doubling("Gather", 17), opset)
    call = [helper.make_node("f", ["x"], ["z"], domain="mine")]
    graph = from_model(model(call, [value("x", 2)], [onnx.ValueInfoProto(name="z")], functions=[function]))
    assert max(len(node.shapes[0] or ()) for node in graph.nodes) <= MAX_RANK


def test_ordinary_graphs_with_computed_shapes_are_inferred() -> None:
    nodes, last = [], "x"
    for number in range(60):  # a transformer's reshapes: (batch, words, 8) -> (batch, words, 2, 4) and back
        name = f"n{number}"
        nodes += [
            helper.make_node("Shape", [last], [f"{name}s"]),
            helper.make_node("Gather", [f"{name}s", "zero"], [f"{name}g"]),
            helper.make_node("Unsqueeze", [f"{name}g", "axes"], [f"{name}u"]),
            helper.make_node("Concat", [f"{name}u", "rest"], [f"{name}c"], axis=0),
            helper.make_node("Reshape", [last, f"{name}c"], [name]),
            helper.make_node("Concat", [name, name], [f"{name}k"], axis=1),
            helper.make_node("Flatten", [f"{name}k"], [f"{name}f"]),
        ]
        last = f"{name}f"
    weights = [
        numpy_helper.from_array(np.array(0), "zero"),
        numpy_helper.from_array(np.array([0]), "axes"),
        numpy_helper.from_array(np.array([-1, 2, 4]), "rest"),
    ]
    proto = model(nodes, [value("x", "n", 5, 8)], [onnx.ValueInfoProto(name=last)], weights)
    assert is_inferable(proto.graph)


def test_bodies_are_not_read_at_any_depth() -> None:
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "b", [], [value("y", 2)])
    for _ in range(10):
        node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
        body = helper.make_graph([node], "b", [], [value("y", 2)])
    proto = helper.make_model(body)
    with pytest.raises(ModelError, match="more than 8 bodies in each other; name a part of it"):
        from_model(proto)


def test_a_weight_with_a_million_sizes_is_not_multiplied_out() -> None:
    huge = TensorProto(name="w", data_type=FLOAT, dims=[2**62] * 1_000_000)
    began = time.process_time()
    from_model(model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x", 2)], [value("y", 2)], [huge]))
    assert time.process_time() - began < 5


def test_functions_that_double_their_nodes_are_not_inlined() -> None:
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    functions = [
        helper.make_function("mine", "f0", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], opset),
        *(
            helper.make_function(
                "mine",
                f"f{i}",
                ["a"],
                ["c"],
                [
                    helper.make_node(f"f{i - 1}", ["a"], ["b"], domain="mine"),
                    helper.make_node(f"f{i - 1}", ["b"], ["c"], domain="mine"),
                ],
                opset,
            )
            for i in range(1, 40)
        ),
    ]
    call = [helper.make_node("f39", ["x"], ["y"], domain="mine")]
    (node,) = from_model(model(call, [value("x", 2)], [value("y", 2)], functions=functions)).nodes
    assert node.operator == "mine.f39"


def test_what_is_not_a_regular_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").symlink_to("/dev/zero")
    with pytest.raises(ModelError, match=r"a\.onnx: cannot be read \(not a regular file\)"):
        read_onnx(tmp_path / "a.onnx")
