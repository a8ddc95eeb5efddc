"""Recursion: counted calls of functions that run, degrees of those whose input is not known, and shapes."""

from __future__ import annotations

import ast
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.bounds.recurrence import Recurrence
from rlm_core.cost.domain.quantities import degree, of_size
from rlm_core.cost.domain.syntax import Function
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CauseKind

from ..counting import count, facts_of, ran


def function(text: str) -> Function:
    """The function of a text."""
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def called(definition: str, call: str) -> str:
    """A program that calls a recursive function."""
    inner = "".join(f"    {line}\n" for line in definition.splitlines())
    return f"def f():\n{inner}    {call}\n"


@settings(max_examples=60)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 8), st.integers(0, 3))
def test_calls_with_fixed_decrements_are_counted(decrements: list[int], start: int, base: int) -> None:
    lines = ["def g(n):", "    time.sleep(1)", f"    if n <= {base}:", "        return 1"]
    lines.append("    return " + " + ".join(f"g(n - {less})" for less in decrements))
    text = called("\n".join(lines), f"g({start})")
    known, true = count(text), ran(text)
    assert known.least <= true <= known.most
    assert true / 2 < known.likely < 2 * true + 1


@settings(max_examples=40)
@given(st.integers(2, 4), st.integers(0, 3000))
def test_halving_once_takes_a_logarithm_of_calls(divisor: int, start: int) -> None:
    lines = ["def g(n):", "    time.sleep(1)", "    if n <= 1:", "        return n", f"    return g(n // {divisor})"]
    text = called("\n".join(lines), f"g({start})")
    assert count(text).likely == pytest.approx(ran(text), abs=2)


@pytest.mark.parametrize(
    ("lines", "growth"),
    [
        (("def f(n):", "    if n == 0:", "        return 0", "    return 1 + f(n - 1)"), (1, 0, 1)),
        (("def f(n):", "    if n < 2:", "        return n", "    return f(n // 2)"), (0, 1, 1)),
        (("def f(n):", "    if n < 2:", "        return n", "    return f(n // 2) + f(n // 2)"), (1, 0, 1)),
        (("def f(n):", "    if n < 2:", "        return n", "    return f(n - 1) + f(n - 1)"), (0, 0, 2)),
        (("def f(n):", "    if n < 2:", "        return n", "    return f(n - 1) + f(n - 2)"), (0, 0, 1.618)),
        (("@cache", "def f(n):", "    if n < 2:", "        return n", "    return f(n - 1) + f(n - 2)"), (1, 0, 1)),
        (("def f(n):", "    if n < 1:", "        return 0", "    for i in range(n):", "        x = i",
          "    return f(n - 1)"), (2, 0, 1)),
        (("def f(n):", "    if n < 2:", "        return n", "    for i in range(n):", "        x = i",
          "    return f(n // 2) + f(n // 2)"), (1, 1, 1)),
        (("def f(a):", "    if len(a) < 2:", "        return a", "    m = len(a) // 2",
          "    return merge(f(a[:m]), f(a[m:]))"), (1, 1, 1)),
    ],
)  # fmt: skip
def test_the_shape_of_a_recursion_gives_its_growth(lines: tuple[str, ...], growth: tuple[float, float, float]) -> None:
    merge = "def merge(a, b):\n    result = []\n    for x in a:\n        result.append(x)\n    return result\n"
    [found] = facts_of("\n".join(lines) + "\n", merge=merge).latency.growth
    assert (found.degree, found.logs, found.base) == pytest.approx(growth, abs=0.05)


@settings(max_examples=20)
@given(st.integers(5, 18))
def test_memory_of_a_recursion_is_that_of_the_calls_open_at_once(start: int) -> None:
    def text(calls: str) -> str:
        lines = ["def g(n):", "    held = [0] * 1000", "    if n <= 0:", "        return 1", f"    return {calls}"]
        return called("\n".join(lines), f"g({start})")

    once, twice = (facts_of(text(calls)).memory.known.likely for calls in ("g(n - 1)", "g(n - 1) + g(n - 1)"))
    assert once == pytest.approx(8056 * (start + 1), rel=0.1)
    assert twice == pytest.approx(once, rel=0.1)


