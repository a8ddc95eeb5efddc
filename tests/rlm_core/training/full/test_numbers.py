"""Numbers as tokens: round trip, order, rounding and range."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import DataError, ModelError
from rlm_core.training.full.numbers import PAD, NumberFormat
from rlm_core.training.full.regress_lm import SPECIAL, ieee, p10

OWN = NumberFormat()
FORMATS = [
    OWN,
    NumberFormat(base=2, mantissa_digits=8, exponent_digits=5),
    NumberFormat(base=16, mantissa_digits=3, exponent_digits=1, unique=False, special=()),
    NumberFormat(exponent_digits=3, mantissa_digits=6),
    NumberFormat("exponent-last", mantissa_digits=3, exponent_range=6),
    NumberFormat("exponent-last", mantissa_digits=1, exponent_range=0, unique=False, special=()),
    ieee(),
    p10(special=SPECIAL, separator=True),
]
formats = st.sampled_from(FORMATS)
nearest = st.sampled_from([numbers for numbers in FORMATS if numbers.rounding == "nearest"])
Written = tuple[NumberFormat, tuple[int, ...]]
doubles = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def token_rows(draw: st.DrawFn, chosen: st.SearchStrategy[NumberFormat] = formats) -> Written:
    """A format and the tokens of any of its ordinary numbers, over all that the tokens hold."""
    numbers = draw(chosen)
    digits = st.integers(0, numbers.base - 1)
    sign = st.sampled_from(["<+>", "<->"])
    lead = draw(st.integers(int(numbers.unique), numbers.base - 1))
    mantissa = [f"<{lead}>", *(f"<{draw(digits)}>" for _ in range(numbers.mantissa_digits - 1))]
    if numbers.exponent_first:
        names = [draw(sign), draw(sign), *(f"<{draw(digits)}>" for _ in range(numbers.exponent_digits)), *mantissa]
    else:
        exponent = draw(st.integers(-numbers.exponent_range, numbers.exponent_range))
        names = [draw(sign), *mantissa, f"<E{exponent}>"]
    return numbers, (*(numbers.ids[name] for name in names), *[PAD] * numbers.separator)


@given(token_rows(nearest))
def test_what_tokens_say_is_written_and_read_back_unchanged(pair: Written) -> None:
    numbers, row = pair
    value = numbers.decode(row)
    if abs(value) < max(numbers.smallest, 1e-300) or math.isinf(value):
        return  # zero in another writing, or beyond the full precision of the format or of a double
    again = numbers.encode(value)
    assert numbers.decode(again) == value
    if numbers.unique:
        assert again == row


@given(token_rows(st.sampled_from([OWN, FORMATS[1]])), st.data())
def test_with_the_exponent_first_tokens_sort_as_the_numbers_do(pair: Written, data: st.DataObject) -> None:
    numbers, first = pair
    _, second = data.draw(token_rows(st.just(numbers)))
    assert (_rank(numbers, first) < _rank(numbers, second)) == (numbers.decode(first) < numbers.decode(second))


def _rank(numbers: NumberFormat, row: tuple[int, ...]) -> tuple[int, ...]:
    """Digits in the order of writing; those that make a number smaller count down."""
    names = [numbers.names[token][1:-1] for token in row]
    sign = 1 if names[0] == "+" else -1
    power = sign if names[1] == "+" else -sign
    exponent = [power * int(name) for name in names[2 : numbers.lead]]
    return (sign, power, *exponent, *(sign * int(name) for name in names[numbers.lead :]))


@given(nearest, doubles)
def test_values_are_rounded_to_the_nearest_number(numbers: NumberFormat, value: float) -> None:
    written = numbers.decode(numbers.encode(value))
    size, found = abs(value), abs(written)
    if size >= numbers.largest:
        assert found == numbers.largest
    elif size == 0 or size < numbers.smallest:
        assert found in ((0.0, numbers.smallest) if numbers.holds_zero else (numbers.smallest,))
        if numbers.holds_zero:
            assert (found > 0) == (Fraction(size) > Fraction(numbers.smallest) / 2) or numbers.smallest < 1e-300
    else:
        exponent = _exponent(size, numbers.base)
        step = Fraction(numbers.base) ** (exponent - numbers.mantissa_digits + 1)
        # A double of the written number may itself be off by half a unit in its last place.
        assert abs(Fraction(found) - Fraction(size)) <= step / 2 + Fraction(math.ulp(found))
    assert written == 0 or (written > 0) == (value > 0)


def _exponent(size: float, base: int) -> int:
    exponent, exact = math.floor(math.log(size, base)), Fraction(size)
    while exact >= Fraction(base) ** (exponent + 1):
        exponent += 1
    while exact < Fraction(base) ** exponent:
        exponent -= 1
    return exponent


@given(formats, st.lists(doubles, min_size=2, max_size=8))
def test_writing_keeps_the_order_of_values(numbers: NumberFormat, values: list[float]) -> None:
    written = [numbers.decode(numbers.encode(value)) for value in sorted(values)]
    assert written == sorted(written)


@given(nearest, doubles)
def test_a_value_lies_in_the_cell_of_its_number(numbers: NumberFormat, value: float) -> None:
    written = numbers.decode(numbers.encode(value))
    low, high = numbers.cell(written)
    if numbers.smallest <= abs(value) <= numbers.largest:
        slack = 4 * math.ulp(value)
        assert low - slack <= value <= high + slack
    assert low <= written <= high


@given(st.lists(token_rows(), min_size=1, max_size=6))
def test_the_cells_of_many_numbers_are_those_of_each(pairs: list[Written]) -> None:
    for numbers, row in pairs:
        value = numbers.decode(row)
        if not 1e-250 < abs(value) < 1e250:
            continue  # where powers of the base leave the range of a double
        low, high = numbers.cells(np.array([[value, -value, 0.0]]))
        assert low.shape == high.shape == (1, 3)
        for at, own in enumerate((value, -value, 0.0)):
            assert (low[0, at], high[0, at]) == pytest.approx(numbers.cell(own), rel=1e-12)


def test_without_leading_zeros_zero_is_the_smallest_number() -> None:
    numbers = replace(ieee(10, 2, 5), leading_zero=False)
    assert numbers.names == ieee(10, 2, 5).names
    assert not numbers.holds_zero
    assert numbers.decode(numbers.encode(0.0)) == numbers.smallest == 1e-99
    assert numbers.encode(123.4) == ieee(10, 2, 5).encode(123.4)


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.12345, 0.1235), (0.12355, 0.1235), (1.00049999, 1.0), (9.9996e5, 1e6), (2.5e99, 2.5e99), (-99.996, -100.0)],
)
def test_rounding_carries_into_the_exponent_and_follows_the_exact_value(value: float, written: float) -> None:
    # 0.12345 is a little above the tie as a double, 0.12355 a little below.
    assert OWN.decode(OWN.encode(value)) == written


def test_ties_go_to_the_even_digit() -> None:
    halves = NumberFormat(base=2, mantissa_digits=2, exponent_digits=2)
    assert [halves.decode(halves.encode(value)) for value in (2.5, 3.5, 5.0, 7.0)] == [2.0, 4.0, 4.0, 8.0]


def test_the_range_is_what_the_tokens_hold() -> None:
    assert (OWN.smallest, OWN.largest) == (1e-100, 9.999e99)
    assert (ieee().smallest, ieee().largest) == (1e-9, 9.999e9)
    assert (p10().smallest, p10().largest) == (1e-7, 9.999e13)
    assert OWN.step(123.4) == pytest.approx(0.1)


def test_values_beyond_the_range_saturate() -> None:
    assert OWN.decode(OWN.encode(1e300)) == OWN.largest
    assert OWN.decode(OWN.encode(-math.inf)) == -OWN.largest
    assert OWN.decode(OWN.encode(4.9e-101)) == 0
    assert OWN.decode(OWN.encode(5.1e-101)) == OWN.smallest
    no_zero = NumberFormat(special=())
    assert no_zero.decode(no_zero.encode(0.0)) == no_zero.smallest
    wide = NumberFormat(exponent_digits=3)
    assert wide.decode(wide.encode(1.7e308)) == 1.7e308
    assert wide.decode(wide.encode(5e-324)) == 5e-324


def test_special_values_have_separate_tokens() -> None:
    numbers = p10(special=SPECIAL)
    assert len(set(numbers.encode(math.inf))) == 1
    assert numbers.decode(numbers.encode(-math.inf)) == -math.inf
    assert math.isnan(numbers.decode(numbers.encode(math.nan)))
    assert numbers.encode(math.nan) != numbers.encode("INVALID")
    assert OWN.decode(OWN.encode(-0.0)) == 0


def test_regress_lm_cuts_digits_off() -> None:
    assert [ieee().decode(ieee().encode(value)) for value in (12349.0, 0.3, -1.99999)] == [12340.0, 0.3, -1.999]


@pytest.mark.parametrize("numbers", FORMATS, ids=lambda numbers: f"{numbers.order}-base-{numbers.base}")
def test_powers_of_the_base_have_their_own_exponent_and_their_neighbours_are_rounded(numbers: NumberFormat) -> None:
    """A logarithm in doubles can be one off there: regress-lm wrote wrong exponents until 2026-05-20."""
    base, first = Fraction(numbers.base), numbers.base ** (numbers.mantissa_digits - 1)
    for exponent in range(numbers.exponents[0], numbers.exponents[1] + 1):
        power = base**exponent
        if not 1e-290 < power < 1e290:
            continue  # near the ends of the range of doubles
        value = float(power)
        if Fraction(value) == power:
            assert _written(numbers, value) == (exponent, first)
        for near in map(float, (np.nextafter(value, 0.0), value, np.nextafter(value, np.inf))):
            if Fraction(near) < base ** numbers.exponents[0]:
                continue  # an underflow
            expected = _rounded(numbers, Fraction(near), exponent)
            assert (_written(numbers, near), _written(numbers, -near)) == (expected, expected)


def _written(numbers: NumberFormat, value: float) -> tuple[int, int]:
    """Exponent and mantissa, an integer, that the tokens of a value say."""
    names = [numbers.names[token][1:-1] for token in numbers.encode(value)]
    mantissa = _joined(names[numbers.lead : numbers.lead + numbers.mantissa_digits], numbers.base)
    if not numbers.exponent_first:
        return int(names[numbers.positions - numbers.separator - 1][1:]) + numbers.mantissa_digits - 1, mantissa
    size = _joined(names[2 : numbers.lead], numbers.base)
    return (-size - numbers.unique if names[1] == "-" else size), mantissa


def _joined(digits: list[str], base: int) -> int:
    return sum(int(digit) * base**place for place, digit in enumerate(reversed(digits)))


def _rounded(numbers: NumberFormat, size: Fraction, exponent: int) -> tuple[int, int]:
    """Exponent and mantissa of the number for a magnitude next to a power of the base, exactly."""
    base, places = Fraction(numbers.base), numbers.mantissa_digits - 1
    if size < base**exponent:
        exponent -= 1
    exact = size / base ** (exponent - places)
    mantissa = math.floor(exact) if numbers.rounding == "down" else round(exact)
    return (exponent + 1, numbers.base**places) if mantissa == base ** (places + 1) else (exponent, mantissa)


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(DataError, match="no special token stands for it; known: ZERO, NAN"):
        OWN.encode("INVALID")
    with pytest.raises(DataError, match="not a number"):
        ieee().encode(math.nan)
    with pytest.raises(DataError, match="a number has 8 tokens"):
        OWN.decode((1, 2))
    with pytest.raises(DataError, match="not in the order of a number"):
        OWN.decode((PAD,) * OWN.positions)


@pytest.mark.parametrize(
    "settings",
    [
        {"base": 1},
        {"mantissa_digits": 0},
        {"mantissa_digits": 17},
        {"exponent_digits": 17},
        {"order": "exponent-last", "exponent_range": 10_001},
        {"special": (("X", "seven"),)},
        {"special": (("X", "7"),)},
        {"special": (("1", "nan"),)},
        {"order": "sideways"},
    ],
)
def test_a_format_that_cannot_work_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ModelError, match="number format"):
        NumberFormat(**settings)  # type: ignore[arg-type]


@given(formats)
def test_a_format_survives_json(numbers: NumberFormat) -> None:
    assert NumberFormat.from_json(json.loads(json.dumps(numbers.to_json()))) == numbers
