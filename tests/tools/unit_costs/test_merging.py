"""Tables of two machines are joined at the scale of the first."""

from __future__ import annotations

import pytest

from tools.unit_costs.entries import Entry
from tools.unit_costs.measuring import Cost
from tools.unit_costs.merging import merged

ENTRIES = [Entry(name, "pass", sizes=(1, 10, 1000)) for name in ("a", "b", "c", "d", "e")]


def cost(fixed: float, each: float = 0.0) -> Cost:
    return {"fixed": fixed, "each": each, "law": "n"}


def test_a_machine_that_is_slower_throughout_changes_nothing() -> None:
    first = {"a": cost(1e-8), "b": cost(2e-8, 3e-9), "c": cost(0.0, 5e-9)}
    slower = {name: cost(3 * float(one["fixed"]), 3 * float(one["each"])) for name, one in first.items()}
    assert merged(first, slower, ENTRIES) == first


def test_where_they_differ_the_mean_counts() -> None:
    first = {"a": cost(1e-8), "b": cost(1e-8), "c": cost(4e-8)}
    second = {"a": cost(1e-8), "b": cost(1e-8), "c": cost(1e-8)}
    assert merged(first, second, ENTRIES)["c"]["fixed"] == pytest.approx(2e-8)


def test_a_cost_of_one_table_is_kept_at_the_scale_of_the_first() -> None:
    first = {"a": cost(1e-8), "b": cost(1e-8), "d": cost(7e-8)}
    second = {"a": cost(2e-8), "b": cost(2e-8), "e": cost(8e-8)}
    joined = merged(first, second, ENTRIES)
    assert (joined["d"]["fixed"], joined["e"]["fixed"]) == (7e-8, 4e-8)


def test_a_cost_without_a_fixed_part_gets_none() -> None:
    first, second = {"a": cost(1e-8), "c": cost(0.0, 5e-9)}, {"a": cost(1e-8), "c": cost(4e-6, 5e-9)}
    assert merged(first, second, ENTRIES)["c"]["fixed"] == 0
