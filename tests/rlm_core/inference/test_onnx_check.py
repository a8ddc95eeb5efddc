"""Only plain operators are allowed in the ONNX files of a model, and only with weights in the same file."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from rlm_core.errors import ModelError
from rlm_core.inference.model_store import builtin
from rlm_core.inference.onnx_check import check_onnx

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
RELU = helper.make_node("Relu", ["x"], ["y"])


def model(nodes: Sequence[onnx.NodeProto], *weights: onnx.TensorProto) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [X], [Y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def body(operator: str) -> onnx.ModelProto:
    inner = helper.make_graph([RELU], "body", [], [Y])
    names = ("then_branch", "else_branch") if operator == "If" else ("body",)
    return model([helper.make_node(operator, ["x"], ["y"], **dict.fromkeys(names, inner))])


def external() -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.zeros(4, np.float32), "w")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../../../../etc/passwd")
    return model([helper.make_node("Add", ["x", "w"], ["y"])], weight)


def external_attribute() -> onnx.ModelProto:
    [weight] = external().graph.initializer
    return model([helper.make_node("Constant", [], ["w"], value=weight), helper.make_node("Add", ["x", "w"], ["y"])])


def functions() -> onnx.ModelProto:
    made = model([RELU])
    made.functions.add(name="f", domain="mine")
    return made


def domain() -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"], domain="com.microsoft")])


def opset() -> onnx.ModelProto:
    made = model([RELU])
    made.opset_import.append(helper.make_opsetid("evil.ops", 1))
    return made


@pytest.mark.parametrize("name", ["encoder.onnx", "head.onnx"])
def test_the_files_that_ship_are_allowed(name: str) -> None:
    check_onnx((builtin() / name).read_bytes(), name)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (body("Loop"), r"its operator 'Loop' is not allowed|it has control flow"),
        (body("If"), r"its operator 'If' is not allowed|it has control flow"),
        (body("Scan"), r"its operator 'Scan' is not allowed|it has control flow"),
        (body("Relu"), "it has control flow"),
        (model([helper.make_node("ConstantOfShape", ["x"], ["y"])]), "its operator 'ConstantOfShape' is not allowed"),
        (external(), "its weights are in other files"),
        (external_attribute(), "its weights are in other files"),
        (functions(), "it has local functions"),
        (domain(), "its operators are of the domain 'com.microsoft'"),
        (opset(), "its operators are of the domain 'evil.ops'"),
        (model([]), "it has no graph"),
        (model([RELU] * 20_001), "it has more than 20,000 nodes"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "model",
)
def test_what_a_model_does_not_need_is_refused_with_the_reason(made: onnx.ModelProto, reason: str) -> None:
    with pytest.raises(ModelError, match=rf"m\.onnx: not a usable ONNX model \(({reason})\)"):
        check_onnx(made.SerializeToString(), "m.onnx")


@given(st.binary(max_size=200), st.integers(0, 200))
def test_damaged_bytes_raise_nothing_else(data: bytes, at: int) -> None:
    whole = model([RELU]).SerializeToString()
    for content in (data, whole[:at] + data, whole[:at] + data + whole[at:]):
        with contextlib.suppress(ModelError):  # any other error fails the test
            check_onnx(content, "m.onnx")
