"""What a trial has left takes the bytes that tracemalloc counts."""

from __future__ import annotations

import textwrap
import tracemalloc
from typing import Any

import pytest
from rlm_core.source.work.trial.held import held_bytes

from ..counting import facts_of

TREE = """
def f():
    class Node:
        def __init__(self, key):
            self.key, self.left, self.right = key, None, None

    root = Node(500)
    for i in range(400):
        key, node = i * 7919 % 1009, root
        while True:
            side = "left" if key < node.key else "right"
            below = node.left if side == "left" else node.right
            if below is None:
                if side == "left":
                    node.left = Node(key)
                else:
                    node.right = Node(key)
                break
            node = below
    return root
"""
INDEX = """
def f():
    index = {}
    for number in range(300):
        for word in (f"word{number * 31 % 97}", f"term{number}"):
            index.setdefault(word, []).append(number)
    return index
"""
CHAIN = """
def f():
    head = None
    for i in range(500):
        head = {"value": i, "next": head}
    return head
"""


@pytest.mark.parametrize("text", [TREE, INDEX, CHAIN], ids=["tree", "index", "chain"])
def test_memory_is_at_least_what_a_function_leaves(text: str) -> None:
    names: dict[str, Any] = {}
    exec(textwrap.dedent(text), names)
    names["f"]()
    tracemalloc.start()
    kept = names["f"]()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept is not None
    known = facts_of(text).memory.known
    assert held / 1.5 < known.likely < 1.5 * held


def test_what_the_text_writes_down_and_what_is_held_twice_counts_once() -> None:
    text = "x" * 100
    assert held_bytes([text, text, [text]], []) == held_bytes([text], []) + held_bytes([[]], []) + 8
    assert held_bytes([None, True, 5, "a"], []) == 0


def test_a_structure_that_holds_itself_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert held_bytes([loop], []) > 0
