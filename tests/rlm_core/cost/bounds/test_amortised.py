"""Inner loops that undo what the loop around them did: counted against programs that run, and what is none of them."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.bounds.amortised import amortised_trips

from ..counting import count, facts_of, ran

NEXT_GREATER = """
def f(numbers):
    found, stack = {}, []
    for number in numbers:
        while stack and stack[-1] < number:
            found[stack.pop()] = number
        stack.append(number)
    return found
"""
WINDOW = """
def f(items):
    seen, left, best = set(), 0, 0
    for right in range(len(items)):
        while items[right] in seen:
            seen.remove(items[left])
            left += 1
        seen.add(items[right])
        best = max(best, right - left)
    return best
"""
SUM = """
def f(numbers, least):
    left = total = best = 0
    for right, number in enumerate(numbers):
        total += number
        while total >= least:
            total -= numbers[left]
            left += 1
    return best
"""


@pytest.mark.parametrize("text", [NEXT_GREATER, WINDOW, SUM])
def test_the_inner_loop_does_not_add_to_the_growth(text: str) -> None:
    [growth, *_] = facts_of(text).latency.growth
    assert (growth.degree, growth.logs) == (1, 0)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 30), min_size=25, max_size=40))
def test_all_runs_together_are_between_none_and_the_most(numbers: list[int]) -> None:
    text = f"""
def f():
    stack = []
    for number in {numbers}:
        while stack and stack[-1] < number:
            stack.pop()
            time.sleep(1)
        stack.append(number)
"""
    known = count(text)
    assert known.least <= ran(text) <= known.most


def test_a_counter_with_a_fixed_end_gets_there_once() -> None:
    lines = [
        "i = 0",
        "for k in range(30):",
        "    while i < 90 and i % 7 != k % 7:",
        "        i += 1",
        "        time.sleep(1)",
    ]
    known = count("def f():\n" + "".join(f"    {line}\n" for line in lines))
    assert known.likely == pytest.approx(90)


@pytest.mark.parametrize(
    "lines",
    [
        # The counter starts again in each trip.
        ["for a in x:", "    i = 0", "    while i < n:", "        i += 1"],
        # It moves back.
        ["for a in x:", "    while i < n:", "        i += 1", "    i -= n"],
        # It counts something, and bounds nothing.
        ["for a in x:", "    while a % 2 == 0:", "        a //= 2", "        steps += 1"],
        # A new container, one that gets many items, one that the inner loop itself fills.
        ["for a in x:", "    stack = [a]", "    while stack:", "        stack.pop()"],
        ["for a in x:", "    stack.extend(a)", "    while stack:", "        stack.pop()"],
        ["for a in x:", "    for b in a:", "        stack.append(b)", "    while stack:", "        stack.pop()"],
        ["for a in x:", "    stack.append(a)", "    while stack:", "        stack.append(stack.pop() - 1)"],
    ],
)
def test_what_is_not_bounded_by_the_loop_around(lines: list[str]) -> None:
    outer = ast.parse("\n".join(lines)).body[0]
    assert isinstance(outer, ast.For)
    [inner] = [node for node in outer.body if isinstance(node, ast.While)]
    assert amortised_trips(inner, outer) is None


TWO_POINTERS = """
def f(xs, limit):
    total, right = 0, len(xs) - 1
    for left in range(len(xs)):
        for place in range(right, -1, -1):
            if xs[left] + xs[place] < limit:
                break
        right = place
        total += right
    return total
"""
FORWARDS = """
def f(xs, ys):
    total = start = 0
    for x in xs:
        for place in range(start, len(xs)):
            if ys[place] > x:
                start = place
                break
    return total
"""


@pytest.mark.parametrize("text", [TWO_POINTERS, FORWARDS])
def test_a_range_that_goes_on_where_it_ended_does_not_add_to_the_growth(text: str) -> None:
    [growth] = facts_of(text).latency.growth
    assert (growth.degree, growth.logs) == (1, 0)


@pytest.mark.parametrize("bound", ["start = 0", "start = len(xs) - x", "start -= 1", "pass"])
def test_a_range_that_starts_elsewhere_is_paid_each_time(bound: str) -> None:
    [growth, *_] = facts_of(FORWARDS.replace("start = place", bound)).latency.growth
    assert growth.degree == 2
