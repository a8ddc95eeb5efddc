"""The facts of two texts of one unit: what one shows counts for both, and how much their work differs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.analysis import work_facts
from rlm_core.inference.pair_facts import takes_the_same_memory, with_pair_facts, work_moved
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
