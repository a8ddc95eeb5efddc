"""The table of unit costs: laws, and costs that can be true."""

from __future__ import annotations

import math

import pytest
from rlm_core.cost.domain.quantities import constant, of_size
from rlm_core.cost.library.unit_costs import each, growth, primitive, seconds, table


@pytest.mark.parametrize(
    ("law", "degree", "logs"),
    [("n", 1, 0), ("n log n", 1, 1), ("n^2", 2, 0), ("log n", 0, 1), ("n^1.585", 1.585, 0), ("n^3", 3, 0)],
)
def test_a_law_is_a_degree_and_logarithms(law: str, degree: float, logs: int) -> None:
    assert growth(law) == (degree, logs)


def test_a_text_that_is_not_a_law_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a law"):
        growth("banana")


def test_seconds_follow_the_law() -> None:
    cost = table()["builtins.sorted"]
    expected = cost.fixed + cost.each * 1000 * math.log2(1000)
    assert seconds("builtins.sorted", constant(1000)).exact == pytest.approx(expected)
    assert seconds("builtins.sorted").exact == cost.fixed
    assert seconds("builtins.sorted", of_size("values")).names == {"values"}


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        primitive("no.such.primitive")


def test_primitives_take_nanoseconds() -> None:
    for name in ("loop.for", "call.function", "call.method", "load.attribute", "binary.int", "compare", "list.append"):
        assert 1e-10 < primitive(name) < 1e-6, name
    assert primitive("call.function") > primitive("load.attribute") > primitive("branch")


def test_costs_are_ordered_as_their_work_is() -> None:
    assert each("hashlib.sha512") > each("hashlib.sha1")
    assert each("zlib.compress") > each("base64.b64encode")
    assert each("builtins.sorted.text") > each("builtins.sorted.ordered")
    assert each("copy.deepcopy") > each("list.copy")
