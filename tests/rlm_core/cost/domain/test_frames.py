"""Names of functions, the memory that they hold, and the iterations of loops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.frames import SAMPLES, Frame, Loop, LoopVariable, restore_points
from rlm_core.cost.domain.quantities import ONE, constant
from rlm_core.cost.domain.values import Value, literal
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
