"""That calls multiply or never end is claimed only of functions that certainly call themselves."""

from __future__ import annotations

import pytest

from .claims import endless, exponential

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


def test_a_recursion_with_a_condition_ends_although_objects_seem_to_decide_it() -> None:
    assert endless(_TREE) == set()


def test_a_recursion_on_each_path_does_not_end() -> None:
    assert endless("def f(n):\n    print(n)\n    f(n + 1)\n") == {"f"}
    assert endless("def f(n):\n    return n > 0 and f(n - 1)\n") == set()
