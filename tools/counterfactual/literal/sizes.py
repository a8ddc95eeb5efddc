"""Sizes of programs: the size that costs a wanted amount, round sizes, and the ways to write a size in source text."""

from __future__ import annotations

import math
from collections.abc import Callable

FORMS = ("decimal", "underscores", "power", "product", "shift", "float")


def size_for(cost: Callable[[int], float], wanted: float, low: int, high: int) -> int:
    """The largest size from ``low`` to ``high`` whose cost is at most ``wanted`` (``low`` if there is none)."""
    if cost(high) <= wanted:
        return high
    while high - low > 1:
        # On the logarithmic axis first: the range spans up to 18 decades.
        middle = max(min(math.isqrt(low * high), high - 1), low + 1)
        low, high = (middle, high) if cost(middle) <= wanted else (low, middle)
    return low


def rounded(size: int, digits: int) -> int:
    """``size`` to some significant digits, to the power of two below it (-2) or of ten (-10); 0 leaves it."""
    if size < 20 or digits == 0:
        return size
    if digits == -2:
        return 1 << (size.bit_length() - 1)
    length = len(str(size))
    unit: int = 10 ** (length - 1 if digits == -10 else max(length - digits, 0))
    return unit if digits == -10 else size // unit * unit


def literal(size: int, form: str) -> str:
    """Source text of ``size``; a form that does not fit it gives way to digits."""
    if form == "float" and size >= 1000 and size % 1000 == 0 and size < 10**15:
        digits = str(size).rstrip("0")
        zeros = len(str(size)) - len(digits)
        return f"int({digits}e{zeros})"
    if form in ("power", "product") and size >= 100:
        return _power(size, form)
    if form == "shift" and size >= 64 and size & (size - 1) == 0:
        return f"1 << {size.bit_length() - 1}"
    return f"{size:_}" if form == "underscores" else str(size)


def _power(size: int, form: str) -> str:
    if size & (size - 1) == 0:
        return f"2**{size.bit_length() - 1}"
    digits = str(size).rstrip("0")
    zeros = len(str(size)) - len(digits)
    if digits == "1":
        return f"10**{zeros}" if form == "power" or zeros < 4 else f"10**{zeros // 2} * 10**{zeros - zeros // 2}"
    if zeros < 2 or len(digits) > 3:
        return str(size)
    return f"{digits} * 10**{zeros}" if form == "power" or zeros < 3 else f"{digits}0 * 1{'0' * (zeros - 1)}"


def embedded(text: str, before: str, after: str) -> str:
    """A size's source text between other source text, in parentheses where it would be read otherwise."""
    before, after = before.rstrip(), after.lstrip()
    if text.replace("_", "").isalnum() or text.endswith(")"):
        return text
    if "*" in text and " " not in text:
        return f"({text})" if after.startswith("**") else text
    enclosed = (not before or before[-1] in "([{,=:") and (not after or after[0] in ")]},:")
    return text if enclosed else f"({text})"
