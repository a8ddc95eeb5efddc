"""Costs in the tables: their snippets are read, and measured numbers are written back without other changes."""

from __future__ import annotations

import pytest
from rlm_core.cost.library.statements import FOLDER, Statement, TableError
from rlm_core.cost.library.unit_costs import table

from tools.unit_costs.entries import all_entries, entry, written


def _statement(text: str) -> Statement:
    return Statement("test.txt", 3, (), text)


def test_clauses_describe_a_measurement() -> None:
    text = 'cost a.b = 1e-08 + 2e-09 * n log n | run "x = 1\\n" T | after T | minus "y" | at 1 20 | unroll 4 | per 1000'
    found = entry(_statement(text), {"T": "z = 2"})
    assert (found.name, found.law, found.setup, found.baseline) == ("a.b", "n log n", "z = 2", "y")
    assert (found.sizes, found.unroll, found.per) == ((1, 20), 4, 1000)
    assert found.texts(5) == ("x = 1\nz = 2", "y")


def test_a_snippet_may_be_made_of_its_size() -> None:
    assert entry(_statement("cost a = 1 | make \"'x' * n\""), {}).texts(3)[0] == "xxx"


@pytest.mark.parametrize("clauses", ['| ran "x"', "| run missing", "", '| run "x" | at many'])
def test_a_mistake_is_named_with_its_line(clauses: str) -> None:
    with pytest.raises(TableError, match=r"^test\.txt:3: "):
        entry(_statement(f"cost a = 1 {clauses}".strip()), {})


def test_writing_the_known_costs_changes_nothing() -> None:
    costs = {
        entry.name: {"fixed": table()[entry.name].fixed, "each": table()[entry.name].each} for entry in all_entries()
    }
    assert len(costs) > 400
    for path in FOLDER.glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        assert written(text, costs) == text


def test_changed_costs_replace_those_of_the_same_name() -> None:
    text = 'cost a = 1.0 + 2.0 * n log n | run "x"\ncost a.b = 3.0\n    | run "cost a = 5"\nlet A = "cost a = 7"\n'
    other = {"a": {"fixed": 4.0, "each": 0.5}, "a.b": {"fixed": 6.0, "each": 0.0}}
    assert written(text, other) == (
        'cost a = 4.0 + 0.5 * n log n | run "x"\ncost a.b = 6.0\n    | run "cost a = 5"\nlet A = "cost a = 7"\n'
    )
