"""Budgets in configuration files: which file counts, which globs, and where mistakes are."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.types import Span
from rlm_lsp.budgets import Budget, BudgetTables, read_budgets

PYPROJECT = """\
[project]
name = "x"

[tool.rlm-lsp.budgets]
"src/**/*.py" = "latency < 1 ms, memory < 10 MiB"
"kernels/*.py" = 'latency < 2 ms on A100'
"""


def covered(source: bytes, span: Span) -> str:
    assert (
        source.split(b"\n")[span.start_line][span.start_column : span.end_column]
        == (source[span.start_byte : span.end_byte])
    )
    return source[span.start_byte : span.end_byte].decode()


def test_globs_of_pyproject_give_budgets_and_their_places(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    table = read_budgets(tmp_path)
    assert table is not None
    assert table.malformed == ()
    held = table.held_of(tmp_path / "src" / "deep" / "a.py")
    assert [entry.budget for entry in held] == [Budget("latency", 1e-3), Budget("memory", 10 * 2**20)]
    assert [covered(table.source, entry.span) for entry in held if entry.span] == ["latency < 1 ms", "memory < 10 MiB"]
    assert {entry.path for entry in held} == {tmp_path / "pyproject.toml"}
    [kernel] = table.held_of(tmp_path / "kernels" / "k.py")
    assert kernel.budget.device == "nvidia-a100-sxm4-80gb"
    assert table.held_of(tmp_path / "b.py") == ()
    assert table.held_of(tmp_path.parent / "elsewhere" / "src" / "a.py") == ()


def test_a_file_of_our_own_takes_the_place_of_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "rlm-lsp.toml").write_text('[budgets]\n"*.py" = "memory < 1 GiB"\n')
    table = read_budgets(tmp_path)
    assert table is not None
    assert [entry.budget for entry in table.held_of(tmp_path / "src" / "a.py")] == [Budget("memory", 2.0**30)]


@pytest.mark.parametrize("text", ["[project]\nname = 'x'\n", "[tool.ruff]\nline-length = 100\n", "not = [toml\n"])
def test_a_pyproject_that_does_not_name_us_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert read_budgets(tmp_path) is None


def test_the_nearest_configuration_counts_even_without_budgets(tmp_path: Path) -> None:
    (tmp_path / "rlm-lsp.toml").write_text('[budgets]\n"*" = "latency < 1 s"\n')
    inner = tmp_path / "inner"
    (inner / "deep").mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[tool.rlm-lsp]\ndevices = []\n")
    tables = BudgetTables()
    near, far = tables.above(inner / "deep" / "a.py"), tables.above(tmp_path / "other" / "a.py")
    assert near is not None
    assert near.path == inner / "pyproject.toml"
    assert near.held_of(inner / "deep" / "a.py") == ()
    assert far is not None
    assert far.path == tmp_path / "rlm-lsp.toml"


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('[budgets]\n"µ.py" = "latency < 1 mss"\n', "mss", "unknown unit"),
        ('[budgets]\n"a.py" = "memory < 1 B"\n"b.py" = 7\n', '"b.py" = 7', "must be a string"),
        ('[budgets]\n"a.py" = """\nlatency < 1"""\n', '"a.py" = """', "the unit is missing"),
        ('[budgets]\n"a.py" = "latency < "1 ms\n', '"a.py" = "latency < "1 ms', "is not TOML"),
        ('budgets = "latency < 1 ms"\n', 'budgets = "latency < 1 ms"', "must be a table"),
        ('x = 1\nbudgets."a.py" = "latencies < 1 ms"\n', "latencies", "unknown metric"),
        ('x = 1\nbudgets = { "a.py" = "latencies < 1 ms" }\n', "latencies", "unknown metric"),
    ],
)
def test_a_mistake_has_its_place(tmp_path: Path, text: str, place: str, what: str) -> None:
    (tmp_path / "rlm-lsp.toml").write_text(text, encoding="utf-8")
    table = read_budgets(tmp_path)
    assert table is not None
    [wrong] = table.malformed
    assert covered(table.source, wrong.span) == place
    assert what in wrong.message


def test_a_file_that_is_not_utf_8_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "rlm-lsp.toml").write_bytes(b'[budgets]\n"\xff" = "latency < 1 ms"\n')
    table = read_budgets(tmp_path)
    assert table is not None
    assert [wrong.message for wrong in table.malformed] == ["is not valid UTF-8; save it as UTF-8"]
