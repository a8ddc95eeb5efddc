"""Entries of what the interpreter of the language does: loops, calls, attributes, operators, displays."""

from __future__ import annotations

from .entries import Entry, step

_THING = """
class Thing:
    def __init__(self):
        self.field = 1
    def method(self, value):
        return value
    def plain(self):
        pass
thing = Thing()
"""
_FUNCTION = """
def function(value):
    return value
"""
_ITEMS = "items = list(range(1000))"
_EACH = "for i in items:\n    pass"


def _turns(snippet: str, baseline: str = "pass", setup: str = _ITEMS, name: str = "") -> Entry:
    """A cost per turn of a loop over 1000 items; the loop itself is in the baseline."""
    return step(name, snippet, setup, baseline=baseline, unroll=1, per=1000)


ENTRIES = (
    _turns("for i in items:\n    pass", name="loop.for"),
    step("loop.start", "for i in a:\n    pass", "a = ()"),
    # A range makes its numbers: what that takes beyond a step over a list.
    step("loop.range", "for i in range(1000, 2000):\n    pass", _ITEMS, baseline=_EACH, unroll=1, per=1000),
    # The garbage collector looks at each container that stays alive several times, and more often misses the cache.
    Entry(
        "gc.tracked",
        "[[x] * 4 for x in a]",
        "import gc\na = list(range(n))",
        "n^1.4",
        (3_000, 30_000, 300_000),
        "gc.disable()\n[[x] * 4 for x in a]\ngc.enable()",
    ),
    Entry(
        "gc.tuple",
        "list(zip(a, a))",
        "import gc\na = list(range(n))",
        sizes=(3_000, 30_000, 300_000),
        baseline="gc.disable()\nlist(zip(a, a))\ngc.enable()",
    ),
    step(
        "loop.while",
        "i = 1000\nwhile i:\n    i -= 1",
        baseline="i = 1000\n" + "i -= 1\n" * 1000,
        unroll=1,
        per=1000,
    ),
    step("call.function", "function(a)", _FUNCTION + "a = 1"),
    step("call.method", "thing.method(a)", _THING + "a = 1"),
    step("call.builtin", "len(a)", "a = [1]"),
    step("call.keyword", "function(value=a)", _FUNCTION + "a = 1", baseline="function(a)"),
    step("load.attribute", "thing.field", _THING),
    # A global of the timed function; a name read in a loop is cached by the interpreter.
    step("load.global", "len", baseline="a", setup="a = 1"),
    step("binary.int", "a + b", "a, b = 12345, 678"),
    step("binary.float", "a * b", "a, b = 12345.5, 6.78"),
    step("divide.int", "a // b", "a, b = 12345, 678"),
    step("divide.true", "a / b", "a, b = 12345, 678"),
    step("modulo.int", "a % b", "a, b = 12345, 678"),
    step("power.int", "a ** b", "a, b = 12, 3"),
    step("power.float", "a ** b", "a, b = 12.5, .5"),
    step("unary", "-a", "a = 12345"),
    step("compare", "a < b", "a, b = 12345, 678"),
    step("compare.text", "a == b", "a, b = 'abcdefgh', 'abcdefgi'"),
    step("subscript.list", "a[i]", "a, i = [1, 2, 3], 1"),
    step("subscript.tuple", "a[i]", "a, i = (1, 2, 3), 1"),
    step("subscript.dict", "a[i]", "a, i = {'x': 1, 'key': 2}, 'key'"),
    step("subscript.text", "a[i]", "a, i = 'abc', 1"),
    step("store.subscript", "a[i] = i", "a, i = [1, 2, 3], 1"),
    step("store.dict", "a[i] = i", "a, i = {'x': 1, 'key': 2}, 'key'"),
    step("delete.dict", "a[i] = i\ndel a[i]", "a, i = {'x': 1, 'key': 2}, 'key'", baseline="a[i] = i"),
    step("store.attribute", "thing.field = a", _THING + "a = 1"),
    step("assign", "b = a", "a = 1"),
    step("store.global", "counter = a", "global counter\na = 1"),
    step("branch", "if a:\n    pass", "a = False"),
    step("boolean", "a and b", "a, b = True, False"),
    step("is", "a is None", "a = 1"),
    step("lambda", "lambda x: x"),
    step("def", "def inner(x):\n    return x"),
    step("class", "class Inner:\n    def method(self):\n        return 1", unroll=1),
    step("object", "Plain()", "class Plain:\n    pass"),
    step("object.init", "Thing()", _THING),
    step("unpack", "x, y = a", "a = (1, 2)"),
    step("try", "try:\n    pass\nexcept ValueError:\n    pass"),
    step("raise", "try:\n    raise ValueError(a)\nexcept ValueError:\n    pass", "a = 1"),
    step("assert", "assert a", "a = 1"),
    step(
        "with",
        "with context:\n    pass",
        "class Context:\n    def __enter__(self):\n        return self\n"
        "    def __exit__(self, *rest):\n        return None\ncontext = Context()",
    ),
    step("import", "import math"),
    step("import.from", "from math import sqrt"),
    step("fstring", "f'{a}'", "a = 'abcdef'"),
    step("fstring.int", "f'{a}'", "a = 12345"),
    step("fstring.float", "f'{a:.2f}'", "a = 1234.5678"),
    step("fstring.spec", "f'{a:05d}'", "a = 12345", baseline="f'{a}'"),
    step("percent", "'%s: %d' % (a, b)", "a, b = 'abc', 12"),
    # What a call of a generator function takes, and each item that it yields.
    Entry(
        "yield",
        "for x in generate():\n    pass",
        "items = list(range(n))\ndef generate():\n    for x in items:\n        yield x",
        sizes=(1, 10, 1000, 10_000),
        baseline="for x in items:\n    pass\nfor x in items:\n    pass",
    ),
    step(
        "await",
        "asyncio.run(main())",
        "import asyncio\nasync def inner():\n    pass\n"
        "async def main():\n    for _ in range(2000):\n        await inner()",
        baseline="asyncio.run(inner())",
        unroll=1,
        per=2000,
    ),
    step("asyncio.run", "asyncio.run(inner())", "import asyncio\nasync def inner():\n    pass", unroll=1),
    step("match", "match a:\n    case 1:\n        pass\n    case 2:\n        pass", "a = 2"),
    Entry("build.list", lambda n: f"[{', '.join(['a'] * n)}]", "a = 1", sizes=(1, 10, 100), unroll=10),
    Entry("build.tuple", lambda n: f"({', '.join(['a'] * n)},)", "a = 1", sizes=(1, 10, 100), unroll=10),
    Entry(
        "build.dict",
        lambda n: "{" + ", ".join(f"'key{i}': a" for i in range(n)) + "}",
        "a = 1",
        sizes=(1, 10, 100),
        unroll=10,
    ),
    Entry(
        "build.set",
        lambda n: "{" + ", ".join(f"'key{i}'" for i in range(n)) + ", a}",
        "a = 1",
        sizes=(1, 10, 100),
        unroll=10,
    ),
    # A loop step is part of both; the interpreter spends it apart.
    Entry(
        "comprehension",
        "[x for x in items]",
        "items = list(range(n))",
        sizes=(1, 10, 1000, 100_000),
        baseline="for x in items:\n    pass",
    ),
    Entry(
        "comprehension.dict",
        "{x: x for x in items}",
        "items = list(range(n))",
        sizes=(1, 10, 1000, 100_000),
        baseline="for x in items:\n    pass",
    ),
    Entry(
        "comprehension.set",
        "{x for x in items}",
        "items = list(range(n))",
        sizes=(1, 10, 1000, 100_000),
        baseline="for x in items:\n    pass",
    ),
    # Mostly a function consumes it, which takes longer for each item than a loop.
    Entry(
        "generator",
        "deque((y for y in items), maxlen=0)",
        "from collections import deque\nitems = list(range(n))",
        sizes=(1, 10, 1000, 10_000),
        baseline="for x in items:\n    pass\ndeque(items, maxlen=0)",
    ),
    _turns("r = []\nfor x in items:\n    r.append(x)", "r = []\nfor x in items:\n    pass", name="list.append"),
    _turns("r = set()\nfor x in items:\n    r.add(x)", "r = set()\nfor x in items:\n    pass", name="set.add"),
    Entry("concat.text", "a + b", "a = 'x' * (n // 2)\nb = 'y' * (n // 2)", unroll=4),
    # ``text += piece`` on a local name grows in place.
    step(
        "append.text",
        "s = ''\nfor i in items:\n    s += 'abcde'",
        _ITEMS,
        baseline="for i in items:\n    pass",
        unroll=1,
        per=1000,
    ),
    Entry("concat.list", "a + b", "a = [1] * (n // 2)\nb = [2] * (n // 2)"),
    Entry("concat.tuple", "a + b", "a = (1,) * (n // 2)\nb = (2,) * (n // 2)"),
    Entry("repeat.list", "a * n", "a = [None]", sizes=(10, 1000, 100_000, 1_000_000)),
    Entry("repeat.text", "a * n", "a = 'x'", sizes=(10, 1000, 100_000, 1_000_000)),
    Entry("slice", "a[1:n]", "a = list(range(n))", sizes=(5, 100, 10_000, 100_000)),
    Entry("slice.text", "a[1:n]", "a = 'x' * n", sizes=(5, 100, 10_000, 100_000)),
    Entry("slice.tuple", "a[1:n]", "a = (1,) * n", sizes=(5, 100, 10_000, 100_000)),
    Entry("contains.list", "x in a", "a = list(range(1000, 1000 + n))\nx = -7", sizes=(5, 100, 10_000, 100_000)),
    Entry(
        "contains.list.text", "x in a", "a = [f'key{i}' for i in range(n)]\nx = 'key'", sizes=(5, 100, 10_000, 100_000)
    ),
    Entry("contains.text", "x in a", "a = 'abcdefgh ' * (n // 9 + 1)\nx = 'zzz'", sizes=(9, 900, 90_000)),
    step("contains.set", "x in a", "a = set(range(1000))\nx = 77"),
    step(
        "contains.set.large",
        "for x in items:\n    x in a",
        "import random\na = set(range(1_000_000))\nitems = random.Random(1).sample(range(1_000_000), 10_000)",
        baseline="for x in items:\n    pass",
        unroll=1,
        per=10_000,
    ),
    step("contains.range", "x in a", "a = range(100000)\nx = 77"),
    Entry("compare.list", "a == b", "a = list(range(1000, 1000 + n))\nb = list(range(1000, 1000 + n))"),
    Entry(
        "bigint.multiply",
        "a * b",
        "a = (1 << (30 * n)) - 12345\nb = (1 << (30 * n)) - 54321",
        "n^1.585",
        (100, 1000, 10_000),
    ),
    Entry("bigint.add", "a + b", "a = (1 << (30 * n)) - 12345\nb = (1 << (30 * n)) - 54321", sizes=(10, 1000, 100_000)),
    Entry(
        "bigint.divide", "a // b", "a = (1 << (30 * n)) - 12345\nb = (1 << (15 * n)) - 54321", "n^2", (10, 100, 1000)
    ),
    Entry("bigint.divide.small", "a // b", "a = (1 << (30 * n)) - 12345\nb = 54321", sizes=(10, 1000, 100_000)),
    Entry("bigint.small", "a * b", "a = (1 << (30 * n)) - 12345\nb = 54321", sizes=(10, 1000, 100_000)),
    Entry(
        "bigint.text",
        "str(a)",
        "import sys\nsys.set_int_max_str_digits(0)\na = (1 << (30 * n)) - 12345",
        "n^2",
        (10, 100, 1000, 3000),
    ),
    Entry("bigint.shift", "1 << k", "k = 30 * n", sizes=(10, 1000, 100_000)),
)
