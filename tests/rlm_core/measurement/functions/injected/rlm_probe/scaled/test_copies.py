"""Copies are deep, share what the original shares, and are the same until one is changed."""

from __future__ import annotations

import collections
import functools
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.measurement.functions.injected.rlm_probe.scaled.copies import clone, same

VALUES = st.recursive(
    st.integers() | st.text(max_size=4) | st.floats() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.integers(), inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(collections.deque)
    ),
    max_leaves=15,
)


class Stack:
    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.push = items.append

    def size(self) -> int:
        return len(self.items)


@given(VALUES)
def test_a_copy_is_the_same_value(value: Any) -> None:
    assert same(value, clone(value))
    assert same(clone(value), value)


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_a_change_of_a_copy_is_seen_and_leaves_the_original(values: list[Any]) -> None:
    before = repr(values)
    copied = clone(values)
    copied.append(1)
    assert not same(values, copied)
    assert repr(values) == before


def test_what_refers_to_a_part_refers_to_the_copy_of_it() -> None:
    stack = Stack([1])
    copied, size = clone([stack, stack.size])
    copied.push(2)
    assert (copied.items, size(), stack.items) == ([1, 2], 2, [1])
    assert not same([stack], [copied])
    part, items = clone([functools.partial(sorted, stack.items), stack.items])
    items.insert(0, 5)
    assert part() == [1, 5]


@pytest.mark.parametrize(
    "value",
    [bytearray(b"ab"), io.StringIO("ab"), io.BytesIO(b"ab"), iter([1, 2]), {1, 2}],
    ids=lambda one: type(one).__name__,
)
def test_other_values_that_change_are_copied(value: Any) -> None:
    copied = clone(value)
    assert same(value, copied)
    if isinstance(copied, bytearray):
        copied.append(1)
    elif isinstance(copied, set):
        copied.add(3)
    else:
        next(copied)
    assert not same(value, copied)


def test_a_table_is_copied_with_its_columns() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    copy = clone(table)
    assert same(copy, table)
    copy["a"] = 0
    assert not same(copy, table)
    assert list(table["a"]) == [1, 2]
