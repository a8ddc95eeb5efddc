"""Operations of a trial pay for what they look at."""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.source.work.trial.values import (
    MOST_ITEMS,
    Budget,
    Refused,
    Spent,
    compare,
    in_order,
    items_of,
    metered,
    operate,
    weigh,
)

NUMBERS = st.integers(-50, 50) | st.floats(-50, 50)
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip


def _result(op: type[ast.operator], left: Any, right: Any) -> Any:
    try:
        return OPERATORS[op](left, right)
    except Exception as error:
        return type(error)


@given(st.sampled_from(list(OPERATORS)), NUMBERS, NUMBERS)
def test_operations_on_numbers_are_those_of_python(op: type[ast.operator], left: Any, right: Any) -> None:
    expected = _result(op, left, right)
    try:
        found = operate(op, left, right, Budget(100))
    except Refused:
        assert isinstance(expected, (complex, type))
        return
    except Exception as error:
        found = type(error)
    assert found == expected or expected != expected


@given(st.sampled_from(["+", "*"]), st.lists(st.integers(), max_size=5), st.lists(st.integers(), max_size=5))
def test_operations_on_lists_are_those_of_python(sign: str, left: list[int], right: list[int]) -> None:
    if sign == "+":
        assert operate(ast.Add, left, right, Budget(100)) == left + right
    else:
        assert operate(ast.Mult, left, len(right), Budget(100)) == left * len(right)


def test_what_repeats_in_a_value_is_paid_for_each_time() -> None:
    value: Any = []
    for _ in range(40):
        value = [value, value]
    with pytest.raises(Spent):
        weigh(value, Budget(10_000))
    with pytest.raises(Spent):
        compare(ast.Eq, value, value, Budget(10_000))


def test_a_long_flat_value_costs_little() -> None:
    budget = Budget(1000)
    weigh(list(range(1000)), budget)
    assert 1000 - budget.left < 200


def test_a_consumer_of_an_endless_iterator_is_stopped() -> None:
    with pytest.raises(Spent):
        list(metered(itertools.count(), Budget(10)))
    with pytest.raises(Spent):
        list(metered(itertools.count(), Budget(10**9)))


def test_a_result_has_a_largest_size() -> None:
    with pytest.raises(Refused):
        operate(ast.Mult, ["ab"], 2 * MOST_ITEMS, Budget(10**9))
    with pytest.raises(Refused):
        operate(ast.Pow, 10, 1_000_000, Budget(10**9))


@pytest.mark.parametrize("value", [object(), 1, None, len])
def test_only_iterables_of_python_are_iterated(value: Any) -> None:
    with pytest.raises(Refused):
        items_of(value, Budget(1))


def test_the_order_of_a_set_is_the_same_in_each_run() -> None:
    assert in_order({"b", "c", "a"}) == ["a", "b", "c"]
    assert list(items_of(frozenset({"b", b"a"}), Budget(10))) == [b"a", "b"]
    assert sorted(in_order({(1, 2), (0, 5)})) == [(0, 5), (1, 2)]
    unordered: list[set[Any]] = [{None, 1}, {object()}, {("a", 1)}, {frozenset()}]
    for items in unordered:
        with pytest.raises(Refused):
            in_order(items)
