"""Candidates for one function: the chance of each that it is the fastest, and how many of them to measure."""

from __future__ import annotations

import numpy as np
import pytest
import rlm_core
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import DataError
from rlm_core.inference.ranking import KERNEL_CONFIDENCE, MOST_CANDIDATES, rank, ranked
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText, Query, SizeValue

from tests import softmax_kernels
from tests.distinct_items import FAST, SLOW

FETCHED = "def f(items):\n    return distinct(items)\n"


def _call(text: str) -> CodeText:
    return Analyser().analyse(ParsedSource(text.encode(), "python"))[-1].code


@given(st.integers(1, 8).flatmap(lambda n: st.lists(st.booleans(), min_size=n * n, max_size=n * n)))
def test_what_is_left_out_is_slower_than_what_is_measured(values: list[bool]) -> None:
    count = int(len(values) ** 0.5)
    faster = np.triu(np.array(values).reshape(count, count), 1)
    faster |= np.tril(~np.array(values).reshape(count, count).T, -1) & np.tril(np.ones_like(faster), -1)
    order = ranked(faster)
    assert sorted(candidate.place for candidate in order) == list(range(count))
    measured = {candidate.place for candidate in order if not candidate.slower_than}
    assert measured
    assert [bool(candidate.slower_than) for candidate in order] == sorted(bool(one.slower_than) for one in order)
    for candidate in order:
        assert candidate.place in measured or measured & set(candidate.slower_than)
        assert candidate.place not in candidate.slower_than


def test_a_circle_leaves_none_of_its_candidates_out() -> None:
    faster = np.zeros((4, 4), dtype=bool)
    for one, other in ((0, 1), (1, 2), (2, 0), (2, 3)):
        faster[one, other] = True
    order = ranked(faster)
    assert [candidate.place for candidate in order] == [0, 1, 2, 3]
    assert [candidate.slower_than for candidate in order] == [(), (), (), (0, 1, 2)]


def test_the_facts_rank_candidates_and_say_which_to_measure() -> None:
    sizes = [SizeValue("items", 1e4)]
    ranking = rank(rlm_core.load(), [_call(SLOW), _call(FAST), _call(FETCHED)], sizes)
    assert (ranking.compared, ranking.pairs, ranking.at_sizes) == (2, 3, True)
    assert [(one.place, one.slower_than) for one in ranking.candidates] == [(1, ()), (2, ()), (0, (1, 2))]
    assert ranking.measure == 2


def test_what_cannot_be_distinguished_is_all_measured() -> None:
    ranking = rank(rlm_core.load(), [_call(FETCHED), _call(FETCHED.replace("distinct", "unique"))])
    assert (ranking.compared, ranking.measure) == (0, 2)


def test_it_takes_several_functions() -> None:
    with pytest.raises(DataError, match="2 to 30 candidates, not 1"):
        rank(rlm_core.load(), [_call(FAST)])
    with pytest.raises(DataError, match="not 31"):
        rank(rlm_core.load(), [_call(FAST)] * (MOST_CANDIDATES + 1))
    with pytest.raises(DataError, match="takes functions"):
        rank(rlm_core.load(), [_call(FAST), CodeText("print(1)", "python", "program")])


def _kernel(text: str) -> CodeText:
    units = Analyser().analyse(ParsedSource(text.encode(), "python"))
    return next(unit.code for unit in units if unit.code.basis == "kernel")


def test_kernels_whose_launches_are_known_rank_by_their_predictions() -> None:
    query = Query("latency", "nvidia-a100-sxm4-80gb", softmax_kernels.SIZES)
    alone = softmax_kernels.FAST[: softmax_kernels.FAST.index("def softmax(")]
    kernels = [_kernel(text) for text in (softmax_kernels.SLOW, softmax_kernels.FAST, alone)]
    ranking = rank(rlm_core.load(), kernels, query=query)
    assert (ranking.compared, ranking.pairs, ranking.confidence) == (1, 3, KERNEL_CONFIDENCE)
    assert [(one.place, one.slower_than) for one in ranking.candidates] == [(1, ()), (2, ()), (0, (1,))]
    close = rank(rlm_core.load(), [kernels[1], kernels[1]], query=query)
    assert (close.compared, close.measure) == (0, 2)
    with pytest.raises(DataError, match="functions or kernels"):
        rank(rlm_core.load(), [kernels[1], _call(FAST)])
