"""Sizes on the command line: listed with their sources, written to be filled in, and in predictions and budgets."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rlm_lsp.cli.app import app

from tests.sized_functions import NAMES

pytestmark = pytest.mark.timeout(120)

CART = '''"""Carts."""


def total(orders: list[float]) -> float:
    return sum(order * 1.2 for order in orders)


def duplicates(orders: list[int], paid: list[int]) -> int:
    found = 0
    for order in orders:
        for other in paid:
            if order == other:
                found += 1
    return found


def send(orders: list[str]) -> None:
    for order in orders:
        fetch(order)


def version() -> str:
    return "1"
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in a project, which is the working directory."""
    package = tmp_path / "src" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "cart.py").write_text(CART)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def rows(*arguments: str) -> dict[str, dict[str, Any]]:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return {f"{row['qualname']}.{row.get('metric', '')}".rstrip("."): row for row in json.loads(result.stdout)}


def give(project: Path, table: str) -> None:
    (project / "pyproject.toml").write_text(f'[project]\nname = "shop"\n\n[tool.rlm-lsp.sizes]\n{table}\n')


def test_inputs_are_listed_with_their_values_and_sources(project: Path) -> None:
    give(project, 'orders = 5_000\n"shop.cart.duplicates" = { paid = "2k" }')
    listed = rows("sizes")
    assert list(listed) == ["duplicates", "total", "send"]  # the most expensive first
    assert listed["duplicates"]["name"] == "shop.cart.duplicates"
    assert listed["duplicates"]["inputs"] == [
        {"name": "orders", "value": 5000.0, "source": "settings", "rule": "orders"},
        {"name": "paid", "value": 2000.0, "source": "settings", "rule": "shop.cart.duplicates"},
    ]
    table = run("sizes", "src").stdout.splitlines()
    assert table[0].split() == ["WHERE", "UNIT", "LATENCY", "(80", "%", "BAND)", "INPUT", "SIZE", "FROM"]
    assert "duplicates" in table[1]
    assert "from the settings (orders)" in table[1]
    assert "paid" in table[2]


def test_calls_in_the_project_give_sizes(project: Path) -> None:
    calls = "from shop.cart import send, total\n\ntotal([1.0] * 5000)\ntotal([1.0] * 200)\nsend(list(range(2_000)))\n"
    (project / "run.py").write_text(calls)
    listed = rows("sizes", "src")
    assert listed["total"]["inputs"] == [
        {
            "name": "orders",
            "value": 5000.0,
            "source": "calls",
            "rule": "module run",
            "calls": {"fixed": 2, "all": 2, "least": 200.0, "most": 5000.0},
        }
    ]
    table = run("sizes", "src").stdout
    assert "orders  5k    from 2 calls, 200–5k (module run)" in table
    assert "orders  2k    from a call (module run)" in table
    row = rows("predict", "src")["total.latency"]
    assert (row["holds_for"], row["sizes"]["orders"]["calls"]["fixed"]) == ("given sizes", 2)
    # Only an input that nothing gives is left to fill in.
    run("sizes", "--write", "src")
    assert "shop.cart.duplicates" in (project / "pyproject.toml").read_text()
    assert "shop.cart.total" not in (project / "pyproject.toml").read_text()


def test_the_table_is_written_filled_in_and_used(project: Path) -> None:
    before = (project / "pyproject.toml").read_text()
    result = run("sizes", "--write")
    assert result.exit_code == 0
    assert "3 lines added to [tool.rlm-lsp.sizes]" in result.stdout
    written = (project / "pyproject.toml").read_text()
    assert written.startswith(before)
    assert tomllib.loads(written)["tool"]["rlm-lsp"]["sizes"] == {}
    # Nothing changes until a line is filled in.
    assert rows("predict")["total.latency"]["holds_for"] == "small inputs"
    line = '# "shop.cart.total" = { orders = "?" }'
    assert line in written
    (project / "pyproject.toml").write_text(written.replace(line, '"shop.cart.total" = { orders = "10k" }'))
    row = rows("predict")["total.latency"]
    assert (row["holds_for"], row["sizes"]["orders"]["value"]) == ("given sizes", 10_000)
    assert row["median"] > 50 * row["small_inputs"]["median"]
    assert "nothing to add to [tool.rlm-lsp.sizes]" in run("sizes", "--write").stdout


def test_a_prediction_is_at_the_sizes_of_the_settings(project: Path) -> None:
    small = rows("predict", "src")
    give(project, '"src/**/*.py" = { orders = "10k", paid = 100 }')
    given = rows("predict", "src")
    assert {row["holds_for"] for row in small.values()} <= {"small inputs", "all inputs"}
    assert given["duplicates.latency"]["small_inputs"]["median"] == small["duplicates.latency"]["median"]
    assert given["send.latency"]["bound"]["calls"] == {"fetch()": 10_000}
    text = run("predict", "src").stdout
    assert "× fetch()" in text
    assert "at orders=10k paid=100 from the settings (src/**/*.py)" in text
    # The answers that are kept on the disk are for the settings that they were made with.
    give(project, 'orders = "20k"')
    assert rows("predict", "src")["total.latency"]["sizes"]["orders"]["value"] == 20_000


