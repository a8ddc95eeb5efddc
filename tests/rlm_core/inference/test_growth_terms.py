"""The term that decides a cost at the sizes of production: quadratic forms, linear loops, and sums of both."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.inference.cost_origins import growth_origins
from rlm_core.inference.growth_facts import class_of, decided_estimate, without_logarithms
from rlm_core.inference.growth_terms import SteepTerm, linear_terms, steep_term
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText, CostFacts, CostTerm, Growth, GrowthEstimate, UnknownCalls, WorkFacts

from ..quadratic_forms import FORMS, TEXT

N, SQUARE = (Growth("n"),), (Growth("n", 2.0),)


@cache
def forms() -> dict[str, CodeText]:
    units = Analyser().analyse(ParsedSource(TEXT.encode(), "python"))
    return {unit.unit.qualname: unit.code for unit in units}


def code(*terms: CostTerm, text: str = "def f(n):\n    pass\n", repeated: tuple[UnknownCalls, ...] = ()) -> CodeText:
    costs = CostFacts(terms=terms, growth=(Growth("n", 2.0),))
    return CodeText(text, "python", "call", work=WorkFacts(latency=costs, nodes=9, repeated=repeated))


@pytest.mark.parametrize("name", FORMS)
def test_a_quadratic_form_is_certain_and_names_its_inputs(name: str) -> None:
    estimate = decided_estimate(forms()[name], "latency")
    assert estimate is not None
    assert estimate.is_claim
    assert estimate.growth_class == ("mn" if len(FORMS[name]) > 1 else "n^2")
    assert sorted(estimate.sizes) == sorted(FORMS[name])


@pytest.mark.parametrize("name", FORMS)
def test_a_claim_names_a_place_in_a_loop_or_a_product(name: str) -> None:
    estimate = decided_estimate(forms()[name], "latency")
    assert estimate is not None
    first, *_ = growth_origins(forms()[name], estimate)
    lines = forms()[name].text.splitlines()
    assert 0 < first.place.line < len(lines)
    assert all(loop.line <= first.place.line for loop in first.loops)


def test_only_steep_claims_have_places() -> None:
    square = forms()[next(iter(FORMS))]
    assert growth_origins(square, GrowthEstimate("n", 0.9)) == []
    assert growth_origins(square, GrowthEstimate("n^2", 0.5)) == []
    assert growth_origins(square, GrowthEstimate("n^2", 0.9, ("another",))) == []


@pytest.mark.parametrize(
    "text",
    [
        "def f(items):\n    result = []\n    for item in items:\n        result += [item]\n    return result\n",
        "def f(items):\n    active = set()\n    for item in items:\n        active |= {item}\n    return active\n",
        "def f(items):\n    text = ''\n    for item in items:\n        text += str(item)\n    return text\n",
        "def f(items):\n    data = bytearray()\n    for item in items:\n        data += item\n    return data\n",
        "def f(items):\n    for _ in range(len(items)):\n        items.pop()\n",
        "def f(items):\n    for _ in range(len(items)):\n        del items[-1]\n",
        "def f(items, table):\n    return [item for item in items if item in table.keys()]\n",
        "def f(items):\n    text = ''\n    for item in items:\n        text = text + str(item)\n    return text\n",
        "def f(lines, end):\n    return [line + end for line in lines]\n",
        "def f(words):\n    for word in words:\n        word = word.strip() + '.'\n",
        "def f(orders):\n    return [order.name.strip().lower() for order in orders if order.name]\n",
        "def f(orders):\n    found = []\n    for order in orders:\n        found.append(order.name.upper())\n",
    ],
)
def test_what_is_changed_in_place_is_not_steep(text: str) -> None:
    [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    assert steep_term(unit.code, "latency") is None


def test_a_square_decides_where_it_is_larger_than_the_rest() -> None:
    square = CostTerm(1e-10, 1e-10, 1e-10, SQUARE)
    assert steep_term(code(square, CostTerm(1e-7, 1e-7, 1e-7, N)), "latency") == SteepTerm(SQUARE, is_certain=True)
    assert steep_term(code(square, CostTerm(1e-5, 1e-5, 1e-5, N)), "latency") is None
    assert steep_term(code(square), "memory") is None


def test_a_square_that_may_not_be_reached_is_not_certain() -> None:
    worst = code(CostTerm(0.0, 1e-9, 1e-8, SQUARE), CostTerm(1e-8, 1e-8, 1e-8, N))
    assert steep_term(worst, "latency") == SteepTerm(SQUARE, is_certain=False)
    assert decided_estimate(worst, "latency") is None


@pytest.mark.parametrize("search", ["part in text", "text.find(part)", "text.index(part)"])
def test_a_search_may_end_early(search: str) -> None:
    text = f"def f(text: str, parts):\n    return [{search} for part in parts]\n"
    [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    found = steep_term(unit.code, "latency")
    assert found is None or not found.is_certain


def test_searches_for_different_items_see_a_part_of_all_together() -> None:
    text = "def f(rows, keys):\n    return [next(row for row in rows if row.key == key) for key in keys]\n"
    [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    found = steep_term(unit.code, "latency")
    assert found is not None
    assert found.is_certain


def test_parts_are_together_no_more_than_the_whole() -> None:
    text = "def f(items: list, size):\n    return [items[k : k + size] for k in range(0, len(items), size)]\n"
    [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    found = steep_term(unit.code, "latency")
    assert found is None or not found.is_certain


def test_unknown_calls_count_with_what_a_call_takes() -> None:
    square = CostTerm(1e-10, 1e-10, 1e-10, SQUARE)
    calls = UnknownCalls("g()", (CostTerm(1.0, 1.0, 1.0, N),))
    assert steep_term(code(square), "latency") is not None
    assert steep_term(code(square, repeated=(calls,)), "latency") is None


def test_sizes_of_no_input_do_not_make_a_term_steep() -> None:
    text = "def f(n):\n    k = g()\n    for i in range(k):\n        for j in range(k):\n            n += 1\n"
    assert steep_term(CodeText(text, "python", "call", work=work_facts(text)), "latency") is None
    assert steep_term(CodeText(text, "cpp", "call", work=work_facts(text)), "latency") is None
    assert steep_term(CodeText(text, "python", "call"), "latency") is None


@pytest.mark.parametrize(
    ("growth", "expected", "sizes"),
    [
        ((Growth("n", 2, 1),), "n^2", ["n"]),
        ((Growth("n"), Growth("m")), "mn", ["n", "m"]),
        ((Growth("n", 3),), "n^3", ["n"]),
        ((Growth("n", 2), Growth("m", 0, 1)), "n^2", ["n"]),
    ],
)
def test_a_logarithm_next_to_a_power_is_not_stated(growth: tuple[Growth, ...], expected: str, sizes: list[str]) -> None:
    stated = without_logarithms(growth)
    assert class_of(stated) == expected
    assert [factor.size for factor in stated] == sizes


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        (
            "def f(items):\n    total = 0\n    for item in items:\n        total += item.price\n    return total\n",
            ["items"],
        ),
        ("def f(items):\n    if not len(items):\n        return 0\n    return sum(x + 1 for x in items)\n", ["items"]),
        ("def f(self):\n    node = self.head\n    while node:\n        node = node.next\n", ["self.head"]),
        ("def f(a, b):\n    for x in a:\n        x.n = 1\n    for x in b:\n        x.n = 1\n", ["a", "b"]),
    ],
)
def test_work_that_every_call_pays_for_each_item_is_linear(text: str, inputs: list[str]) -> None:
    [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    estimate = decided_estimate(unit.code, "latency")
    assert estimate is not None
    assert (estimate.growth_class, sorted(estimate.sizes)) == ("n", inputs)


@pytest.mark.parametrize(
    "text",
    [
        "def f(name):\n    return f'digraph {name}'\n",  # copies of text hardly count
        "def f(text: str):\n    return text.replace('+', '-')\n",  # often nothing is replaced
        "def f(text: str):\n    return text.split('/', maxsplit=1)[0]\n",
        "def f(items):\n    for item in items:\n        if item.done:\n            return item\n",
        "def f(items):\n    for item in items:\n        fetch(item)\n",
        "def f(rows):\n    return [cell + 1 for row in rows for cell in row]\n",
        "def f(n):\n    total = 0\n    while step(total):\n        total += n\n",
    ],
)
def test_work_that_a_call_may_not_do_or_that_is_not_known_is_not_certainly_linear(text: str) -> None:
    [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    assert linear_terms(unit.code) == ()


def test_texts_are_larger_than_other_inputs() -> None:
    square, line = CostTerm(1e-13, 1e-13, 1e-13, SQUARE), CostTerm(1e-8, 1e-8, 1e-8, N)
    one = code(square, line)
    assert steep_term(one, "latency") is None
    assert one.work is not None
    text = replace(one, work=replace(one.work, types=(("n", "str"),)))
    assert steep_term(text, "latency") == SteepTerm((Growth("n", 2.0),), is_certain=True)


def test_a_square_of_one_input_times_another_is_stated_as_that_square() -> None:
    product = (Growth("n", 2.0), Growth("m"))
    estimate = decided_estimate(code(CostTerm(1e-6, 1e-6, 1e-6, product), text="def f(n, m):\n    pass\n"), "latency")
    assert estimate is not None
    assert (estimate.growth_class, estimate.sizes) == ("n^2", ("n",))
