"""The targets of pretraining: computed from the text, and nothing of it is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from rlm_core.source.onnx_graph import from_model, render
from rlm_core.source.syntax_counts import NAMES, structure
from rlm_core.training.student.synthetic import TARGETS, synthetic_targets


def network() -> str:
    """The text of a convolution of 3 x 3 from 3 to 16 channels and what follows it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 16, 32, 32])],
        [helper.make_tensor("w", TensorProto.FLOAT, [16, 3, 3, 3], [0.5] * 432)],
    )
    return render(from_model(helper.make_model(graph)))


def targets(*entries: tuple[str, str]) -> list[dict[str, float]]:
    return [dict(zip(TARGETS, row.tolist(), strict=True)) for row in synthetic_targets(entries)]


def test_a_row_a_text_a_column_a_target() -> None:
    assert synthetic_targets([("x = 1", "python")] * 3).shape == (3, len(TARGETS))
    assert synthetic_targets([]).shape == (0, len(TARGETS))


@pytest.mark.parametrize("language", ["python", "triton", "pytorch", "go"])
def test_syntax_counts_come_first(language: str) -> None:
    [found] = synthetic_targets([("for x in y:\n\tf(x)", language)])
    assert found[: len(NAMES)].tolist() == structure("for x in y:\n\tf(x)", language).tolist()


@pytest.mark.parametrize("language", ["ttir", "onnx"])
def test_a_language_without_a_grammar_has_no_syntax_counts(language: str) -> None:
    [found] = synthetic_targets([("x", language)])
    assert np.isnan(found[: len(NAMES)]).all()


def test_bytecode_is_counted_in_nested_functions_too() -> None:
    flat, nested, other = targets(
        ("def f():\n\treturn 1", "python"),
        ("def f():\n\tdef g():\n\t\treturn x + 1\n\treturn g", "python"),
        ("x", "go"),
    )
    assert nested["bytecode"] > flat["bytecode"] > 0
    assert nested["opcodes"] > flat["opcodes"] > 0
    assert np.isnan(other["bytecode"])
    assert np.isnan(other["opcodes"])


@pytest.mark.parametrize("text", ["def (((", "x\0y", "return 1\n\t\tx", "(" * 5000, "x = " + "9" * 6000, "\ud800", ""])
def test_what_does_not_compile_has_no_bytecode_and_is_no_error(text: str) -> None:
    [found] = targets((text, "python"))
    assert np.isnan(found["bytecode"]) or found["bytecode"] >= 0
    assert np.isfinite(found["nodes"])


def test_no_text_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = f"open({str(mark)!r}, 'w').close()\nraise SystemExit\n"
    assert targets((text, "python"), (text, "triton"))[0]["bytecode"] > 0
    assert not mark.exists()


def test_a_network_is_told_by_its_parameters_and_products() -> None:
    found, broken, function = targets((network(), "onnx"), ("no graph at all ·", "onnx"), ("x = 1", "python"))
    assert np.expm1(found["parameters"]) == pytest.approx(16 * 3 * 9, rel=1e-3)
    assert np.expm1(found["macs"]) == pytest.approx(32 * 32 * 16 * 3 * 9, rel=1e-3)
    for other in (broken, function):
        assert np.isnan(other["parameters"])
        assert np.isnan(other["macs"])