def test_a_budget_at_a_size_that_is_exceeded_fails_the_check(project: Path) -> None:
    cart = project / "src" / "shop" / "cart.py"
    budget = "# rlm: latency < 50 ms at orders=10k paid=10k\n"
    cart.write_text(CART.replace("def duplicates", f"{budget}def duplicates"))
    result = run("check", "src")
    assert result.exit_code == 1
    shown = " ".join(result.stdout.split())
    assert "latency of duplicates at orders=10k paid=10k is predicted to exceed its budget of 50 ms" in shown
    cart.write_text(CART.replace("def duplicates", f"{budget.replace('10k', '100')}def duplicates"))
    assert run("check", "src").exit_code == 0


def test_a_budget_that_a_bound_exceeds_fails_and_one_that_nothing_supports_is_reported(project: Path) -> None:
    cart = project / "src" / "shop" / "cart.py"
    cart.write_text(CART.replace("def send", "# rlm: latency < 1 µs at orders=10k\ndef send"))
    shown = " ".join(run("check", "src").stdout.split())
    assert "latency of send at orders=10k exceeds its budget of 1 µs (over 99 % probability): ≥" in shown
    assert "10k × fetch()" in shown
    cart.write_text(CART.replace("def send", "# rlm: latency < 1 s at orders=10k\ndef send"))
    result = run("check", "src")
    assert result.exit_code == 0
    assert "1 prediction missing: nothing supports a number at orders=10k for send" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("budget", "part"),
    [
        ("latency < 1 ms at orders=many", "many` is not a size"),
        ("latency < 1 ms at other=3", "the cost does not depend on the size of other; it depends on orders"),
    ],
)
def test_a_budget_with_a_wrong_size_is_malformed(project: Path, budget: str, part: str) -> None:
    cart = project / "src" / "shop" / "cart.py"
    cart.write_text(CART.replace("def total", f"# rlm: {budget}\ndef total"))
    result = run("check", "src")
    assert part.replace("`", "") in " ".join(result.stdout.split()).replace("`", "")
    assert "malformed-budget" in result.stdout


def test_a_configured_budget_at_sizes_is_for_functions_with_these_inputs(project: Path) -> None:
    table = '[tool.rlm-lsp.budgets]\n"src/**/*.py" = "latency < 1 ms at orders=10k paid=10k"\n'
    (project / "pyproject.toml").write_text(table)
    result = run("check", "src")
    assert result.exit_code == 1
    assert result.stdout.count("over-budget") == 1
    assert "duplicates" in result.stdout


def test_a_file_that_cannot_be_read_makes_the_status_2(project: Path) -> None:
    assert run("sizes", "missing.py").exit_code == 2


def test_a_number_at_sizes_that_the_text_does_not_fix_is_marked_and_checked(project: Path) -> None:
    names = project / "src" / "shop" / "names.py"
    names.write_text(f"# rlm: sizes orders=100\n{NAMES}")
    result = run("predict", str(names))
    assert "latency predicted at orders=100 from a comment (line 1)" in result.stdout
    row = rows("predict", str(names))["names.latency"]
    assert (row["evidence"], row["holds_for"], row["source"]) == ("predicted", "given sizes", "predicted")
    assert row["small_inputs"]["median"] < row["median"] < row["high"]
    assert rows("predict", str(names))["names.memory"]["evidence"] is None
    for limit, status in (("1 ns", 1), ("1 s", 0)):
        names.write_text(f"# rlm: latency < {limit} at orders=100\n{NAMES}")
        result = run("check", str(names))
        assert result.exit_code == status, result.output
        assert ("latency of names at orders=100 is predicted to exceed" in result.stdout) is bool(status)
        assert "nothing supports a number" not in result.output


WAITING = "def load(session, users):\n    for user in users:\n        session.refresh(user)\n"


def test_predictions_include_waits_of_a_given_length(project: Path) -> None:
    (project / "wait.py").write_text(f"{WAITING}\n\ndef one(session, user):\n    session.refresh(user)\n")
    before = rows("predict", "wait.py")
    give(project, 'users = 200\n\n[tool.rlm-lsp.waits]\ndatabase = "10 ms"')
    after = rows("predict", "wait.py")
    assert before["one.latency"]["median"] < 0.005
    assert 0.01 < after["one.latency"]["median"] < 0.015
    assert before["one.latency"]["waits"][0]["each"] is None
    assert after["one.latency"]["waits"][0]["each"] == 0.01
    assert after["load.latency"]["bound"]["least"] >= 2
    assert "waits: 10 ms database" in run("predict", "wait.py").stdout
