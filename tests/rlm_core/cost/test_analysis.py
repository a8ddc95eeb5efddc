"""Facts of a unit: within a budget, and the same in every process and order."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import rlm_core
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.analysis import BUDGET, analyse, work_facts
from rlm_core.cost.scope import Texts
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CauseKind, WaitKind, WorkFacts

PRINT_FACTS = """
import sys
from pathlib import Path
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource

for path in map(Path, sys.argv[1:]):
    for unit in Analyser().analyse(ParsedSource(path.read_bytes(), "python"), path):
        print(unit.unit.qualname, unit.code.work)
"""
SOURCES = ("types/predictions.py", "source/call_graph.py", "source/solutions.py", "cost/structure/outline.py")


def test_facts_do_not_depend_on_the_order_of_sets() -> None:
    paths = [str(Path(rlm_core.__file__).parent / name) for name in SOURCES]
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINT_FACTS, *paths],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert printed.pop().count(b"WorkFacts(") > 50


def test_a_callee_beyond_its_share_of_the_budget_is_unknown_and_the_rest_is_read() -> None:
    huge = "def huge(a):\n" + "    a = [b + 1 for b in a if b > 2]\n" * 500
    facts = work_facts("def f(a):\n    huge(a)\n    time.sleep(2)\n", Texts({"huge": huge}))
    assert facts is not None
    assert facts.unknown_calls == 1
    assert [wait.kind for wait in facts.waits] == [WaitKind.TIME]
    assert work_facts(huge) is None


def test_facts_do_not_depend_on_what_was_analysed_before(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    (tmp_path / "__init__.py").touch()
    calling = "from .second import work\ndef f(n):\n    return work(n)\n"

    def facts(analyser: Analyser, path: Path) -> list[WorkFacts | None]:
        return [unit.code.work for unit in analyser.analyse(ParsedSource(path.read_bytes(), "python"), path)]

    first.write_text(calling)
    second.write_text("def work(n):\n    return sum(range(10))\n")
    analyser = Analyser()
    small = facts(analyser, first)
    second.write_text("def work(n):\n    return sum(range(1_000_000))\n")
    [large] = facts(analyser, first)
    assert [large] == facts(Analyser(), first) != small
    assert facts(analyser, second) == facts(Analyser(), second)
    assert large is not None
    assert large.latency.known.likely > 1e-3


def test_waits_carry_their_line_and_name() -> None:
    facts = _facts(
        "def f(u):\n    # first\n    time.sleep(2)\n\n    requests.get(u)\n"
        "    for i in range(3):\n        time.sleep(i)\n"
    )
    assert [(wait.kind, wait.line, wait.call) for wait in facts.waits] == [
        (WaitKind.TIME, 2, "time.sleep"),
        (WaitKind.NETWORK, 4, "requests.get"),
        (WaitKind.TIME, 6, "time.sleep"),
    ]
    assert [wait.seconds.likely for wait in facts.waits if wait.seconds] == [2, 3]


def test_facts_are_those_of_the_callee_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "work.py").write_text("def repeat(n, k):\n    for i in range(n * k):\n        x = i\n")
    path = tmp_path / "main.py"
    path.write_text(
        "from .work import repeat\ndef f(items):\n    repeat(len(items), 3)\ndef g():\n    repeat(1000, k=1000)\n"
    )
    first, second = (unit.code.work for unit in Analyser().analyse(ParsedSource(path.read_bytes(), "python"), path))
    assert first is not None
    assert second is not None
    assert [(entry.size, entry.degree) for entry in first.latency.growth] == [("items", 1)]
    assert second.fixed
    assert second.latency.known.least == second.latency.known.most > 1e-3


def test_causes_are_ordered_and_point_to_their_lines() -> None:
    facts = _facts(
        "def f():\n    x = [0] * 10**6\n    for i in range(10**5):\n        y = i\n"
        "    z = sorted(range(10**6))\n    return x\n"
    )
    causes = facts.latency.causes
    assert [cause.amount for cause in causes] == sorted((cause.amount for cause in causes), reverse=True)
    assert {(cause.kind, cause.line, cause.name) for cause in causes} >= {
        (CauseKind.LOOP, 2, "range(10 ** 5)"),
        (CauseKind.CALL, 4, "sorted"),
    }
    assert max(facts.memory.causes, key=lambda cause: cause.amount).line in (1, 4)
    assert all(cause.kind is CauseKind.ALLOCATION for cause in facts.memory.causes)


def test_a_callee_is_a_cause_at_the_line_that_calls_it() -> None:
    loop = "def g():\n    x = 0\n    for i in range(10**6):\n        x += i\n"
    facts = work_facts("def f():\n    a = 1\n    g()\n", Texts({"g": loop}))
    assert facts is not None
    assert facts.latency.causes[0].line == 2


def test_methods_on_self_are_read(tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text(
        "import time\nclass C:\n    def __init__(self):\n        self.items = []\n    def wait(self, n):\n"
        "        time.sleep(n)\n    def run(self):\n        self.wait(3)\n"
        "        for item in self.items:\n            x = item\n"
    )
    units = Analyser().analyse(ParsedSource(path.read_bytes(), "python"), path)
    [facts] = [unit.code.work for unit in units if unit.unit.qualname == "C.run"]
    assert facts is not None
    assert [wait.seconds.likely for wait in facts.waits if wait.seconds] == [3]
    assert [entry.size for entry in facts.latency.growth] == ["self.items"]


def test_a_program_runs_its_statements_and_the_entry_of_its_solution() -> None:
    statements = _facts("import time\nfor i in range(4):\n    time.sleep(1)\ntime.sleep(1)\n")
    assert sum(wait.seconds.likely for wait in statements.waits if wait.seconds) == 5
    solution = _facts(
        "class Solution:\n    def solve(self, n):\n        return self.help(n)\n    def help(self, n):\n"
        "        for i in range(n):\n            for j in range(n):\n                x = j\n"
    )
    assert [(entry.size, entry.degree) for entry in solution.latency.growth] == [("n", 2)]


HOSTILE = {
    "brackets": "def f():\n    return " + "(" * 500 + ")" * 500,
    "blocks": "def f(a):\n" + "".join("    " * (k + 1) + "if a:\n" for k in range(80)) + "    " * 81 + "pass\n",
    "loops": "def f(a):\n"
    + "".join("    " * (k + 1) + f"for i{k} in a:\n" for k in range(18))
    + "    " * 19
    + "pass\n",
    "sum": "def f(a):\n    return " + "+".join(["a"] * 5000),
    "lambdas": "def f(a):\n    return " + "lambda: " * 300 + "a",
    "attributes": "def f(a):\n    return a" + ".b" * 3000,
    "calls": "def f(a):\n    return a" + "()" * 3000,
    "strings": "def f():\n    return " + "'x' " * 10_000,
    "huge integer": "def f():\n    return " + "9" * 4000 + " ** " + "9" * 4000,
    "long integer": "def f():\n    return " + "9" * 50_000,
    "power tower": "def f():\n    return 9 ** 9 ** 9 ** 9 ** 9",
    "shift": "def f():\n    return 1 << 1 << 1000 << 10**9",
    "repetition": "def f():\n    return 'x' * 10**18 * 10**18",
    "range": "def f():\n    for i in range(10**400):\n        pass\n",
    "list": "def f():\n    return list(range(10**18)) * 10**300\n",
    "float": "def f():\n    return 1e308 * 1e308 - 1e308 * 1e308\n",
    "many arguments": "def f(" + ", ".join(f"a{k}" for k in range(2000)) + "):\n    return a1\n",
    "many branches": "def f(a):\n" + "".join(f"    if a == {k}:\n        x = {k}\n" for k in range(1000)),
    "long while": "def f():\n    n = 3\n    while n != 1:\n        n = n * 3 % 1000003\n",
    "self": "def f():\n    f = f\n    return f(f)(f)\n",
    "default": "def f(a=f(1), b=f):\n    return f(a, b)\n",
    "unicode": "def f(ä, 名):\n    return ä + 名\n",
    "surrogate": "def f():\n    return '\ud800'\n",
    "null": "def f():\n    return '\0'\n",
    "broken": "def f(:\n  retrun ]\n for while\n\t\tx = = 3\n",
    "empty": "",
    "decorators": "@f\n" * 500 + "def f(): pass\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_within_the_budget(name: str) -> None:
    facts = work_facts(HOSTILE[name])
    if facts is not None:
        assert facts.nodes <= BUDGET
        for cost in (facts.latency, facts.memory):
            amounts = (cost.known.least, cost.known.likely, cost.known.most, cost.typical, cost.large)
            assert all(math.isfinite(amount) and amount >= 0 for amount in amounts)


@pytest.mark.parametrize("size", [50, 500, 1500])
def test_the_budget_bounds_what_is_read_and_not_what_is_written(size: int) -> None:
    body = "".join(f"    x{k} = a[{k}] + {k}\n" for k in range(size))
    small, large = analyse(f"def f(a):\n{body}", budget=100), analyse(f"def f(a):\n{body}", budget=10**6)
    assert small is None
    assert large is not None
    assert large.facts.nodes == 6 * size


def test_cyclic_callees_and_cyclic_files_end(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    for name, other in (("first", "second"), ("second", "first")):
        (tmp_path / f"{name}.py").write_text(f"from .{other} import {other}\ndef {name}(n):\n    return {other}(n)\n")
    path = tmp_path / "first.py"
    [unit] = Analyser().analyse(ParsedSource(path.read_bytes(), "python"), path)
    assert unit.code.work is not None
    assert unit.code.work.nodes < 100


@settings(max_examples=60)
@given(st.text(st.sampled_from("def f(a):\n    return x+[]{}'=0123 whileforin"), max_size=150))
def test_any_text_has_facts_or_none(text: str) -> None:
    facts = work_facts(text)
    assert facts is None or facts.nodes <= BUDGET


@settings(max_examples=40)
@given(st.integers(1, 10**6), st.integers(1, 100))
def test_known_amounts_are_ordered_and_grow_with_literals(size: int, factor: int) -> None:
    small, large = (_facts(f"def f():\n    return [0] * {count}\n") for count in (size, size * factor))
    for metric in ("latency", "memory"):
        one, other = small.of(metric).known, large.of(metric).known
        assert one.least <= one.likely <= one.most
        assert one.least <= other.least
        assert one.most <= other.most


@settings(max_examples=30)
@given(st.integers(1, 1000))
def test_dependencies_are_the_functions_that_were_read(number: int) -> None:
    scope = Texts({"g": f"def g():\n    return {number}\n", "h": "def h():\n    return 1\n"})
    analysis = analyse("def f():\n    return g()\n", scope)
    assert analysis is not None
    assert [definition.qualname for definition in analysis.dependencies] == ["g"]


def _facts(text: str) -> WorkFacts:
    facts = work_facts(text)
    assert facts is not None
    return facts


def _read(text: str) -> WorkFacts:
    """The facts of the function in a text; what a rule of the library raises is raised."""
    source = "import concurrent.futures, itertools, numpy, time\n\n" + text
    [unit] = Analyser().analyse(ParsedSource(source.encode(), "python"))
    assert unit.code.work is not None
    return unit.code.work


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    for i in itertools.count():\n        if i % 7 == 3: pass\n",
        "def f():\n    for i in itertools.count(1, 0.1):\n        if i < 3: print(i)\n        elif i == 7: print(2)\n",
        f"def f(n):\n    if n > {2**2048 - 1942289}: return 0\n    return f(n + 1)\n",
        "def f(n):\n    while n < 0x" + "f" * 4_200 + ": n = n * 2\n    n.g(0x" + "f" * 4_200 + ").h()\n",
        "def f():\n    return b'' * 2**64\n",
        "def f():\n    k = [-2**63 * 100]\n    return k[0] * 'ab'\n",
        "def f(n=1.79e308): return f(n - 1e-09)\n",
        "def f(path, n=20_000):\n    if len(path) == n: return\n    for k in range(10**6):\n"
        "        path.append(k)\n        f(path)\n        path.pop()\n",
        "def f(n):\n    while numpy.float32(float('nan')): n += 1\n",
        "def f():\n    x = 10**308\n    while x != 0.3: x //= 5e-324\n",
        "def f():\n    time.sleep(10**400)\n    numpy.zeros(10**400)\n    bytes(10**400)\n",
        "def f():\n    return concurrent.futures.ThreadPoolExecutor(2).map(print, range(10**400))\n",
        "def f(n):\n    for i in range(10**200):\n        for j in range(10**200): i + j\n    return [x for x in n]\n",
    ],
)
def test_no_number_is_too_large(text: str) -> None:
    facts = _read(text)
    for cost in (facts.latency, facts.memory):
        assert 0 <= cost.known.least <= cost.known.most
        assert cost.known.likely >= 0
        assert cost.typical >= 0
    # JSON knows no infinity: a server and a data set would read something else.
    assert msgspec.json.decode(msgspec.json.encode(facts), type=WorkFacts) == facts


def test_a_tuple_of_tuples_of_the_same_is_read_once() -> None:
    doubling = "    t, u = (t, t), (u, u)\n" * 60
    _read(
        f"def f(n):\n    t = u = (n,)\n{doubling}    for k in t: t == u\n    return sorted([t, u]), str(t), hash(t)\n"
    )
