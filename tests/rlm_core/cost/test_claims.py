"""Strong claims: that a cost is exponential, and that a unit may not end. Each is made only where the text shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import WorkFacts


def facts_of(text: str) -> dict[str, WorkFacts]:
    """The facts of the functions of a file, by qualified name."""
    units = Analyser().analyse(ParsedSource(text.encode(), "python"))
    return {unit.unit.qualname: unit.code.work for unit in units if unit.code.work is not None}


def exponential(text: str) -> set[str]:
    """The functions whose latency is said to grow exponentially."""
    return {name for name, facts in facts_of(text).items() if any(term.base > 1 for term in facts.latency.growth)}


def endless(text: str) -> set[str]:
    """The functions that are said not to end."""
    return {name for name, facts in facts_of(text).items() if facts.endless is not None}


_VISITORS = [
    # One call for each kind of node: the branches exclude each other.
    """
def size(node):
    if isinstance(node, list):
        return sum(size(item) for item in node)
    if isinstance(node, dict):
        return sum(size(item) for item in node.values())
    if isinstance(node, tuple):
        return sum(size(item) for item in node)
    return 1
""",
    """
def plain(node, depth=0):
    if isinstance(node, dict):
        return {key: plain(value, depth + 1) for key, value in node.items()}
    elif isinstance(node, (list, tuple)):
        return [plain(value, depth + 1) for value in node]
    elif isinstance(node, set):
        return sorted(plain(value, depth + 1) for value in node)
    return node
""",
    """
def steps(n):
    if n <= 0:
        return 0
    if n % 3 == 0:
        return 1 + steps(n - 3)
    elif n % 2 == 0:
        return 1 + steps(n - 2)
    return 1 + steps(n - 1)
""",
    """
def find(items, wanted, low, high):
    if low >= high:
        return low
    middle = (low + high) // 2
    return find(items, wanted, middle + 1, high) if items[middle] < wanted else find(items, wanted, low, middle)
""",
    """
def read(text, position):
    try:
        return read(text, position - 1)
    except ValueError:
        return read(text, position - 2)
""",
    """
def ways(n, known):
    if known[n] is not None:
        return known[n]
    known[n] = ways(n - 1, known) + ways(n - 2, known)
    return known[n]
""",
    """
class Table:
    def distance(self, m, n):
        if m < 0 or n < 0:
            return m + n + 2
        elif self.table[m][n] > -1:
            return self.table[m][n]
        self.table[m][n] = 1 + min(self.distance(m - 1, n), self.distance(m, n - 1))
        return self.table[m][n]
""",
    """
def flood(grid, i, j):
    if grid[i][j] != 1:
        return
    grid[i][j] = 0
    flood(grid, i + 1, j)
    flood(grid, i - 1, j)
    flood(grid, i, j + 1)
    flood(grid, i, j - 1)
""",
    """
def visit(graph, n, seen):
    if n in seen:
        return
    seen.add(n)
    visit(graph, n - 1, seen)
    visit(graph, n - 2, seen)
""",
    """
def match(text, at=0, depth=0, most=None):
    if most is None:
        most = MOST_DEPTH
    if depth > most:
        raise ValueError("too deep")
    while at < len(text) and text[at] != ")":
        if text[at] == "(":
            part, at = match(text, at + 1, depth + 1, most)
        else:
            at += 1
    return text, at + 1
""",
    """
def expand(items):
    if not items:
        return []
    return [expand(items[0]), *expand(items[1:])]
""",
    """
class Steps:
    def ways(self, n):
        known = self.known.get(n)
        if known is None:
            known = self.known[n] = self.ways(n - 1) + self.ways(n - 2)
        return known
""",
]


@pytest.mark.parametrize("text", _VISITORS)
def test_calls_that_exclude_each_other_or_are_remembered_do_not_multiply(text: str) -> None:
    assert exponential(text) == set()


_METHODS = [
    """
class Window:
    def __init__(self, title):
        self.title = ""
        self.rename(title)

    def rename(self, title):
        if title != self.title:
            self.title = title
""",
    """
class Settings:
    def __init__(self, path):
        self.values = {}
        self.load(path)

    def load(self, path):
        for line in path.splitlines():
            self.values[line] = True
""",
    """
class Queue:
    def __init__(self, size):
        self.items = []
        self.run = lambda: self.drain(size)
        self.reset()

    def reset(self):
        self.items.clear()
        self.run()

    def drain(self, size):
        while self.items:
            self.items.pop()
        self.reset_all = lambda: self.reset()
""",
    """
class Pipeline:
    def __init__(self, steps):
        self.steps = steps

    def fit(self, data):
        for step in self.steps:
            data = step.fit(data)
        return data
