"""Computes with the constants of an analysed text, in little time and memory: what would be large is ``MISSING``.

This is the arithmetic of the evaluator, of the library's rules, of loop bounds and of module traces.
Every bound is checked before the operation. Integers are below ``2 ** MOST_BITS``, so that each fits a float and a text
of a few hundred digits; containers of constants have at most ``MOST_TEXT`` parts at all depths together.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

MOST_TEXT = 10_000  # characters and items of what is worked out
MOST_BITS = 1_000  # of an integer that is worked out: a float holds it
_MOST_ITEMS = 64  # of a tuple that a function of the library gets
_MOST_MADE = 1_000_000  # characters that a function may make
# A width or precision of four digits, or one that is an argument.
_WIDE = re.compile(r"\d{4}|\{[^{}]*\{")


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()
"""The constant of a value that is not known exactly."""

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Pow: operator.pow,
}  # fmt: skip
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_SEQUENCES = (str, bytes, tuple, list)


@dataclass(frozen=True, slots=True)
class LargeInteger:
    """An integer literal that is too large to compute with, as a syntax tree holds it."""

    bits: int

    def __repr__(self) -> str:
        return f"<integer of {self.bits} bits>"


def is_bounded(value: Any) -> bool:
    """Return whether a constant is small enough to keep: a number below the limit, or a tuple of few parts in all."""
    left = MOST_TEXT
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, int) and part.bit_length() > MOST_BITS:
            return False
        if isinstance(part, tuple):
            left -= len(part)
            if left < 0:
                return False
            stack += part
    return True


def is_small(value: Any) -> bool:
    """Return whether computing with a constant is cheap."""
    if isinstance(value, int):
        return value.bit_length() <= MOST_BITS
    if isinstance(value, (str, bytes)):
        return len(value) <= MOST_TEXT
    if isinstance(value, tuple):
        return len(value) <= _MOST_ITEMS and is_bounded(value) and all(is_small(part) for part in value)
    return value is None or isinstance(value, float)


def operation(op: type[ast.operator], left: Any, right: Any, *, bits: int = MOST_BITS, items: int = MOST_TEXT) -> Any:
    """Return the value of a binary operation; ``MISSING`` where it would be large or fails.

    Args:
        op: the type of the operator.
        left: a number, text or container.
        right: another one.
        bits: of an integer that a power or shift makes, at most.
        items: of a text or container that is made, at most.
    """
    is_whole = isinstance(left, int) and isinstance(right, int)
    if op in (ast.Pow, ast.LShift) and is_whole:
        made = right + left.bit_length() if op is ast.LShift else abs(right) * max(left.bit_length(), 1)
        if made > bits:
            return MISSING
    if not is_whole and isinstance(left, _SEQUENCES) | isinstance(right, _SEQUENCES):
        if op is ast.Mult:
            return repeated(left, right, items) if isinstance(right, int) else repeated(right, left, items)
        if op is not ast.Add or type(left) is not type(right) or len(left) + len(right) > items:
            return MISSING
    try:
        result = BINARY[op](left, right)
    except (ArithmeticError, TypeError, ValueError, KeyError):
        return MISSING
    return MISSING if isinstance(result, complex) else result


def compared(op: type[ast.cmpop], left: Any, right: Any) -> Any:
    """Return whether a comparison holds; ``MISSING`` for ``in``, and where it fails."""
    try:
        return bool(COMPARE[op](left, right))
    except (KeyError, TypeError):
        return MISSING


def repeated(items: Any, count: Any, most: int = MOST_TEXT) -> Any:
    """Return ``items * count``; ``MISSING`` where it has more than ``most`` parts or fails."""
    if not isinstance(items, _SEQUENCES) or not isinstance(count, int):
        return MISSING
    if not items or count <= 0:
        return items[:0]
    return items * count if len(items) * count <= most else MISSING


def replaced(text: str, old: str, new: str, count: int = -1) -> Any:
    """``str.replace``."""
    return text.replace(old, new, count) if (len(text) + 1) * len(new) <= _MOST_MADE else MISSING


def expanded(text: str, width: int = 8) -> Any:
    """``str.expandtabs``."""
    return text.expandtabs(width) if text.count("\t") * width <= _MOST_MADE else MISSING


def formatted(template: Any, *values: Any) -> Any:
    """``str.format``."""
    return MISSING if _WIDE.search(str(template)) else str(template).format(*values)


def formatted_value(value: Any, layout: str = "") -> Any:
    """The built-in function ``format``."""
    return MISSING if _WIDE.search(layout) else format(value, layout)


def rounded(number: Any, digits: int | None = None) -> Any:
    """The built-in function ``round``, which computes 10 to the power of digits before the point."""
    return round(number) if digits is None else round(number, max(digits, -MOST_BITS))


def factorial(count: object) -> object:
    """``math.factorial`` of a small number."""
    return math.factorial(count) if isinstance(count, int) and 0 <= count <= _MOST_FACTORIAL else MISSING


Choice = Literal["permutations", "combinations", "repeated"]
"""Ways to choose: the order counts, does not, or does not and an item may be chosen again."""
_MOST_FACTORIAL = 200
_FEW, _MOST_WHOLE = 64, 10**6  # items that are chosen, and of how many, where the number is computed as an integer
_MANY, _MANY_WHOLE = 100.0, 1e15  # above both the number is infinite
_MOST_LOG = 709.0  # of the largest float


def ways_to_choose(kind: Choice, whole: float, part: float) -> float:
    """The number of ways to choose ``part`` of ``whole`` items."""
    if part < 0 or whole < 0 or (part > whole and kind != "repeated"):
        return 0.0
    if kind == "repeated":
        whole = max(whole + part - 1, 0.0)
    if part > whole:
        return float(part == 0)
    if kind != "permutations":
        part = min(part, whole - part)
    if whole > _MANY_WHOLE and (part > _MANY or math.isinf(whole)):
        return math.inf
    if part <= _FEW and whole <= _MOST_WHOLE and whole == int(whole) and part == int(part):
        exact = (math.perm if kind == "permutations" else math.comb)(int(whole), int(part))
        return float(exact) if exact.bit_length() < 1024 else math.inf
    # Of many items the logarithms of the factorials would cancel out.
    few = whole <= _MANY_WHOLE
    log = math.lgamma(whole + 1) - math.lgamma(whole - part + 1) if few else part * math.log(whole)
    if kind != "permutations":
        log -= math.lgamma(part + 1)
    return math.exp(log) if log < _MOST_LOG else math.inf
