"""Measurements at smaller sizes -> the cost at a larger size, by the law that they follow, if they follow one.

The law that the template declares is tried first, then powers of the size with and without a logarithm, and
exponentials. A law fits when it meets every point within a tolerance; the largest point fixes its factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

TOLERANCE = 0.2
MINIMUM_POINTS = 3
_LAWS: tuple[Callable[[float], float], ...] = (
    lambda n: 1.0,
    math.log,
    math.sqrt,
    lambda n: n,
    lambda n: n * math.log(n),
    lambda n: n**1.5,
    lambda n: n * n,
    lambda n: n * n * math.log(n),
    lambda n: n**3,
)


def extrapolate(
    points: Sequence[tuple[int, float]], size: int, declared: Callable[[int], float], floor: float
) -> float | None:
    """The cost at ``size``; None when fewer than three points are there or no law meets them.

    ``points`` are sizes, ascending, and costs; differences below ``floor`` do not count.
    """
    if len(points) < MINIMUM_POINTS:
        return None
    best: tuple[float, float] | None = None
    for at, law in enumerate(_candidates(points, declared)):
        try:
            factor = points[-1][1] / law(points[-1][0])
            error = max(_error(factor * law(n), cost, floor) for n, cost in points)
            value = factor * law(size)
        except (OverflowError, ValueError, ZeroDivisionError):
            continue
        if at == 0 and error <= TOLERANCE:
            return value
        if error <= TOLERANCE and math.isfinite(value) and (best is None or error < best[0]):
            best = error, value
    return best[1] if best else None


def _error(predicted: float, measured: float, floor: float) -> float:
    if abs(predicted - measured) <= floor:
        return 0.0
    return abs(math.log(max(predicted, 1e-12) / max(measured, 1e-12)))


def _candidates(
    points: Sequence[tuple[int, float]], declared: Callable[[int], float]
) -> Iterator[Callable[[int], float]]:
    yield declared
    yield from _LAWS
    (first, low), (last, high) = points[0], points[-1]
    if last - first <= 12 and low > 0 and high > low:
        base = (high / low) ** (1 / (last - first))
        yield lambda n: base ** (n - last)
