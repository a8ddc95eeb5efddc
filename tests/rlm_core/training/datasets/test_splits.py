"""Splits go by group, the same on every machine."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.training.datasets.splits import merge_groups, split_of

groups = st.text(st.characters(codec="utf-8"), max_size=20)


@given(groups)
def test_a_group_is_always_in_the_same_split(group: str) -> None:
    assert split_of(group) == split_of(group) in {"train", "val", "cal", "test"}


def test_the_split_of_a_name_is_the_same_on_every_machine() -> None:
    names = {"train": 0, "cal": 8, "val": 13, "test": 15}
    assert {split: split_of(f"leetcode/problem-{number}") for split, number in names.items()} == {
        split: split for split in names
    }


def test_the_shares_are_about_75_5_10_10() -> None:
    counts = Counter(split_of(f"group {number}") for number in range(20_000))
    for split, share in (("train", 0.75), ("val", 0.05), ("cal", 0.10), ("test", 0.10)):
        assert counts[split] / 20_000 == pytest.approx(share, abs=0.01)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcdefgh"))))
def test_groups_that_share_a_key_are_joined_under_the_smallest_name(pairs: list[tuple[int, str]]) -> None:
    joined = merge_groups(pairs)
    assert joined.keys() == {group for _, group in pairs}
    for key, group in pairs:
        assert all(joined[other] == joined[group] for found, other in pairs if found == key)
    for group, name in joined.items():
        assert name == min(other for other in joined if joined[other] == joined[group])


def test_joining_is_transitive_and_keeps_strangers_apart() -> None:
    joined = merge_groups([(1, "b"), (1, "c"), (2, "c"), (2, "a"), (3, "z")])
    assert joined == {"a": "a", "b": "a", "c": "a", "z": "z"}
