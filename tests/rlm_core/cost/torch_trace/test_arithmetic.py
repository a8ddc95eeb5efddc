"""Arithmetic on known values in modules: Python's result, or an error."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.concrete.frame import MAX_BITS
from rlm_core.cost.concrete.values import UNKNOWN
from rlm_core.cost.domain.folding import BINARY
from rlm_core.cost.torch_trace.arithmetic import binary

OPERANDS = st.one_of(
    st.integers(-300, 300), st.integers(-(2**MAX_BITS) + 1, 2**MAX_BITS - 1), st.floats(), st.booleans(),
    st.text(max_size=3), st.lists(st.integers(0, 3), max_size=3), st.just([0] * 20_000),
)  # fmt: skip


@given(st.sampled_from(list(BINARY)), OPERANDS, OPERANDS)
def test_a_result_is_pythons_and_bounded(kind: type[ast.operator], left: Any, right: Any) -> None:
    try:
        result = binary(kind, left, right)
    except (TypeError, ValueError):
        return
    assert result == BINARY[kind](left, right) or result != result
    assert not isinstance(result, int) or result.bit_length() <= MAX_BITS
    assert not isinstance(result, (str, list)) or len(result) <= 20_000


@pytest.mark.parametrize(
    ("kind", "left", "right", "result"),
    [(ast.Mult, 2, [1, 2], [1, 2, 1, 2]), (ast.LShift, 3, 4, 48), (ast.Pow, 2, 200, None), (ast.Pow, 2, 100, 2**100),
     (ast.Add, (1,), (2,), (1, 2)), (ast.LShift, 1.5, 2, None), (ast.Add, {1}, {2}, None), (ast.Add, 1, UNKNOWN, None)],
)  # fmt: skip
def test_known_values_are_computed(kind: type[ast.operator], left: Any, right: Any, result: Any) -> None:
    if result is None:
        with pytest.raises((TypeError, ValueError)):
            binary(kind, left, right)
    else:
        assert binary(kind, left, right) == result
