"""Amounts that depend on sizes which the text does not fix: sums of products such as ``3 * n * log(n) + 2 * m + 5``.

A coefficient is a range (least, likely, most), since a branch may or may not be taken. Counts, seconds and bytes are
all quantities. The number of terms is bounded: the terms that grow least are dropped.

What never ends is ``math.inf``, and so is what a float cannot hold. No operation raises or gives NaN: zero times
infinity is zero, and infinity less infinity is anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from .records import record

Range = tuple[float, float, float]
# A size's name and how it enters: "n", "log n", or "1.6^n" as ("n", "1.6").
Factor = tuple[str, str]
Monomial = tuple[tuple[Factor, float], ...]
LINEAR, LOG = "", "log"
_MOST_TERMS = 12
_MOST_EXPONENT = 900.0  # of a size in ``base ** size``


@record
class Quantity:
    """A sum of monomials with coefficients in (least, likely, most)."""

    terms: Mapping[Monomial, Range]

    @property
    def constant(self) -> Range | None:
        """The range of a quantity that depends on no size, else None."""
        if not self.terms:
            return (0.0, 0.0, 0.0)
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def exact(self) -> float | None:
        """The value of a quantity that the text fixes exactly, else None."""
        fixed = self.constant
        return fixed[0] if fixed is not None and fixed[0] == fixed[2] else None

    @property
    def names(self) -> frozenset[str]:
        """The sizes that the quantity depends on."""
        return frozenset(factor[0] for monomial in self.terms for factor, _ in monomial)

    def __add__(self, other: Quantity) -> Quantity:
        if not other.terms:
            return self
        if not self.terms:
            return other
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            mine = terms.get(monomial)
            terms[monomial] = coefficient if mine is None else range_sum(mine, coefficient)
        return Quantity(terms) if len(terms) <= _MOST_TERMS else _bounded(terms)

    def plus(self, amount: Range) -> Quantity:
        """The sum with a constant range."""
        terms = dict(self.terms)
        mine = terms.get(())
        terms[()] = amount if mine is None else range_sum(mine, amount)
        return Quantity(terms) if len(terms) <= _MOST_TERMS else _bounded(terms)

    def __sub__(self, other: Quantity) -> Quantity:
        turned = {monomial: (-high, -likely, -low) for monomial, (low, likely, high) in other.terms.items()}
        return self + Quantity(turned)

    def __mul__(self, other: Quantity) -> Quantity:
        fixed = other.terms.get(()) if len(other.terms) == 1 else None
        if fixed is not None:
            return Quantity({monomial: range_product(own, fixed) for monomial, own in self.terms.items()})
        terms: dict[Monomial, Range] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = _product(left, right)
                old, new = terms.get(monomial), range_product(a, b)
                terms[monomial] = new if old is None else range_sum(old, new)
        return _bounded(terms)

    def at_most(self, limit: float) -> Quantity:
        """The quantity up to a limit; one with sizes that are not known probably reaches it."""
        known = self.constant
        if known is None:
            return constant(0.0, limit, limit)
        low, likely, high = (min(value, limit) for value in known)
        return constant(low, high, likely)

    def times(self, factor: float) -> Quantity:
        """The quantity multiplied by a number."""
        if factor == 1 or not self.terms:
            return self
        return Quantity({key: range_product(own, (factor, factor, factor)) for key, own in self.terms.items()})

    def log(self) -> Quantity:
        """The logarithm to base 2, at least 1; of a sum: that of the term that grows most."""
        fixed = self.constant
        if fixed is not None:
            low, likely, high = (math.log2(max(value, 2.0)) for value in fixed)
            return Quantity({(): (low, likely, high)})
        leading = _leading(self.terms)
        low, likely, high = (math.log2(max(value, 1.0)) for value in self.terms[leading])
        result = Quantity({(): (low, likely, high)}) if high else ZERO
        for (name, form), power in leading:
            if form == LINEAR:
                result = result + Quantity({(((name, LOG), 1.0),): (power, power, power)})
            elif form != LOG:
                slope = power * math.log2(float(form))
                result = result + Quantity({(((name, LINEAR), 1.0),): (slope, slope, slope)})
        return result if result.names else ONE

    def power(self, exponent: float) -> Quantity:
        """The quantity to a power of at least 0; of a sum: that of its leading term."""
        if exponent == 1:
            return self
        fixed = self.constant
        if fixed is not None:
            low, likely, high = (raised(value, exponent) for value in fixed)
            return Quantity({(): (low, likely, high)})
        leading = _leading(self.terms)
        low, likely, high = (raised(value, exponent) for value in self.terms[leading])
        return Quantity({tuple((factor, power * exponent) for factor, power in leading): (low, likely, high)})

    def evaluate(self, size: Callable[[str], float]) -> Range:
        """The range at given sizes; a size is at least 0."""
        total = (0.0, 0.0, 0.0)
        for monomial, coefficient in self.terms.items():
            if not monomial:
                total = range_sum(total, coefficient)
                continue
            factor = 1.0
            for (name, form), power in monomial:
                value = max(size(name), 0.0)
                if form == LOG:
                    value = math.log2(max(value, 2.0))
                elif form != LINEAR:
                    value = raised(float(form), min(value, _MOST_EXPONENT))
                factor = product(factor, raised(value, power))
            total = range_sum(total, range_product(coefficient, (factor, factor, factor)))
        return total

    def substituted(self, sizes: Mapping[str, Quantity]) -> Quantity:
        """The quantity with some of its sizes replaced."""
        result = ZERO
        for monomial, coefficient in self.terms.items():
            term = Quantity({(): coefficient})
            for (name, form), power in monomial:
                known = sizes.get(name)
                if known is None:
                    term = term * Quantity({(((name, form), power),): (1.0, 1.0, 1.0)})
                elif form == LINEAR:
                    term = term * known.power(power)
                elif form == LOG:
                    term = term * known.log().power(power)
                else:
                    term = term * exponential(float(form), known)
            result = result + term
        return result


def product(a: float, b: float) -> float:
    """The product of two numbers; zero times infinity is zero."""
    result = a * b
    return result if result == result else 0.0  # NaN differs from itself


def is_whole(value: float) -> bool:
    """Return whether a number is a whole one; infinity is not."""
    return math.isfinite(value) and value == int(value)


def part_of(part: float, whole: float) -> float:
    """The share of a part in a whole, at most 1, also where both are infinite or nothing."""
    return 1.0 if part >= whole else part / whole


def ceiling(value: float) -> float:
    """The smallest whole number that is at least a number; infinity of infinity."""
    return float(math.ceil(value)) if math.isfinite(value) else value


def range_sum(a: Range, b: Range) -> Range:
    """Return the sum of two ranges; infinity less infinity may be anything."""
    low, likely, high = a[0] + b[0], a[1] + b[1], a[2] + b[2]
    width = high - low
    if width == width and likely == likely:  # none is NaN, nor are both ends infinite
        return low, likely, high
    return (
        -math.inf if math.isnan(low) else low,
        0.0 if math.isnan(likely) else likely,
        math.inf if math.isnan(high) else high,
    )


def range_product(a: Range, b: Range) -> Range:
    """The product of two ranges."""
    if a[0] >= 0 and b[0] >= 0:
        low, likely, high = a[0] * b[0], a[1] * b[1], a[2] * b[2]
        total = low + likely + high
        # Infinity is the only other sum of ends that are not negative.
        return (
            (low, likely, high) if total == total else (product(a[0], b[0]), product(a[1], b[1]), product(a[2], b[2]))
        )
    ends = [product(x, y) for x in (a[0], a[2]) for y in (b[0], b[2])]
    return min(ends), product(a[1], b[1]), max(ends)


def raised(value: float, exponent: float) -> float:
    """A number of at least 0 to a power."""
    try:
        return float(max(value, 0.0) ** exponent)
    except (OverflowError, ZeroDivisionError):
        return math.inf


@lru_cache(maxsize=4096)
def _product(left: Monomial, right: Monomial) -> Monomial:
    if not left:
        return right
    if not right:
        return left
    powers = dict(left)
    for factor, power in right:
        powers[factor] = powers.get(factor, 0.0) + power
    return tuple(sorted((factor, power) for factor, power in powers.items() if power))


def _bounded(terms: dict[Monomial, Range]) -> Quantity:
    if len(terms) > _MOST_TERMS:
        kept = sorted(terms, key=_rank, reverse=True)[:_MOST_TERMS]
        terms = {monomial: terms[monomial] for monomial in kept}
    return Quantity(terms)


def _leading(terms: Mapping[Monomial, Range]) -> Monomial:
    """The term of a sum that grows most; one that is taken away is the last to count."""
    return max(terms, key=lambda monomial: (terms[monomial][1] > 0, degree(monomial)))


@lru_cache(maxsize=4096)
def _rank(monomial: Monomial) -> tuple[bool, float, float, float]:
    """Return what is kept of a sum: its constant part, then what grows most."""
    return not monomial, *degree(monomial)


@lru_cache(maxsize=4096)
def degree(monomial: Monomial) -> tuple[float, float, float]:
    """How a monomial grows: exponential base (1: none), degree, and power of logarithms; larger grows faster."""
    base, power_sum, logs = 1.0, 0.0, 0.0
    for (_, form), power in monomial:
        if form == LINEAR:
            power_sum += power
        elif form == LOG:
            logs += power
        else:
            base *= float(form)
    return base, power_sum, logs


def constant(value: float, most: float | None = None, likely: float | None = None) -> Quantity:
    """A quantity without sizes: exactly ``value``, or a range whose ends are ``value`` and ``most`` in either order.

    An integer may be larger than any float. NaN stands for anything from 0 on.
    """
    low = _number(value)
    if most is None and not math.isnan(low):
        return Quantity({(): (low, low, low)}) if low else ZERO
    low, high = sorted((low, _number(value if most is None else most)))
    middle = low / 2 + high / 2 if likely is None else _number(likely)
    if math.isnan(low) or math.isnan(middle) or math.isnan(high):
        return Quantity({(): (0.0, 0.0, math.inf)})
    return Quantity({(): (low, min(max(middle, low), high), high)})


def _number(value: float) -> float:
    """The float closest to a number: infinity beyond the range of floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def of_size(name: str) -> Quantity:
    """The size of that name."""
    return Quantity({(((name, LINEAR), 1.0),): (1.0, 1.0, 1.0)})


