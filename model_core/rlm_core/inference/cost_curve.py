"""A cost as a function of one size: a line through measurements at several sizes, in the logarithm of both.

Input: what was measured of a function by the sizes of its inputs. Output: a :class:`CostCurve`, and its value with a
band between the smallest measured size and ten times the largest. A single measured size gives no curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median

from rlm_core.types import LEVELS, MEASURED_FLOORS, MEDIAN, Band, GrowthEstimate, MeasuredCost, Metric, SizedCalls

# Two sizes that differ by less say more about noise than about growth.
LEAST_SPREAD = 3.0
# A curve holds up to so many times the largest measured size.
MOST_BEYOND = 10.0
# Half of the width of the 80 % band at ten times the largest measured size, in decades. Lines through two sizes of 783
# functions were within a factor of 3 (0.48 decades) of the truth there for 80 to 86 %.
DECADES_AT_TEN = 0.5
# The same at measured sizes: what medians differ by when they are measured again, see `anchoring.REPEAT_SPREAD`.
DECADES_MEASURED = 0.09
COVERAGE = 0.8
# More would be noise: no function that is measured at several sizes grows faster.
MOST_EXPONENT = 6.0
_NORMAL = NormalDist()
_NINTH = _NORMAL.inv_cdf(0.9)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The median cost in SI units of ``calls`` at one size; ``scaled`` if the tests did not make them."""

    size: float
    cost: float
    calls: int
    scaled: bool = False


@dataclass(frozen=True, slots=True)
class CostCurve:
    """``coefficient * size ** exponent``, through ``points`` in the order of their sizes.

    ``size`` is the name of the size, ``spread`` the standard deviation of the points from the line in decades.
    """

    metric: Metric
    size: str
    points: tuple[CurvePoint, ...]
    coefficient: float
    exponent: float
    spread: float

    @property
    def least(self) -> float:
        """The smallest size at which the curve holds."""
        return self.points[0].size

    @property
    def measured_to(self) -> float:
        """The largest measured size."""
        return self.points[-1].size

    @property
    def most(self) -> float:
        """The largest size at which the curve holds."""
        return self.measured_to * MOST_BEYOND


@dataclass(frozen=True, slots=True)
class CurveValue:
    """A cost on a curve with its 80 % band, in SI units.

    ``beyond`` is the size over the largest measured one, at least 1.
    """

    median: float
    band: Band
    quantiles: tuple[float, ...]
    beyond: float


def curve_of(cost: MeasuredCost, growth: GrowthEstimate | None = None) -> CostCurve | None:
    """The curve of a measured cost; None where it was not measured at two sizes a factor of 3 apart.

    Of several sizes it is the one that ``growth`` names, else the one that explains most.
    """
    curves = [curve for name in _names(cost.sized) if (curve := _fitted(cost.metric, name, cost.sized)) is not None]
    if not curves:
        return None
    named = growth.named_sizes if growth is not None else ()
    by_growth = [curve for name in named for curve in curves if curve.size == name]
    if by_growth:
        return by_growth[0]
    return min(curves, key=lambda curve: (round(curve.spread, 3), -curve.measured_to / curve.least))


def curve_at(curve: CostCurve, size: float) -> CurveValue | None:
    """The cost at a size; None below the smallest measured size and beyond ten times the largest."""
    if not curve.least <= size <= curve.most * (1 + 1e-9):
        return None
    beyond = max(size / curve.measured_to, 1.0)
    centre = math.log10(curve.coefficient) + curve.exponent * math.log10(size)
    half = half_width(curve.spread, beyond)
    quantiles = tuple(10 ** (centre + _NORMAL.inv_cdf(level) * half / _NINTH) for level in LEVELS)
    band = Band(10 ** (centre - half), 10 ** (centre + half), COVERAGE)
    return CurveValue(quantiles[MEDIAN], band, quantiles, beyond)


def half_width(spread: float, beyond: float) -> float:
    """Half of the width of the 80 % band in decades, so many times beyond the largest measured size."""
    measured = max(DECADES_MEASURED, _NINTH * spread)
    return math.hypot(measured, DECADES_AT_TEN * math.log10(max(beyond, 1.0)))


def _names(sized: Sequence[SizedCalls]) -> list[str]:
    return list(dict.fromkeys(name for calls in sized for name in calls.sizes))


def _fitted(metric: Metric, name: str, sized: Sequence[SizedCalls]) -> CostCurve | None:
    points = _points(metric, name, sized)
    if len(points) < 2 or points[-1].size < LEAST_SPREAD * points[0].size:
        return None
    x = [math.log10(point.size) for point in points]
    y = [math.log10(point.cost) for point in points]
    mean_x, mean_y = fmean(x), fmean(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)
    # A cost that falls with a size is noise, or one that does not depend on it.
    slope = min(max(slope, 0.0), MOST_EXPONENT)
    offset = mean_y - slope * mean_x
    residual = sum((b - offset - slope * a) ** 2 for a, b in zip(x, y, strict=True))
    spread = math.sqrt(residual / max(len(points) - 2, 1))
    return CostCurve(metric, name, points, 10**offset, slope, spread)


def _points(metric: Metric, name: str, sized: Sequence[SizedCalls]) -> tuple[CurvePoint, ...]:
    """The measured costs by one size: calls with the same size are one point."""
    by_size: dict[float, list[SizedCalls]] = {}
    floor = MEASURED_FLOORS[metric]
    for calls in sized:
        size = calls.sizes.get(name, 0.0)
        # What the measurement does not resolve is on no line, and neither is an empty input.
        if size > 0 and calls.median > floor:
            by_size.setdefault(size, []).append(calls)
    return tuple(
        CurvePoint(
            size,
            median(calls.median for calls in same),
            sum(calls.calls for calls in same),
            all(calls.scaled for calls in same),
        )
        for size, same in sorted(by_size.items())
    )
