"""The state of the analysis: names, memory that names hold, regions, the budget, and joined values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.quantities import ONE, ZERO, constant, of_size
from rlm_core.cost.domain.values import NONE, UNKNOWN, Value, literal
from rlm_core.cost.frames import (
    SAMPLES,
    Frame,
    Loop,
    LoopVariable,
    State,
    TooComplex,
    joined,
    restore_points,
    table_of,
)
from rlm_core.cost.scope import Texts


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1000)), max_size=20))
def test_names_hold_the_memory_of_their_values(bindings: list[tuple[str, int]]) -> None:
    frame, held = Frame(Texts()), {}
    for name, size in bindings:
        frame.bind(name, Value("list", bytes=constant(size)))
        held[name] = size
    assert frame.held.evaluate(lambda name: 0) == (sum(held.values()),) * 3


def test_names_are_looked_up_in_enclosing_functions() -> None:
    outer = Frame(Texts(), names={"a": literal(1), "b": literal(2)})
    inner = Frame(Texts(), names={"b": literal(3)}, parent=outer)
    assert [inner.lookup(name) for name in "abc"] == [literal(1), literal(3), None]


def test_a_region_is_apart_until_it_is_added() -> None:
    state = State(Texts(), 100)
    outer = state.meter
    outer.reach = (0.0, 0.5, 1.0)
    with state.region() as meter:
        assert state.meter is meter
        assert state.path == (0.0, 0.5, 1.0)
        meter.spend(4)
    assert state.meter is outer
    assert state.path == (1, 1, 1)
    assert outer.total == ZERO
    outer.add(meter)
    assert outer.total.evaluate(lambda name: 0) == (0, 2, 4)


def test_a_region_ends_with_an_error_too() -> None:
    state = State(Texts(), 100)
    outer = state.meter
    with pytest.raises(ValueError, match="inside"), state.region():
        raise ValueError("inside")
    assert state.meter is outer


@given(st.integers(0, 50))
def test_the_budget_ends_an_analysis(budget: int) -> None:
    state = State(Texts(), budget)
    for _ in range(budget):
        state.step()
    with pytest.raises(TooComplex):
        state.step()


def test_unknown_sizes_are_named_after_what_they_are() -> None:
    state = State(Texts(), 1)
    assert state.length(Value("list", size=constant(3))) == constant(3)
    assert state.length(Value("unknown", name="items")).names == {"items"}
    assert state.length(UNKNOWN).names == {"?0"}


def test_the_largest_block_is_a_table_without_its_items() -> None:
    state = State(Texts(), 1)
    state.hold(Value("list", size=constant(1000), bytes=constant(50_000)))
    assert state.largest_block.exact == 8056
    assert state.meter.peak.exact == 50_000
    assert table_of(Value("list", size=of_size("n"))) == ZERO


@given(st.lists(st.tuples(st.floats(0.1, 1), st.integers(-100, 100)), min_size=1, max_size=6))
def test_joined_numbers_span_all_of_them(branches: list[tuple[float, int]]) -> None:
    value = joined([(share, literal(number)) for share, number in branches])
    numbers = [number for _, number in branches]
    assert value.number is not None
    low, likely, high = value.number.evaluate(lambda name: 0)
    assert (low, high) == (min(numbers), max(numbers))
    assert low - 1e-9 <= likely <= high + 1e-9
    assert value.known is (len(set(numbers)) == 1)


def test_values_of_different_kinds_are_unknown_unless_one_is_none() -> None:
    assert joined([(0.5, literal(1)), (0.5, literal("a"))]).kind == "unknown"
    optional = joined([(0.5, NONE), (0.5, literal(3))])
    assert optional.kind == "int"
    assert joined([(0.5, literal(True)), (0.5, literal(1))]).kind == "unknown"
    same = literal(3)
    assert joined([(0.5, same), (0.5, same)]) is same


@given(st.integers(1, 10**12), st.integers(-100, 100), st.integers(1, 9))
def test_samples_of_a_loop_are_its_iterations(count: int, start: int, step: int) -> None:
    variable = LoopVariable("i", start, step, count)
    variable.restart()
    points = list(variable.points)
    assert points == sorted(set(points))
    assert len(points) == min(count, SAMPLES)
    assert 0 <= points[0] <= points[-1] < count
    assert variable.is_sampled is (count > SAMPLES)
    assert variable.at(points[-1]).constant == start + step * points[-1]


def test_restored_points_are_those_of_the_loops_around() -> None:
    variable = LoopVariable("i", 0, 1, 10)
    variable.restart()
    frame = Frame(Texts(), loops=[Loop(), Loop(variable)])
    entered = frame.points()
    variable.points = [1]
    restore_points(entered)
    assert list(variable.points) == list(range(10))
    assert ONE.exact == 1
