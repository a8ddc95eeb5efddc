"""Calls: functions of the program with their arguments, methods, generators, lambdas, and what is not known."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.source.work.calls import bind_arguments, defaults_of, is_abstract, parsed_function
from rlm_core.source.work.expressions import literal
from rlm_core.source.work.frames import Function
from rlm_core.source.work.values import Value
from rlm_core.types import WaitKind

from .counting import count, facts_of

LOOP = "def g(n):\n    for i in range(n):\n        time.sleep(1)\n"


def function(text: str) -> Function:
    """The function of a text."""
    node = parsed_function(text)
    assert node is not None
    return node


@given(st.integers(0, 10**9))
def test_a_callee_is_read_with_its_arguments(n: int) -> None:
    for call in (f"g({n})", f"g(n={n})"):
        known = count(f"def f():\n    {call}\n", g=LOOP)
        assert (known.least, known.most) == (n, n)


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


def test_what_an_argument_names_is_the_size_of_the_callee() -> None:
    facts = facts_of("def f(items):\n    g(len(items))\n", g=LOOP)
    assert [(entry.size, entry.degree) for entry in facts.latency.growth] == [("items", 1)]


def test_a_wait_in_a_callee_is_at_the_line_of_the_call() -> None:
    facts = facts_of("def f():\n    x = 1\n    g(3)\n", g=LOOP)
    assert [(wait.kind, wait.line) for wait in facts.waits] == [(WaitKind.TIME, 2)]


def test_defaults_and_closures_are_known() -> None:
    assert count("def f():\n    g()\n", g="def g(n=4):\n    for i in range(n):\n        time.sleep(1)\n").least == 4
    text = "def f():\n    n = 6\n    def inner():\n        for i in range(n):\n            time.sleep(1)\n    inner()\n"
    assert count(text).least == count(text).most == 6


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


def test_cyclic_calls_end() -> None:
    functions = {"g": "def g(n):\n    return h(n)\n", "h": "def h(n):\n    return g(n)\n"}
    facts = facts_of("def f(n):\n    return g(n)\n", **functions)
    assert facts.nodes < 200


def test_a_chain_of_calls_beyond_the_depth_is_unknown() -> None:
    functions = {f"g{k}": f"def g{k}():\n    g{k + 1}()\n" for k in range(20)}
    facts = facts_of("def f():\n    g0()\n", **functions)
    assert facts.unknown_calls == 1


@settings(max_examples=30)
@given(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4), st.integers(0, 3))
def test_arguments_are_bound_as_python_binds_them(keywords: list[str], positional: int) -> None:
    node = function("def g(a, b, /, c=3, *rest, d=4, **others):\n    return 1\n")
    names = {name: literal(name) for name in keywords if name not in "ab"[:positional] + "abc"[:positional]}
    bound = bind_arguments(node, [literal(k) for k in range(positional)], names)
    for place, name in enumerate("abc"[:positional]):
        assert bound[name].constant == place
    for name, value in names.items():
        if name in "abcd":
            assert bound[name] == value
    others = bound["others"].size
    assert others is not None
    assert others.exact == sum(name not in "abcd" for name in names)
    assert [name for name, _ in defaults_of(node)] == ["c", "d"]


def test_what_the_caller_holds_is_not_held_again() -> None:
    text = "def f():\n    x = [0] * 1000\n    g(x)\n"
    held = facts_of(text, g="def g(x):\n    return 1\n").memory.known.likely
    assert held == pytest.approx(8056, rel=0.01)


@pytest.mark.parametrize(
    ("body", "abstract"),
    [("pass", True), ("...", True), ("raise NotImplementedError", True), ("raise NotImplementedError('x')", True),
     ("'doc'", True), ("return 1", False), ("raise ValueError", False)],
)  # fmt: skip
def test_functions_without_a_body_are_abstract(body: str, abstract: bool) -> None:
    assert is_abstract(function(f"def g():\n    {body}\n")) is abstract


def test_an_abstract_callee_is_not_known() -> None:
    assert facts_of("def f():\n    g()\n", g="def g():\n    raise NotImplementedError\n").unknown_calls == 1


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


def test_a_lock_that_is_released_is_no_wait() -> None:
    held = "def f(lock):\n    lock.acquire()\n    x = 1\n    lock.release()\n"
    assert facts_of(held).waits == ()


def test_the_first_function_of_a_text_is_read() -> None:
    assert parsed_function("x = 1\n") is None
    assert parsed_function("def (") is None
    node = parsed_function("import a\ndef g(): pass\ndef h(): pass\n")
    assert isinstance(node, ast.FunctionDef)
    assert node.name == "g"


def test_a_value_that_is_not_a_function_is_unknown_when_called() -> None:
    facts = facts_of("def f():\n    x = 3\n    x()\n")
    assert facts.unknown_calls == 1
    assert Value("int").name == ""
