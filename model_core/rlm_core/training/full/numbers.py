"""Numbers as tokens: a value is a sign, an exponent and mantissa digits, each a separate token.

Two orders are known. ``exponent-first`` (IEEE-like: sign, exponent sign, exponent digits, mantissa digits) puts the
important part first, and the tokens sort as the numbers do. ``exponent-last`` is P10 of arXiv 2112.01898: sign,
mantissa digits, then one token for the whole exponent. Values are rounded to the nearest number that the tokens hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rlm_core.errors import DataError, ModelError

Order = Literal["exponent-first", "exponent-last"]
Rounding = Literal["nearest", "down"]
Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
PAD = 0
_MOST_DIGITS, _MOST_RANGE = 16, 10_000  # of exponents: all numbers of the format fit into memory


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are written: ``± d.ddd * base ** exponent`` (exponent-last: ``± dddd * base ** exponent``).

    Attributes:
        order: whether the exponent comes first or last.
        base: of digits and exponent, 2 to 36.
        mantissa_digits: significant digits.
        exponent_digits: digits of the exponent in the order ``exponent-first``.
        exponent_range: the exponent is within ± this in the order ``exponent-last``.
        unique: every token sequence is another number: no leading zero, and a negative exponent ``-n`` is written
            n - 1. Zero then needs a special token. False allows what regress-lm allows.
        leading_zero: where numbers are not unique, whether a mantissa may begin with 0. Only the value 0 is written so;
            without it, what a beginning of a number can become does not overlap, and quantiles are found at once.
        rounding: ``nearest`` (half to even) or ``down`` (cut digits off in double arithmetic, as regress-lm does).
        special: names and values, as text, of tokens that stand for a whole number (repeated at every position).
        separator: a number ends with the padding token.

    Beyond the range values saturate: large ones become the largest number, or a special token if they are infinite;
    small ones become zero or the smallest number, whichever is nearer.
    """

    order: Order = "exponent-first"
    base: int = 10
    mantissa_digits: int = 4
    exponent_digits: int = 2
    exponent_range: int = 10
    unique: bool = True
    rounding: Rounding = "nearest"
    special: tuple[tuple[str, str], ...] = (("ZERO", "0"), ("NAN", "nan"))
    separator: bool = False
    leading_zero: bool = True

    def __post_init__(self) -> None:
        if self.order not in ("exponent-first", "exponent-last") or self.rounding not in ("nearest", "down"):
            raise ModelError(f"number format {self}: unknown order or rounding; use the names in its documentation")
        if not 2 <= self.base <= 36 or min(self.mantissa_digits, self.exponent_digits) < 1 or self.exponent_range < 0:
            raise ModelError(f"number format {self}: base must be 2 to 36 and digit counts at least 1; correct it")
        if self.exponent_digits > _MOST_DIGITS or self.exponent_range > _MOST_RANGE:
            raise ModelError(f"number format {self}: exponents far beyond those of a double; use fewer")
        if self.mantissa_digits * math.log2(self.base) > 52:
            raise ModelError(f"number format {self}: a mantissa beyond double precision; use fewer mantissa digits")
        try:
            values = [float(text) for _, text in self.special]
        except ValueError:
            raise ModelError(
                f"number format {self}: the value of a special token is not a number; correct it"
            ) from None
        if any(math.isfinite(value) and value != 0 for value in values):
            raise ModelError(f"number format {self}: special tokens stand for 0, nan or an infinity; correct it")
        if len(set(self.names)) != len(self.names):
            raise ModelError(f"number format {self}: two tokens have the same name; rename the special token")

    @property
    def exponent_first(self) -> bool:
        """True if the exponent is written before the mantissa."""
        return self.order == "exponent-first"

    @property
    def lead(self) -> int:
        """The position of the first mantissa digit."""
        return 2 + self.exponent_digits if self.exponent_first else 1

    @property
    def positions(self) -> int:
        """Tokens of one number."""
        return self.lead + self.mantissa_digits + (not self.exponent_first) + self.separator

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The token names by id: the padding token, then the others in the order of their characters."""
        names = ["<+>", "<->", *(f"<{digit}>" for digit in range(self.base))]
        if not self.exponent_first:
            names += [f"<E{exponent}>" for exponent in range(-self.exponent_range, self.exponent_range + 1)]
        return ("<pad>", *sorted([*names, *(f"<{name}>" for name, _ in self.special)]))

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Token ids by name."""
        return {name: index for index, name in enumerate(self.names)}

    @cached_property
    def specials(self) -> Mapping[int, float]:
        """The values of the special tokens by id."""
        return {self.ids[f"<{name}>"]: float(text) for name, text in self.special}

    @property
    def holds_zero(self) -> bool:
        """True if zero can be written."""
        return not self.normalised or any(value == 0 for value in self.specials.values())

    @property
    def normalised(self) -> bool:
        """True if no mantissa begins with 0."""
        return self.unique or not self.leading_zero

    @property
    def exponents(self) -> tuple[int, int]:
        """Smallest and largest exponent of ``d.ddd * base ** exponent``."""
        if self.exponent_first:
            top = int(self.base**self.exponent_digits) - 1
            return -top - self.unique, top
        shift = self.mantissa_digits - 1
        return shift - self.exponent_range, shift + self.exponent_range

    @property
    def largest(self) -> float:
        """The largest number (``inf`` if a double cannot hold it)."""
        return self._value(self.base**self.mantissa_digits - 1, self.exponents[1])

    @property
    def smallest(self) -> float:
        """The smallest number above zero that has all its digits (0 if a double cannot hold it)."""
        return self._value(self.base ** (self.mantissa_digits - 1), self.exponents[0])

    def step(self, value: float) -> float:
        """The distance from a number to the next larger one in magnitude."""
        exponent, _ = self._parts(abs(value)) if value else (self.exponents[0], 0)
        return self._value(1, exponent)

    def cell(self, value: float) -> tuple[float, float]:
        """The ends of the interval of reals that are written as a number ``value`` of the format."""
        exponent, mantissa = self._parts(abs(value)) if math.isfinite(value) else (0, 0)
        if not mantissa:
            return value, value
        above, below = self._value(1, exponent), self._value(1, exponent)
        if mantissa == self.base ** (self.mantissa_digits - 1) and exponent > self.exponents[0]:
            below = self._value(1, exponent - 1)
        low, high = (0.0, above) if self.rounding == "down" else (-below / 2, above / 2)
        return (value + low, value + high) if value > 0 else (value - high, value - low)

    def cells(self, values: Floats) -> tuple[Floats, Floats]:
        """The ends of :meth:`cell` for many numbers of the format, each shaped like ``values``; 0 where not finite."""
        finite = np.isfinite(values) & (values != 0)
        size, base = np.where(finite, np.abs(values), 1.0), float(self.base)
        low, high = self.exponents
        with np.errstate(over="ignore", under="ignore"):
            exponent = np.floor(np.log(size) / math.log(base))
            exponent = np.clip(exponent + (size >= base ** (exponent + 1)) - (size < base**exponent), low, high)
            above = base ** (exponent - self.mantissa_digits + 1)
            first = (size < base**exponent + above / 2) & (exponent > low)
        if self.rounding == "down":
            inner, outer = size, size + above
        else:
            inner, outer = size - np.where(first, above / base, above) / 2, size + above / 2
        ends = np.where(values > 0, (inner, outer), (-outer, -inner))
        bottom, top = np.where(finite, ends, np.where(np.isfinite(values), values, 0.0))
        return bottom, top

    def encode(self, value: float | str) -> tuple[int, ...]:
        """Token ids ``(positions,)`` of a value; a special token may be given by its name.

        Raises:
            DataError: the value is not a number, and no special token represents it.
        """
        row = [self.ids[name] for name in self._special(value) or self._written(float(value))]
        return (*row, PAD) if self.separator else tuple(row)

    def encode_many(self, values: Iterable[float | str]) -> Ids:
        """Token ids ``(values, positions)``; errors as :meth:`encode`."""
        rows = [self.encode(value) for value in values]
        return np.array(rows, np.int64).reshape(len(rows), self.positions)

    def decode(self, ids: Sequence[int]) -> float:
        """The value that token ids ``(positions,)`` stand for.

        Raises:
            DataError: they do not stand for a number.
        """
        if len(ids) != self.positions or not all(0 <= index < len(self.names) for index in ids):
            raise DataError(f"tokens {list(ids)}: a number has {self.positions} tokens below {len(self.names)}")
        first = int(ids[0])
        if first in self.specials:
            return self.specials[first]
        names = [self.names[index][1:-1] for index in ids[: self.positions - self.separator]]
        try:
            digits = [int(name) for name in names[self.lead : self.lead + self.mantissa_digits]]
            if self.exponent_first:
                size = _join([int(name) for name in names[2 : self.lead]], self.base)
                exponent = {"+": size, "-": -size - self.unique}[names[1]]
            else:
                exponent = int(names[-1].removeprefix("E")) + self.mantissa_digits - 1
            return {"+": 1, "-": -1}[names[0]] * self._value(_join(digits, self.base), exponent)
        except (KeyError, ValueError):
            raise DataError(
                f"tokens {' '.join(names)}: not in the order of a number; encode() gives the order"
            ) from None

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {**asdict(self), "special": [list(pair) for pair in self.special]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NumberFormat:
        """The format that :meth:`to_json` wrote."""
        special = tuple((str(name), str(text)) for name, text in data["special"])
        return cls(**{**data, "special": special})

    def _special(self, value: float | str) -> list[str]:
        """The tokens of a special value; none when it is an ordinary number."""
        for name, text in self.special:
            own = float(text)
            same = value == name if isinstance(value, str) else value == own or (value != value and own != own)
            if same:
                return [f"<{name}>"] * (self.positions - self.separator)
        if isinstance(value, str) or value != value:
            known = ", ".join(name for name, _ in self.special) or "none"
            raise DataError(f"value {value!r}: not a number, and no special token stands for it; known: {known}")
        return []

    def _written(self, value: float) -> list[str]:
        """The tokens of an ordinary number."""
        exponent, mantissa = self._parts(abs(value))
        if self.normalised and not mantissa:
            return self._special(0.0)
        if self.exponent_first:
            # An underflow keeps the sign of its exponent, as regress-lm writes it.
            negative = exponent < 0 or (not mantissa and value != 0)
            size = _split(abs(exponent) - (negative and self.unique), self.base, self.exponent_digits)
            head, tail = [("<->" if negative else "<+>"), *(f"<{digit}>" for digit in size)], []
        else:
            head, tail = [], [f"<E{exponent - self.mantissa_digits + 1 if mantissa else 0}>"]
        digits = [f"<{digit}>" for digit in _split(mantissa, self.base, self.mantissa_digits)]
        return ["<->" if value < 0 else "<+>", *head, *digits, *tail]

    def _parts(self, size: float) -> tuple[int, int]:
        """Exponent and mantissa (an integer, 0 for zero) of the nearest number to a magnitude, exactly."""
        low, high = self.exponents
        first, places = self.base ** (self.mantissa_digits - 1), self.mantissa_digits - 1
        if size == 0:
            return (0, 0) if self.holds_zero else (low, first)
        if math.isinf(size):
            return high, first * self.base - 1
        over, under = size.as_integer_ratio()
        exponent = math.floor(math.log(size, self.base))
        exponent += _compare(over, under, self.base, exponent + 1) >= 0
        exponent -= _compare(over, under, self.base, exponent) < 0
        if exponent < low:
            # Half of the smallest number and less is zero, where there is a zero.
            zero = self.rounding == "down" or _compare(2 * over, under * first, self.base, low - places) <= 0
            return (0, 0) if zero and self.holds_zero else (low, first)
        if self.rounding == "down":
            mantissa = min(max(int(size * self.base ** (places - exponent)), first), first * self.base - 1)
        else:
            shift = places - exponent
            over, under = over * self.base ** max(shift, 0), under * self.base ** max(-shift, 0)
            mantissa, rest = divmod(over, under)
            mantissa += 2 * rest > under or (2 * rest == under and mantissa % 2)
        if mantissa == first * self.base:
            exponent, mantissa = exponent + 1, first
        return (exponent, mantissa) if exponent <= high else (high, first * self.base - 1)

    def _value(self, mantissa: int, exponent: int) -> float:
        """``mantissa * base ** (exponent - mantissa_digits + 1)``, correctly rounded."""
        power = exponent - self.mantissa_digits + 1
        try:
            return float(mantissa * self.base**power) if power >= 0 else mantissa / self.base**-power
        except OverflowError:
            return math.inf if power >= 0 else 0.0


def _compare(over: int, under: int, base: int, exponent: int) -> int:
    """The sign of ``over / under - base ** exponent``."""
    difference: int = over - under * base**exponent if exponent >= 0 else over * base**-exponent - under
    return (difference > 0) - (difference < 0)


def _split(number: int, base: int, digits: int) -> list[int]:
    return [number // base**place % base for place in reversed(range(digits))]


def _join(digits: Sequence[int], base: int) -> int:
    number = 0
    for digit in digits:
        number = number * base + digit
    return number
