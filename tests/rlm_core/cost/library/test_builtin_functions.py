"""Builtin functions: what they return where the text fixes it, and what they cost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.domain.folding import MISSING
from rlm_core.cost.domain.quantities import constant, of_size
from rlm_core.cost.domain.values import UNKNOWN, Value
from rlm_core.cost.library.rules import ENDLESS, ORDERED
from rlm_core.types import Growth

from .calls import exact, run, sized


@given(st.integers(-100, 100), st.integers(-1000, 1000), st.integers(-7, 7).filter(bool))
def test_the_size_of_a_range_is_that_of_python(start: int, stop: int, step: int) -> None:
    value, _ = run("builtins.range", start, stop, step)
    numbers = range(start, stop, step)
    assert exact(value.size) == len(numbers)
    assert value.payload == (start, step, len(numbers))
    if numbers:
        assert value.item is not None
        assert exact(value.item.number) == pytest.approx(sum(numbers) / len(numbers))


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 5))
def test_the_sum_of_a_range_is_exact(start: int, stop: int, step: int) -> None:
    numbers, _ = run("builtins.range", start, stop, step)
    value, _ = run("builtins.sum", numbers)
    assert value.constant == sum(range(start, stop, step))


def test_a_range_up_to_an_argument_has_its_size() -> None:
    value, _ = run("builtins.range", Value("unknown", name="n"))
    assert value.size is not None
    assert value.size.names == {"n"}


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("builtins.len", ["abc"], 3),
        ("builtins.len", [(1, 2)], 2),
        ("builtins.min", [3, 5], 3),
        ("builtins.max", [(3, 5, 1)], 5),
        ("builtins.abs", [-3], 3),
        ("builtins.round", [3.7], 4),
        ("builtins.int", ["7"], 7),
        ("builtins.int", [3.9], 3),
        ("builtins.float", [3], 3.0),
        ("builtins.str", [12], "12"),
        ("builtins.pow", [2, 10], 1024),
        ("builtins.pow", [3, 200, 13], pow(3, 200, 13)),
        ("builtins.divmod", [7, 2], (3, 1)),
        ("builtins.ord", ["a"], 97),
        ("builtins.hex", [255], "0xff"),
        ("builtins.sum", [(1, 2, 3)], 6),
        ("math.sqrt", [16], 4.0),
        ("math.factorial", [5], 120),
        ("math.log2", [8], 3.0),
        ("math.floor", [2.5], 2),
    ],
)
def test_known_arguments_give_a_known_result(name: str, arguments: list[object], result: object) -> None:
    value, call = run(name, *arguments)
    assert value.constant == result
    assert call.seconds > 0


def test_the_length_of_a_list_of_known_size_is_known() -> None:
    assert run("builtins.len", sized("list", 1000))[0].constant == 1000


def test_a_large_power_is_not_computed_but_paid_for() -> None:
    value, call = run("builtins.pow", 10, 10**6)
    assert value.constant is MISSING
    assert exact(value.size) == pytest.approx(10**6 * 4 / 30)
    assert call.seconds > 1e-3


def test_text_of_a_number_too_long_for_python_has_a_size() -> None:
    assert run("builtins.str", 10**5000)[0].kind == "str"


def test_sorting_costs_linear_time_where_the_order_is_known() -> None:
    numbers, _ = run("builtins.range", 10**6)
    ordered, first = run("builtins.sorted", numbers)
    _, again = run("builtins.sorted", ordered)
    _, mixed = run("builtins.sorted", sized("list", 10**6, Value("int")))
    assert ordered.name == ORDERED
    assert first.seconds < mixed.seconds / 3
    assert again.seconds < mixed.seconds / 3


def test_a_key_is_called_once_per_item() -> None:
    _, call = run("builtins.sorted", sized("list", 500, Value("str")), key=Value("function", name="builtins.len"))
    assert [exact(times) for times in call.applied] == [500]


def test_a_list_of_a_range_holds_its_numbers() -> None:
    numbers, _ = run("builtins.range", 10**6)
    value, _ = run("builtins.list", numbers)
    assert exact(value.bytes) == pytest.approx(8e6 + 28e6, rel=0.02)
    copied, _ = run("builtins.list", value)
    assert exact(copied.bytes) == pytest.approx(8e6, rel=0.01)


def test_a_set_of_a_text_has_few_items() -> None:
    value, _ = run("builtins.set", sized("str", 10**6, Value("str")))
    assert value.size is not None
    assert value.size.evaluate(lambda name: 0)[1] < 100


def test_an_endless_iterator_makes_its_consumer_endless() -> None:
    counter, _ = run("itertools.count")
    chained, call = run("itertools.chain", counter)
    assert not call.runs_on
    assert run("builtins.list", chained)[1].runs_on


def test_zip_ends_with_the_shortest() -> None:
    endless = Value("iterator", size=ENDLESS)
    value, _ = run("builtins.zip", endless, sized("list", 7), sized("list", 9))
    assert exact(value.size) == 7


def test_any_may_stop_at_the_first_item() -> None:
    _, call = run("builtins.any", sized("list", 10**6))
    low, _, high = call.spent.evaluate(lambda name: 0)
    assert low < high / 1000


def test_the_sum_of_lists_is_quadratic() -> None:
    costs = [run("builtins.sum", sized("list", n, sized("list", 1)))[1].seconds for n in (1000, 10_000)]
    assert math.log10(costs[1] / costs[0]) > 1.5


def test_an_unknown_argument_names_the_size() -> None:
    value, call = run("builtins.sorted", Value("unknown", name="values"))
    assert call.spent.names == {"values"}
    assert value.size == of_size("values")


def test_the_least_of_an_unknown_number_and_a_limit_is_at_most_the_limit() -> None:
    value, _ = run("builtins.min", Value("unknown", name="n"), 10)
    assert value.number is not None
    assert value.number.constant == (0, 10, 10)


def test_an_eval_is_of_unknown_cost() -> None:
    _, call = run("builtins.eval", UNKNOWN)
    assert call.missed == constant(1)


@pytest.mark.parametrize("text", ["sum(x, [])", "sum(x, ())"])
def test_a_sum_of_lists_copies_what_is_there_for_each_of_them(text: str) -> None:
    facts = work_facts(f"def f(x):\n    return {text}\n")
    assert facts is not None
    assert any(Growth("x", 2.0) in term.factors for term in facts.latency.terms)
