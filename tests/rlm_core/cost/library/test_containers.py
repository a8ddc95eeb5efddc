"""Containers: methods that move or compare items cost by their number, others do not."""

from __future__ import annotations

import math

import pytest
from rlm_core.cost.domain.values import Value
from rlm_core.cost.library.rules import literal

from .calls import exact, run, run_method, sized


def _ratio(method: str, *arguments: object, kind: str = "list") -> float:
    """How many times as much a call costs on 100 times as many items."""
    costs = [run_method(sized(kind, n, Value("int")), method, *arguments)[1].seconds for n in (10**4, 10**6)]
    return costs[1] / costs[0]


@pytest.mark.parametrize(
    ("kind", "method", "arguments"),
    [("list", "pop", [0]), ("list", "insert", [0, 1]), ("list", "remove", [5]), ("list", "index", [5]),
     ("list", "count", [5]), ("list", "copy", []), ("list", "reverse", []), ("dict", "copy", []),
     ("set", "copy", []), ("deque", "index", [1]),
     ("set", "union", [()])],
)  # fmt: skip
def test_a_method_that_reads_all_items_is_linear(kind: str, method: str, arguments: list[object]) -> None:
    assert 50 < _ratio(method, *arguments, kind=kind) < 150


@pytest.mark.parametrize(
    ("kind", "method", "arguments"),
    [("list", "append", [1]), ("list", "pop", []), ("list", "pop", [-1]), ("dict", "get", ["k"]), ("dict", "items", []),
     ("set", "add", [1]), ("deque", "popleft", []), ("deque", "appendleft", [1]), ("dict", "pop", ["k"])],
)  # fmt: skip
def test_a_method_that_touches_one_item_is_constant(kind: str, method: str, arguments: list[object]) -> None:
    assert _ratio(method, *arguments, kind=kind) == pytest.approx(1)


def test_sorting_in_place_is_slightly_more_than_linear() -> None:
    assert 100 < _ratio("sort") < 250


def test_dictionary_views_yield_keys_and_values() -> None:
    mapping = sized("dict", 5, literal("k"), entry=literal(3))
    items, _ = run_method(mapping, "items")
    assert exact(items.size) == 5
    assert items.item is not None
    assert [part.constant for part in items.item.payload] == ["k", 3]


def test_a_heap_costs_the_logarithm_of_its_size() -> None:
    costs = [run("heapq.heappush", sized("list", n), 1)[1].seconds for n in (2**10, 2**20)]
    assert 1 < costs[1] / costs[0] < 2.5


def test_counting_a_text_leaves_few_keys() -> None:
    value, call = run("collections.Counter", sized("str", 10**6, Value("str")))
    assert value.kind == "dict"
    assert value.size is not None
    assert value.size.evaluate(lambda name: 0)[1] < 100
    assert call.seconds > 1e-3


def test_a_deque_with_a_limit_keeps_that_many() -> None:
    value, _ = run("collections.deque", sized("list", 1000), 10)
    assert exact(value.size) == 10


@pytest.mark.parametrize(
    ("name", "arguments", "count"),
    [
        ("permutations", [9], math.factorial(9)),
        ("combinations", [20, 4], math.comb(20, 4)),
        ("combinations_with_replacement", [6, 3], math.comb(8, 3)),
    ],
)
def test_the_number_of_arrangements_follows_combinatorics(name: str, arguments: list[int], count: int) -> None:
    value, _ = run(f"itertools.{name}", sized("list", arguments[0]), *arguments[1:])
    assert exact(value.size) == count


def test_a_product_multiplies_sizes() -> None:
    value, _ = run("itertools.product", sized("list", 4), sized("list", 5))
    assert exact(value.size) == 20
    repeated, _ = run("itertools.product", sized("list", 2), repeat=10)
    assert exact(repeated.size) == 1024


def test_a_slice_of_an_endless_iterator_ends() -> None:
    endless, _ = run("itertools.count")
    value, call = run("itertools.islice", endless, 10)
    assert exact(value.size) == 10
    assert not call.runs_on


def test_reduce_calls_its_function_for_each_item() -> None:
    _, call = run("functools.reduce", Value("user-function"), sized("list", 50))
    assert [exact(times) for times in call.applied] == [50]
