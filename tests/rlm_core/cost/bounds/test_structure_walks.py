"""Recursion over the parts of a structure."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.bounds.structure_walks import StructureWalk, structure_walk
from rlm_core.cost.scope import Texts
from rlm_core.types import CostTerm


def walk_of(text: str) -> StructureWalk | None:
    [node] = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    return structure_walk(node)


def terms_of(text: str) -> dict[tuple[str, float, float], CostTerm]:
    facts = work_facts(text)
    assert facts is not None
    return {(f.size, f.degree, f.logs): term for term in facts.latency.terms for f in term.factors}


HEIGHT = """def height(root):
    if root is None:
        return 0
    return 1 + max(height(root.left), height(root.right))
"""
SEARCH = """def search(root, key):
    if root is None or root.key == key:
        return root
    if key < root.key:
        return search(root.left, key)
    return search(root.right, key)
"""
FOUND = (
    "def has(root, key):\n    return bool(root) and (root.key == key or has(root.left, key) or has(root.right, key))\n"
)
TOTAL = (
    "def total(self):\n    s = self.value\n    for child in self.children:\n        s += child.total()\n    return s\n"
)


def test_all_nodes_are_visited_by_every_call_that_asks_for_both_children() -> None:
    walk = walk_of(HEIGHT)
    assert walk is not None
    assert walk == StructureWalk("root", frozenset({"left", "right"}), of_all=True, asks_end=True)
    term = terms_of(HEIGHT)["root", 1, 0]
    assert 0 < term.least == pytest.approx(term.most, rel=0.01)


def test_a_search_goes_down_one_way() -> None:
    terms = terms_of(SEARCH)
    assert terms["root", 1, 0].likely == 0 < terms["root", 1, 0].most
    assert terms["root", 0, 1].likely > 0


def test_what_a_call_finds_may_spare_the_others() -> None:
    walk = walk_of(FOUND)
    assert walk is not None
    assert not walk.of_all
    assert terms_of(FOUND)["root", 1, 0].least == 0


def test_a_method_may_be_called_on_the_nodes_that_its_own_object_leads_to() -> None:
    walk = walk_of(TOTAL)
    assert walk is not None
    assert walk.parameter == "self"


def test_a_chain_is_as_long_as_it_has_nodes() -> None:
    text = "def length(node):\n    if node is None:\n        return 0\n    return 1 + length(node.next)\n"
    assert terms_of(text)["node", 1, 0].least > 0


def test_work_over_all_that_is_below_each_node_is_done_once_for_each_level() -> None:
    text = (
        "def width(root):\n    if root is None:\n        return 0\n"
        "    return max(height(root.left) + height(root.right), width(root.left), width(root.right))\n"
    )
    facts = work_facts(text, Texts({"height": HEIGHT}))
    assert facts is not None
    growth = {(f.degree, f.logs): term for term in facts.latency.terms for f in term.factors}
    assert growth[1, 1].likely > 0
    assert growth[2, 0].likely == 0 < growth[2, 0].most


@pytest.mark.parametrize(
    "text",
    [
        "def f(n):\n    return f(n - 1) + f(n - 2)\n",
        "def f(items):\n    return f(items[1:]) if items else 0\n",
        "def f(graph, node):\n    for other in graph[node]:\n        f(graph, other)\n",
        "def f(root, out):\n    f(root, out.left)\n    f(root.left, out)\n",
    ],
)
def test_other_recursions_are_no_walks(text: str) -> None:
    assert walk_of(text) is None


def test_a_search_of_a_graph_that_marks_what_it_meets_makes_a_call_for_each_node() -> None:
    text = (
        "def visit(graph, node, seen):\n    seen.add(node)\n    for other in graph[node]:\n"
        "        if other not in seen:\n            visit(graph, other, seen)\n"
    )
    assert terms_of(text)["graph", 1, 0].likely > 0
    assert not any(size in ("node", "other") for size, _, _ in terms_of(text))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(n, d):\n    return 1 if n == 0 or d == 0 else f(n - 1, d) + f(n, d - 1)\n", {"n", "d"}),
        (
            "def f(items, k):\n    if k == 0:\n        return\n    for i in range(len(items)):\n"
            "        f(items[i + 1 :], k - 1)\n",
            {"items", "k"},
        ),
        ("def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n", {"n"}),
    ],
)
def test_exponential_growth_names_all_that_have_to_grow(text: str, names: set[str]) -> None:
    facts = work_facts(text)
    assert facts is not None
    assert {factor.size for factor in facts.latency.growth if factor.base > 1} == names


def test_a_fixed_number_of_levels_is_a_power_and_not_exponential() -> None:
    text = (
        "def f(items):\n    def pick(rest, k):\n        if k == 0:\n            return\n"
        "        for i in range(len(rest)):\n            pick(rest[i + 1 :], k - 1)\n    pick(items, 3)\n"
    )
    facts = work_facts(text)
    assert facts is not None
    assert all(factor.base == 1 for factor in facts.latency.growth)
