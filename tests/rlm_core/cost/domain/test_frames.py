"""Names of functions, and the memory that they hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.frames import Frame
from rlm_core.cost.domain.quantities import constant
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
