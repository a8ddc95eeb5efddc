"""The variables that switch off the telemetry of libraries: set before one is imported, in every process, always."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rlm_core.measurement.programs.toolchains import TABLE, InstalledToolchain
from rlm_core.no_telemetry import VARIABLES

from tests.paths import REPOSITORY

LIBRARIES = {"huggingface_hub", "onnxruntime", "ray", "transformers"}
# The variables as each of these libraries finds them when the program imports it, and in a child process.
PROGRAM = """
import json, os, subprocess, sys
found = {}
def see(event, arguments):
    if event == "import" and arguments[0] in %r:
        found.setdefault(arguments[0], {name: os.environ.get(name) for name in %r})
sys.addaudithook(see)
import rlm_core
rlm_core.load()
child = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
print(json.dumps({**found, "child": json.loads(subprocess.run(child, capture_output=True).stdout)}))
"""


def test_the_variables_are_set_before_a_library_reads_them_whatever_the_user_has_set() -> None:
    wanted = {name: "1" if value == "0" else "0" for name, value in VARIABLES.items()}
    command = [sys.executable, "-c", PROGRAM % (LIBRARIES, [*VARIABLES])]
    done = subprocess.run(command, env={**os.environ, **wanted}, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found.keys() == {"onnxruntime", "child"}
    for environment in found.values():
        assert environment.items() >= VARIABLES.items()


def test_programs_that_are_measured_have_them_too() -> None:
    toolchain = InstalledToolchain(TABLE[0], {}, "1", ())
    assert toolchain.environment.items() >= VARIABLES.items()


def imports(path: Path) -> set[str]:
    """The top-level packages that a module imports when it is imported itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in tree.body if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


SCRIPTS = [path for folder in ("server", "tools") for path in sorted((REPOSITORY / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", [path for path in SCRIPTS if imports(path) & LIBRARIES], ids=lambda path: path.name)
def test_a_script_that_imports_such_a_library_has_imported_rlm_core(path: Path) -> None:
    assert "rlm_core" in imports(path.with_name("__init__.py"))
