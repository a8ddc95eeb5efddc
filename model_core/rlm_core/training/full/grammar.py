"""The grammar of numbers: which token may follow, and which values a number can still become.

It has a format of :mod:`.numbers` as constant tables on the device. A number is in one of a few states: an ordinary
number, or a special token that is repeated to its end. For each state and position, ``allowed`` gives the tokens that
may be written, without a step that waits for the host. ``bounds`` gives the interval of values that a beginning of a
number can still become; the search for quantiles uses it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .numbers import PAD, NumberFormat


class Grammar(nn.Module):
    """Tables of a number format.

    Attributes:
        allowed: ``(states, positions, vocabulary)``, True where a token is allowed; state 0 is an ordinary number.
        state: ``(vocabulary,)``, the state that a first token leads to.
    """

    allowed: Tensor
    state: Tensor
    _digit: Tensor
    _value: Tensor

    def __init__(self, numbers: NumberFormat) -> None:
        super().__init__()
        self.numbers = numbers
        ids, count = numbers.ids, len(numbers.names)
        allowed = torch.zeros(1 + len(numbers.specials), numbers.positions, count, dtype=torch.bool)
        state, value = torch.zeros(count, dtype=torch.int64), torch.full((count,), math.nan, dtype=torch.float64)
        # What a token is worth: its digit, its exponent, or -1 for a minus sign.
        digit = torch.zeros(count, dtype=torch.int64)
        digit[ids["<->"]], digit[ids["<+>"]] = -1, 1
        signs = [ids["<+>"], ids["<->"]]
        digits = [ids[f"<{index}>"] for index in range(numbers.base)]
        digit[digits] = torch.arange(numbers.base)
        exponents = [index for name, index in ids.items() if name.startswith("<E") and name[2:-1].lstrip("-").isdigit()]
        for index in exponents:
            digit[index] = int(numbers.names[index][2:-1])
        end = numbers.lead + numbers.mantissa_digits
        allowed[0, 0, signs] = True
        if numbers.exponent_first:
            allowed[0, 1, signs] = True
            allowed[0, 2:end, digits] = True
        else:
            allowed[0, 1:end, digits] = True
            allowed[0, end, exponents] = True
        if numbers.normalised:
            allowed[0, numbers.lead, digits[0]] = False
        for row, (token, special) in enumerate(numbers.specials.items(), 1):
            state[token], value[token] = row, special
            allowed[0, 0, token] = True
            allowed[row, :, token] = True
        if numbers.separator:
            allowed[:, -1] = torch.arange(count) == PAD
        for name, table in (("allowed", allowed), ("state", state), ("_digit", digit), ("_value", value)):
            self.register_buffer(name, table, persistent=False)

    def mask(self, position: int, first: Tensor | None = None) -> Tensor:
        """The tokens allowed at a position: ``(*rows, vocabulary)`` for the first tokens ``(*rows,)``."""
        return self.allowed[0, 0] if first is None else self.allowed[self.state[first], position]

    def masks(self, tokens: Tensor) -> Tensor:
        """The tokens allowed at each position of numbers ``(*rows, positions)``: ``(..., vocabulary)``."""
        table = self.allowed[self.state[tokens[..., 0]]]
        table[..., 0, :] = self.allowed[0, 0]
        return table

    def bounds(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The smallest and largest value that beginnings of numbers can still become.

        Args:
            tokens: ``(rows, length)``, the first tokens of numbers, ``1 <= length <= positions``.

        Returns:
            Two tensors ``(rows,)`` in double precision; equal where nothing is open, nan where a value has no order.
        """
        numbers, length = self.numbers, tokens.shape[1]
        worth = self._digit[tokens]
        negative = worth[:, 0] < 0
        known = max(min(length - numbers.lead, numbers.mantissa_digits), 0)
        least, most = self._digits(worth[:, numbers.lead : numbers.lead + known], numbers.mantissa_digits)
        if numbers.normalised and not known:
            least = least + numbers.base ** (numbers.mantissa_digits - 1)
        low, high = self._exponents(worth, length)
        small, large = self._magnitude(least, low), self._magnitude(most, high)
        special = self._value[tokens[:, 0]]
        ordinary = self.state[tokens[:, 0]] == 0
        lower = torch.where(ordinary, torch.where(negative, -large, small), special)
        upper = torch.where(ordinary, torch.where(negative, -small, large), special)
        return lower + 0.0, upper + 0.0  # no negative zero

    def _digits(self, digits: Tensor, places: int) -> tuple[Tensor, Tensor]:
        """Smallest and largest integer of ``places`` digits that starts with ``digits (rows, known)``."""
        number = torch.zeros(len(digits), dtype=torch.int64, device=digits.device)
        for column in digits.unbind(1):
            number = number * self.numbers.base + column
        rest = self.numbers.base ** (places - digits.shape[1])
        return number * rest, number * rest + rest - 1

    def _exponents(self, worth: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """The exponents of ``d.ddd * base ** exponent`` that are still open, inclusive, each ``(rows,)``."""
        numbers = self.numbers
        if not numbers.exponent_first:
            shift, end = numbers.mantissa_digits - 1, numbers.lead + numbers.mantissa_digits
            if length > end:
                return worth[:, end] + shift, worth[:, end] + shift
            span = torch.full_like(worth[:, 0], numbers.exponent_range)
            return shift - span, shift + span
        known = max(min(length - 2, numbers.exponent_digits), 0)
        least, most = self._digits(worth[:, 2 : 2 + known], numbers.exponent_digits)
        low, high = -most - int(numbers.unique), -least - int(numbers.unique)
        if length < 2:
            return low, most
        negative = worth[:, 1] < 0
        return torch.where(negative, low, least), torch.where(negative, high, most)

    def _magnitude(self, mantissa: Tensor, exponent: Tensor) -> Tensor:
        """``mantissa * base ** power`` in double precision; a division where the power is negative rounds but once."""
        base = torch.tensor(float(self.numbers.base), dtype=torch.float64, device=mantissa.device)
        power = exponent - self.numbers.mantissa_digits + 1
        scale = base ** power.abs()
        return torch.where(power < 0, mantissa / scale, torch.where(mantissa > 0, mantissa * scale, 0.0))
