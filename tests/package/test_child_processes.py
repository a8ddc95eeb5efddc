"""Child processes do not import modules of the folder that the tool is started in: nobody has said to trust it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("server", "model_core") for path in (ROOT / folder).rglob("*.py"))


def started(path: Path) -> list[list[ast.expr]]:
    """The command lines in a file that start this interpreter."""
    text = path.read_text("utf-8")
    return [
        node.elts
        for node in (ast.walk(ast.parse(text)) if "sys.executable" in text else ())
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts and ast.unparse(node.elts[0]) == "sys.executable"
    ]


COMMANDS = [
    pytest.param(command, id=f"{path.stem}:{command[0].lineno}") for path in SOURCES for command in started(path)
]


def test_there_are_commands() -> None:
    assert COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_the_working_folder_is_not_searched_for_modules(command: list[ast.expr]) -> None:
    assert len(command) > 1
    assert isinstance(command[1], ast.Constant)
    # A file that is run is searched for in its own folder; `-P` leaves out the working folder, `-I` also the user's.
    assert command[1].value in ("-P", "-I")