""",
    """
class Container:
    def help(self):
        return self.options()

    def options(self):
        return "x"


class Group(Container):
    def help(self):
        return "<" + Container.help(self) + ">"


class Parser(Container):
    def __init__(self, groups):
        self.groups = groups

    def options(self):
        return "".join([group.help() for group in self.groups])
""",
    """
class Reader:
    def __init__(self, file):
        self.file = file

    def read(self, size):
        return self.file.read(size)


class Writer:
    def __init__(self, file):
        self.file = file

    def read(self, size):
        return self.file.read(size)
""",
    """
class Base:
    def text(self, width):
        return self.pad(width)

    def pad(self, width):
        return "x" * width


class Part(Base):
    def text(self, width):
        return Base.text(self, width)

    def pad(self, width):
        return super().pad(width)
""",
]


@pytest.mark.parametrize("text", _METHODS)
def test_a_method_of_another_object_or_of_init_is_not_recursion(text: str) -> None:
    assert exponential(text) == set()
    assert endless(text) == set()


_FORMER_SELVES = [
    """
def total(values):
    return sum(values)


_total = total


def total(values):
    return _total(values)
""",
    """
try:
    from fast import total
except ImportError:

    def total(values):
        return sum(values)


_total = total


def total(values):
    return _total(list(values))


def report(values):
    return str(total(values))
""",
    """
def size(path):
    return len(path)


original_size = size


def size(path, default=0):
    try:
        return original_size(path)
    except TypeError:
        return default
""",
]


@pytest.mark.parametrize("text", _FORMER_SELVES)
def test_a_function_that_wraps_its_former_self_ends(text: str) -> None:
    assert endless(text) == set()
    assert exponential(text) == set()


@pytest.mark.parametrize(
    "body",
    [
        "del items[0]",
        "del items[-1]",
        "del items[:10]",
        "del items[next(iter(items))]",
        "items.pop()",
        "items.remove(items[0])",
        "take(items)",
        "others = items\n        others.pop()",
        "items[:] = items[1:]",
        "items -= 1",
        "items = items[1:]",
    ],
)
def test_a_loop_whose_condition_may_change_ends(body: str) -> None:
    assert endless(f"def drain(items):\n    while items:\n        {body}\n") == set()


def test_a_name_for_the_same_object_may_change_it() -> None:
    assert endless("def drain(items, work):\n    rest = items\n    while items:\n        work(rest.pop())\n") == set()
    assert endless("def drain(items, work):\n    take = items.pop\n    while items:\n        work(take())\n") == set()


@pytest.mark.parametrize(
    "text",
    [
        "def serve(queue):\n    while True:\n        work(queue.get())\n",
        "def wait(flag, step):\n    while flag:\n        step()\n",
        "def count():\n    total = 1\n    while total > 0:\n        print(total)\n",
        "def again():\n    print('again')\n    again()\n",
        "import itertools\n\n\ndef serve(queue):\n    for number in itertools.count():\n        work(queue, number)\n",
        "def main(bus):\n    try:\n        while True:\n            bus.read()\n"
        "    except KeyboardInterrupt:\n        bus.close()\n",
    ],
)
def test_what_never_ends_is_still_said(text: str) -> None:
    assert len(endless(text)) == 1


def test_a_loop_whose_errors_are_caught_outside_may_end() -> None:
    loop = "def main(bus):\n    try:\n        while True:\n            bus.read()\n"
    assert endless(f"{loop}    except (OSError, KeyboardInterrupt):\n        pass\n") == set()


_OTHER_FUNCTIONS = [
    # Which function a name or an entry is depends on a condition, or on the data.
    """
def expression(parser, level):
    if level == 3:
        inner = parser.atom
    else:

        def inner():
            return expression(parser, level + 1)

    return inner()
""",
    """
def pair(trees):
    left, right = trees
    return handle(left), handle(right)


def name(trees):
    return trees[0]


def handle(tree):
    handlers = {"pair": pair, "name": name}
    return handlers[tree.data](tree.children)
""",
    """
class Parser:
    def binary(self):
        def expression(self, level):
            if level + 1 == len(OPERATORS):
                inner = self.atom
            else:

                def inner():
                    return expression(self, level + 1)

            return inner()

        return expression(self, 0)


OPERATORS = ["or", "and"]
""",
    # With another function to call, a function does something else.
    """
class Parser:
    def separated(self, parse):
        items = [parse()]
        while self.comma():
            items.append(parse())
        return items

    def drop(self):
        return self.separated(lambda: self.drop_one())

    def drop_one(self):
        return self.separated(self.name)
""",
    # What ends an endless iterator may be an error.
    """
