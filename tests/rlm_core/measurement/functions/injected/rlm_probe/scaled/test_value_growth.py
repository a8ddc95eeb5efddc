"""Values grow by a factor and stay what they are: types, order, distinctness, shape and references."""

from __future__ import annotations

import collections
import io
import math
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.measurement.functions.injected.rlm_probe.scaled.copies import clone, same
from rlm_core.measurement.functions.injected.rlm_probe.scaled.value_growth import (
    CannotGrowError,
    extended,
    size_of,
    ways_to_grow,
)

FACTORS = st.sampled_from([1, 2, 3, 10])
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)
CELLS = st.integers() | st.text(max_size=5) | st.booleans() | st.none()


class Span(NamedTuple):
    start: int
    end: int


class Item:
    def __init__(self, name: str, place: int) -> None:
        self.name, self.place = name, place


def first(value: Any, factor: int) -> Any:
    return next(ways_to_grow(value))(factor)


def every(value: Any, factor: int) -> list[Any]:
    grown = []
    for way in ways_to_grow(value):
        try:
            grown.append(way(factor))
        except CannotGrowError:
            continue
    return grown


def containers(value: Any) -> set[int]:
    """The identities of all that can change in a value."""
    if isinstance(value, (list, set, dict, collections.deque)):
        inner = value.values() if isinstance(value, dict) else value
        return {id(value)}.union(*(containers(one) for one in inner))
    return set().union(*(containers(one) for one in value)) if isinstance(value, tuple) else set()


@given(st.lists(CELLS, min_size=1, max_size=8) | st.lists(st.lists(CELLS, max_size=3), min_size=1, max_size=5), FACTORS)
def test_lists_grow_by_the_factor_and_share_nothing(values: list[Any], factor: int) -> None:
    before = clone(values)
    for grown in every(values, factor):
        assert type(grown) is list
        assert not containers(values) & containers(grown)
        assert {type(one) for one in grown} == {type(one) for one in values}
    assert len(next(iter(every(values, factor)))) in {
        len(values) * factor,
        max(len(values) + 1, round(len(values) * math.sqrt(factor))),
    }
    assert same(values, before)


@given(
    st.lists(st.integers(), min_size=2, max_size=9, unique=True) | st.lists(NUMBERS, min_size=2, unique=True), FACTORS
)
def test_sorted_numbers_stay_sorted_and_distinct(values: list[Any], factor: int) -> None:
    if len({type(one) for one in values}) > 1:
        return
    grown = extended(sorted(values), len(values) * factor)
    assert grown == sorted(grown)
    assert grown[: len(values)] == sorted(values)
    falling = extended(sorted(values, reverse=True), len(values) * factor)
    assert falling == sorted(falling, reverse=True)


def test_numbers_that_are_not_sorted_are_far_from_sorted_when_there_are_more() -> None:
    grown = next(ways_to_grow([3, 1, 2]))(1000)
    rising = sum(a < b for a, b in pairwise(grown))
    assert grown[:3] == [3, 1, 2]
    assert grown == next(ways_to_grow([3, 1, 2]))(1000)
    assert 0.45 < rising / len(grown) < 0.55


@given(st.lists(st.integers() | st.text(min_size=1, max_size=6), min_size=1, max_size=9, unique=True), FACTORS)
def test_distinct_values_stay_distinct(values: list[Any], factor: int) -> None:
    for kind in (int, str):
        chosen = [one for one in values if type(one) is kind]
        grown = extended(chosen, len(chosen) * factor) if chosen else []
        assert len(set(grown)) == len(chosen) * factor


@given(st.dictionaries(st.integers() | st.text(min_size=2, max_size=6), st.integers(), min_size=1, max_size=8), FACTORS)
def test_mappings_have_as_many_more_keys(value: dict[Any, int], factor: int) -> None:
    keys = list(value)
    if len({type(key) for key in keys}) > 1:
        return
    grown = first(value, factor)
    assert len(grown) == len(value) * factor
    assert set(value) <= set(grown)


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9), FACTORS)
def test_sets_of_cells_of_a_grid_grow(value: set[tuple[int, int]], factor: int) -> None:
    grown = first(value, factor)
    assert value <= grown
    assert len(grown) == len(value) * factor


