"""Imports point one way, and what the server needs does not need the [train] extra."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.paths import REPOSITORY

CORE = REPOSITORY / "model_core" / "rlm_core"
HEAVY = {"torch", "pyarrow", "scipy", "sklearn", "onnx", "onnxscript", "ray"}
TRAINING = ("training/", "measurement/gpu/")
# Reading .onnx files, working on a cluster and Parquet are extras; nothing else may take them in.
OPTIONAL = {
    "source/onnx_graph/wire.py": {"onnx"},
    "source/onnx_graph/open_sizes.py": {"onnx"},
    "source/onnx_graph/graph_reader.py": {"onnx"},
    "source/onnx_graph/model_nodes.py": {"onnx"},
    "source/onnx_graph/reader.py": {"onnx"},
    "serving/ray_cluster.py": {"ray"},
    "tables.py": {"pyarrow"},
}


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the top-level packages that nodes of a file import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def parsed(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    paths = sorted(folder.rglob("*.py"))
    assert len(paths) > 50
    for path in paths:
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_the_core_knows_nothing_of_the_server_and_its_base_nothing_of_training() -> None:
    wrong: dict[str, set[str]] = {}
    for path, tree in parsed(CORE):
        name = path.relative_to(CORE).as_posix()
        found = set(imported(ast.walk(tree)))
        wrong[name] = found & {"rlm_lsp", "pygls", "lsprotocol", "click"}
        if not name.startswith(TRAINING):
            # A heavy package may be imported where an extra is used, but never when the module itself is imported.
            wrong[name] |= found & (HEAVY - OPTIONAL.get(name, set())) | set(imported(tree.body)) & HEAVY
    assert {name: found for name, found in wrong.items() if found} == {}


def test_the_server_holds_no_model_code() -> None:
    model = {*HEAVY, "onnxruntime", "numpy", "sentencepiece"}
    found = {path.as_posix(): set(imported(ast.walk(tree))) & model for path, tree in parsed(REPOSITORY / "server")}
    assert {name: packages for name, packages in found.items() if packages} == {}
