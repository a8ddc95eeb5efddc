"""Loop transitions."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.bounds.loop_transitions import (
    between,
    kept_size,
    moved_by,
    multiplied_sizes,
    powers,
    rebound_names,
    shell_growth,
    up_to,
    uses,
)
from rlm_core.cost.domain.quantities import ZERO, constant
from rlm_core.cost.domain.values import Value, literal

NUMBERS = st.integers(-50, 50)


@given(NUMBERS, NUMBERS, st.integers(1, 60))
def test_a_number_in_trips_that_move_it_is_their_mean_and_range(start: int, step: int, trips: int) -> None:
    values = [start + step * trip for trip in range(trips)]
    found = between(constant(start), constant(step), constant(trips))
    assert found is not None
    low, likely, high = found.constant or (0.0, 0.0, 0.0)
    assert (low, high) == (min(values), max(values))
    assert likely == pytest.approx(sum(values) / trips)


@given(NUMBERS, NUMBERS, st.integers(0, 60))
def test_after_the_trips_it_has_moved_that_often(start: int, step: int, trips: int) -> None:
    found = moved_by(constant(start), constant(step), constant(trips))
    assert found is not None
    assert (found.exact or 0.0) == start + step * trips


def test_no_more_items_are_added_than_there_are() -> None:
    assert up_to(constant(30), constant(2), constant(100)).exact == 15
    assert up_to(constant(30), constant(2), constant(10)).exact == 10


def test_a_container_that_drops_items_keeps_its_size() -> None:
    window = Value("deque", size=constant(3), most=50)
    assert kept_size(window, constant(20)) == constant(20)
    assert kept_size(window, constant(20_000)) == constant(50)
    assert kept_size(Value("deque"), constant(20_000)) == constant(20_000)


def test_a_list_that_grows_takes_its_table() -> None:
    grown = shell_growth("list", ZERO, constant(1000)).exact
    assert grown is not None
    assert 8_000 < grown < 10_000


def test_names_that_get_another_size_are_a_range() -> None:
    before, after = {"a": literal("x"), "b": literal(1)}, {"a": literal("xxxx"), "b": literal(1)}
    assert rebound_names(before, after, ["a", "b"], constant(10)).keys() == {"a"}


@pytest.mark.parametrize(
    ("line", "used"),
    [("total += len(items)", True), ("items.append(a)", False), ("total += items[0]", False), ("f(items)", True)],
)
def test_whether_the_size_of_a_name_may_matter(line: str, used: bool) -> None:
    assert uses(ast.parse(f"for a in x:\n    {line}").body[0], {"items"}) is used


def of_size(kind: str, size: float) -> dict[str, Value]:
    return {"x": Value(kind, size=constant(size))}


@pytest.mark.parametrize(
    ("sizes", "factor"),
    [((1, 2, 6, 12), 2), ((2, 6, 10, 30), 3), ((1, 2, 6, 7), None), ((0, 1, 6, 12), None), ((4, 5, 8, 10), None)],
)
def test_a_list_that_each_trip_multiplies_is_recognized(sizes: tuple[int, ...], factor: float | None) -> None:
    lists = [of_size("list", size) for size in sizes]
    assert multiplied_sizes(*lists) == ({} if factor is None else {"x": factor})
    # What is in a set twice is there once.
    assert not multiplied_sizes(*(of_size("set", size) for size in sizes))


@given(st.integers(1, 5), st.integers(2, 4), st.integers(1, 10))
def test_sizes_that_are_multiplied_add_up_as_a_geometric_series(size: int, factor: int, trips: int) -> None:
    average, last = powers(constant(size), float(factor), constant(trips))
    assert last.exact == pytest.approx(size * factor**trips)
    total = sum(size * factor**trip for trip in range(trips))
    assert (average.exact or 0) * trips == pytest.approx(total, rel=1.01)
