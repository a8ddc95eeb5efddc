"""The state of an analysis: regions, the budget, and memory in use."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.context import Context, TooComplex, table_of
from rlm_core.cost.domain.frames import Frame
from rlm_core.cost.domain.quantities import ZERO, constant, of_size
from rlm_core.cost.domain.values import UNKNOWN, Value
from rlm_core.cost.scope import Texts


def test_a_region_is_apart_until_it_is_added() -> None:
    context = Context(Frame(Texts()), 100)
    outer = context.meter
    outer.reach = (0.0, 0.5, 1.0)
    with context.region() as meter:
        assert context.meter is meter
        assert context.path == (0.0, 0.5, 1.0)
        meter.spend(4)
    assert context.meter is outer
    assert context.path == (1, 1, 1)
    assert outer.total == ZERO
    outer.add(meter)
    assert outer.total.evaluate(lambda name: 0) == (0, 2, 4)


def test_a_region_ends_with_an_error_too() -> None:
    context = Context(Frame(Texts()), 100)
    outer = context.meter
    with pytest.raises(ValueError, match="inside"), context.region():
        raise ValueError("inside")
    assert context.meter is outer


@given(st.integers(0, 50))
def test_the_budget_ends_an_analysis(budget: int) -> None:
    context = Context(Frame(Texts()), budget)
    for _ in range(budget):
        context.step()
    with pytest.raises(TooComplex):
        context.step()


def test_unknown_sizes_are_named_after_what_they_are() -> None:
    context = Context(Frame(Texts()), 1)
    assert context.length(Value("list", size=constant(3))) == constant(3)
    assert context.length(Value("unknown", name="items")).names == {"items"}
    assert context.length(UNKNOWN).names == {"?0"}


def test_the_largest_block_is_a_table_without_its_items() -> None:
    context = Context(Frame(Texts()), 1)
    context.hold(Value("list", size=constant(1000), bytes=constant(50_000)))
    assert context.largest_block.exact == 8056
    assert context.meter.peak.exact == 50_000
    assert table_of(Value("list", size=of_size("n"))) == ZERO


def test_a_text_has_one_tree_however_many_others_are_read() -> None:
    context = Context(Frame(Texts()), 1)
    first = context.function("def f(n):\n    return n\n")
    assert first is not None
    for place in range(200):
        assert context.function(f"def f{place}(n):\n    return n\n") is not first
    assert context.function("def f(n):\n    return n\n") is first


def test_a_loop_is_not_taken_for_another_that_was_at_its_address() -> None:
    context = Context(Frame(Texts()), 1)
    for place in range(200):
        loop = ast.parse(f"while n:\n    a{place} = 1").body[0]
        assert isinstance(loop, ast.While)
        assert list(context.block(loop).stores) == [f"a{place}"]
        del loop
