"""Tuners: groups stay whole, and every fold leaves enough rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.training.tuning.tuners import folds_of, suffices


@given(st.lists(st.sampled_from("abcdefgh"), min_size=3, max_size=60))
def test_a_group_is_in_one_fold_only(groups: list[str]) -> None:
    names = np.array(groups)
    folds = folds_of(names)
    assert all(len(set(folds[names == name])) == 1 for name in groups)
    assert len(set(folds)) == min(5, len(set(groups)))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((2, 2, 2), False), ((6, 3, 1), False), ((9, 1), False), ((6, 3, 2), True), ((1,) * 8, True)],
)
def test_a_level_needs_five_rows_whatever_fold_is_left_out(counts: tuple[int, ...], expected: bool) -> None:
    groups = np.repeat([f"group {number}" for number in range(len(counts))], counts)
    assert suffices(folds_of(groups)) is expected
