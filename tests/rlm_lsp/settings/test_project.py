"""A project's configuration: which file counts, its budgets and where mistakes are, and the settings of check."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from rlm_core.types import Span
from rlm_lsp.budgets.rules import ActiveBudget
from rlm_lsp.budgets.syntax import Budget, render
from rlm_lsp.findings.finding import DEFAULT_CONFIDENCE, DEFAULT_REGRESSION
from rlm_lsp.findings.judge import criteria_of
from rlm_lsp.settings.files import SettingsStore
from rlm_lsp.settings.model import Settings
from rlm_lsp.settings.project import BudgetTable, BudgetTables, ProjectSettings, configured_budgets, read_budgets

from tests.rlm_lsp.findings.support import write

PYPROJECT = """\
[project]
name = "x"

[tool.rlm-lsp.budgets]
"src/**/*.py" = "latency < 1 ms, memory < 10 MiB"
"kernels/*.py" = 'latency < 2 ms on A100'
"""


def budgets_of(table: BudgetTable, path: Path) -> list[ActiveBudget]:
    return [active for entry in table.entries_of(path) for active in entry.budgets]


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
    found = budgets_of(table, tmp_path / "src" / "deep" / "a.py")
    assert [entry.budget for entry in found] == [Budget("latency", 1e-3), Budget("memory", 10 * 2**20)]
    assert [covered(table.source, entry.span) for entry in found if entry.span] == ["latency < 1 ms", "memory < 10 MiB"]
    assert {entry.path for entry in found} == {tmp_path / "pyproject.toml"}
    [kernel] = budgets_of(table, tmp_path / "kernels" / "k.py")
    assert kernel.budget.device == "nvidia-a100-sxm4-80gb"
    assert table.entries_of(tmp_path / "b.py") == []
    assert table.entries_of(tmp_path.parent / "elsewhere" / "src" / "a.py") == []


def test_a_file_of_our_own_takes_the_place_of_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "rlm-lsp.toml").write_text('[budgets]\n"*.py" = "memory < 1 GiB"\n')
    table = read_budgets(tmp_path)
    assert table is not None
    assert [entry.budget for entry in budgets_of(table, tmp_path / "src" / "a.py")] == [Budget("memory", 2.0**30)]


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
    assert near.entries_of(inner / "deep" / "a.py") == []
    assert far is not None
    assert far.path == tmp_path / "rlm-lsp.toml"


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('[budgets]\n"µ.py" = "latency < 1 mss"\n', "mss", "unknown unit"),
        ('[budgets]\n"a.py" = "memory < 1 B"\n"b.py" = 7\n', '"b.py" = 7', "must be a string"),
        ('[budgets]\n"a.py" = """\nlatency < 1"""\n', '"a.py" = """', "the unit is missing"),
        ('[budgets]\n"a.py" = "latency < "1 ms\n', '"a.py" = "latency < "1 ms', "is not valid TOML: "),
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
    assert [wrong.message for wrong in table.malformed] == ["is not valid UTF-8; its budgets are not checked"]


def test_files_without_a_configuration_have_the_default_settings(tmp_path: Path) -> None:
    folder = ProjectSettings(BudgetTables(), {}).of(tmp_path / "a.py")
    criteria = criteria_of(folder.settings)
    assert (criteria.confidence, criteria.regression) == (DEFAULT_CONFIDENCE, DEFAULT_REGRESSION)
    assert criteria_of(folder.settings, 0.6).confidence.least == 0.6
    assert not folder.excludes(tmp_path / "a.py")


def test_the_nearest_configuration_counts_and_the_environment_takes_precedence(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "[tool.rlm-lsp]\nchange-ratio = 2.0\nexclude = ['*_pb2.py']\ndevices = ['L4']\n",
            "inner/rlm-lsp.toml": "change-ratio = 3.0\n[severity]\nerror = 0.99\n[budgets]\n'*' = 'latency < 1 mss'\n",
        },
    )
    settings = ProjectSettings(BudgetTables(), {"RLM_LSP_CHANGE_CONFIDENCE": "0.7"})
    outer, inner = settings.of(tmp_path / "a.py"), settings.of(tmp_path / "inner" / "a.py")
    of_outer, of_inner = criteria_of(outer.settings), criteria_of(inner.settings)
    assert (of_outer.regression.ratio, of_inner.regression.ratio) == (2.0, 3.0)
    assert (of_outer.regression.probability, of_inner.regression.probability) == (0.7, 0.7)
    assert outer.excludes(tmp_path / "deep" / "x_pb2.py")
    assert not inner.excludes(tmp_path / "inner" / "x_pb2.py")
    assert of_inner.confidence.error == 0.99
    assert of_outer.costs.devices == ("L4",)
    assert settings.problems == [], "a malformed budget is a finding"


def configured(store: SettingsStore, path: Path) -> list[tuple[str, bool]]:
    table = BudgetTables().above(path)
    entries = configured_budgets(path, store.relative(path), store.settings_of(path), table)
    return [(render([entry.budget]), entry.span is not None) for entry in entries]


def test_the_clients_budgets_take_precedence_over_the_projects_and_the_users_come_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (project / "deep").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    (home / "rlm-lsp").mkdir(parents=True)
    (home / "rlm-lsp" / "config.toml").write_text('[budgets]\n"**" = "latency < 3 s"\n"a.py" = "latency < 4 s"\n')
    (project / "rlm-lsp.toml").write_text('[budgets]\n"*.py" = "memory < 2 MiB"\n"a.py" = "latency < 2 s"\n')
    store = SettingsStore({"budgets": {"*.py": "latency < 1 s"}}, [project], {})
    expected = [("latency < 1 s", False), ("latency < 2 s", True), ("latency < 3 s", False)]
    assert configured(store, project / "a.py") == expected
    (project / "deep" / "rlm-lsp.toml").write_text('[budgets]\n"*.py" = "latency < 5 s"\n"b.py" = "latency < 6 s"\n')
    deep = [("latency < 1 s", False), ("latency < 6 s", True), ("latency < 3 s", False), ("latency < 4 s", False)]
    assert configured(store, project / "deep" / "b.py") == deep[:3]
    assert configured_budgets(None, Path(), Settings(), None) == []


def test_thousands_of_budgets_are_found_in_one_pass(tmp_path: Path) -> None:
    lines = "".join(f'"{number}" = "x"\n' for number in range(4_000))
    (tmp_path / "rlm-lsp.toml").write_text(f"[budgets]\n{lines}")
    began = time.process_time()
    table = read_budgets(tmp_path)
    assert table is not None
    assert [mistake.span.start_line for mistake in table.malformed] == list(range(1, 4_001))
    assert time.process_time() - began < 3
