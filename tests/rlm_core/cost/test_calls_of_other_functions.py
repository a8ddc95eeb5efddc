"""A call of another object's method, of a former self, or of what may be another function is not recursion."""

from __future__ import annotations

import pytest

from .claims import endless, exponential

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
