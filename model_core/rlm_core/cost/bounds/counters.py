"""Exact trip counts: when a counter that each trip of a loop moves or scales first meets a condition.

Input: the counter's start, how it moves, and a comparison with a number. Output: the number of trips before it,
as (least, likely, most); infinite where the condition is never met.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

from ..domain.folding import COMPARE
from ..domain.quantities import Range, is_whole

_MOST_SIMULATED = 2000
_MOST_INTEGER, _MOST_FLOAT = 2.0**53, sys.float_info.max
NEVER: Range = (math.inf, math.inf, math.inf)
NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Counter:
    """A number that is ``start`` in the first trip and that each trip changes: ``sign`` is +, -, *, / or //."""

    start: float
    sign: str
    amount: float

    @property
    def is_whole(self) -> bool:
        """Return whether all its values are whole numbers that a float holds exactly."""
        return self.sign != "/" and is_whole(self.start) and is_whole(self.amount) and abs(self.start) < _MOST_INTEGER

    def _next(self, value: float) -> float:
        match self.sign:
            case "+":
                return value + self.amount
            case "-":
                return value - self.amount
            case "*":
                return value * self.amount
            case "/":
                return value / self.amount if self.amount else math.inf
            case _:
                return value // self.amount if self.amount else math.inf

    def first(self, op: type[ast.cmpop], bound: float) -> Range | None:
        """The number of trips before the first one with ``value op bound``; None where that takes too long to say."""
        if op not in NEGATED or not all(map(math.isfinite, (self.start, self.amount, bound))):
            return None
        if self.sign in "+-":
            step = self.amount if self.sign == "+" else -self.amount
            trips = _crossing(op, self.start, step, bound)
            if math.isinf(trips) or (self.is_whole and abs(self.start) + abs(step) * trips < _MOST_INTEGER):
                return trips, trips, trips
            if trips >= _MOST_SIMULATED:
                # Rounded sums of fractions may be one trip off.
                return trips - 1, trips, trips + 1
        return self._simulated(COMPARE[op], bound)

    def _simulated(self, compare: Callable[[float, float], bool], bound: float) -> Range | None:
        value = self.start
        if self.is_whole:
            value = int(value)
            counter = Counter(value, self.sign, int(self.amount))
        else:
            counter = self
        for trips in range(_MOST_SIMULATED):
            if compare(value, bound):
                return float(trips), float(trips), float(trips)
            following = counter._next(value)
            if following == value:
                return NEVER
            value = following
            if abs(value) > _MOST_FLOAT:
                return NEVER if not compare(value, bound) else (trips + 1.0, trips + 1.0, trips + 1.0)
        return None


def _crossing(op: type[ast.cmpop], start: float, step: float, bound: float) -> float:
    """The smallest k of at least 0 with ``start + step * k op bound``; infinite if there is none."""
    if op in (ast.Lt, ast.LtE):
        op, start, step, bound = FLIPPED[op], -start, -step, -bound
    if COMPARE[op](start, bound):
        return 0.0
    if op is ast.NotEq:
        return 1.0 if step else math.inf
    distance = bound - start
    if op is ast.Eq:
        trips = distance / step if step else -1.0
        return trips if trips > 0 and is_whole(trips) else math.inf
    if step <= 0:
        return math.inf
    trips = distance / step
    if not math.isfinite(trips):
        return math.inf
    return float(math.floor(trips) + 1 if op is ast.Gt else math.ceil(trips))
