"""Numbers that a loop multiplies."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.factors import Doubled, factor_of


@pytest.mark.parametrize(
    ("line", "factor"),
    [("n *= k", "k"), ("n = n * 3", "3"), ("n **= 2", "2"), ("n += 1", None), ("m *= 2", None), ("n = 3 + n", None)],
)
def test_what_a_name_is_multiplied_by(line: str, factor: str | None) -> None:
    found = factor_of(ast.parse(f"for a in x:\n    {line}").body[0], "n")
    assert (found and ast.unparse(found)) == factor


@pytest.mark.parametrize(("line", "bits"), [("n <<= 1", 1.0), ("n = n << 1", 1.0), ("m, n = n, m + n", 0.694)])
def test_the_bits_that_each_trip_adds(line: str, bits: float) -> None:
    found = factor_of(ast.parse(f"for a in x:\n    {line}").body[0], "n")
    assert isinstance(found, Doubled)
    assert found.bits == bits
