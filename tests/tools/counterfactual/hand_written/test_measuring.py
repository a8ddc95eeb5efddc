"""Functions written by hand: their modules are whole, and their labels make rows."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from rlm_core.files import read_json_lines
from rlm_core.training.datasets.schema import HAND_WRITTEN

from tools.counterfactual.builder import HAND_WRITTEN_LABELS, CounterfactualBuilder
from tools.counterfactual.hand_written.measuring import FUNCTIONS, measure, programs, scale_of

pytestmark = pytest.mark.extras


def test_every_module_has_what_its_function_needs() -> None:
    names = []
    for name, module in programs():
        names.append(name)
        tree = ast.parse(module)
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert [function for function in functions if not function.startswith("_")] == [name]
        namespace: dict[str, object] = {}
        exec(compile(tree, name, "exec"), namespace)
        assert callable(namespace[name])
    assert len(names) == len(set(names)) > 170


def test_the_labels_are_those_of_the_functions() -> None:
    labels = {label["group"]: label["functions"][0] for _, label in read_json_lines(HAND_WRITTEN_LABELS)}
    assert labels.keys() == {f"{HAND_WRITTEN}{name}" for name, _ in programs()}
    assert all(labels[f"{HAND_WRITTEN}{name}"]["module"] == module for name, module in programs())


def test_labels_make_rows_that_no_training_reads_as_real_functions() -> None:
    rows = list(CounterfactualBuilder([HAND_WRITTEN_LABELS]).rows())
    assert {row["split"] for row in rows} == {"train"}
    assert {row["held_out"] for row in rows} == {"edit"}
    assert all(row["family"].startswith(HAND_WRITTEN) for row in rows)
    assert len(rows) == 2 * sum(1 for _ in programs())


def test_functions_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = tmp_path / "functions"
    functions.mkdir()
    text = "def short():\n    return sum(range(10_000))\n\n\ndef long():\n    return sum(range(1_000_000))\n"
    (functions / "some.py").write_text(text, encoding="utf-8")
    module = "tools.counterfactual.hand_written.measuring"
    monkeypatch.setattr(f"{module}.FUNCTIONS", functions)
    monkeypatch.setattr(f"{module}.scale_of", lambda python: 1.0)
    summary = measure(tmp_path / "labels.jsonl.gz", date="2026-01-01", python=sys.executable)
    assert (summary.groups, summary.left_out) == (2, {})
    short, long = (label["functions"][0]["latency"] for _, label in read_json_lines(tmp_path / "labels.jsonl.gz"))
    assert 30 < long / short < 300


def test_this_machine_is_compared_with_that_of_the_unit_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.counterfactual.hand_written.measuring._ROUNDS", 1)
    assert 0.02 < scale_of(sys.executable) < 5
    assert FUNCTIONS.is_dir()
