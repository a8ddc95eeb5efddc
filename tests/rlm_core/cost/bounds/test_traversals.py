"""Loops that visit each node of a structure once."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.bounds.traversals import traversal


def latency_growth(*lines: str) -> dict[str, float]:
    facts = work_facts("def f(root, graph):\n" + "".join(f"    {line}\n" for line in lines))
    assert facts is not None
    return {entry.size: entry.degree for entry in facts.latency.growth}


CHILDREN = ("    for child in node.children:", "        queue.append(child)")


@pytest.mark.parametrize(
    "lines",
    [
        ("queue = [root]", "while queue:", "    node = queue.pop()", *CHILDREN),
        ("queue = []", "queue.append(root)", "while len(queue) > 0:", "    node = queue.pop()", *CHILDREN),
        ("queue = [(root, 0)]", "while queue:", "    node, depth = queue.pop()",
         "    queue.append((node.left, depth + 1))"),
        ("queue = [root]", "while queue:", "    rest = []", "    for n in queue:", "        rest.append(n.left)",
         "    queue = rest"),
        ("stack, node = [], root", "while stack or node:", "    while node:", "        stack.append(node)",
         "        node = node.left", "    node = stack.pop()", "    node = node.right"),
    ],
)  # fmt: skip
def test_each_node_is_visited_once(lines: tuple[str, ...]) -> None:
    assert latency_growth(*lines).get("root") == 1


def test_levels_are_together_as_many_nodes_as_there_are() -> None:
    level = ("    for _ in range(len(queue)):", "        node = queue.popleft()", "        queue.append(node.left)")
    assert latency_growth("queue = collections.deque([root])", "while queue:", *level) == {"root": 1}


@pytest.mark.parametrize(
    "put",
    ["graph[node.key]", "make(node)", "node + 1", "graph"],
)
def test_what_no_node_leads_to_may_be_met_again(put: str) -> None:
    [loop] = ast.parse(f"while queue:\n    node = queue.pop()\n    queue.append({put})").body
    assert isinstance(loop, ast.While)
    assert traversal(loop) is None


def test_a_search_may_end_at_the_first_node() -> None:
    facts = work_facts(
        "def f(root, key):\n    queue = [root]\n    while queue:\n        node = queue.pop()\n"
        "        if node.key == key:\n            return node\n        queue.append(node.left)\n"
    )
    assert facts is not None
    [whole] = [term for term in facts.latency.terms if [factor.degree for factor in term.factors] == [1]]
    assert whole.least == 0 < whole.likely
