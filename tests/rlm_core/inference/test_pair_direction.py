"""Which of two functions costs more: only what holds whatever the unknown parts of both cost is stated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from rlm_core.inference.pair_direction import Direction, differ_by_guards, direction
from rlm_core.inference.pair_facts import with_pair_facts
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText, SizeValue, WorkFacts

from .test_work_mixture import SOME_FACTS


def _call(text: str) -> CodeText:
    units = Analyser().analyse(ParsedSource(text.encode(), "python"))
    return next(unit.code for unit in units if unit.unit.qualname.rpartition(".")[2] == "f")


def _sign(before: str, after: str, **sizes: float) -> int:
    """1 if the second text is said to cost more, -1 if less, 0 if nobody can tell; the same in the other order."""
    first, second = with_pair_facts(_call(before), _call(after))
    given = tuple(SizeValue(name.replace("__", "[]"), value) for name, value in sizes.items())
    there = direction(first, replace(second, sizes=given))
    back = direction(second, replace(first, sizes=given))
    assert _sign_of(there) == -_sign_of(back)
    return _sign_of(there)


def _sign_of(change: Direction | None) -> int:
    return 0 if change is None else 1 if change.likely > 0 else -1


@given(SOME_FACTS, SOME_FACTS)
def test_a_direction_is_undone_by_its_reverse(before: WorkFacts, after: WorkFacts) -> None:
    first, second = (CodeText("def f(a): pass", "python", "call", work=work) for work in (before, after))
    there, back = direction(first, second), direction(second, first)
    assert (there is None) == (back is None)
    if there is not None and back is not None:
        assert there.likely == pytest.approx(-back.likely)
    assert direction(first, first) is None


LOOP = "    for _ in range(1000):\n        pass\n"
EACH = "    for x in a:\n        n += 1\n"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("    fetch(a)\n", "    fetch(a)\n" + LOOP, 1),  # what both call cancels
        ("    fetch(a)\n", "    load(a)\n", 0),
        ("    fetch(a)\n" + LOOP, "    load(a)\n", 0),  # a call may take as long for a large argument
        ("    pass\n", "    fetch(a)\n" + LOOP, 1),
        ("    n += 1\n", "    fetch(a)\n    load(a)\n", 1),
        ("    a + 1\n", "    a + 1\n    a + 2\n", 1),
        ("    a.b\n", "    a.c\n", 0),
        ("    a.b\n" + LOOP, "    a.c\n", -1),
        ("    len(a)\n", "    a.measured()\n", 0),
        (EACH, EACH + EACH, 1),
        (EACH, EACH.replace("n += 1", "for y in a:\n            n += 1"), 1),
        ("    for x in a:\n        if x:\n            return n\n", "    for x in a:\n        n += len(a)\n", 1),
        ("    while a.left():\n        n += 1\n", "    for x in a:\n        n += 1\n", 0),
        ("    return [Order(x) for x in a]\n", "    return [x.copied() for x in a]\n", 0),  # its base is not known
        ("    return [fetch(x) for x in a]\n", "    for x in a:\n        yield fetch(x)\n", 0),
        ("    x = n + 1\n    fetch(a)\n", "    fetch(a)\n", 0),  # far less than what is not known
    ],
)
def test_a_direction_holds_for_every_cost_of_what_is_unknown(before: str, after: str, said: int) -> None:
    assert _sign(*(f"def f(a, n=0):\n{body}    return n\n" for body in (before, after))) == said


def test_facts_of_which_one_text_was_not_read_decide_nothing() -> None:
    read, unread = _call(f"def f(a):\n{LOOP}"), replace(_call("def f(a): pass\n"), work=WorkFacts(unknown_calls=2.0))
    assert direction(read, unread) is None
    assert direction(unread, read) is None
    assert direction(replace(read, work=None), read) is None


def test_a_new_wait_is_never_cheaper() -> None:
    before = "def f(a):\n    return sorted(a)\n"
    after = "import requests\n\ndef f(a):\n    return requests.get(a)\n"
    assert _sign(before, after) >= 0
    slept = "import time\n\ndef f(a):\n    time.sleep(1)\n    return sorted(a)\n"
    assert _sign(before, slept) == 1


QUEUE = """
def f(jobs, run):
    left = []
    for job in jobs:
        left.append(job)
    while left:
        run(left.pop(0))
"""
DEQUE = (
    QUEUE.replace("\ndef", "\nfrom collections import deque\n\ndef")
    .replace("[]", "deque()")
    .replace("pop(0)", "popleft()")
)
ONCE = """
def f(links):
    seen = []
    for link in links:
        if link in seen:
            continue
        seen.append(link)
    return seen
"""
IN_SET = ONCE.replace("[]", "set()").replace("append", "add")
PACKED = """
def f(codes):
    packed = b""
    for code in codes:
        packed += code.packed()
    return packed
"""
FLAT = "def f(rows):\n    return sum(rows, ())\n"
CHAINED = "from itertools import chain\n\ndef f(rows):\n    return tuple(chain.from_iterable(rows))\n"
FRAME = """
import pandas as pd

