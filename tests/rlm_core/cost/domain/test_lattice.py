"""Joined and widened values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.lattice import any_entries, joined
from rlm_core.cost.domain.quantities import constant
from rlm_core.cost.domain.values import NONE, UNKNOWN, Entries, Value, literal


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


def test_what_a_key_holds_may_be_something_else_later() -> None:
    entries = any_entries(Entries((("a", literal(1)), ("b", NONE), ("c", Value("list", size=constant(3))))))
    values = dict(entries.pairs)
    assert not values["a"].known
    assert values["b"] is UNKNOWN
    assert values["c"].size == constant(3)