def test_mutual_and_self_recursion_without_an_end_may_not_end() -> None:
    assert facts_of("def f(n):\n    return f(n - 1)\n").endless == 0
    assert facts_of("def f(n):\n    if n < 1:\n        return 0\n    return f(n - 1)\n").endless is None
    other = "def g(n):\n    return f(n - 1)\n"
    assert facts_of("def f(n):\n    if n < 0:\n        return 0\n    return g(n)\n", g=other).endless is None


def test_a_recursion_is_a_cause_with_its_calls() -> None:
    text = called("def g(n):\n    if n < 2:\n        return n\n    return g(n - 1) + g(n - 2)", "g(20)")
    [cause] = [cause for cause in facts_of(text).latency.causes if cause.kind is CauseKind.RECURSION]
    assert cause.name == "g"
    assert count(text.replace("    if n < 2", "    time.sleep(1)\n        if n < 2")).likely == pytest.approx(
        21891, rel=0.2
    )


@given(st.integers(0, 3), st.floats(0.2, 0.8), st.integers(1, 4), st.integers(10, 14))
def test_sums_over_halving_calls_follow_the_master_theorem(
    power: int, ratio: float, branches: int, levels: int
) -> None:
    size, n = (1 / ratio) ** levels, of_size("n")
    exponent = math.log(branches) / math.log(1 / ratio)
    calls = n.power(exponent).times(1 / (1 - 1 / branches)) if branches > 1 else n.log()
    total = Recurrence(calls, n.log(), "n", ratio, float(branches), "halves").total(n.power(float(power)))
    shrink = branches * ratio**power
    true = sum(branches**level * (size * ratio**level) ** power for level in range(levels + 1))
    if power and abs(shrink - 1) > 0.3:
        assert total.evaluate(lambda name: size)[1] == pytest.approx(true, rel=0.1)
    assert max(degree(monomial)[1] for monomial in total.terms) == pytest.approx(max(power, exponent), abs=0.05)


def test_a_recursion_that_only_some_calls_reach_ends() -> None:
    handler = "try:\n        return int(text)\n    except ValueError:\n        return f(text.strip())\n"
    assert facts_of(f"def f(text):\n    {handler}").endless is None
    rest = "def f(*parts):\n    if not parts:\n        return ''\n    return parts[0] + f(*parts[1:])\n"
    assert facts_of(called(rest, "f('a', 'b')")).endless is None


def test_a_property_of_another_object_of_the_class_delegates() -> None:
    text = """
class Address:
    def __init__(self, text):
        self._parts = Address(text)

    @property
    def scheme(self):
        return self._parts.scheme
"""
    units = Analyser().analyse(ParsedSource(text.encode(), "python"), None)
    [work] = [entry.code.work for entry in units if entry.unit.qualname == "Address.scheme"]
    assert work is not None
    assert work.endless is None


@settings(max_examples=20)
@given(st.integers(0, 4), st.integers(0, 5))
def test_calls_in_a_loop_are_multiplied(ways: int, depth: int) -> None:
    lines = ["def g(n):", "    time.sleep(1)", "    if n == 0:", "        return", f"    for i in range({ways}):"]
    text = called("\n".join([*lines, "        g(n - 1)"]), f"g({depth})")
    known = count(text)
    assert known.least <= ran(text) <= known.most
    assert known.likely == pytest.approx(ran(text), rel=0.1)


@settings(max_examples=20)
@given(st.integers(0, 12), st.integers(1, 3))
def test_counting_up_to_a_bound_is_counted(bound: int, sites: int) -> None:
    calls = " + ".join(["g(i + 1)"] * sites)
    lines = ["def g(i):", "    time.sleep(1)", f"    if i >= {bound}:", "        return 1", f"    return {calls}"]
    text = called("\n".join(lines), "g(0)")
    if sites < 3 or bound < 9:
        assert count(text).likely == pytest.approx(ran(text), rel=0.1)


