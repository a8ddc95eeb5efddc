"""Files and folders that ``rlm-lsp predict`` is given: what it reads, leaves out, notes and refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.notebooks import notebook_text

from .predicting import GOOD, predict, rows_of


def test_tests_are_left_out_unless_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "test" / "project"  # what is above the project says nothing
    for name in ("a.py", "test_a.py", "tests/b.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(GOOD)

    def files(*names: str) -> list[str]:
        rows = rows_of(predict(*names, "--format", "json"))
        return sorted({Path(row["file"]).name for row in rows})

    monkeypatch.chdir(project)
    result = predict(".")
    assert "; 2 files of tests left out: name one to see it" in result.stderr
    assert files() == files(".") == files(str(project)) == ["a.py"]
    assert files("test_a.py") == ["test_a.py"]
    assert files("tests") == files(str(project / "tests")) == ["b.py"]
    assert files(".", "tests") == ["a.py", "b.py"]
    monkeypatch.chdir(project / "tests")
    assert files(".") == ["b.py"]


def test_functions_of_notebooks_have_the_places_of_their_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(notebook_text(GOOD, "%time x = 1\n\ndef caller(n):\n    return good(n) + 1\n", "def broken(:\n"))
    (tmp_path / "bad.ipynb").write_text('{"cells": [')
    (tmp_path / "empty.ipynb").touch()
    found = predict(tmp_path, "--format", "json")
    rows = [row for row in rows_of(found) if row["metric"] == "latency"]
    assert [(row["file"], row["cell"], row["line"], row["qualname"]) for row in rows] == [
        (str(path), 2, 1, "good"),
        (str(path), 3, 3, "caller"),
    ]
    [error] = [line for line in found.stderr.splitlines() if "error:" in line]
    assert re.search(r"bad\.ipynb: is not a Jupyter notebook \(.+\); save it again in Jupyter$", error)
    assert found.exit_code == 2
    table = predict(path)
    assert table.exit_code == 0
    assert {line.split("  ")[0] for line in table.stdout.splitlines()[1:]} == {f"{path}:cell 2:1", f"{path}:cell 3:3"}
    # A function may call those of the cells before it.
    whole = tmp_path / "whole.py"
    whole.write_text(GOOD + "\ndef caller(n):\n    return good(n) + 1\n")
    of_file = [row for row in rows_of(predict(whole, "--format", "json")) if row["metric"] == "latency"]
    assert rows[1]["median"] == pytest.approx(of_file[1]["median"])


def test_a_directory_is_walked_in_order_without_dependencies_and_caches(tmp_path: Path) -> None:
    skipped = (".git/a.py", "node_modules/a.js", "__pycache__/a.py", "env/lib/a.py")
    for name in ("b/z.py", "b/a.go", "a.py", "notes.txt", *skipped):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("// rlm: program\npackage main\nfunc f() {}\n" if name.endswith(".go") else GOOD)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "__init__.py").touch()
    result = predict(tmp_path, "--format", "json")
    assert result.exit_code == 0
    files = [row["file"] for row in rows_of(result)]
    assert list(dict.fromkeys(files)) == [str(tmp_path / name) for name in ("a.py", "b/a.go", "b/z.py")]


def make_bad(folder: Path, kind: str) -> Path:
    path = folder / {"unknown": "bad.xyz", "directory": "bad"}.get(kind, "bad.py")
    if kind == "directory":
        path.mkdir()
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(50 * 2**20)
    elif kind != "missing":
        content = {
            "binary": b"\x7fELF\0\0\0",
            "empty": b"",
            "blank": b" \n\n",
            "not utf-8": b"def f():\n    return '\xff\xfe'\n",
            "unknown": GOOD.encode(),
            "unparsable": b"def (((\n)]\n",
        }
        path.write_bytes(content[kind])
    return path


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("missing", "no such file; check the path"),
        ("binary", "is a binary file"),
        ("empty", "is empty"),
        ("blank", "is empty"),
        ("huge", "50 MiB is over the limit"),
        ("not utf-8", "is not valid UTF-8"),
        ("unknown", "unknown language"),
        ("directory", "no source file in this directory"),
        ("unparsable", "and no unit that parses as Python"),
    ],
)
def test_a_bad_path_is_one_line_and_the_others_still_get_predictions(tmp_path: Path, kind: str, what: str) -> None:
    good = tmp_path / "good.py"
    good.write_text(GOOD)
    bad = make_bad(tmp_path, kind)
    result = predict(bad, good, "--format", "json")
    assert result.exit_code == 2
    error, summary = result.stderr.splitlines()
    assert error.startswith(f"rlm-lsp: error: {bad}: ")
    assert what in error
    assert "1 path failed" in summary
    assert {row["qualname"] for row in rows_of(result)} == {"good"}


def test_a_link_out_of_a_walked_folder_is_one_line_and_a_named_one_is_predicted(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret.py").write_text("def secret(n):\n    return sum(range(n))\n")
    (folder / "good.py").write_text(GOOD)
    (folder / "link.py").symlink_to(tmp_path / "secret.py")
    result = predict(folder, "--format", "json")
    assert {row["qualname"] for row in rows_of(result)} == {"good"}
    assert f"{folder / 'link.py'}: outside {folder}" in result.stderr
    named = predict(folder / "link.py", "--format", "json")
    assert {row["qualname"] for row in rows_of(named)} == {"secret"}


def test_a_file_with_syntax_errors_gives_the_units_that_parse(tmp_path: Path) -> None:
    path = tmp_path / "half.py"
    path.write_text(GOOD + "\n\nx = (((\n")
    result = predict(path, "--format", "json")
    assert result.exit_code == 0
    assert {row["qualname"] for row in rows_of(result)} == {"good"}
    # A function that does not parse has no cost.
    path.write_text(f'def old():\n    print "x"\n\n\n{GOOD}')
    result = predict(path, "--format", "json")
    assert result.exit_code == 0
    assert {row["qualname"] for row in rows_of(result)} == {"good"}
    assert f"{path}: 1 unit with syntax errors left out (line 2: Missing parentheses" in result.stderr


@pytest.mark.parametrize(("name", "text"), [("constants.py", "X = 1\n"), ("empty.ttir", "module {\n}\n")])
def test_a_named_file_without_units_is_no_error_but_is_noted(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    result = predict(path, "--format", "json")
    assert result.exit_code == 0
    assert rows_of(result) == []
    assert f"{path}: nothing to predict" in result.stderr


@pytest.mark.parametrize(("name", "mark"), [("client.ts", "//"), ("client.rb", "#")])
def test_a_file_that_is_not_a_solution_is_noted_and_predicted_on_demand(tmp_path: Path, name: str, mark: str) -> None:
    path = tmp_path / name
    path.write_text("import { api } from './api';\n" if mark == "//" else "require_relative 'api'\n")
    result = predict(path, "--format", "json")
    assert (result.exit_code, rows_of(result)) == (0, [])
    [note, _] = result.stderr.splitlines()
    assert "does not look like a solution" in note
    directive = f"{mark} rlm: program"
    assert f"`{directive}`" in note
    path.write_text(f"{directive}\n{path.read_text()}")
    assert {row["basis"] for row in rows_of(predict(path, "--format", "json"))} == {"program"}


def test_syntax_of_a_file_that_is_not_a_solution_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "App.tsx"
    path.write_text("import React from 'react';\nexport const App = () => <div onClick={() => null}>Hi</div>;\n")
    assert predict(path).exit_code == 0
    result = predict(tmp_path)
    assert (result.exit_code, result.stderr.count("\n")) == (0, 1)


def test_names_of_files_and_functions_cannot_control_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b]0;owned\x07\n::stop-commands::x"
    folder.mkdir()
    (folder / "b\x9b.py").write_text("def f(n):\n    return n\n")
    (folder / "c\x1b.py").write_bytes(b"\0")
    (folder / "k.ttir").write_text('tt.func public @"k\x1b[2J"(%arg0: i32) {\n}\n')
    result = predict(folder)
    assert result.exit_code == 2
    assert r"\x1b]0;owned\x07\x0a::stop-commands::x/b\x9b.py:1" in result.stdout
    assert r"k\x1b[2J" in result.stdout
    shown = result.stdout + result.stderr
    assert not [c for c in shown if c != "\n" and not c.isprintable() and c != "\u202f"]
    assert not [line for line in shown.splitlines() if line.startswith("::")]


def test_a_text_that_is_too_complex_is_one_line_and_the_others_are_predicted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(n):\n    return n\n")
    (tmp_path / "b.py").write_text("".join(f"def f{number}(n): return n\n" for number in range(5_001)))
    result = predict(tmp_path, "--format", "json")
    assert result.exit_code == 2
    assert {row["qualname"] for row in rows_of(result)} == {"f"}
    error = result.stderr.splitlines()[0]
    assert error == f"rlm-lsp: error: {tmp_path / 'b.py'}: too complex to analyse: more than 5000 functions"


def test_a_long_file_that_is_no_program_fails_only_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(n):\n    return n\n")
    table = tmp_path / "german.ts"
    table.write_text("<TS><message>" + "text " * 60_000 + "</message></TS>\n")
    assert predict(tmp_path, "--format", "json").exit_code == 0
    assert predict(table, "--format", "json").exit_code == 2
