"""ONNX files are read without their weights, and refused before too many parts take memory or time."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
import rlm_core
from onnx import TensorProto, helper, numpy_helper
from rlm_core.errors import ModelError
from rlm_core.source.onnx_graph import reader, wire
from rlm_core.source.onnx_graph.reader import from_model, read_onnx

FLOAT = TensorProto.FLOAT


def network(size: int) -> onnx.ModelProto:
    """A product with a large weight, a large constant, and a branch that has a weight too."""
    numbers = np.zeros((size, size), np.float32)
    value = helper.make_tensor_value_info
    weights = [numpy_helper.from_array(numbers, name) for name in ("w", "v")]
    inside = helper.make_graph(
        [helper.make_node("MatMul", ["x", "v"], ["z"])], "inside", [], [value("z", FLOAT, [1, size])], [weights[1]]
    )
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(numbers)),
        helper.make_node("Constant", [], ["s"], value=numpy_helper.from_array(np.array([1, -1]))),
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("MatMul", ["h", "c"], ["i"]),
        helper.make_node("Reshape", ["i", "s"], ["j"]),
        helper.make_node("If", ["b"], ["k"], then_branch=inside, else_branch=inside),
        helper.make_node("Add", ["j", "k"], ["y"]),
    ]
    inputs = [value("x", FLOAT, [1, size]), value("b", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", FLOAT, [1, size])], [weights[0]])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def written(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "network.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_a_file_has_the_graph_of_the_model_in_it(tmp_path: Path) -> None:
    model = network(40)
    assert read_onnx(written(model, tmp_path)) == from_model(model)


@pytest.mark.parametrize(
    "path", sorted((Path(rlm_core.__file__).parent / "builtin").glob("*.onnx")), ids=lambda path: path.stem
)
def test_a_shipped_file_has_the_graph_of_the_model_in_it(path: Path) -> None:
    assert read_onnx(path) == from_model(onnx.load(path))


def test_weights_are_not_read_into_memory(tmp_path: Path) -> None:
    path = written(network(2_000), tmp_path)
    assert path.stat().st_size > 40e6
    tracemalloc.start()
    try:
        read_onnx(path)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("part", ["initializer", "value_info", "input", "output", "attribute", "dim"])
def test_a_file_with_too_many_parts_is_refused(tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_MOST_PARTS", 200)
    model = network(2)
    read_onnx(written(model, tmp_path))
    kept = model.graph.node[0].attribute if part == "attribute" else None
    if part == "dim":
        kept = model.graph.input[0].type.tensor_type.shape.dim
    for _ in range(201):
        (getattr(model.graph, part) if kept is None else kept).add()
    with pytest.raises(
        ModelError, match=r"network\.onnx: the ONNX graph has more than 200 parts .*; name a part of it"
    ):
        read_onnx(written(model, tmp_path))


def length_of(size: int) -> bytes:
    return bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21])


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "one by one"])
@pytest.mark.parametrize("where", ["sizes of a tensor", "sizes of a sparse tensor", "integers of an attribute"])
def test_a_million_numbers_are_refused(tmp_path: Path, where: str, packed: bool) -> None:
    number = {"sizes of a tensor": 1, "sizes of a sparse tensor": 3, "integers of an attribute": 8}[where]
    count = 2_000_000
    numbers = bytes([number << 3 | 2]) + length_of(count) + b"\1" * count if packed else bytes([number << 3, 1]) * count
    path = {"sizes of a tensor": [5], "sizes of a sparse tensor": [15], "integers of an attribute": [1, 5]}[where]
    for field in reversed([7, *path]):  # of the graph in the model, and so on
        numbers = bytes([field << 3 | 2]) + length_of(len(numbers)) + numbers
    file = tmp_path / "network.onnx"
    file.write_bytes(network(2).SerializeToString() + numbers)
    with pytest.raises(ModelError, match=r"more than 800,000 parts \(nodes, .*\); name a part of it"):
        read_onnx(file)


def test_a_graph_that_is_large_without_its_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_MOST_KEPT", 2**20)
    model = network(2)
    model.graph.node[0].name = "n" * 2**20
    with pytest.raises(ModelError, match="takes more than 1 MiB without its weights"):
        read_onnx(written(model, tmp_path))


@pytest.mark.parametrize("graph", ["many fields", "many nodes"])
def test_a_file_that_takes_long_is_given_up(tmp_path: Path, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MAX_SECONDS", 0.0)
    model = network(2)
    if graph == "many fields":
        model.graph.node[0].input.extend(["x"] * 2_000)
    with pytest.raises(ModelError, match=r"network\.onnx: too complex to analyse: reading takes more than 0 s"):
        read_onnx(written(model, tmp_path))


@pytest.mark.parametrize("size", [0, 1, 2, 30])
def test_a_file_that_ends_early_is_refused_in_one_line(tmp_path: Path, size: int) -> None:
    path = written(network(40), tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - size - 1])
    with pytest.raises(ModelError, match=r"network\.onnx: not an ONNX model") as error:
        read_onnx(path)
    assert "\n" not in str(error.value)


@pytest.mark.timeout(10)
def test_a_sparse_file_of_zeros_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    with path.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(ModelError, match="not an ONNX model"):
        read_onnx(path)
