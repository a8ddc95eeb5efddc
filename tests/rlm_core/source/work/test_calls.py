"""Calls: functions of the program with their arguments, methods, generators, lambdas, and what is not known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.source.work.values import Value
from rlm_core.types import WaitKind

from .counting import count, facts_of

LOOP = "def g(n):\n    for i in range(n):\n        time.sleep(1)\n"


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_loop_multiplies_what_it_calls(outer: int, inner: int) -> None:
    known = count(f"def f():\n    for i in range({outer}):\n        g({inner})\n", g=LOOP)
    assert known.least == pytest.approx(outer * inner)
    assert known.most == pytest.approx(outer * inner)


@given(st.integers(0, 100), st.integers(0, 100))
def test_results_flow_back(left: int, right: int) -> None:
    text = f"def f():\n    for i in range(add({left}, {right})):\n        time.sleep(1)\n"
    known = count(text, add="def add(a, b):\n    return a + b\n")
    assert known.least == known.most == left + right


def test_a_wait_in_a_callee_is_at_the_line_of_the_call() -> None:
    facts = facts_of("def f():\n    x = 1\n    g(3)\n", g=LOOP)
    assert [(wait.kind, wait.line) for wait in facts.waits] == [(WaitKind.TIME, 2)]


def test_a_generator_costs_what_is_taken_of_it() -> None:
    generator = "def g():\n    for i in range(10):\n        time.sleep(1)\n        yield i\n"
    for text, times in (
        ("def f():\n    x = g()\n", 0),
        ("def f():\n    x = list(g())\n", 10),
        ("def f():\n    for i in g():\n        pass\n", 10),
        ("def f():\n    next(g())\n", 1),
        ("def f():\n    return sum(x for x in g())\n", 10),
    ):
        assert count(text, g=generator).likely == pytest.approx(times), text


def test_functions_that_are_passed_are_called() -> None:
    assert count("def f():\n    list(map(g, [3, 4]))\n", g=LOOP).most >= 7
    assert count("def f():\n    h(lambda: time.sleep(1))\n", h="def h(call):\n    call()\n    call()\n").least == 2


def test_methods_on_self_are_those_of_the_class() -> None:
    facts = facts_of("def f(self):\n    self.g(5)\n", g=LOOP.replace("g(n)", "g(self, n)"))
    assert [wait.seconds.likely for wait in facts.waits if wait.seconds] == [5]


@pytest.mark.parametrize("call", ["missing()", "a.method()", "a[0]()", "a.b.c(1)", "a()()"])
def test_calls_that_are_not_known_are_counted(call: str) -> None:
    facts = facts_of(f"def f(a):\n    for i in range(10):\n        {call}\n")
    assert facts.unknown_calls >= 10
    assert not facts.fixed


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        ("asyncio.sleep(1), asyncio.sleep(3), asyncio.sleep(2)", 3),
        ("work(2), work(5)", 5),
        ("twice(), asyncio.sleep(2)", 3),
        ("*[work(4) for i in range(10)]", 4),
    ],
)
def test_waits_at_the_same_time_take_as_long_as_the_longest(arguments: str, seconds: int) -> None:
    work = "async def work(n):\n    for i in range(n):\n        await asyncio.sleep(1)\n"
    twice = "async def twice():\n    await asyncio.sleep(1)\n    await asyncio.sleep(2)\n"
    facts = facts_of(f"async def f():\n    await asyncio.gather({arguments})\n", work=work, twice=twice)
    assert sum(wait.seconds.likely for wait in facts.waits if wait.seconds) == seconds


def test_a_value_that_is_not_a_function_is_unknown_when_called() -> None:
    facts = facts_of("def f():\n    x = 3\n    x()\n")
    assert facts.unknown_calls == 1
    assert Value("int").name == ""
