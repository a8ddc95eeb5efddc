"""Numbers that a text fixes, in any language."""

from __future__ import annotations

import math
import re

SPACE = re.compile(r"\s+")


def split_arguments(text: str) -> list[str]:
    """The parts of a text between commas outside of brackets."""
    parts, depth, last = [], 0, 0
    for place, sign in enumerate(text):
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[last:place])
            last = place + 1
    return [part for part in (*parts, text[last:]) if part]


_LITERAL = re.compile(
    r"-?(?:0x[0-9a-f]+|\d[\d_']*(?:\.\d+)?(?:e\d{1,3})?)(?:[ul]{1,3}|n|usize|isize|[iu](?:8|16|32|64|128))?\Z"
)
_OPERATIONS = re.compile(r"(\*\*|\*|\+|(?<=.)-|<<)")
_CAST = re.compile(r"\((?:int|long|size_t|u?int64_t|longlong)\)|\b(?:int|long)(?=\()")
# From the one that binds most.
_PRECEDENCE = (("**",), ("*",), ("+", "-"), ("<<",))


def number(text: str) -> float | None:
    """The value of a literal or of a sum, product, power or shift of literals; None for anything else, or infinite."""
    text = SPACE.sub("", text)
    if not text or len(text) > 40 or not (text[0].isdigit() or text[0] in "(-il"):
        return None
    text = _CAST.sub("", text.lower())
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    parts = _OPERATIONS.split(text)
    if not all(_LITERAL.fullmatch(part) for part in parts[::2]):
        return None
    try:
        values, operations = [_value(part) for part in parts[::2]], parts[1::2]
        for level in _PRECEDENCE:
            at = 0
            while at < len(operations):
                if operations[at] in level:
                    values[at : at + 2] = [_applied(values[at], operations.pop(at), values[at + 1])]
                else:
                    at += 1
    except (ValueError, OverflowError, TypeError):
        return None
    return values[0] if math.isfinite(values[0]) else None


def _value(literal: str) -> float:
    if literal.startswith("0x"):
        return float(int(literal.rstrip("ul"), 16))
    digits = re.match(r"-?[\d_']+(?:\.\d+)?(?:e\d+)?", literal)
    return float(re.sub(r"[_']", "", digits[0])) if digits else 0.0


def _applied(left: float, operation: str, right: float) -> float:
    if operation == "**":
        return float(left**right)
    if operation == "<<":
        return float(left * 2.0**right)
    return left * right if operation == "*" else left - right if operation == "-" else left + right
