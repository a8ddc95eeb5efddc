"""Recursion: counted calls of functions that run, degrees of those whose input is not known, and shapes."""

from __future__ import annotations

import ast
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.work.frames import Function
from rlm_core.source.work.quantities import degree, of_size
from rlm_core.source.work.recursion import Recurrence, base_share, changing_parameters, is_cached
from rlm_core.types import CauseKind

from .counting import count, facts_of, ran


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
    assert known.likely == pytest.approx(true, rel=0.01)


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
    assert (cause.name, cause.count) == ("g", 21891)


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


@pytest.mark.parametrize(
    ("text", "changing"),
    [
        ("def f(n):\n    return 1\n", None),
        ("def f(n):\n    if n < 3:\n        return 1\n    return f(n - 1)\n", {"n": 2}),
        ("def f(n, k):\n    if n <= 3:\n        return 1\n    return f(n - 1, k)\n", {"n": 3}),
        ("def f(a):\n    if len(a) == 1:\n        return 1\n    return f(a[1:])\n", {"a": 1}),
        ("def f(a, n=0):\n    return f(a, n=n + 1)\n", {"n": 0}),
        ("def f(self, n):\n    return self.f(n - 1)\n", {"n": 0}),
        ("def f(self, n):\n    return f(n - 1)\n", None),
        ("def f(self, n):\n    return other.f(n - 1)\n", None),
    ],
)
def test_the_arguments_that_recursive_calls_change(text: str, changing: dict[str, float] | None) -> None:
    assert changing_parameters(function(text)) == changing


@pytest.mark.parametrize(
    ("text", "cached"),
    [
        ("@cache\ndef f(n): return f(n - 1)", True),
        ("@functools.lru_cache(maxsize=None)\ndef f(n): return f(n - 1)", True),
        ("@other\ndef f(n): return f(n - 1)", False),
        ("def f(n, memo):\n    if n in memo:\n        return memo[n]\n    memo[n] = f(n - 1)\n", True),
        ("def f(n, memo):\n    memo[n] = f(n - 1)\n", False),
    ],
)
def test_caches_are_decorators_or_dictionaries(text: str, cached: bool) -> None:
    assert is_cached(function(text)) is cached


def test_half_of_the_calls_of_a_branching_recursion_end_at_once() -> None:
    assert base_share(function("def f(n): return f(n - 1) + f(n - 2)")) == 0.5
    assert base_share(function("def f(n): return f(n - 1)")) < 0.1


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
