"""Laws of quantities: arithmetic contains the true value, keeps order, and says how a cost grows."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.quantities import (
    ONE,
    ZERO,
    Quantity,
    constant,
    degree,
    exponential,
    larger,
    mixed,
    of_size,
)

NAMES = ("n", "m")
COEFFICIENTS = st.floats(0, 1e6)
SIZES = st.floats(0, 1e3)
N, M = of_size("n"), of_size("m")


@st.composite
def ranges(draw: st.DrawFn) -> tuple[float, float, float]:
    """Least, likely and most."""
    low, likely, high = sorted((draw(COEFFICIENTS), draw(COEFFICIENTS), draw(COEFFICIENTS)))
    return low, likely, high


@st.composite
def quantities(draw: st.DrawFn) -> Quantity:
    """A sum of a few products of powers and logarithms of ``n`` and ``m``."""
    result = ZERO
    for _ in range(draw(st.integers(0, 3))):
        term = Quantity({(): draw(ranges())})
        for name in NAMES:
            term = term * of_size(name).power(float(draw(st.integers(0, 2))))
        if draw(st.booleans()):
            term = term * of_size(draw(st.sampled_from(NAMES))).log()
        result = result + term
    return result


@st.composite
def contained(draw: st.DrawFn) -> tuple[Quantity, float]:
    """An interval and a number in it."""
    low, likely, high = draw(ranges())
    return Quantity({(): (low, likely, high)}), low + draw(st.floats(0, 1)) * (high - low)


def at(n: float, m: float) -> Callable[[str], float]:
    """Sizes by name."""
    return {"n": n, "m": m}.__getitem__


@given(contained(), contained())
def test_intervals_contain_the_true_result(first: tuple[Quantity, float], second: tuple[Quantity, float]) -> None:
    (left, a), (right, b) = first, second
    for quantity, true in ((left + right, a + b), (left - right, a - b), (left * right, a * b)):
        low, _, high = quantity.evaluate(at(0, 0))
        assert low <= true + 1e-6 * abs(true) + 1e-9
        assert high >= true - 1e-6 * abs(true) - 1e-9


@given(contained(), st.floats(0, 4))
def test_powers_and_logarithms_contain_the_true_result(entry: tuple[Quantity, float], exponent: float) -> None:
    quantity, value = entry
    for result, true in ((quantity.power(exponent), value**exponent), (quantity.log(), math.log2(max(value, 2)))):
        low, likely, high = result.evaluate(at(0, 0))
        assert low <= likely <= high
        assert low * (1 - 1e-9) <= true <= high * (1 + 1e-9)


@given(quantities(), quantities(), quantities(), SIZES, SIZES)
def test_sums_and_products_are_those_of_their_values(a: Quantity, b: Quantity, c: Quantity, n: float, m: float) -> None:
    sizes = at(n, m)
    left, right, third = (quantity.evaluate(sizes) for quantity in (a, b, c))
    assert (a + b).evaluate(sizes) == pytest.approx([x + y for x, y in zip(left, right, strict=True)], rel=1e-6)
    if len(a.terms) * len(b.terms) <= 6:
        assert (a * b).evaluate(sizes) == pytest.approx([x * y for x, y in zip(left, right, strict=True)], rel=1e-6)
    assert ((a + b) + c).evaluate(sizes) == pytest.approx((a + (b + c)).evaluate(sizes), rel=1e-6)
    assert (a + b).evaluate(sizes) == pytest.approx((b + a).evaluate(sizes), rel=1e-6)
    assert third == (ZERO + c).evaluate(sizes) == (c * ONE).evaluate(sizes)


@given(quantities(), SIZES, SIZES)
def test_the_least_is_at_most_the_likely_and_that_at_most_the_most(quantity: Quantity, n: float, m: float) -> None:
    low, likely, high = quantity.evaluate(at(n, m))
    assert low <= likely * (1 + 1e-9)
    assert likely <= high * (1 + 1e-9)


@given(quantities(), SIZES, SIZES, SIZES)
def test_larger_sizes_never_give_less(quantity: Quantity, n: float, m: float, more: float) -> None:
    small, large = quantity.evaluate(at(n, m)), quantity.evaluate(at(n + more, m))
    assert all(a <= b * (1 + 1e-9) + 1e-12 for a, b in zip(small, large, strict=True))


@given(quantities(), st.floats(0, 100), SIZES, SIZES)
def test_times_multiplies_the_value(quantity: Quantity, factor: float, n: float, m: float) -> None:
    sizes = at(n, m)
    expected = [value * factor for value in quantity.evaluate(sizes)]
    assert quantity.times(factor).evaluate(sizes) == pytest.approx(expected, rel=1e-6)


@given(quantities(), quantities(), SIZES, SIZES)
def test_the_larger_is_at_least_both_and_at_most_their_sum(a: Quantity, b: Quantity, n: float, m: float) -> None:
    sizes = at(n, m)
    left, right, most = a.evaluate(sizes), b.evaluate(sizes), larger(a, b).evaluate(sizes)
    for x, y, both in zip(left, right, most, strict=True):
        assert max(x, y) <= both * (1 + 1e-9) + 1e-12
        assert both <= (x + y) * (1 + 1e-9) + 1e-12


@given(quantities(), quantities(), st.floats(0, 1), SIZES, SIZES)
def test_a_mixture_lies_between_its_parts(a: Quantity, b: Quantity, share: float, n: float, m: float) -> None:
    sizes = at(n, m)
    left, right = a.evaluate(sizes), b.evaluate(sizes)
    low, likely, high = mixed([(share, a), (1 - share, b)]).evaluate(sizes)
    assert low <= min(left[0], right[0]) * (1 + 1e-9) + 1e-9
    assert likely == pytest.approx(share * left[1] + (1 - share) * right[1], rel=1e-6, abs=1e-9)
    assert high >= max(left[2], right[2]) * (1 - 1e-9) - 1e-9


@given(quantities(), st.floats(2, 1000), SIZES)
def test_substituting_a_number_is_evaluating_at_it(quantity: Quantity, n: float, m: float) -> None:
    substituted = quantity.substituted({"n": constant(n)})
    assert "n" not in substituted.names
    assert substituted.evaluate(at(0, m)) == pytest.approx(quantity.evaluate(at(n, m)), rel=1e-6)


@given(quantities(), SIZES, SIZES)
def test_substituting_a_size_renames_it(quantity: Quantity, n: float, m: float) -> None:
    renamed = quantity.substituted({"n": of_size("k")})
    assert "n" not in renamed.names
    assert renamed.evaluate({"k": n, "m": m}.__getitem__) == pytest.approx(quantity.evaluate(at(n, m)), rel=1e-9)


@given(st.floats(1.1, 3), st.integers(0, 100), st.integers(0, 30))
def test_an_exponential_is_its_base_to_the_power(base: float, exponent: int, n: int) -> None:
    assert exponential(base, constant(exponent)).exact == pytest.approx(base**exponent)
    grown = exponential(base, N + constant(2)).evaluate(at(n, 0))
    assert grown == pytest.approx((base ** (n + 2),) * 3, rel=0.01)


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (N, (1, 1, 0)),
        (N * N, (1, 2, 0)),
        (N * N.log(), (1, 1, 1)),
        (N * M, (1, 2, 0)),
        (N.power(0.5), (1, 0.5, 0)),
        (exponential(2.0, N), (2, 0, 0)),
        (constant(7), (1, 0, 0)),
    ],
)
def test_growth_is_read_from_a_monomial(quantity: Quantity, expected: tuple[float, float, float]) -> None:
    assert degree(next(iter(quantity.terms))) == expected


def test_faster_growth_is_ordered_last() -> None:
    rising = [constant(1), N.log(), N.power(0.5), N, N * N.log(), N * N, exponential(1.5, N), exponential(2.0, N)]
    degrees = [degree(max(quantity.terms, key=degree)) for quantity in rising]
    assert degrees == sorted(degrees)


def test_constants_are_exact_only_where_least_and_most_are_equal() -> None:
    assert constant(5).exact == 5
    assert ZERO.exact == 0
    assert constant(1, 3).exact is None
    assert constant(1, 3).constant == (1, 2, 3)
    assert N.exact is None
    assert N.constant is None
    assert (N - N + constant(2)).evaluate(at(9, 9)) == (2, 2, 2)


def test_sums_keep_the_terms_that_grow_fastest() -> None:
    total = ZERO
    for power in range(40):
        total = total + N.power(power / 2 + 0.5)
    assert len(total.terms) <= 12
    assert max(degree(monomial)[1] for monomial in total.terms) == 20


EXTREMES = st.sampled_from((0.0, -0.0, 1.0, 1e-320, 1e-9, 0.5, 3.0, 1e150, 1.7e308, math.inf)) | st.floats(0, 1e6)


@st.composite
def extreme_quantities(draw: st.DrawFn, depth: int = 3) -> Quantity:
    """Any expression of numbers and sizes, infinite and negative ones included."""
    if not depth or draw(st.integers(0, 3)) == 0:
        fixed = constant(draw(EXTREMES), draw(EXTREMES | st.none()), draw(EXTREMES | st.none()))
        return draw(st.sampled_from((fixed, fixed.times(-1.0), N, M, N.log(), exponential(1.5, N))))
    left, right = draw(extreme_quantities(depth - 1)), draw(extreme_quantities(depth - 1))
    number = draw(EXTREMES)
    operations: tuple[Callable[[], Quantity], ...] = (
        lambda: left + right,
        lambda: left - right,
        lambda: left * right,
        lambda: larger(left, right),
        lambda: mixed([(0.5, left), (0.5, right)]),
        lambda: mixed([(0.0, left), (1.0, right)]),
        lambda: left.times(number),
        lambda: left.times(-number),
        lambda: left.power(number),
        lambda: left.log(),
        lambda: left.at_most(number),
        lambda: exponential(number, right),
        lambda: left.substituted({"n": right}),
    )
    return draw(st.sampled_from(operations))()


@given(extreme_quantities(), EXTREMES, EXTREMES)
def test_no_amount_is_nan_and_the_least_is_at_most_the_most(quantity: Quantity, n: float, m: float) -> None:
    for low, likely, high in (*quantity.terms.values(), quantity.evaluate(at(n, m))):
        assert low <= likely <= high  # which fails for NaN


@given(st.integers(-(10**400), 10**400) | st.floats(), st.integers(-(10**400), 10**400) | st.floats() | st.none())
def test_a_constant_takes_any_number(value: float, most: float | None) -> None:
    low, likely, high = constant(value, most).evaluate(at(0, 0))
    assert low <= likely <= high


def test_there_is_one_infinity() -> None:
    endless = constant(math.inf)
    assert endless.exact == constant(10**400).exact == constant(1e300).power(2).exact == math.inf
    assert (endless + ONE).exact == (endless * endless).exact == endless.log().exact == math.inf
    assert (endless * ZERO).evaluate(at(0, 0)) == endless.times(0).evaluate(at(0, 0)) == (0, 0, 0)
    assert (endless - endless).constant == (-math.inf, 0, math.inf)
    likely, taken = constant(1.0, math.inf, math.inf), constant(-math.inf, 0.0, -math.inf)
    assert (likely + taken).constant == (-math.inf, 0, math.inf)
    assert (constant(2) - constant(3)) * constant(0, 5, 1) == constant(-5, 0, -1)