def test_a_bound_may_be_a_name_of_the_function_around() -> None:
    inner = ["n = 5", "def g(row, taken):", "    time.sleep(1)", "    if row == n:", "        return 1"]
    loop = ["    total = 0", "    for c in range(n):", "        total += g(row + 1, taken + [c])", "    return total"]
    text = called("\n".join([*inner, *loop]), "g(0, [])")
    assert count(text).likely == pytest.approx(ran(text), rel=0.01)


@settings(max_examples=20)
@given(st.integers(0, 6), st.integers(0, 6))
def test_two_parameters_that_shrink_have_a_range(first: int, second: int) -> None:
    lines = ["def g(m, n):", "    time.sleep(1)", "    if m == 0 or n == 0:", "        return 1"]
    text = called("\n".join([*lines, "    return g(m - 1, n) + g(m, n - 1)"]), f"g({first}, {second})")
    known = count(text)
    assert known.least <= ran(text) <= known.most


@pytest.mark.parametrize("checks", [["n == 0", "n == 1"], ["n == 0", "n == 1", "n == 2"]])
def test_several_checks_for_the_end_are_one(checks: list[str]) -> None:
    ends = [line for check in checks for line in (f"    if {check}:", "        return 1")]
    lines = ["def g(n):", "    time.sleep(1)", *ends, "    return g(n - 1) + g(n - 2)"]
    text = called("\n".join(lines), "g(12)")
    assert ran(text) / 3 < count(text).likely < 3 * ran(text)


def test_backtracking_with_a_list_tries_all_ways() -> None:
    lines = ["def f(items, k, path, start=0):", "    if len(path) == k:", "        return"]
    loop = [
        "    for i in range(start, len(items)):", "        path.append(items[i])", "        f(items, k, path, i + 1)",
        "        path.pop()",
    ]  # fmt: skip
    assert any(entry.base > 1 for entry in facts_of("\n".join([*lines, *loop])).latency.growth)


def test_a_condition_on_the_choices_leaves_a_range() -> None:
    lines = ["def g(row, taken):", "    time.sleep(1)", "    if row == 6:", "        return 1", "    total = 0"]
    loop = ["    for c in range(6):", "        if c not in taken:", "            total += g(row + 1, taken + [c])"]
    text = called("\n".join([*lines, *loop, "    return total"]), "g(0, [])")
    known, true = count(text), ran(text)
    assert known.least < known.likely < known.most
    assert known.least <= true <= known.most
    assert true / 5 < known.likely < 5 * true


def test_a_walk_over_the_parts_of_an_object_is_no_search() -> None:
    walk = "def f(node, depth=0):\n    for child in node.children:\n        f(child, depth + 1)\n"
    assert {factor.base for factor in facts_of(walk).latency.growth} == {1.0}


def test_a_walk_takes_as_long_as_there_are_parts() -> None:
    walk = "def f(node):\n    total = 0\n    for child in node.children:\n        total += f(child)\n    return total\n"
    assert [(entry.size, entry.degree) for entry in facts_of(walk).latency.growth] == [("node", 1)]


def test_a_sort_by_a_pivot_takes_n_log_n() -> None:
    text = (
        "def f(items):\n    if len(items) <= 1:\n        return items\n    pivot = items[0]\n"
        "    below = [x for x in items[1:] if x < pivot]\n    above = [x for x in items[1:] if x >= pivot]\n"
        "    return f(below) + [pivot] + f(above)\n"
    )
    [growth, *_] = facts_of(text).latency.growth
    assert (growth.degree, growth.logs) == (1, 1)