def f(readings):
    table = pd.DataFrame(columns=["at", "value"])
    for at, value in readings:
        table = pd.concat([table, pd.DataFrame({"at": [at], "value": [value]})])
    return table
"""
ONE_FRAME = (
    "import pandas as pd\n\ndef f(readings):\n    return pd.DataFrame(list(readings), columns=['at', 'value'])\n"
)
LOG = """
class Log:
    def f(self, events):
        for event in events:
            self.text += event
        return self.text
"""
JOINED = """
class Log:
    def f(self, events):
        parts = []
        for event in events:
            parts.append(event)
        self.text += "".join(parts)
        return self.text
"""
ARRAY = """
import numpy as np

def f(n):
    cubes = np.array([])
    for i in range(n):
        cubes = np.append(cubes, i**3)
    return cubes
"""
FILLED = ARRAY.replace("np.array([])", "np.empty(n)").replace("cubes = np.append(cubes, i**3)", "cubes[i] = i**3")
ROWS = """
import pandas as pd

def f(sales: pd.DataFrame):
    totals = []
    for _, row in sales.iterrows():
        totals.append(row["price"] * row["count"])
    return totals
"""
COLUMNS = "import pandas as pd\n\ndef f(sales: pd.DataFrame):\n    return sales['price'] * sales['count']\n"
PATTERN = "import re\n\nKEY = re.compile({})\n\ndef f(line):\n    return KEY.match(line) is not None\n"
NAMES = "def f(pairs):\n    return set(sum(pairs, ()))\n"
ADDED = "def f(pairs):\n    names = set()\n    for pair in pairs:\n        names.update(pair)\n    return names\n"


@pytest.mark.parametrize(
    ("slow", "fast", "sizes"),
    [
        pytest.param(QUEUE, DEQUE, {"jobs": 1e5}, id="a list that is shifted for each item"),
        pytest.param(ONCE, IN_SET, {"links": 5e3}, id="membership in a list that grows"),
        pytest.param(PACKED, PACKED.replace('b""', "bytearray()"), {"codes": 1e5}, id="bytes that grow"),
        pytest.param(FLAT, CHAINED, {"rows": 1e4, "rows__": 3}, id="a sum of tuples"),
        pytest.param(NAMES, ADDED, {"pairs": 1e4, "pairs__": 2}, id="a sum of tuples for a set"),
        pytest.param(FRAME, ONE_FRAME, {"readings": 1e3}, id="a table that grows by rows"),
        pytest.param(LOG, JOINED, {"events": 1e5}, id="text that grows in an attribute"),
        pytest.param(ARRAY, FILLED, {"n": 1e4}, id="an array that grows"),
        pytest.param(ROWS, COLUMNS, {"sales": 1e4}, id="a table by rows"),
        pytest.param(PATTERN.format("r'^(x+x*)+$'"), PATTERN.format("r'^x+$'"), {"line": 40}, id="nested repeats"),
    ],
)  # fmt: skip
def test_the_cheaper_text_at_sizes_is_the_one_that_does_not_copy(slow: str, fast: str, sizes: dict[str, float]) -> None:
    assert _sign(slow, fast, **sizes) == -1


SCANS = """
import re

OPEN, CLOSE = re.compile("<"), re.compile(">")

def f(text):
    at = 0
    while at < len(text):
        one, other = OPEN.search(text, at), CLOSE.search(text, at)
        if one is None or other is None:
            break
        at = max(one.end(), other.end())
    return at
"""


@pytest.mark.parametrize(
    ("before", "after", "sizes"),
    [
        # How far each search gets depends on the text.
        (SCANS, 'import re\n\nANY = re.compile("[<>]")\n\ndef f(text):\n    return ANY.sub("", text)\n', {"text": 1e4}),
        ("def f(a, b):\n    return [x for x in a]\n", "def f(a, b):\n    return [x for x in b]\n", {"a": 100}),
        ("def f(a):\n    fetch(a)\n", "def f(a):\n    for x in a:\n        load(x)\n", {"a": 3}),
    ],
)
def test_sizes_decide_nothing_that_depends_on_values(before: str, after: str, sizes: dict[str, float]) -> None:
    assert _sign(before, after, **sizes) == 0


def test_sizes_turn_a_direction_round() -> None:
    before = "def f(a: list[int], n: int):\n    return [x for x in a if x in range(n)]\n"
    after = "def f(a: list[int], n: int):\n    known = set(range(n))\n    return [x for x in a if x in known]\n"
    assert _sign(before, after, a=10, n=1e6) == 1
    scan = before.replace("range(n)", "list(range(n))")
    assert _sign(scan, after, a=1e4, n=1e4) == -1


def test_a_changed_default_or_decorator_is_not_a_guard() -> None:
    text = "def f(rows=100):\n    if not rows:\n        return\n    print(sum(range(rows)))\n"
    branch = "def f(rows=100):\n    if rows:\n        print(sum(range(rows)))\n"
    before, same, default, cached = (
        CodeText(one, "python", "call")
        for one in (text, branch, branch.replace("100", "10_000_000"), f"@functools.cache\n{branch}")
    )
    assert differ_by_guards(before, same)
    assert not differ_by_guards(before, default)
    assert not differ_by_guards(before, cached)
