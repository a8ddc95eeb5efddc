"""Sizes in the settings: which entries apply to a file, and the table that is written to be filled in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest
from rlm_core import DataError
from rlm_core.queries.function_sizes import NO_RULES, SizeRules
from rlm_core.types import SizeValue, WaitKind
from rlm_lsp.settings.model import Settings
from rlm_lsp.settings.project import BudgetTables, ProjectSettings
from rlm_lsp.settings.resolve import SettingsSource, resolve
from rlm_lsp.settings.size_table import SizeTableFile, UnknownSizes
from rlm_lsp.settings.sizes import is_glob, project_rules, size_rules, without_sizes

PYPROJECT = '# ours\n[project]\nname = "shop"  # the name\n\n[tool.ruff]\nline-length = 100\n'
TOTAL = UnknownSizes("shop.cart.total", {"orders": None, "rows[]": 12.4}, "src/shop/cart.py:4")
LINE = '# "shop.cart.total" = { orders = "?", "rows[]" = 12 }  # src/shop/cart.py:4'


def settings(sizes: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    found, problems = resolve([SettingsSource("test", {"sizes": sizes})])
    return found, [problem.text for problem in problems]


def test_an_entry_is_a_size_or_a_table_of_sizes() -> None:
    found, problems = settings({"orders": "10k", "n": 5, "src/*.py": {"rows[]": "2**10"}, "total": {"orders": 1.5e6}})
    assert not problems
    assert found.sizes == {"orders": 1e4, "n": 5.0, "src/*.py": {"rows[]": 1024.0}, "total": {"orders": 1.5e6}}


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        ({"orders": "?"}, "`?` is not a size"),
        ({"orders": True}, "must be a size"),
        ({"orders": -1}, "must be a size from 0"),
        ({"src/*.py": 5}, "is not the name of an input"),
        ({"total": {"or ders": 5}}, "is not the name of an input"),
    ],
)
def test_what_is_not_a_size_is_a_problem(entry: Mapping[str, Any], part: str) -> None:
    found, [problem] = settings(entry)
    assert part in problem
    assert not found.sizes


def test_a_function_takes_precedence_over_a_glob_and_a_glob_over_a_name() -> None:
    found, _ = settings({"orders": 1, "src/*.py": {"orders": 2}, "other/*": {"orders": 9}, "shop.total": {"orders": 3}})
    rules = size_rules(found, PurePath("src/a.py"))
    assert rules.of("shop", "total")["orders"] == SizeValue("orders", 3.0, "settings", "shop.total")
    assert rules.of("shop", "f")["orders"] == SizeValue("orders", 2.0, "settings", "src/*.py")
    assert size_rules(found, PurePath("lib/a.py")).of("x", "f")["orders"].value == 1.0
    assert size_rules(settings({})[0], PurePath("a.py")) is NO_RULES


def test_a_key_with_a_path_or_a_star_is_a_glob() -> None:
    assert all(map(is_glob, ("src/**/*.py", "a.py", "*", "src/shop")))
    assert not any(map(is_glob, ("shop.cart.total", "total", "Cart.total")))


def test_the_nearest_configuration_of_a_project_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rlm-lsp.sizes]\n"src/*.py" = { orders = "10k" }\n')
    (tmp_path / "src").mkdir()
    rules = project_rules(ProjectSettings(BudgetTables(), {}), tmp_path / "src" / "a.py")
    assert rules.of("", "f")["orders"].value == 10_000
    assert project_rules(ProjectSettings(BudgetTables(), {}), None) is NO_RULES


def test_the_table_is_added_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(PYPROJECT)
    file = SizeTableFile.above(tmp_path)
    assert (file.path, file.section) == (path, "tool.rlm-lsp.sizes")
    assert file.add([TOTAL]) == 1
    written = path.read_text()
    assert written.startswith(PYPROJECT)
    assert written.endswith(f"{LINE}\n")
    assert tomllib.loads(written)["tool"]["rlm-lsp"]["sizes"] == {}
    assert not resolve([SettingsSource("test", tomllib.loads(written)["tool"]["rlm-lsp"])])[1]


def test_lines_that_are_there_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(PYPROJECT)
    SizeTableFile(path).add([TOTAL])
    filled = path.read_text().replace(LINE, '"shop.cart.total" = { orders = "10k", "rows[]" = 12 }')
    path.write_text(filled)
    other = UnknownSizes("shop.other", {"n": None}, "a.py:1")
    assert SizeTableFile(path).add([TOTAL, other]) == 1
    assert SizeTableFile(path).add([TOTAL, other]) == 0
    assert path.read_text() == filled + '# "shop.other" = { n = "?" }  # a.py:1\n'
    assert tomllib.loads(path.read_text())["tool"]["rlm-lsp"]["sizes"] == {
        "shop.cart.total": {"orders": "10k", "rows[]": 12}
    }


def test_other_settings_and_tables_after_it_stay(tmp_path: Path) -> None:
    path = tmp_path / "rlm-lsp.toml"
    path.write_text('label = "median"\n\n[sizes]\nn = 5 # five\n\n[budgets]\n"*.py" = "latency < 1 ms"\n')
    file = SizeTableFile.above(tmp_path / "a.py")
    assert (file.path, file.section) == (path, "sizes")
    file.add([TOTAL])
    text = path.read_text()
    assert tomllib.loads(text) == {"label": "median", "sizes": {"n": 5}, "budgets": {"*.py": "latency < 1 ms"}}
    assert text.index("n = 5 # five") < text.index(LINE) < text.index("[budgets]")


def test_a_project_without_a_configuration_gets_a_file(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    file = SizeTableFile.above(tmp_path / "src")
    assert file.path == tmp_path / "rlm-lsp.toml"
    file.add([TOTAL])
    assert LINE in file.path.read_text()


@pytest.mark.parametrize(
    ("text", "part"),
    [("[sizes\n", "is not valid TOML"), ("sizes = 3\n", "sizes is not a table; write it as a table first")],
)
def test_a_file_that_cannot_be_added_to_stays_as_it_is(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "rlm-lsp.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=part):
        SizeTableFile(path).add([TOTAL])
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("above", "below"),
    [("", ""), ('[project]\nname = "x"\n\n', ""), ("[tool.rlm-lsp]\n\n", "\n[tool.other]\na = 1\n")],
)
def test_a_new_table_is_set_apart_from_others(tmp_path: Path, above: str, below: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(above.removesuffix("\n") + below)
    assert SizeTableFile(file).add([UnknownSizes("shop.total", {"orders": None}, "shop.py:1")]) == 1
    written = file.read_text()
    assert written.startswith(f"{above}[tool.rlm-lsp.sizes]\n")
    assert written.rstrip("\n").endswith(f'# "shop.total" = {{ orders = "?" }}  # shop.py:1\n{below}'.rstrip("\n"))
    assert "\n\n\n" not in written


def test_lengths_of_waits_are_seconds_by_what_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rlm-lsp.waits]\ndatabase = "1 ms"\nnetwork = "0.5 s"\n')
    rules = project_rules(ProjectSettings(BudgetTables(), {}), tmp_path / "a.py")
    assert rules.wait_lengths == {WaitKind.DATABASE: pytest.approx(0.001), WaitKind.NETWORK: 0.5}
    assert without_sizes(rules).wait_lengths == rules.wait_lengths
    assert not without_sizes(SizeRules({"orders": (1.0, "orders")})).by_name


@pytest.mark.parametrize(
    ("table", "part"),
    [({"database": 5}, "a unit"), ({"queue": "1 ms"}, "its entries are"), ({"time": "1 s"}, "no entry `time`")],
)
def test_what_is_not_the_length_of_a_wait_is_a_problem(table: Mapping[str, Any], part: str) -> None:
    found, problems = resolve([SettingsSource("test", {"waits": table})])
    assert part in str(problems[0])
    assert not found.waits