def exponential(base: float, exponent: Quantity) -> Quantity:
    """``base`` to the power of a quantity; of a sum: with the exponent's leading size."""
    fixed = exponent.constant
    if fixed is not None:
        return _raised(base, fixed)
    leading = _leading(exponent.terms)
    names = [name for (name, form), _ in leading if form == LINEAR]
    if not names:
        return exponent
    grown = round(raised(base, max(exponent.terms[leading][1], 0.0)), 4)
    offset = _raised(base, exponent.terms.get((), (0.0, 0.0, 0.0)))
    # What does not grow by a factor above 1 does not grow.
    return offset * Quantity({(((names[0], str(grown)), 1.0),): (1.0, 1.0, 1.0)}) if grown > 1 else offset


def _raised(base: float, exponents: Range) -> Quantity:
    low, likely, high = (raised(base, exponent) for exponent in exponents)
    return constant(low, high, likely)


def mixed(branches: Iterable[tuple[float, Quantity]]) -> Quantity:
    """One of several quantities, each with its probability: between the least and the most of them."""
    listed = [(share, quantity.terms) for share, quantity in branches]
    terms: dict[Monomial, Range] = {}
    none = (0.0, 0.0, 0.0)
    for monomial in dict.fromkeys(monomial for _, parts in listed for monomial in parts):
        low, likely, high = math.inf, 0.0, -math.inf
        for share, parts in listed:
            least, usual, most = parts.get(monomial, none)
            low, high = least if least < low else low, most if most > high else high
            part = share * usual
            likely += part if part == part else 0.0
        terms[monomial] = (low, low if math.isnan(likely) else min(max(likely, low), high), high)
    return _bounded(terms)


def larger(left: Quantity, right: Quantity) -> Quantity:
    """The larger of two quantities, term by term: exact for constants, at most twice too large otherwise."""
    if not right.terms:
        return left
    if not left.terms:
        return right
    terms = dict(left.terms)
    for monomial, b in right.terms.items():
        a = terms.get(monomial, b)
        terms[monomial] = (max(a[0], b[0]), max(a[1], b[1]), max(a[2], b[2]))
    return _bounded(terms)


ZERO = Quantity({})
ONE = constant(1.0)
