"""Values: what is known of them, and that they are immutable."""

from __future__ import annotations

import pytest
from rlm_core.cost.domain.folding import MISSING
from rlm_core.cost.domain.quantities import ZERO, constant
from rlm_core.cost.domain.values import NONE, UNKNOWN, Entries, Value, literal, number_of


def test_an_unknown_value_says_nothing() -> None:
    assert Value() == UNKNOWN
    assert not UNKNOWN.known
    assert UNKNOWN.kind == "unknown"
    assert (UNKNOWN.size, UNKNOWN.number, UNKNOWN.item, UNKNOWN.bytes) == (None, None, None, ZERO)
    assert repr(MISSING) == "MISSING"


def test_none_is_a_known_value() -> None:
    assert NONE.known
    assert NONE.constant is None
    assert literal(None) is NONE


@pytest.mark.parametrize(
    ("constant_", "kind", "size", "number"),
    [
        (0, "int", None, 0.0),
        (-7, "int", None, -7.0),
        (True, "bool", None, 1.0),
        (2.5, "float", None, 2.5),
        ("text", "str", 4.0, None),
        (b"bytes", "bytes", 5.0, None),
        ((1, 2, 3), "tuple", 3.0, None),
        ("", "str", 0.0, None),
        (float("inf"), "float", None, None),
    ],
)
def test_literals_have_a_kind_a_size_and_a_number(
    constant_: object, kind: str, size: float | None, number: float | None
) -> None:
    value = literal(constant_)
    assert value.known
    assert value.kind == kind
    assert (None if value.size is None else value.size.exact) == size
    assert (None if value.number is None else value.number.exact) == number


def test_large_integers_have_digits() -> None:
    value = literal(1 << 3000)
    assert value.number is None
    assert value.size is not None
    assert value.size.exact == pytest.approx(100, abs=1)


def test_what_is_no_literal_is_unknown() -> None:
    assert literal(object()) is UNKNOWN
    assert literal(1 + 2j) is UNKNOWN


def test_an_argument_counts_as_a_number_of_its_name() -> None:
    named = number_of(Value("unknown", name="n"))
    assert named is not None
    assert named.names == {"n"}
    assert number_of(UNKNOWN) is None
    assert number_of(Value("int", number=constant(3))) == constant(3)


def test_what_only_the_analysis_reads_does_not_make_values_differ() -> None:
    assert Value("dict", payload=Entries((("a", NONE),))) == Value("dict")
