"""The machine computes what Python computes, counts on the way, and refuses what it cannot bound."""

from __future__ import annotations

import ast
import inspect
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from rlm_core.source.work.trial import library
from rlm_core.source.work.trial.values import Refused

from ..counting import TooLongError, ran
from ..programs import programs
from . import cases
from .running import run

FUNCTIONS = [
    value for value in vars(cases).values() if inspect.isfunction(value) and value.__module__ == cases.__name__
]
IMPORTS = "".join(
    f"{line}\n" for line in inspect.getsource(cases).splitlines() if line.startswith(("import ", "from "))
).replace("from __future__ import annotations\n", "")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_machine_returns_what_python_returns(function: Callable[[], Any]) -> None:
    assert run(IMPORTS + inspect.getsource(function), function.__name__)[0] == function()


@settings(max_examples=150)
@given(programs())
def test_random_loops_run_as_often_as_in_python(text: str) -> None:
    try:
        expected = ran(text)
    except TooLongError:
        return
    calls = 0

    def sleep(budget: Any, seconds: float) -> None:
        nonlocal calls
        calls += 1

    kept = library.FUNCTIONS["time.sleep"]
    library.FUNCTIONS["time.sleep"] = sleep
    try:
        run(f"import time\n{text}", steps=3_000_000)
    finally:
        library.FUNCTIONS["time.sleep"] = kept
    assert calls == expected


def test_loops_conditions_and_calls_are_counted() -> None:
    text = """
    def f():
        def halve(n):
            steps = 0
            while n > 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
            return steps
        return [halve(n) for n in (1, 6, 7)]
    """
    result, seen = run(text)
    assert result == [0, 8, 16]
    [loop] = [found for found in seen.loops.values() if isinstance(found.node, ast.While)]
    assert seen.trips(loop.node) == 8
    [test] = seen.tallies.values()
    assert test.times == 24
    assert 0 < test.hits < 24


def test_recursive_calls_are_counted_for_each_call_from_outside() -> None:
    text = """
    def f():
        def down(n):
            return 0 if n == 0 else down(n - 1)
        return down(3), down(5)
    """
    _, seen = run(text)
    [down] = [node.node for node in seen.functions.values() if getattr(node.node, "name", "") == "down"]
    assert seen.calls(down) == 5


def test_a_sample_of_a_long_loop_is_spread_over_it() -> None:
    text = "def f():\n    return [i for i in range(1600)], [i for i in range(5)]"
    (long, short), _ = run(text, samples=True)
    assert len(long) == 16
    assert all(100 * at <= value < 100 * (at + 1) for at, value in enumerate(long))
    assert short == list(range(5))


@pytest.mark.parametrize(
    "body",
    [
        "return open('x')", "return __import__('os')", "return eval('1')", "import os\n    return os.getcwd()",
        "return ().__class__", "return (1).__class__.__mro__", "return '{0.real}'.format(1)", "return '%*d' % (1, 2)",
        "return globals()", "with a as b:\n        pass", "return print.__self__", "return f.__globals__",
        "class A(dict):\n        pass\n    return A()", "return getattr(1, 'real')", "return type(print)",
        "return [].__len__()", "return str.mro", "raise SystemExit",
        "import json\n    return json.load(1)", "import csv, io\n    return csv.writer(open('x', 'w'))",
        "@property\n    def g():\n        pass\n    return g", "import decimal\n    return decimal.getcontext()",
        "class A:\n        x = property(None)\n    return A()", "return '{a[0]}'.format(a=[1])",
        "return int.__subclasses__",
        "class A:\n        pass\n    return A().__dict__", "class A:\n        pass\n    return A.__mro__",
        "class A(metaclass=type):\n        pass\n    return A.__subclasses__()",
        "async def g():\n        pass\n    g()",
        "import copy\n    return copy.deepcopy(f)", "import json\n    return json.dumps(1, default=print)",
        "import functools\n    return functools.partial(open)",
    ],
)  # fmt: skip
def test_what_is_not_listed_is_refused(body: str) -> None:
    with pytest.raises(Refused):
        run(f"def f():\n    {body}")


