"""Loops whose iterations go on with the rest of what they were given."""

from __future__ import annotations

import pytest
from rlm_core.cost.analysis import work_facts


def latency_growth(*lines: str) -> dict[str, tuple[float, float]]:
    facts = work_facts("def f(self, head, data, size):\n" + "".join(f"    {line}\n" for line in lines))
    assert facts is not None
    return {entry.size: (entry.degree, entry.logs) for entry in facts.latency.growth}


@pytest.mark.parametrize(
    "lines",
    [
        ("while head:", "    head = head.next"),
        ("while head is not None:", "    head = head.next"),
        ("while head.next is not None:", "    head = head.next"),
        ("while head and head.next:", "    head = head.next.next"),
        ("while True:", "    if head is None:", "        break", "    head = head.next"),
        ("node = head.next", "while node is not head:", "    node = node.next"),
        ("while head:", "    rest = head.next", "    head.next = size", "    head = rest"),
    ],
)
def test_a_walk_along_a_chain_is_as_long_as_what_it_begins_at(lines: tuple[str, ...]) -> None:
    [(name, degree)] = latency_growth(*lines).items()
    assert name.partition(".")[0] == "head"
    assert degree == (1, 0)


def test_an_attribute_may_be_where_a_chain_begins() -> None:
    assert latency_growth("node = self.head", "while node:", "    node = node.next") == {"self.head": (1, 0)}


def test_what_a_loop_looks_for_may_end_a_walk_at_once() -> None:
    facts = work_facts("def f(head, key):\n    while head.value != key:\n        head = head.next\n")
    assert facts is not None
    assert "head" not in {factor.size for factor in facts.latency.growth}


@pytest.mark.parametrize(
    "lines",
    [
        ("while head.left:", "    head = head.left"),
        ("while head:", "    head = head.left if size else head.right"),
        ("while True:", "    if head.left is None:", "        break", "    head = head.left"),
    ],
)
def test_a_way_down_a_tree_is_as_long_as_the_tree_is_large_in_the_worst_case_only(lines: tuple[str, ...]) -> None:
    facts = work_facts("def f(head, size):\n" + "".join(f"    {line}\n" for line in lines))
    assert facts is not None
    [whole] = [term for term in facts.latency.terms if term.factors and term.factors[0].degree == 1]
    assert (whole.least, whole.likely) == (0, 0)
    assert whole.most > 0
    assert any(factor.logs == 1 for term in facts.latency.terms for factor in term.factors)


def test_the_way_up_from_a_node_has_no_name() -> None:
    assert "head" not in latency_growth("while head.parent:", "    head = head.parent")


def test_a_container_that_is_cut_at_its_front_gives_a_number_of_parts_in_proportion_to_its_size() -> None:
    lines = ("data = list(data)", "while data:", "    data = data[size.length:]")
    assert latency_growth(*lines) == {"data": (2, 0)}
    assert latency_growth("data = list(data)", "while data:", "    data = data[size.length:][::2]") != {"data": (2, 0)}
