"""Amounts that depend on sizes which the text does not fix: sums of products such as ``3 * n * log(n) + 2 * m + 5``.

A coefficient is a range (least, likely, most), since a branch may or may not be taken. Counts, seconds and bytes are
all quantities. The number of terms is bounded: the terms that grow least are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Range = tuple[float, float, float]
# A size's name and how it enters: "n", "log n", or "1.6^n" as ("n", "1.6").
Factor = tuple[str, str]
Monomial = tuple[tuple[Factor, float], ...]
LINEAR, LOG = "", "log"
_MOST_TERMS = 12
_MOST = 1e300


@dataclass(frozen=True, slots=True)
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
        for monomial, (low, likely, high) in other.terms.items():
            mine = terms.get(monomial)
            terms[monomial] = (low, likely, high) if mine is None else (mine[0] + low, mine[1] + likely, mine[2] + high)
        return _bounded(terms)

    def __sub__(self, other: Quantity) -> Quantity:
        turned = {monomial: (-high, -likely, -low) for monomial, (low, likely, high) in other.terms.items()}
        return self + Quantity(turned)

    def __mul__(self, other: Quantity) -> Quantity:
        terms: dict[Monomial, Range] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = _product(left, right)
                old = terms.get(monomial, (0.0, 0.0, 0.0))
                new = (_times(a[0], b[0]), _times(a[1], b[1]), _times(a[2], b[2]))
                terms[monomial] = (old[0] + new[0], old[1] + new[1], old[2] + new[2])
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
        return Quantity(
            {key: (_times(a, factor), _times(b, factor), _times(c, factor)) for key, (a, b, c) in self.terms.items()}
        )

    def log(self) -> Quantity:
        """The logarithm to base 2, at least 1; of a sum: that of the term that grows most."""
        fixed = self.constant
        if fixed is not None:
            low, likely, high = (math.log2(max(value, 2.0)) for value in fixed)
            return Quantity({(): (low, likely, high)})
        leading = max(self.terms, key=degree)
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
            low, likely, high = (
                min(max(value, 0.0), 1e150) ** min(exponent, 2.0) if exponent <= 2 else _power(value, exponent)
                for value in fixed
            )
            return Quantity({(): (low, likely, high)})
        leading = max(self.terms, key=degree)
        low, likely, high = (_power(value, exponent) for value in self.terms[leading])
        return Quantity({tuple((factor, power * exponent) for factor, power in leading): (low, likely, high)})

    def evaluate(self, size: Callable[[str], float]) -> Range:
        """The range at given sizes; a size is at least 0."""
        low = likely = high = 0.0
        for monomial, (a, b, c) in self.terms.items():
            factor = 1.0
            for (name, form), power in monomial:
                value = max(size(name), 0.0)
                if form == LOG:
                    value = math.log2(max(value, 2.0))
                elif form != LINEAR:
                    value = _power(float(form), min(value, 900.0))
                factor = _times(factor, _power(value, power))
            low, likely, high = low + _times(a, factor), likely + _times(b, factor), high + _times(c, factor)
        return low, likely, high

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


def _power(value: float, exponent: float) -> float:
    try:
        return min(float(max(value, 0.0) ** exponent), _MOST)
    except OverflowError:
        return _MOST


def _times(a: float, b: float) -> float:
    return max(min(a * b, _MOST), -_MOST) if a and b else 0.0


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
        kept = sorted(terms, key=lambda monomial: (not monomial, *degree(monomial)), reverse=True)[:_MOST_TERMS]
        terms = {monomial: terms[monomial] for monomial in kept}
    return Quantity(terms)


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
    """A quantity without sizes: exactly ``value``, or a range from ``value`` to ``most``."""
    value = max(min(float(value), _MOST), -_MOST)
    if most is None:
        return Quantity({(): (value, value, value)}) if value else ZERO
    middle = (value + most) / 2 if likely is None else likely
    return Quantity({(): (value, middle, float(most))})


def of_size(name: str) -> Quantity:
    """The size of that name."""
    return Quantity({(((name, LINEAR), 1.0),): (1.0, 1.0, 1.0)})


def exponential(base: float, exponent: Quantity) -> Quantity:
    """``base`` to the power of a quantity; of a sum: with the exponent's leading size."""
    fixed = exponent.constant
    if fixed is not None:
        low, likely, high = (_power(base, value) for value in fixed)
        return Quantity({(): (low, likely, high)})
    leading = max(exponent.terms, key=degree)
    names = [name for (name, form), _ in leading if form == LINEAR]
    if not names:
        return exponent
    slope = max(exponent.terms[leading][1], 0.0)
    offset = exponent.terms.get((), (0.0, 0.0, 0.0))
    grown = round(_power(base, slope), 4)
    low, likely, high = (_power(base, value) for value in offset)
    return Quantity({(((names[0], str(grown)), 1.0),): (low, likely, high)})


def mixed(branches: Iterable[tuple[float, Quantity]]) -> Quantity:
    """One of several quantities, each with its probability: between the least and the most of them."""
    listed = list(branches)
    terms: dict[Monomial, Range] = {}
    none = (0.0, 0.0, 0.0)
    for monomial in dict.fromkeys(monomial for _, quantity in listed for monomial in quantity.terms):
        ranges = [(share, quantity.terms.get(monomial, none)) for share, quantity in listed]
        terms[monomial] = (
            min(coefficient[0] for _, coefficient in ranges),
            sum(share * coefficient[1] for share, coefficient in ranges),
            max(coefficient[2] for _, coefficient in ranges),
        )
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
