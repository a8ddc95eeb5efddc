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


def test_an_unknown_alternative_takes_away_what_is_certain() -> None:
    named = Value("unknown", name="items")
    empty = joined([(0.25, Value("list", size=constant(0))), (0.75, named)])
    assert empty.kind == "list"
    assert empty.truth is None
    assert empty.size is not None
    assert empty.size.evaluate(lambda name: 100) == (0, 75, 100)
    assert joined([(0.5, Value("list", size=constant(3))), (0.5, UNKNOWN)]).size is None
    number = joined([(0.5, literal(10)), (0.5, Value("unknown", name="n"))]).number
    assert number is not None
    assert number.evaluate(lambda name: 100) == (0, 55, 110)


def test_what_a_key_holds_may_be_something_else_later() -> None:
    entries = any_entries(Entries((("a", literal(1)), ("b", NONE), ("c", Value("list", size=constant(3))))))
    values = dict(entries.pairs)
    assert not values["a"].known
    assert values["b"] is UNKNOWN
    assert values["c"].size == constant(3)
