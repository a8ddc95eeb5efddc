"""How many iterations the conditions of a loop allow."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.bounds.conditions import comparison, exit_conditions


def growth(*lines: str) -> dict[str, tuple[float, float]]:
    """The degree and logarithms of a function's latency, by size."""
    facts = work_facts("def f(items, text, n, m):\n" + "".join(f"    {line}\n" for line in lines))
    assert facts is not None
    return {entry.size: (entry.degree, entry.logs) for entry in facts.latency.growth}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("i = 0", "while 0 <= i < n:", "    i += 1"), {"n": (1, 0)}),
        (("i = 0", "while i < n and text[i] != m:", "    i += 1"), {"n": (1, 0)}),
        (("i = j = 0", "while i < n or j < n:", "    i += 1", "    j += 1"), {"n": (1, 0)}),
        (("while not n <= 0:", "    n -= 1"), {"n": (1, 0)}),
        (("while n:", "    n, m = m % n, n"), {"n": (0, 1)}),
        (("found = []", "while len(found) < n:", "    found.append(1)"), {"n": (1, 0)}),
        (("left = list(items)", "while left:", "    left.pop()"), {"items": (1, 0)}),
        (("while text:", "    text = text[4:]"), {"text": (2, 0)}),
        (("i = 0", "while True:", "    if i >= n:", "        break", "    i += 1"), {"n": (1, 0)}),
        (("i = 0", "while i < n:", "    if m:", "        i += 2", "        continue", "    i += 1"), {"n": (1, 0)}),
    ],
)  # fmt: skip
def test_conditions_bound_loops(lines: tuple[str, ...], expected: dict[str, tuple[float, float]]) -> None:
    assert growth(*lines) == expected


@pytest.mark.parametrize(
    "lines",
    [
        ("left = [n]", "while left:", "    item = left.pop()", "    left.extend(m[item.key])"),
        ("depth = 1", "while depth > 0:", "    depth += 1 if m else -1"),
        ("i = 0", "while i < n or m.read():", "    i += 1"),
        ("while n:", "    n = n.parent"),
        ("while n > 1:", "    n = m.read(n)"),
        ("left = [1, 2]", "pop = left.pop", "while left:", "    pop()"),
    ],
)
def test_other_loops_have_a_size_without_a_name(lines: tuple[str, ...]) -> None:
    assert growth(*lines).keys().isdisjoint({"n", "m"})
    facts = work_facts("def f(n, m):\n" + "".join(f"    {line}\n" for line in lines))
    assert facts is not None
    assert facts.endless is None


def test_a_counted_loop_is_left_at_a_comparison_with_its_counter() -> None:
    facts = work_facts("def f():\n    for n in range(10**9):\n        if n > 10:\n            return n")
    assert facts is not None
    assert facts.latency.known.most < 1e-5


def test_exits_are_negated() -> None:
    body = ast.parse("if a < b:\n    break\nif c:\n    break\nif not d == e:\n    return\nif f > g:\n    h()").body
    assert [ast.unparse(test) for test in exit_conditions(body)] == ["a >= b", "d == e"]


@pytest.mark.parametrize(
    ("text", "expected"), [("a < b", "a < b"), ("not a < b", "a >= b"), ("a", None), ("a < b < c", None)]
)
def test_comparisons_of_two(text: str, expected: str | None) -> None:
    compared = comparison(ast.parse(text, mode="eval").body)
    assert (None if compared is None else ast.unparse(compared)) == expected
