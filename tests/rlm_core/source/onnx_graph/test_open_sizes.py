"""Sizes that a model leaves open: usual ones, and what the model computes from them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from rlm_core.source.onnx_graph.graph import Constant, Graph
from rlm_core.source.onnx_graph.parse import open_sizes, parse
from rlm_core.source.onnx_graph.reader import from_model
from rlm_core.source.onnx_graph.render import render
from rlm_core.source.onnx_graph.shape_values import value_of

from .test_reader import model, value, weight


def read(*inputs: tuple[int, tuple[int | str, ...]], sizes: Mapping[str, int] | None = None) -> Graph:
    """A model that adds up its inputs, each cast to a float."""
    named = [value(f"x{number}", *shape, dtype=dtype) for number, (dtype, shape) in enumerate(inputs)]
    nodes = [helper.make_node("Cast", [entry.name], [f"y{number}"], to=1) for number, entry in enumerate(named)]
    outputs = [helper.make_tensor_value_info(f"y{number}", 1, None) for number in range(len(named))]
    return from_model(model(nodes, named, outputs), sizes=sizes or {})


@pytest.mark.parametrize(
    ("dtype", "shape", "expected", "size"),
    [
        (TensorProto.FLOAT, ("n", 3, "h", "w"), (1, 3, 224, 224), "image=224"),
        (TensorProto.FLOAT, ("n", "h", "w", 3), (1, 224, 224, 3), "image=224"),
        (TensorProto.FLOAT, ("n", "c", "h", "w"), (1, 3, 224, 224), "image=224"),
        (TensorProto.INT64, ("n", "length"), (1, 128), "tokens=128"),
        (TensorProto.FLOAT, ("n", "samples"), (1, 16_000), "samples=16000"),
        (TensorProto.FLOAT, ("n", "length", 64), (1, 128, 64), "tokens=128"),
        (TensorProto.INT64, ("nodes",), (128,), "tokens=128"),
    ],
)
def test_open_sizes_are_usual_ones_and_the_text_names_the_input(
    dtype: int, shape: tuple[int | str, ...], expected: tuple[int, ...], size: str
) -> None:
    graph = read((dtype, shape))
    assert graph.inputs[0].shape == expected
    assert graph.assumed == (0,)
    text = render(graph)
    assert text.endswith(f"# sizes assumed: a {size}")
    assert parse(text) == graph
    name, _, value = size.partition("=")
    assert open_sizes(text) == {name: int(value)}


@pytest.mark.parametrize(
    ("dtype", "shape", "expected"),
    [
        (TensorProto.FLOAT, ("n", 3, "h", "w"), (1, 3, 64, 64)),
        (TensorProto.INT64, ("n", "length"), (1, 32)),
        (TensorProto.FLOAT, ("n", "samples"), (1, 8_000)),
        (TensorProto.FLOAT, (2, 3, 128, 128), (2, 3, 128, 128)),
    ],
)
def test_sizes_that_a_question_names_replace_the_usual_ones(
    dtype: int, shape: tuple[int | str, ...], expected: tuple[int, ...]
) -> None:
    graph = read((dtype, shape), sizes={"image": 64, "tokens": 32, "samples": 8_000})
    assert graph.inputs[0].shape == expected


def test_a_batch_alone_needs_no_words() -> None:
    graph = read((TensorProto.FLOAT, ("n", 3, 32, 32)))
    assert graph.inputs[0].shape == (1, 3, 32, 32)
    assert graph.assumed == ()


def test_sizes_of_one_name_are_the_same() -> None:
    graph = read((TensorProto.INT64, ("n", "length")), (TensorProto.FLOAT, ("n", "length")))
    assert [entry.shape for entry in graph.inputs] == [(1, 128), (1, 128)]


def test_the_target_of_a_reshape_follows_from_the_shape_of_an_input() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "axis"], ["length"]),
        helper.make_node("Div", ["length", "heads"], ["part"]),
        helper.make_node("Unsqueeze", ["part", "zero"], ["sizes"]),
        helper.make_node("Concat", ["sizes", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["parts"]),
        helper.make_node("MatMul", ["parts", "w"], ["y"]),
    ]
    numbers = {"axis": np.array(1), "heads": np.array(4), "zero": np.array([0]), "rest": np.array([-1, 16])}
    weights = [numpy_helper.from_array(array.astype(np.int64), name) for name, array in numbers.items()]
    graph = from_model(
        model(nodes, [value("x", "n", "length", 16)], [value("y", "a", "b", 8)], [*weights, weight("w", 16, 8)])
    )
    assert [node.operator for node in graph.nodes] == ["Reshape", "MatMul"]
    assert graph.nodes[-1].shapes == ((32, 4, 8),)


@pytest.mark.parametrize(
    ("operator", "operands", "attributes", "expected"),
    [
        ("Slice", [(1, 2, 3, 4), (1,), (3,)], {}, (2, 3)),
        ("Div", [(7,), (-2,)], {}, (-3,)),
        ("Mul", [(2, 3), (4,)], {}, (8, 12)),
        ("ReduceProd", [(2, 3, 4)], {"keepdims": 0}, (24,)),
        ("Where", [(1, 0), (5, 5), (6, 6)], {}, (5, 6)),
        ("Concat", [(1,), (2, 3)], {"axis": 0}, (1, 2, 3)),
    ],
)
def test_operators_on_shapes_are_computed_as_onnx_does(
    operator: str, operands: list[tuple[int, ...]], attributes: dict[str, int], expected: tuple[int, ...]
) -> None:
    found = value_of(operator, [Constant((len(part),), "int64", part) for part in operands], attributes)
    assert found is not None
    assert found.values == expected


@pytest.mark.parametrize(
    ("operator", "operands"),
    [
        ("Div", [(1,), (0,)]),
        ("Gather", [(1, 2), (9,)]),
        ("Concat", [(1, 2, 3, 4, 5), (1, 2, 3, 4, 5)]),
        ("Mul", [(2**60,), (2**60,)]),
        ("Reshape", [(1, 2), (3, 3)]),
        ("Conv", [(1,), (1,)]),
    ],
)
def test_what_is_not_a_size_is_left_to_the_graph(operator: str, operands: list[tuple[int, ...]]) -> None:
    constants = [Constant((len(part),), "int64", part) for part in operands]
    assert value_of(operator, constants, {"axis": 0}) is None
