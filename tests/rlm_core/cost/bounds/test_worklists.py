"""Searches are counted by what bounds their items: fields inside bounds, nodes of a graph."""

from __future__ import annotations

import ast
import textwrap

import pytest
from rlm_core.cost.bounds.worklists import worklist

from ..counting import count, facts_of

BFS = """
def f(graph, start):
    seen = {start}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in graph[node]:
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return seen
"""


def loop(text: str) -> ast.While:
    """The first ``while`` of a text."""
    return next(node for node in ast.walk(ast.parse(textwrap.dedent(text))) if isinstance(node, ast.While))


def test_a_search_of_a_graph_grows_with_its_nodes_and_their_neighbours() -> None:
    growth = {entry.size: entry.degree for entry in facts_of(BFS).latency.growth}
    assert growth == {"graph": 1, "graph[]": 1}


def test_a_search_of_a_grid_meets_each_field_once() -> None:
    text = """
def f():
    stack = [(0, 0)]
    seen = set()
    while stack:
        time.sleep(1)
        x, y = stack.pop()
        for a, b in ((x + 1, y), (x, y + 1)):
            if 0 <= a < 400 and 0 <= b < 300 and (a, b) not in seen:
                seen.add((a, b))
                stack.append((a, b))
"""
    known = count(text)
    assert known.most == known.likely == 120_000


@pytest.mark.parametrize(
    ("source", "graph"),
    [
        ("graph[node]", "graph"), ("graph[node].items()", "graph"), ("graph.get(node, ())", "graph"),
        ("self.edges[node]", "self.edges"), ("graph.neighbors(node)", "graph"),
    ],
)  # fmt: skip
def test_neighbours_are_read_from_a_graph(source: str, graph: str) -> None:
    body = f"    node = todo.pop()\n    for n in {source}:\n        if not done[n]:\n            todo.append(n)"
    work = worklist(loop(f"while todo:\n{body}"))
    assert work is not None
    assert [ast.unparse(found) for found in work.graphs] == [graph]


@pytest.mark.parametrize("test", ["heap", "len(heap) > 0", "len(heap)", "heap != []", "not heap.empty()"])
def test_heaps_and_other_tests_are_worklists_too(test: str) -> None:
    body = (
        "    d, u = heappop(heap)\n    for v in graph[u]:\n        if d < best[v]:\n            heapq.heappush(heap, v)"
    )
    assert worklist(loop(f"while {test}:\n{body}")) is not None


@pytest.mark.parametrize(
    "body",
    [
        # A tree has no node twice, and nothing says how many there are.
        "    node = todo.pop()\n    todo += node.children",
        # Nothing is taken off.
        "    for n in graph[1]:\n        if n not in seen:\n            todo.append(n)",
        # Nothing is put on.
        "    n = todo.pop()\n    if n in graph[n]:\n        x += 1",
    ],
)
def test_other_loops_are_not(body: str) -> None:
    assert worklist(loop(f"while todo:\n{body}")) is None


def test_searches_in_a_loop_may_know_where_others_have_been() -> None:
    text = """
def f(starts, size):
    seen = set()
    for start in starts:
        stack = [start]
        while stack:
            y, x = stack.pop()
            for ny, nx in ((y + 1, x), (y, x + 1)):
                if 0 <= ny < size and 0 <= nx < size and (ny, nx) not in seen:
                    seen.add((ny, nx))
                    stack.append((ny, nx))
"""
    assert "size" not in {entry.size for entry in facts_of(text).latency.growth}
