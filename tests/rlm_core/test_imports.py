"""Imports point one way, and what the server needs does not need the [train] extra."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import REPOSITORY

CORE = REPOSITORY / "model_core" / "rlm_core"
HEAVY = {"torch", "pyarrow", "scipy", "sklearn", "onnx", "onnxscript", "ray"}
TRAINING = ("training/", "measurement/gpu/")
# Reading .onnx files, working on a cluster and Parquet are extras; nothing else may take them in.
OPTIONAL = {
    "source/onnx_graph/inference_size.py": {"onnx"},
    "source/onnx_graph/reader.py": {"onnx"},
    "serving/ray_cluster.py": {"ray"},
    "tables.py": {"pyarrow"},
}


def imported(path: Path, *, at_once: bool = False) -> Iterator[str]:
    """The top-level packages that a file imports: anywhere in it, or when it is imported itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def needs_training(path: Path) -> bool:
    return str(path.relative_to(CORE)).startswith(TRAINING)


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: str(path.relative_to(CORE)))
def test_the_core_knows_nothing_of_the_server_and_its_base_nothing_of_training(path: Path) -> None:
    found = set(imported(path))
    assert "rlm_lsp" not in found
    assert not found & {"pygls", "lsprotocol", "click"}
    if not needs_training(path):
        name = str(path.relative_to(CORE))
        assert not found & (HEAVY - OPTIONAL.get(name, set()))
        assert not set(imported(path, at_once=True)) & HEAVY


@pytest.mark.parametrize("path", sorted((REPOSITORY / "server").rglob("*.py")), ids=lambda path: path.name)
def test_the_server_holds_no_model_code(path: Path) -> None:
    assert not set(imported(path)) & {*HEAVY, "onnxruntime", "numpy", "sentencepiece"}
