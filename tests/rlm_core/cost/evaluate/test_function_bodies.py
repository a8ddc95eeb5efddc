"""Bodies of called functions: read with their arguments, as deep as they are bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.syntax import Function, parsed_function
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource

from ..counting import count, facts_of

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


def test_what_an_argument_names_is_the_size_of_the_callee() -> None:
    facts = facts_of("def f(items):\n    g(len(items))\n", g=LOOP)
    assert [(entry.size, entry.degree) for entry in facts.latency.growth] == [("items", 1)]


def test_defaults_and_closures_are_known() -> None:
    assert count("def f():\n    g()\n", g="def g(n=4):\n    for i in range(n):\n        time.sleep(1)\n").least == 4
    text = "def f():\n    n = 6\n    def inner():\n        for i in range(n):\n            time.sleep(1)\n    inner()\n"
    assert count(text).least == count(text).most == 6


def test_cyclic_calls_end() -> None:
    functions = {"g": "def g(n):\n    return h(n)\n", "h": "def h(n):\n    return g(n)\n"}
    facts = facts_of("def f(n):\n    return g(n)\n", **functions)
    assert facts.nodes < 200


def test_a_chain_of_calls_beyond_the_depth_is_unknown() -> None:
    functions = {f"g{k}": f"def g{k}():\n    g{k + 1}()\n" for k in range(20)}
    facts = facts_of("def f():\n    g0()\n", **functions)
    assert facts.unknown_calls == 1


def test_what_the_caller_holds_is_not_held_again() -> None:
    text = "def f():\n    x = [0] * 1000\n    g(x)\n"
    held = facts_of(text, g="def g(x):\n    return 1\n").memory.known.likely
    assert held == pytest.approx(8056, rel=0.01)


def test_an_abstract_callee_is_not_known() -> None:
    assert facts_of("def f():\n    g()\n", g="def g():\n    raise NotImplementedError\n").unknown_calls == 1


def test_a_lock_that_is_released_is_no_wait() -> None:
    held = "def f(lock):\n    lock.acquire()\n    x = 1\n    lock.release()\n"
    assert facts_of(held).waits == ()


def test_a_helper_fills_a_list_around_it_in_each_trip() -> None:
    lines = ["found = []", "def add(x):", "    found.append(x)", "for i in range(1000):", "    add(i)"]
    text = "def f():\n" + "".join(f"    {line}\n" for line in lines)
    assert facts_of(text).memory.known.likely > 8_000


def test_a_dictionary_of_results_is_held() -> None:
    text = """
def f():
    known = {}
    def fib(n):
        if n < 2:
            return n
        if n in known:
            return known[n]
        known[n] = fib(n - 1) + fib(n - 2)
        return known[n]
    return fib(500)
"""
    assert 30_000 < facts_of(text).memory.known.likely < 300_000


def test_what_a_cache_keeps_is_held() -> None:
    cached = "@functools.lru_cache(None)\ndef g(a, b):\n    return 0 if not a or not b else g(a - 1, b) + g(a, b - 1)\n"
    plain = "def g(a):\n    return 0 if not a else g(a - 1)\n"
    held = facts_of("def f():\n    return g(50, 40)\n", g=cached).memory.known.likely
    assert held > 150_000
    assert held > 10 * facts_of("def f():\n    return g(50)\n", g=plain).memory.known.likely


@pytest.mark.parametrize(("sign", "method"), [("+", "__add__"), ("@", "__matmul__"), ("//", "__floordiv__")])
def test_an_operator_of_an_object_is_a_call_of_its_method(sign: str, method: str) -> None:
    text = f"""
class Box:
    def __init__(self, size):
        self.size = size

    def {method}(self, other):
        time.sleep(1)
        return Box(self.size + other.size)

def f():
    box = Box(0)
    for i in range(30):
        box {sign} Box(i)
"""
    [unit] = [unit for unit in Analyser().analyse(ParsedSource(text.encode(), "python")) if unit.unit.qualname == "f"]
    assert unit.code.work is not None
    [wait] = unit.code.work.waits
    assert wait.seconds is not None
    assert wait.seconds.likely == 30


def test_an_object_holds_its_arguments() -> None:
    module = "class Box:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n\n\n"
    text = "def f():\n    return [Box(i, i * 2) for i in range(1000, 11_000)]\n"
    [unit] = [
        unit
        for unit in Analyser().analyse(ParsedSource((module + text).encode(), "python"))
        if unit.unit.qualname == "f"
    ]
    assert unit.code.work is not None
    # An object of 88 bytes, and two numbers of 32; CPython 3.12 takes 1,528,328 bytes for all.
    assert unit.code.work.memory.known.likely == pytest.approx(1.5e6, rel=0.15)
