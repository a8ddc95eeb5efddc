"""How many calls a recursive call in the text makes, and how many there are in all down to the end of a range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..domain.quantities import LINEAR, Quantity, Range, constant, product
from ..domain.records import replace
from .argument_transitions import Move, repeats_on_others

CERTAIN = 0.9  # share of the runs
TYPICAL_WAYS = 3.0  # of a size that the text does not fix


@dataclass(frozen=True, slots=True)
class Ways:
    """How many calls a recursive call in the text makes, by the size that it shrinks: ``slope * size + fixed``.

    ``share`` of them is likely made. Where ``left``, each item is taken once: no more than ``size`` are left.
    ``on_parts`` of those that are likely made get a part of what a loop runs over.
    """

    slope: float
    fixed: float
    share: float
    left: bool = False
    on_parts: float = 0.0

    @classmethod
    def of(cls, move: Move, symbol: str, all_runs: float) -> Ways:
        """From the loops around the call; ``all_runs`` is the share of runs that do not end at once.

        A loop over the parts of an object counts once where the call gets another one: it may be a node of a tree.
        """
        share = min(move.step.share[1] / max(all_runs, 1e-9), 1.0)
        linear = (((symbol, LINEAR), 1.0),)
        times = move.step.times
        terms = times.terms
        left = terms.get(linear, (0.0, 0.0, 0.0))
        if move.added > 0 and left[2] < 0:
            # A loop over what is left up to the end of the range.
            return cls(-left[0], max(terms.get((), (0.0, 0.0, 0.0))[2], 0.0), share)
        if not terms.keys() <= {(), linear}:
            return (
                cls(0.0, 1.0, share, on_parts=share)
                if repeats_on_others(move.step)
                else cls(0.0, max(times.evaluate(typical_ways)[1], 1.0), min(share, 0.9))
            )
        slope, fixed = (terms.get(key, (0.0, 0.0, 0.0)) for key in (linear, ()))
        most = slope[2] + fixed[2]
        return cls(slope[2], fixed[2], share * (slope[1] + fixed[1]) / most if most > 0 else share)

    def __add__(self, other: Ways) -> Ways:
        """Those of two calls that change the same argument alike."""
        mine, theirs = self.slope + self.fixed, other.slope + other.fixed
        share = (mine * self.share + theirs * other.share) / (mine + theirs) if mine + theirs > 0 else self.share
        on_parts = self.on_parts + other.on_parts
        return Ways(self.slope + other.slope, self.fixed + other.fixed, share, on_parts=on_parts)

    def for_span(self, span: float) -> Ways:
        """The same where as many levels choose among as many items under a condition: each item is left once."""
        once = not self.is_certain and not self.slope and abs(self.fixed - span) < 0.5
        return replace(self, left=True) if once else self

    @property
    def is_certain(self) -> bool:
        """Return whether nothing decides from call to call how many calls are made."""
        return self.share > CERTAIN

    def most(self, size: float) -> float:
        """The calls that are made if all conditions hold."""
        return max(self.slope * size + self.fixed, 0.0)

    def likely(self, size: float) -> float:
        """The calls that are likely made."""
        made = self.most(size) * self.share
        return min(made, size) if self.left else made


def typical_ways(name: str) -> float:
    """The size that stands for one that the text does not fix."""
    return TYPICAL_WAYS


def each_of(known: Range, count: Callable[[float], float]) -> Quantity:
    """A count for the least, the likely and the largest size."""
    low, likely, high = (count(size) for size in known)
    return constant(low, high, likely)


def count_calls(
    span: float, strides: Sequence[float], ways: Sequence[Callable[[float], float]], offset: float
) -> float:
    """The number of calls to the end of a span; each makes ``ways[i](size)`` calls with ``strides[i]`` less."""
    steps = [max(round(stride), 1) for stride in strides]
    levels = max(int(span), 0)
    counts = [1.0] * (levels + 1)
    for level in range(1, levels + 1):
        total = 1.0
        for less, way in zip(steps, ways, strict=True):
            total += product(way(level + offset), counts[level - less] if level >= less else 1.0)
        counts[level] = total
    return counts[levels]


def count_calls_of_two(spans: Sequence[float], moves: Sequence[tuple[int, float, float]]) -> float:
    """The number of calls where each move ``(which, stride, calls)`` shrinks one of two spans, of which either ends."""
    first, second = (max(int(span), 0) for span in spans)
    counts = [[1.0] * (second + 1) for _ in range(first + 1)]
    for i in range(1, first + 1):
        for j in range(1, second + 1):
            total = 1.0
            for which, stride, calls in moves:
                less = max(round(stride), 1)
                total += product(calls, counts[max(i - less, 0)][j] if which == 0 else counts[i][max(j - less, 0)])
            counts[i][j] = total
    return counts[first][second]


def growth_base(decrements: Sequence[float], weights: Sequence[float]) -> float:
    """The base of the growth: the root of ``sum(weight * x**-decrement) = 1``."""
    low, high = 1.0, 1.0 + sum(weights)
    for _ in range(50):
        middle = (low + high) / 2
        value = sum(weight * middle**-less for less, weight in zip(decrements, weights, strict=True))
        low, high = (middle, high) if value > 1 else (low, middle)
    return round((low + high) / 2, 3)
