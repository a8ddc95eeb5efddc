"""Candidates for one function: the chance of each that it is the fastest, and how many of them to measure."""

from __future__ import annotations

import numpy as np
import pytest
import rlm_core
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import DataError
from rlm_core.inference.ranking import MOST_CANDIDATES, fastest, rank
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText, SizeValue

from tests.distinct_items import FAST, SLOW

FETCHED = "def f(items):\n    return distinct(items)\n"


def _call(text: str) -> CodeText:
    return Analyser().analyse(ParsedSource(text.encode(), "python"))[-1].code


@given(st.integers(2, 8).flatmap(lambda n: st.lists(st.floats(0.05, 0.95), min_size=n * n, max_size=n * n)))
def test_chances_add_up_and_follow_what_is_known_of_pairs(values: list[float]) -> None:
    count = int(len(values) ** 0.5)
    faster = np.triu(np.array(values).reshape(count, count), 1)
    faster += np.tril(1 - faster.T, -1) + np.eye(count) / 2
    chances = fastest(faster)
    assert chances.sum() == pytest.approx(1)
    assert (chances > 0).all()
    # The same candidates in another order have the same chances.
    assert fastest(faster[::-1, ::-1]) == pytest.approx(chances[::-1], abs=1e-6)
    wins = faster.sum(axis=1)
    assert (np.argsort(-chances) == np.argsort(-wins)).all() or np.ptp(np.sort(wins)) < 1 or len(set(wins)) < count


def test_two_candidates_have_the_chances_of_their_pair() -> None:
    assert fastest(np.array([[0.5, 0.9], [0.1, 0.5]])) == pytest.approx([0.9, 0.1], abs=0.06)
    assert fastest(np.full((4, 4), 0.5)) == pytest.approx([0.25] * 4)


def test_the_facts_rank_candidates_and_say_how_many_to_measure() -> None:
    sizes = [SizeValue("items", 1e4)]
    ranking = rank(rlm_core.load(), [_call(SLOW), _call(FAST), _call(FETCHED)], sizes, 0.6)
    assert (ranking.compared, ranking.pairs, ranking.at_sizes) == (2, 3, True)
    assert [candidate.place for candidate in ranking.candidates] == [1, 2, 0]
    assert ranking.measure == 2
    assert sum(candidate.chance for candidate in ranking.candidates) == pytest.approx(1)
    everything = rank(rlm_core.load(), [_call(SLOW), _call(FAST)], sizes, 0.99)
    assert everything.measure == 2


def test_what_cannot_be_distinguished_is_all_measured() -> None:
    ranking = rank(rlm_core.load(), [_call(FETCHED), _call(FETCHED.replace("distinct", "unique"))])
    assert (ranking.compared, ranking.measure) == (0, 2)
    assert [candidate.chance for candidate in ranking.candidates] == pytest.approx([0.5, 0.5])


def test_it_takes_several_functions() -> None:
    with pytest.raises(DataError, match="2 to 30 candidates, not 1"):
        rank(rlm_core.load(), [_call(FAST)])
    with pytest.raises(DataError, match="not 31"):
        rank(rlm_core.load(), [_call(FAST)] * (MOST_CANDIDATES + 1))
    with pytest.raises(DataError, match="takes functions"):
        rank(rlm_core.load(), [_call(FAST), CodeText("print(1)", "python", "program")])