@given(st.integers(2, 6), FACTORS)
def test_square_matrices_stay_square_and_others_rectangular(size: int, factor: int) -> None:
    square = [[row * size + column for column in range(size)] for row in range(size)]
    grown = first(square, factor)
    assert {len(row) for row in grown} == {len(grown)}
    assert len(grown) == max(size + 1, round(size * math.sqrt(factor)))
    grown = first([[1, 2, 3]] * size, factor) if size != 3 else [[1, 2, 3]]
    assert {len(row) for row in grown} == {3}


@given(st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4), min_size=2, max_size=9), FACTORS)
def test_graphs_refer_to_their_own_nodes_and_hang_together(graph: dict[int, list[int]], factor: int) -> None:
    graph = {node: [other for other in others if other in graph] for node, others in graph.items()}
    if not any(graph.values()):
        return
    grown = first(graph, factor)
    assert len(grown) == len(graph) * factor
    assert all(other in grown for others in grown.values() for other in others)
    edges = sum(map(len, graph.values())) * factor
    assert edges <= sum(map(len, grown.values())) <= edges + 2 * factor


def test_edges_lead_from_copy_to_copy() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
    grown = first(edges, 3)
    assert len(grown) == 12
    assert len({node for edge in grown for node in edge}) == 12


def test_rows_keep_their_columns() -> None:
    rows = [{"id": 1, "name": "ann", "on": True}, {"id": 2, "name": "bob", "on": True}]
    grown = first(rows, 10)
    assert [tuple(row) for row in grown] == [("id", "name", "on")] * 20
    assert [row["id"] for row in grown] == list(range(1, 21))
    assert len({row["name"] for row in grown}) == 20
    assert all(row["on"] is True for row in grown)


def test_instances_are_copied_with_distinct_names() -> None:
    items = [Item("a1", 1), Item("b2", 2)]
    grown = first(items, 3)
    assert len({one.name for one in grown}) == len({one.place for one in grown}) == 6
    assert not {id(one) for one in items} & {id(one) for one in grown}
    spans = first({Span(0, 2), Span(3, 4)}, 3)
    assert len(spans) == 6
    assert {type(one) for one in spans} == {Span}


def test_numbers_options_and_bounded_queues_have_no_size_to_grow() -> None:
    bounded = collections.deque([1], maxlen=3)
    values: list[Any] = [None, True, 3, 2.5, (1, 2), [], "", {}, bounded, "2024-01-02"]
    assert [every(value, 3) for value in values] == [[]] * len(values)


@pytest.mark.parametrize(
    "value", [(1, [2, 3]), {"items": [1, 2, 3], "name": "x", "on": True}, ["a title", [1, 2, 3]]], ids=repr
)
def test_records_can_grow_inside(value: Any) -> None:
    def total(one: Any) -> int:
        inner = one.values() if isinstance(one, dict) else one
        return sum(total(part) if isinstance(part, (list, tuple, dict)) else 1 for part in inner)

    assert any(len(grown) == len(value) and total(grown) > total(value) for grown in every(value, 3))


def test_iterators_ranges_and_files_grow() -> None:
    assert list(first(iter([1, 2]), 2)) == [1, 2, 3, 4]
    assert first(range(2, 8, 2), 3) == range(2, 20, 2)
    grown = first(io.StringIO("a\nb\n"), 3)
    assert grown.read() == "a\nb\n" * 3
    assert size_of(grown) == 12


def test_arrays_grow_along_their_first_axis_or_stay_square() -> None:
    numpy = pytest.importorskip("numpy")
    assert first(numpy.arange(4), 3).tolist() == list(range(12))
    assert first(numpy.ones((2, 3), dtype="float32"), 4).shape == (8, 3)
    grown = first(numpy.eye(4), 9)
    assert (grown.shape, grown.dtype) == ((12, 12), numpy.dtype("float64"))
