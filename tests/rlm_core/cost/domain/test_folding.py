"""Computing with constants is bounded before it begins."""

from __future__ import annotations

import ast
import math
import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.folding import (
    BINARY,
    COMPARE,
    MISSING,
    MOST_BITS,
    MOST_TEXT,
    compared,
    expanded,
    formatted,
    formatted_value,
    is_bounded,
    is_small,
    operation,
    repeated,
    replaced,
    rounded,
)
from rlm_core.cost.domain.syntax import parse, parse_expression
from rlm_core.cost.domain.values import literal

from ..evaluating import evaluated

OPERANDS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from((0, 1, -1, 2**MOST_BITS - 1, -(2**999))),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.tuples(st.integers(0, 3)),
    st.sampled_from(("x" * MOST_TEXT, b"x" * MOST_TEXT, ((),) * 64, None, "%1000000000d")),
)


@given(st.sampled_from(list(BINARY)), OPERANDS, OPERANDS)
def test_an_operation_is_pythons_or_missing_and_its_result_is_small(op: type[ast.operator], a: Any, b: Any) -> None:
    result = operation(op, a, b)
    if result is MISSING:
        return
    assert result == BINARY[op](a, b) or result != result
    assert not isinstance(result, int) or result.bit_length() <= 2 * MOST_BITS
    assert not isinstance(result, (str, bytes, tuple)) or len(result) <= MOST_TEXT


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [
        (ast.LShift, 1, 10**12),
        (ast.Pow, 3, 10**12),
        (ast.Pow, 10, -(10**12)),
        (ast.Mult, "x", 10**12),
        (ast.Mult, -(10**12), b"x" * MOST_TEXT * 2),
        (ast.Mod, "%1000000000d", 5),
        (ast.Add, "x", b"x"),
        (ast.Div, 1, 0),
        (ast.Pow, -1, 0.5),
        (ast.MatMult, 1, 1),
    ],
)
def test_what_would_be_large_or_fails_is_missing(op: type[ast.operator], left: Any, right: Any) -> None:
    assert operation(op, left, right) is MISSING or not operation(op, left, right)


def test_a_repetition_is_empty_for_any_negative_number_and_of_nothing() -> None:
    assert repeated("ab", -(2**63) * 100) == ""
    assert repeated(b"", 2**64) == b""
    assert repeated((1,), 3) == (1, 1, 1)
    assert repeated("ab", MOST_TEXT) is MISSING
    assert repeated("ab", 2.0) is MISSING


def test_functions_of_texts_make_short_ones_only() -> None:
    assert replaced("aXb", "X", "--") == "a--b"
    assert replaced("a" * 9_000, "a", "b" * 9_000) is MISSING
    assert expanded("a\tb", 4) == "a   b"
    assert expanded("\t" * 9_000, 10**9) is MISSING
    assert formatted("{:>3}|{}", 1, "x") == "  1|x"
    assert formatted("{:1000000000}", 1) is MISSING
    assert formatted("{:{}}", 1, 10**9) is MISSING
    assert formatted_value(1.5, ".2f") == "1.50"
    assert formatted_value(5, "1000000000") is MISSING
    assert rounded(1234, -2) == 1200
    assert rounded(5, -(10**12)) == 0
    assert rounded(2.567, 1) == 2.6


def test_a_constant_is_kept_while_all_its_parts_together_are_few() -> None:
    doubled: tuple[Any, ...] = (1,)
    for _ in range(60):
        doubled = (doubled, doubled)
    assert not is_bounded(doubled)
    assert not is_small(doubled)
    assert not literal(doubled).known
    assert literal(((1, 2), (3,))).constant == ((1, 2), (3,))


@pytest.mark.parametrize("text", ["9" * 4_000, "0x" + "f" * 5_000, "0b" + "1" * 2_000, "1_000" * 300])
def test_a_large_integer_literal_is_known_by_its_digits_alone(text: str) -> None:
    value = evaluated(text)
    assert not value.known
    assert value.kind == "int"
    assert value.number is None
    assert value.size is not None
    assert value.size.exact == pytest.approx(int(text, 0).bit_length() / 30)


def test_a_tree_with_a_large_integer_can_be_written() -> None:
    tree = parse("x = 0x" + "f" * 5_000)
    assert tree is not None
    assert "integer of 20000 bits" in ast.unparse(tree)
    assert "integer of 20000 bits" in ast.dump(tree)
    node = parse_expression("0x" + "f" * 5_000)
    assert node is not None
    assert "integer of 20000 bits" in ast.unparse(node)


@pytest.mark.parametrize("text", ["(" * 300 + "1" + ")" * 300, "-" * 5_000 + "1", "1 +", "\0", "x" * 200_000])
def test_an_expression_that_is_too_nested_or_none_has_no_tree(text: str) -> None:
    assert parse_expression(text) is None


@given(st.integers())
def test_an_integer_that_is_kept_fits_a_float(value: int) -> None:
    kept = literal(value)
    assert kept.known is (value.bit_length() <= MOST_BITS)
    assert kept.number is None or math.isfinite(kept.number.evaluate(lambda name: 0.0)[2])


@pytest.mark.parametrize(
    "text",
    [
        "round(5, -10**9)",
        "format(5, '1000000000')",
        "'{:1000000000}'.format(5)",
        "('\\t' * 9000).expandtabs(10**9)",
        "('a' * 9000).replace('a', 'b' * 9000)",
        "__import__('operator').lshift(1, 10**12)",
        "b'' * 2**64",
        "'ab' * (-2**63 * 100)",
        "[1.0] * 10**400",
    ],
)
def test_such_calls_are_evaluated_without_computing_them(text: str) -> None:
    evaluated(text)


def test_operators_of_the_library_are_those_of_the_language() -> None:
    assert BINARY[ast.LShift] is operator.lshift


@given(st.sampled_from([*COMPARE, ast.In]), OPERANDS, OPERANDS)
def test_a_comparison_is_pythons_or_missing(op: type[ast.cmpop], a: Any, b: Any) -> None:
    try:
        true: Any = bool(COMPARE[op](a, b))
    except (KeyError, TypeError):
        true = MISSING
    assert compared(op, a, b) is true


@given(st.integers(0, 300), st.integers(0, 100))
def test_a_caller_may_allow_less(power: int, count: int) -> None:
    assert (operation(ast.Pow, 2, power, bits=256) is MISSING) is (2 * power > 256)
    assert (operation(ast.Mult, [0], count, items=50) is MISSING) is (count > 50)
    assert (operation(ast.Add, [0] * count, [0], items=50) is MISSING) is (count >= 50)
