"""Calls: functions of the program with their arguments, methods, generators, lambdas, and what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.values import Value
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import WaitKind

from ..counting import count, facts_of

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


_WORK = "async def work(n=1):\n    await asyncio.sleep(n)\n"


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (
            "    tasks = [asyncio.create_task(work()) for i in range(10)]\n    for t in tasks:\n        await t\n",
            1,
        ),
        (
            "    async with asyncio.TaskGroup() as g:\n        for i in range(9):\n            g.create_task(work())\n",
            1,
        ),
        ("    a = asyncio.ensure_future(work(2))\n    b = asyncio.create_task(work(3))\n    await a\n    await b\n", 3),
        ("    await asyncio.sleep(1)\n    task = asyncio.create_task(work(2))\n    await task\n", 3),
        ("    task = asyncio.create_task(asyncio.sleep(2))\n    await asyncio.sleep(5)\n    await task\n", 5),
        # A task goes on while its owner waits for something else.
        ("    task = asyncio.create_task(work(2))\n    await asyncio.sleep(1)\n    await task\n", 2),
        ("    task = asyncio.create_task(work(2))\n    await asyncio.sleep(5)\n    await task\n", 5),
        ("    for i in range(10):\n        await work()\n", 10),
        ("    group = asyncio.TaskGroup()\n    async with group as g:\n        task = g.create_task(work(4))\n", 4),
    ],
)
def test_tasks_wait_at_the_same_time(body: str, seconds: int) -> None:
    facts = facts_of(f"async def f():\n    import asyncio\n{body}", work=_WORK)
    amounts = [wait.seconds for wait in facts.waits if wait.seconds]
    assert sum(amount.likely for amount in amounts) == seconds
    assert sum(amount.least for amount in amounts) == seconds
    assert facts.endless is None


def test_what_runs_for_ever_in_the_background_does_not_keep_the_function() -> None:
    forever = "async def forever():\n    while True:\n        await asyncio.sleep(1)\n"
    start = "async def f():\n    import asyncio\n    return asyncio.create_task(forever())\n"
    assert facts_of(start, forever=forever).endless is None
    assert facts_of(start.replace("return asyncio.create_task", "await "), forever=forever).endless is not None


@pytest.mark.parametrize(
    "text",
    [
        "def f(self, loop):\n    loop.create_task(work(3))\n",
        "async def f(self):\n    asyncio.create_task(work(3))\n",
        "async def f(self):\n    self.task = asyncio.create_task(work(3))\n",
        # A plain function makes a coroutine, which something else runs.
        "def f(self, runner):\n    runner.submit(work(3))\n",
    ],
)
def test_a_task_that_nothing_joins_costs_its_start_alone(text: str) -> None:
    facts = facts_of(text, work=_WORK)
    assert facts.waits == ()
    assert facts.latency.known.likely < 1e-4


def test_a_value_that_is_not_a_function_is_unknown_when_called() -> None:
    facts = facts_of("def f():\n    x = 3\n    x()\n")
    assert facts.unknown_calls == 1
    assert Value("int").name == ""


def test_what_a_method_appends_stays_in_its_object() -> None:
    stack = "class Stack:\n    def __init__(self):\n        self.items = []\n\n"
    push = "    def push(self, x):\n        self.items.append([0] * 100)\n\n\n"
    use = "def f():\n    s = Stack()\n    for i in range(1000):\n        s.push(i)\n    return s\n"
    [facts] = [
        analysed.code.work
        for analysed in Analyser().analyse(ParsedSource((stack + push + use).encode(), "python"), Path("stack.py"))
        if analysed.unit.qualname == "f"
    ]
    assert facts is not None
    assert facts.memory.known.likely == pytest.approx(1000 * 865, rel=0.05)


@pytest.mark.parametrize(
    ("named", "called"),
    [
        (
            "out = []\n    add = out.append\n    for x in items:\n        add(x)\n",
            "out = []\n    for x in items:\n        out.append(x)\n",
        ),
        ("find = names.index\n    return [find(x) for x in items]\n", "return [names.index(x) for x in items]\n"),
    ],
)
def test_a_name_that_is_bound_once_to_a_method_is_that_method(named: str, called: str) -> None:
    head = "def f(items: list[int], names: list[int]):\n    "
    first, second = facts_of(head + named), facts_of(head + called)
    assert first.unknown == second.unknown == ()
    assert first.latency.typical == pytest.approx(second.latency.typical, rel=0.05)


def test_a_name_that_is_bound_again_is_not_a_method() -> None:
    facts = facts_of("def f(items: list[int], go):\n    add = items.append\n    add = go\n    add(1)\n")
    assert [name for name, _ in facts.unknown] == ["add()"]


@pytest.mark.parametrize(
    ("call", "unknown"),
    [
        ("self.items.get(key)", ()),
        ("await self.items.get(key)", ("self.items.get()",)),
        ("self.items.get(key, id=1)", ("self.items.get()",)),
        ("self.items.split(maxsplit=1)", ()),
    ],
)
def test_a_method_that_containers_have_is_theirs_where_they_can_be_called_so(
    call: str, unknown: tuple[str, ...]
) -> None:
    facts = facts_of(f"async def f(self, key):\n    return {call}\n")
    assert tuple(name for name, _ in facts.unknown if name.endswith("()")) == unknown