import itertools


class Cache:
    def evict(self):
        self.evict_some(itertools.count)

    def evict_some(self, numbers):
        try:
            [self.evict_one() for _ in numbers(100)]
        except IndexError:
            pass
""",
    # A method that replaces itself calls what it was replaced with.
    """
class Detector:
    def find(self):
        self.find = self.choose()
        return self.find()
""",
    # A function inside a function is no method.
    """
class Writer:
    def generator(left, right):
        def visit(self, node):
            self.write(left)
            self.visit(node.item)
            self.write(right)

        return visit
""",
    """
class Connection:
    async def start(self):
        return self

    def __await__(self):
        return self.start().__await__()
""",
    # The `break` of a loop's `else` leaves the loop around it.
    """
def differences(first, second):
    stack = [0]
    while True:
        for place, entry in enumerate(first):
            if entry != second[place]:
                stack.append(place)
                break
        else:
            stack.pop()
            break
""",
]


@pytest.mark.parametrize("text", _OTHER_FUNCTIONS)
def test_a_call_of_what_may_be_another_function_ends(text: str) -> None:
    assert endless(text) == set()
    assert exponential(text) == set()


def test_two_functions_that_call_each_other_without_a_condition_do_not_end() -> None:
    text = "def ping(n):\n    print(n)\n    pong(n + 1)\n\n\ndef pong(n):\n    print(n)\n    ping(n + 1)\n"
    assert endless(text) == {"ping", "pong"}
    assert exponential(text) == set()


def test_two_functions_that_call_each_other_under_a_condition_end() -> None:
    text = "def even(n):\n    return n == 0 or odd(n - 1)\n\n\ndef odd(n):\n    return n != 0 and even(n - 1)\n"
    assert endless(text) == set()
    assert exponential(text) == set()


@pytest.mark.parametrize(
    "text",
    [
        "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n",
        "def hanoi(n, a, b, c):\n    if n:\n        hanoi(n - 1, a, c, b)\n        hanoi(n - 1, b, a, c)\n",
        "def masks(items):\n    for mask in range(2 ** len(items)):\n        yield mask\n",
        "def tries(n, check):\n    if n == 0:\n        return check()\n"
        "    return tries(n - 1, check) or tries(n - 1, lambda: not check())\n",
        "def subsets(items, index=0):\n    if index == len(items):\n        return 1\n"
        "    return subsets(items, index + 1) + subsets(items, index + 1)\n",
    ],
)
def test_what_grows_exponentially_is_still_said(text: str) -> None:
    assert len(exponential(text)) == 1


def test_a_coroutine_that_is_not_awaited_is_not_waited_for() -> None:
    text = """\
import asyncio
async def poll():
    while True:
        await asyncio.sleep(5)
async def started(tasks):
    tasks.append(supervised(poll(), name="poll"))
async def awaited():
    await poll()
async def together():
    await asyncio.gather(*[poll() for _ in range(3)], poll())
def main():
    asyncio.run(poll())
"""
    assert endless(text) == {"poll", "awaited", "together", "main"}


def test_a_function_that_has_the_name_of_a_builtin_is_not_called_in_other_files(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "generic.py").write_text("def reduced(values):\n    return all(value == 1 for value in values)\n")
    source = b"from .generic import reduced\n\ndef all(values):\n    return reduced(values)\n"
    (tmp_path / "a.py").write_bytes(source)
    [unit] = Analyser().analyse(ParsedSource(source, "python"), tmp_path / "a.py")
    assert unit.code.work is not None
    assert unit.code.work.endless is None


_TREE = """
class Node:
    def __init__(self, value):
        self.value = value
        self.left = self.right = None


def insert(node, value):
    if node is None:
        return Node(value)
    if value < node.value:
        node.left = insert(node.left, value)
    else:
        node.right = insert(node.right, value)
    return node


def tree():
    root = insert(None, 15)
    insert(root, 10)
    return root
"""
_NUMBERS = """
def numbers():
    n = 0
    while True:
        n += 1
        yield n


def doubled():
    for n in numbers():
        yield 2 * n


def shown():
    for n in numbers():
        print(n)
"""


def test_a_recursion_with_a_condition_ends_although_objects_seem_to_decide_it() -> None:
    assert endless(_TREE) == set()


def test_a_recursion_on_each_path_does_not_end() -> None:
    assert endless("def f(n):\n    print(n)\n    f(n + 1)\n") == {"f"}
    assert endless("def f(n):\n    return n > 0 and f(n - 1)\n") == set()


def test_a_generator_over_numbers_without_end_is_no_more_endless_than_they_are() -> None:
    assert endless(_NUMBERS) == {"shown"}
