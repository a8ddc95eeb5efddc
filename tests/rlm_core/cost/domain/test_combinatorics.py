"""The number of ways to choose is that of the formulas, for any numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.folding import Choice, ways_to_choose


def _repeated(whole: int, part: int) -> int:
    return math.comb(whole + part - 1, part) if whole + part else 1


EXACT: dict[Choice, Callable[[int, int], int]] = {
    "permutations": math.perm,
    "combinations": math.comb,
    "repeated": _repeated,
}


@given(st.sampled_from(get_args(Choice)), st.integers(0, 40), st.integers(0, 40))
def test_it_is_that_of_the_formulas(kind: Choice, whole: int, part: int) -> None:
    exact = EXACT[kind](whole, part)
    assert ways_to_choose(kind, whole, part) == (exact if exact < 1e14 else pytest.approx(exact, rel=1e-9))


@given(st.sampled_from(get_args(Choice)), st.floats(0, math.inf), st.floats(0, math.inf))
def test_no_number_makes_it_fail(kind: Choice, whole: float, part: float) -> None:
    assert ways_to_choose(kind, whole, part) >= 0