_SIFT = """
def sift(items, end, place):
    largest = place
    left, right = 2 * place + 1, 2 * place + 2
    if left < end and items[left] > items[largest]:
        largest = left
    if right < end and items[right] > items[largest]:
        largest = right
    if largest != place:
        items[place], items[largest] = items[largest], items[place]
        sift(items, end, largest)
"""
_SORT = """
def f(items):
    count = len(items)
    for place in range(count // 2, -1, -1):
        sift(items, count, place)
    for end in range(count - 1, 0, -1):
        items[0], items[end] = items[end], items[0]
        sift(items, end, 0)
"""
_SEARCH_OF_RANGE = """
def f(items, wanted, low, high):
    if low > high:
        return -1
    middle = (low + high) // 2
    if items[middle] < wanted:
        return f(items, wanted, middle + 1, high)
    return f(items, wanted, low, middle - 1)
"""
_SELECT = """
def f(items, low, high, k):
    if low == high:
        return items[low]
    place = low
    for i in range(low, high):
        if items[i] < items[high]:
            place += 1
    if k < place:
        return f(items, low, place - 1, k)
    return f(items, place + 1, high, k)
"""


@pytest.mark.parametrize(
    ("text", "growth"),
    [(_SORT, ("items", 1, 1)), (_SEARCH_OF_RANGE, ("", 0, 1)), (_SELECT, ("high", 1, 0))],
    ids=["heap", "search", "select"],
)
def test_branches_that_exclude_each_other_are_alternatives(text: str, growth: tuple[str, int, int]) -> None:
    [found, *_] = facts_of(text, sift=_SIFT).latency.growth
    assert (found.degree, found.logs) == growth[1:]
    assert found.size.startswith(growth[0])


def test_calls_behind_an_equality_are_made_about_once() -> None:
    lines = ["def f(s, index, before):", "    if index == len(s):", "        return True"]
    loop = ["    for j in range(index, len(s)):", "        value = int(s[index:j + 1])"]
    call = "            return True\n    return False\n"
    for test, grows in (("value + 1 == before and f(s, j + 1, value)", False), ("f(s, j + 1, value)", True)):
        text = "\n".join([*lines, *loop, f"        if {test}:", call])
        assert any(entry.base > 1 for entry in facts_of(text).latency.growth) is grows


def test_what_a_search_takes_back_is_held_once() -> None:
    text = """
def f(items):
    chosen = set()
    def search(i):
        if i == len(items):
            return len(chosen)
        chosen.add(items[i])
        found = search(i + 1)
        chosen.remove(items[i])
        return max(found, search(i + 1))
    return search(0)
"""
    facts = facts_of(text)
    assert any(entry.base > 1 for entry in facts.latency.growth)
    assert all(entry.base == 1 for entry in facts.memory.growth)


def test_a_cache_has_an_entry_for_each_combination() -> None:
    text = (
        "def f():\n    costs = [2, 3, 5, 7]\n    @functools.cache\n    def best(i, rest):\n        time.sleep(1)\n"
        "        if i == 4 or rest <= 0:\n            return 0\n"
        "        return max(best(i + 1, rest), best(i + 1, rest - costs[i]))\n    return best(0, 100)\n"
    )
    known = count(text)
    assert known.least <= 5 * 101
    assert 20 < known.most <= 5 * 101


@pytest.mark.parametrize(
    ("calls", "growth"),
    [
        (("f(a, low, i - 1)", "f(a, i + 1, high)"), (1, 1, 1)),  # the parts of a range
        (("f(a, low, high - 1)", "f(a, low + 1, high)"), (0, 0, 2)),  # all ways to take from its ends
    ],
)
def test_a_range_that_is_split_is_no_search(calls: tuple[str, str], growth: tuple[int, int, int]) -> None:
    lines = ["def f(a, low, high):", "    if low < high:", "        i = low", "        for j in range(low, high):"]
    lines += ["            if a[j] < a[high]:", "                i += 1", *(f"        {call}" for call in calls)]
    found = facts_of("\n".join(lines)).latency.growth
    assert growth in {(entry.degree, entry.logs, round(entry.base)) for entry in found}
