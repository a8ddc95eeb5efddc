"""The texts of a set that are most similar to another one, by the cosine of their n-grams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.ngram_ridge import Bag
from rlm_core.inference.similar_texts import SimilarTexts, most_similar

BUCKETS = 64


def bag_of(weights: dict[int, float]) -> Bag:
    buckets = np.array(sorted(weights), dtype=np.int64)
    values = np.array([weights[bucket] for bucket in sorted(weights)], dtype=np.float32)
    return Bag(buckets, values / max(float(np.linalg.norm(values)), 1e-9))


def dense(bag: Bag) -> np.ndarray:
    result = np.zeros(BUCKETS)
    result[bag.buckets] = bag.weights
    return result


BAGS = st.dictionaries(st.integers(0, BUCKETS - 1), st.floats(0.125, 8), max_size=12).map(bag_of)


@given(st.lists(BAGS, max_size=8), BAGS)
def test_similarities_are_cosines(bags: list[Bag], text: Bag) -> None:
    expected = [float(dense(bag) @ dense(text)) for bag in bags]
    assert SimilarTexts(bags).similarities(text) == pytest.approx(expected, abs=1e-5)


@given(BAGS, st.lists(BAGS, max_size=4))
def test_a_text_is_most_similar_to_itself(text: Bag, others: list[Bag]) -> None:
    at = SimilarTexts([*others, text]).similarities(text)
    assert at[-1] == pytest.approx(float(len(text.buckets) > 0), abs=1e-5)
    assert at.max() <= 1


def test_the_most_similar_come_first_and_those_with_nothing_in_common_are_left_out() -> None:
    at = np.array([0.0, 0.2, 0.9, 0.2, 0.5], np.float32)
    assert most_similar(at, 3).tolist() == [2, 4, 1]
    assert most_similar(at, 9).tolist() == [2, 4, 1, 3]
    assert most_similar(np.zeros(0, np.float32), 3).tolist() == []