_BOMB_SETUP = """
import collections, copy, csv, dataclasses, decimal, fractions, functools, io, itertools, json, math, random, statistics
import textwrap

@dataclasses.dataclass
class Pair:
    left: object
    right: object

def data(depth):
    value = 1
    for _ in range(depth):
        value = Pair(value, value)
    return value

def nested(depth):
    value = [1]
    for _ in range(depth):
        value = [value, value]
    return value

def padded():
    file = io.StringIO()
    file.seek(10 ** 9)
    file.write('x')
    return file.getvalue()

def written():
    file = io.StringIO()
    for _ in range(1_000):
        file.write('x' * 90_000)
    return file

def squares():
    n = 0
    while True:
        yield n * n
        n += 1

def endless():
    while True:
        yield 'x' * 1000

"""


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "expression",
    [
        "9 ** 9 ** 9",
        "1 << 10 ** 9",
        "'a' * 10 ** 9",
        "list(range(10 ** 9))",
        "sum(range(10 ** 12))",
        "max(itertools.count())",
        "list(itertools.repeat(0))",
        "next(filter(None, itertools.repeat(0)))",
        "5 in itertools.count(6)",
        "list(itertools.product(range(99), repeat=8))",
        "list(itertools.islice(itertools.count(), 10 ** 12, None))",
        "collections.deque(range(10 ** 9))",
        "math.factorial(10 ** 6)",
        "round(10, -10 ** 9)",
        "'x'.rjust(10 ** 9)",
        "bytes(10 ** 9)",
        "[bytes(90_000) for _ in range(20_000)]",
        "['x'.ljust(90_000) for _ in range(20_000)]",
        "[f'{a}{a}' for a in ['x' * 40_000] for _ in range(20_000)]",
        "[' '.join('x' * 40_000) for _ in range(20_000)]",
        "[list('x' * 9_000) for _ in range(20_000)]",
        "[('x' * 40_000).upper() for _ in range(20_000)]",
        "math.prod(range(1, 10 ** 5))",
        "[*range(10 ** 9)]",
        "sum([[1]] * 90_000, [])",
        "functools.reduce(lambda a, b: a * b, range(1, 10 ** 6))",
        "'ab'.replace('', 'x' * 90000)",
        "pow(3, 10 ** 200, 10 ** 200)",
        "random.choices([1], k=10 ** 9)",
        "random.choices([1], weights=itertools.repeat(1))",
        "random.sample(range(10 ** 9), 10 ** 8)",
        "random.Random(1).getrandbits(10 ** 10)",
        "list(endless())",
        "'%1000000000d' % 1",
        "'{:1000000000}'.format(1)",
        "f'{1:1000000000}'",
        "format(1.5, '.1000000000f')",
        "decimal.Decimal('1e999999999') + 1",
        "int(decimal.Decimal('9e400000'))",
        "fractions.Fraction('1e999999999')",
        "fractions.Fraction(3, 2) ** 10 ** 9",
        "sum(fractions.Fraction(1, n) for n in range(1, 10 ** 6))",
        "bytearray(10 ** 9)",
        "[bytearray(90_000) for _ in range(20_000)]",
        "(1).to_bytes(10 ** 9, 'big')",
        "'x'.translate({120: 'y' * 90_000}) * 9_000",
        "json.dumps(nested(60))",
        "json.dumps([1], indent=10 ** 9)",
        "copy.deepcopy(nested(60))",
        "padded()",
        "[written() for _ in range(10 ** 6)]",
        "textwrap.wrap('x' * 90_000)",
        "textwrap.fill('x y', initial_indent=' ' * 90_000)",
        "dict.fromkeys(range(10 ** 9))",
        "list(itertools.chain.from_iterable(itertools.repeat([1])))",
        "str(data(40))",
        "data(40) == data(40)",
        "repr(nested(60))",
        "functools.partial(list, range(10 ** 9))()",
        "sorted(range(90_000), key=functools.cmp_to_key(lambda a, b: a - b))",
        "statistics.mean(range(10 ** 9))",
        "'x'.join(str(n) for n in squares())",
        "dataclasses.asdict(data(40))",
        "[(1 << 290_000) * (1 << 290_000) for _ in range(10 ** 6)]",
        "[(3 ** 100_000) // (7 ** 50_000) for _ in range(10 ** 6)]",
        "[1 << 290_000 for _ in range(10 ** 6)]",
        "str(1 << 290_000)",
        "math.isqrt(1 << 290_000)",
        "[('x' * 900_000) + 'y' for _ in range(10 ** 6)]",
    ],
)
def test_a_value_that_would_be_too_large_ends_the_trial(expression: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Refused):
            run(f"{_BOMB_SETUP}def f():\n    return {expression}")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "lines",
    [
        ["while True:", "    pass"],
        ["x = [0]", "while True:", "    x += x"],
        ["x = 'a'", "while True:", "    x = x + x"],
        ["x = 3", "while True:", "    x = x * x"],
        [
            "x = []",
            "for _ in range(100):",
            "    x = [x, x]",
            "y = []",
            "for _ in range(100):",
            "    y = [y, y]",
            "return x == y",
        ],
        ["x = ()", "for _ in range(100):", "    x = (x, x)", "return {x}"],
        ["x = []", "for _ in range(60):", "    x = [x, x]", "return str(x)"],
        ["x = []", "x.append(x)", "return x == [x]"],
        ["def g():", "    return g()", "return g()"],
        ["x = set()", "while True:", "    x.add(len(x))"],
        ["a, *b = range(10 ** 9)"],
    ],
    ids=lambda lines: lines[-1],
)
def test_what_would_run_too_long_ends_the_trial(lines: list[str]) -> None:
    body = "\n    ".join(lines)
    with pytest.raises(Refused):
        run(f"def f():\n    {body}")
