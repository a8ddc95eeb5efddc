"""The facts of two texts of one unit: what one shows counts for both, and what decides which costs more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.analysis import work_facts
from rlm_core.inference.pair_facts import (
    is_clear,
    is_decided,
    outweighs_unknown,
    takes_the_same_memory,
    with_pair_facts,
    work_moved,
)
from rlm_core.inference.work_mixture import METRICS, facts_of
from rlm_core.types import CodeText, WorkFacts

from .test_work_mixture import SOME_FACTS


@given(SOME_FACTS, SOME_FACTS, st.sampled_from(METRICS))
def test_a_change_of_work_is_undone_by_its_reverse(before: WorkFacts, after: WorkFacts, metric: str) -> None:
    assert work_moved(before, after, metric) == pytest.approx(-work_moved(after, before, metric))
    assert work_moved(before, None, metric) == work_moved(None, after, metric) == 0


def _call(text: str) -> CodeText:
    return CodeText(text, "python", "call")


def test_of_a_pair_what_one_text_shows_of_a_type_counts_for_the_other() -> None:
    before, after = _call("def f(p, m):\n    return p.joinpath(m)\n"), _call("def f(p, m):\n    return p / m\n")
    first, second = (code.work for code in with_pair_facts(before, after))
    assert first is not None
    assert second is not None
    assert second.unknown == ()
    assert abs(work_moved(first, second, "latency")) < 0.1
    alone = facts_of(after)
    assert alone is not None
    assert alone.unknown == (("/", 1.0),)


def test_facts_of_a_pair_that_shows_the_same_types_stay() -> None:
    stated = replace(_call("def f(p): pass"), work=WorkFacts(nodes=1, opaque=1.0))
    assert with_pair_facts(stated, stated) == (stated, stated)


LOOP = "    for _ in range(1000):\n        pass\n"


@pytest.mark.parametrize(
    ("before", "after", "decided"),
    [
        ("    fetch(a)\n", "    fetch(a)\n" + LOOP, True),  # what both call cancels
        ("    fetch(a)\n", "    load(a)\n", False),
        ("    fetch(a)\n" + LOOP, "    load(a)\n", False),
        ("    pass\n", "    fetch(a)\n" + LOOP, True),
        (LOOP, "    fetch(a)\n", False),  # less known work, but more that is not known
        ("    fetch(a)\n" + LOOP, "    pass\n", True),
        ("    a + 1\n", "    a + 1\n    a + 2\n", True),
        ("    a.b\n", "    a.c\n", False),
        ("    a.b\n" + LOOP, "    a.c\n", True),  # an attribute hardly takes that long
        ("    len(a)\n", "    a.measured()\n", False),  # a call that is not known makes neither text clear
    ],
)
def test_a_pair_is_decided_by_what_is_known(before: str, after: str, decided: bool) -> None:
    pair = [_call(f"def f(a):\n{body}") for body in (before, after)]
    first, second = with_pair_facts(*pair)
    assert is_decided(first, second, "latency") is decided
    assert is_decided(second, first, "latency") is decided


EACH = "    for x in a:\n        n += 1\n"


@pytest.mark.parametrize(
    ("before", "after", "decided"),
    [
        (EACH, EACH + EACH, True),
        (EACH, EACH.replace("n += 1", "for y in a:\n            n += 1"), True),
        (EACH, EACH.replace("in a", "in b"), False),  # which is larger is not known
        (EACH, "    n += 1\n", True),  # it only adds a loop
        (EACH, "    n += load(b)\n", False),
        ("    while a.left():\n        n += 1\n", "    for x in a:\n        n += 1\n", False),
        ("    n = sum(x in b for x in a)\n", "    b = set(b)\n    n = sum(x in b for x in a)\n", True),
    ],
)
def test_costs_that_depend_on_different_sizes_decide_nothing_unless_one_only_adds(
    before: str, after: str, decided: bool
) -> None:
    pair = [_call(f"def f(a: list[int], b: list[int], n: int):\n{body}    return n\n") for body in (before, after)]
    first, second = with_pair_facts(*pair)
    assert is_decided(first, second, "latency") is decided
    assert is_decided(second, first, "latency") is decided


SUM = "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total\n"


@pytest.mark.parametrize(
    ("after", "is_same"),
    [
        (
            SUM.replace(
                "    return", "    for i in range(10_000):\n        for x in xs:\n            pass\n    return"
            ),
            True,
        ),
        (SUM.replace("total += x", "total += 2 * x"), True),
        (SUM.replace("    return total", "    return [total for x in xs]"), False),
        (SUM.replace("    return total", "    return [0] * 10_000"), False),
        (SUM.replace("total += x", "total += unknown(x)"), False),
    ],
)
def test_memory_is_the_same_where_the_text_shows_all_of_it(after: str, is_same: bool) -> None:
    first, second = work_facts(SUM), work_facts(after)
    assert takes_the_same_memory(first, second) is is_same
    assert not takes_the_same_memory(first, None)
    assert not takes_the_same_memory(WorkFacts(), WorkFacts())


def test_facts_of_which_one_text_was_not_read_decide_nothing() -> None:
    read = replace(_call("def f(a):\n" + LOOP), work=facts_of(_call("def f(a):\n" + LOOP)))
    unread = replace(_call("def f(a): pass\n"), work=WorkFacts(unknown_calls=2.0))
    assert not is_decided(read, unread, "latency")
    assert not is_decided(unread, read, "latency")
    assert is_decided(unread, unread, "latency")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("    pass\n", LOOP, True),
        ("    fetch(a)\n", "    fetch(a)\n" + LOOP, False),  # the call may take far longer than the loop
        ("    fetch(a)\n", "    fetch(a)\n" + LOOP.replace("1000", "1000000"), True),
    ],
)
def test_how_many_times_a_cost_grows_needs_its_earlier_value(before: str, after: str, said: bool) -> None:
    first, second = (facts_of(_call("def f(a):\n" + body)) for body in (before, after))
    assert outweighs_unknown(first, second, "latency", 1.5) is said
    assert outweighs_unknown(first, second, "memory", 1.5) is (not (first and first.unknown_calls))


_ONE_LOOP = "def f(nodes, edges):\n    ends = set()\n    for edge in edges:\n        ends.add(edge)\n    return ends\n"
_TWO_LOOPS = (
    "def f(nodes, edges):\n    ends = set()\n    for edge in edges:\n        for other in edges:\n"
    "            ends.add(other)\n    return ends\n"
)


def test_facts_alone_show_a_loop_that_is_added() -> None:
    assert is_clear(_call(_ONE_LOOP), _call(_TWO_LOOPS), "latency")
    assert not is_clear(_call(_TWO_LOOPS), _call(_ONE_LOOP), "latency")
    assert not is_clear(_call(_ONE_LOOP), _call(_ONE_LOOP), "latency")


@pytest.mark.parametrize(
    "after",
    [
        _TWO_LOOPS.replace("    return", "    fetch()\n    return"),  # a call of unknown cost
        _TWO_LOOPS.replace("edges)", "*edges)"),  # a call has few arguments
        _TWO_LOOPS.replace("    for edge in edges:\n", "    for edge in edges:\n        Order(edge)\n"),
    ],
)
def test_what_the_facts_alone_do_not_show(after: str) -> None:
    assert not is_clear(_call(_ONE_LOOP), _call(after), "latency")


def test_objects_that_are_made_no_more_may_have_cost_anything() -> None:
    before = _ONE_LOOP.replace("ends.add(edge)", "ends.add(Order(edge))")
    after = _TWO_LOOPS.replace("ends.add(other)", "ends.add(other.order)")
    assert not is_clear(_call(before), _call(after), "latency")
