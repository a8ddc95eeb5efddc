"""Attributes that loops change, and searches that loops repeat, as terms of a cost."""

from __future__ import annotations

import pytest
from rlm_core.cost.at_sizes import evaluated
from rlm_core.types import WorkFacts

from ..claims import facts_of

_GROWING = {
    "self.text += item": ("def feed(self, items):\n    for item in items:\n        self.text += item\n", "items"),
    "self.lines.pop(0)": ("def drain(self):\n    while self.lines:\n        self.lines.pop(0)\n", "self.lines"),
    "self.raw = self.raw + item": (
        "def feed(self, items):\n    for item in items:\n        self.raw = self.raw + item\n",
        "items",
    ),
}
_CLASS = (
    "class Log:\n    def __init__(self):\n        self.text = ''\n        self.raw = ''\n        self.lines = []\n\n"
)
_SEARCHES = {
    "remove": "def f(items):\n    left = list(items)\n    for item in sorted(items):\n        left.remove(item)\n",
    "index": "def f(items, others):\n    return [items.index(one) for one in others]\n",
    "any": "def f(items, others):\n    return [x for x in items if any(x == y for y in others)]\n",
    "loop": (
        "def f(items, others):\n    for x in items:\n        for y in others:\n            if x.key == y.key:\n"
        "                break\n"
    ),
}


def _least(work: WorkFacts, size: float) -> float:
    names = {factor.size for term in work.latency.terms for factor in term.factors}
    return float(evaluated(work.latency.terms, dict.fromkeys(names, size)).least)


@pytest.mark.parametrize(("method", "size"), _GROWING.values(), ids=_GROWING)
def test_an_attribute_that_a_loop_changes_is_followed(method: str, size: str) -> None:
    text = _CLASS + "    " + method.replace("\n", "\n    ")
    [work] = [work for name, work in facts_of(text).items() if not name.endswith("__init__")]
    degrees = [sum(factor.degree for factor in term.factors if factor.size == size) for term in work.latency.terms]
    assert max(degrees) == 2


@pytest.mark.parametrize("text", _SEARCHES.values(), ids=_SEARCHES)
def test_searches_that_a_loop_repeats_do_not_all_end_at_once(text: str) -> None:
    [work] = facts_of(text).values()
    assert _least(work, 20_000) > 3 * _least(work, 10_000)


def test_one_search_may_end_at_its_first_item() -> None:
    [work] = facts_of(
        "def f(items, wanted):\n    for x in items:\n        if x == wanted:\n            return x\n"
    ).values()
    assert _least(work, 20_000) < 1.1 * _least(work, 10_000)


def test_an_attribute_of_what_the_loop_binds_is_another_one_each_time() -> None:
    [work] = facts_of("def f(nodes, item):\n    for node in nodes:\n        node.items.append(item)\n").values()
    degrees = [sum(factor.degree for factor in term.factors) for term in work.latency.terms]
    assert max(degrees) == 1
