"""The places that make a cost grow: the innermost syntax, the loops around it, and what usually cures it."""

from __future__ import annotations

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.types import CostOrigin, Cure


def origins(text: str) -> tuple[CostOrigin, ...]:
    work = work_facts(text)
    assert work is not None
    return work.latency.origins


@pytest.mark.parametrize(
    ("text", "line", "place", "loops", "cure"),
    [
        (
            "def f(rows):\n    seen = []\n    for row in rows:\n        if row in seen:\n            continue\n"
            "        seen.append(row)\n",
            3, "row in seen", ["for row in rows"], Cure.SET,
        ),
        (
            "def f(orders, payments):\n    found = []\n    for order in orders:\n        for payment in payments:\n"
            "            if payment.order == order.id:\n                found.append(payment)\n    return found\n",
            3, "for payment in payments", ["for order in orders"], Cure.LOOKUP,
        ),
        (
            "def f(xs: list[int]):\n    while xs:\n        print(xs.pop(0))\n",
            2, "xs.pop(0)", ["while xs"], Cure.DEQUE,
        ),
        (
            "def f(xs: list[int]):\n    return [xs.index(x) for x in xs]\n",
            1, "xs.index(x)", ["for x in xs"], Cure.DICT,
        ),
        (
            "def f(xs: list[int], ys: list[int]):\n    out = []\n    for x in xs:\n        out.append(x + max(ys))\n"
            "    return out\n",
            3, "max(ys)", ["for x in xs"], Cure.HOIST,
        ),
        (
            "def f(rows: list[int]):\n    out = []\n    for row in rows:\n        out = out + [row]\n    return out\n",
            3, "out + [row]", ["for row in rows"], Cure.EXTEND,
        ),
        (
            "def fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\n",
            3, "fib(n - 1)", [], Cure.CACHE,
        ),
        (
            "def f(xs, ys):\n    def inner(values):\n        return sum(value for value in values)\n"
            "    for x in xs:\n        inner(ys)\n",
            2, "for value in values", ["for x in xs"], None,
        ),
        (
            "def f(xs: list[int]):\n    for x in xs:\n        xs.insert(0, x + 1)\n",
            2, "xs.insert(0, x + 1)", ["for x in xs"], Cure.DEQUE,
        ),
    ],
)  # fmt: skip
def test_the_place_that_grows_is_named_with_its_loops_and_cure(
    text: str, line: int, place: str, loops: list[str], cure: Cure | None
) -> None:
    first = origins(text)[0]
    assert (first.place.line, first.place.text) == (line, place)
    assert [loop.text for loop in first.loops] == loops
    assert first.cure is cure


@pytest.mark.parametrize(
    "text",
    [
        "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total\n",
        "def f(xs):\n    return sorted(xs)\n",
        "def f(xs, ys: set[int]):\n    return [x for x in xs if x in ys]\n",
    ],
)
def test_what_grows_about_linearly_names_no_place(text: str) -> None:
    assert [origin for origin in origins(text) if origin.cure is not None] == []
    assert all(max(sum(factor.degree for factor in term.factors) for term in one.terms) <= 1 for one in origins(text))


@pytest.mark.parametrize(
    "body",
    [
        "ys.append(x)\n        print(max(ys))",  # the loop changes it
        "refresh(ys)\n        print(max(ys))",  # may change it
        "ys = x.values\n        print(max(ys))",  # binds it
        "print(max(ys, key=lambda y: y - x))",  # calls what is not known
        "print(max(y for y in ys if y < x))",  # reads what the loop binds
    ],
)
def test_work_that_may_differ_in_each_iteration_is_not_the_same(body: str) -> None:
    found = origins(f"def f(xs: list[int], ys: list[int]):\n    for x in xs:\n        {body}\n")
    assert Cure.HOIST not in [origin.cure for origin in found]


def test_places_add_up_to_the_steep_part_of_the_cost() -> None:
    searches = "x in ys\n        ys.index(x)\n        max(ys)\n"
    work = work_facts(f"def f(xs: list[int], ys: list[int]):\n    for x in xs:\n        {searches}")
    assert work is not None

    def steep(terms: tuple[object, ...]) -> float:
        return sum(term.likely for term in terms if sum(f.degree for f in term.factors) > 1)  # type: ignore[attr-defined]

    assert sum(steep(origin.terms) for origin in work.latency.origins) == pytest.approx(steep(work.latency.terms))
