"""Binary operations: folded as Python does, and only where the result is small."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..evaluating import evaluated, same


@given(st.integers(-20, 20), st.integers(-30, 30), st.sampled_from(["&", "|", "^", "<<", ">>", "**"]))
def test_whole_numbers_are_folded(left: int, right: int, sign: str) -> None:
    text = f"({left}) {sign} ({right})"
    try:
        true = eval(text)
    except (ValueError, ZeroDivisionError):
        true = None
    value = evaluated(text)
    if true is not None:
        assert same(value.constant, true)


@pytest.mark.parametrize(
    "text", ["10 ** 10 ** 10", "2 ** 100_000_000", "1 << 10 ** 12", "'x' * 10 ** 12", "1 / 0", "5 % 0", "(1, 2)[5]",
             "'a' + 1", "10.0 ** 400", "(-8) ** 0.5", "[0] * -10 ** 9"]
)  # fmt: skip
def test_what_is_huge_or_fails_is_not_computed(text: str) -> None:
    assert not evaluated(text).known
