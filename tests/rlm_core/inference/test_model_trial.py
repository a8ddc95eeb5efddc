"""A model that did not ship is tried in a child: what hangs, fails or dies there is one line here."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
import rlm_core
from onnx import TensorProto, helper, numpy_helper
from rlm_core.errors import ModelError
from rlm_core.inference.card import CARD, checksum
from rlm_core.inference.model_store import builtin
from rlm_core.inference.model_trial import try_model

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The model that ships, in another directory."""
    shutil.copytree(builtin(), tmp_path / "model")
    return tmp_path / "model"


def replaced(directory: Path, name: str, content: bytes) -> None:
    """Write a file and its checksum in the card, as an attacker would."""
    (directory / name).write_bytes(content)
    card = json.loads((directory / CARD).read_text())
    card["files"][name] = checksum(directory / name)
    (directory / CARD).write_text(json.dumps(card))


def encoder(*, side: int, times: int) -> bytes:
    """An encoder of allowed operators: ``times`` products of matrices of ``side`` rows."""
    numbers = {"from": [0], "to": [1], "axes": [1], "both": [0, 1], "shape": [side, side], "row": [1, 256], "one": [1]}
    last = "m0"
    nodes = [
        helper.make_node("Cast", ["ids"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Slice", ["f", "from", "to", "axes"], ["first"]),
        helper.make_node("Squeeze", ["first", "both"], ["scalar"]),
        helper.make_node("Expand", ["scalar", "shape"], ["m0"]),
    ]
    for number in range(times):
        nodes.append(helper.make_node("MatMul", [last, "m0"], [f"m{number + 1}"]))
        last = f"m{number + 1}"
    nodes += [
        helper.make_node("ReduceMean", [last], ["mean"], axes=[0, 1], keepdims=1),
        helper.make_node("Expand", ["mean", "row"], ["vector"]),
    ]
    weights = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "n"])
    vector = helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, 256])
    graph = helper.make_graph(nodes, "g", [ids], [vector], weights)
    made: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())


def test_a_good_model_in_another_directory_is_used(directory: Path) -> None:
    assert rlm_core.load(directory).model_id == rlm_core.load().model_id


def test_a_model_that_takes_too_long_is_given_up(directory: Path) -> None:
    # 20,000 x 2 * 2,000^3 operations: hours.
    replaced(directory, "encoder.onnx", encoder(side=2_000, times=15_000))
    started = time.monotonic()
    with pytest.raises(ModelError, match="the model does not answer within 3 s; export the model again"):
        try_model(directory, seconds=3)
    assert time.monotonic() - started < 30


@pytest.mark.skipif(os.name == "nt", reason="the memory of a process cannot be limited there")
def test_a_model_that_asks_for_too_much_memory_is_one_line(directory: Path) -> None:
    replaced(directory, "encoder.onnx", encoder(side=60_000, times=0))
    with pytest.raises(ModelError, match="the encoder of the model cannot be run") as caught:
        rlm_core.load(directory)
    assert "\n" not in str(caught.value)


def test_a_head_of_another_shape_is_one_line(directory: Path) -> None:
    card = json.loads((directory / CARD).read_text())
    for entry in card["slices"]:
        entry["edges"] = entry["edges"][:-1]
    (directory / CARD).write_text(json.dumps(card))
    with pytest.raises(ModelError, match="another number of outcomes"):
        rlm_core.load(directory)


@pytest.mark.parametrize("name", ["trees.safetensors", "wide.safetensors", "growth.safetensors", "calls.safetensors"])
def test_weights_of_another_kind_are_one_line(directory: Path, name: str) -> None:
    replaced(directory, name, (directory / "work.safetensors").read_bytes())
    with pytest.raises(ModelError) as caught:
        rlm_core.load(directory)
    assert "\n" not in str(caught.value)
