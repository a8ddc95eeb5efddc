"""A cost as a function of one size, through measurements at several sizes.

Input: what was measured of a function by the sizes of its inputs. Output: a :class:`CostCurve`, and its value with a
band between the smallest measured size and ten times the largest. A single measured size gives no curve.

A line in the logarithms of cost and size has a power as its slope. Where that is above 1, the cost is the power. Where
it is below, most costs are a fixed part and one in proportion to the size, and the line falls short of them beyond the
measured sizes; where it is close to 0, some costs are constant, and the curve is halfway between the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean, median

from rlm_core.types import LEVELS, MEASURED_FLOORS, MEDIAN, Band, GrowthEstimate, MeasuredCost, Metric, SizedCalls

# Two sizes that differ by less say more about noise than about growth.
LEAST_SPREAD = 3.0
# A curve holds up to so many times the largest measured size.
MOST_BEYOND = 10.0
# Half of the width of the 80 % band at ten times the largest measured size, in decades, by the power of the line. From
# 5,700 functions of the label run: `python -m tools.experiments.curve_bands`.
DECADES_AT_TEN = (
    (0.05, 0.08),
    (0.15, 0.27),
    (0.3, 0.36),
    (0.6, 0.27),
    (1.02, 0.09),
    (1.2, 0.29),
    (1.7, 0.57),
    (99.0, 1.1),
)
# The same at measured sizes: what medians differ by when they are measured again, see `anchoring.REPEAT_SPREAD`.
DECADES_MEASURED = 0.09
COVERAGE = 0.8
# More would be noise: no function that is measured at several sizes grows faster.
MOST_EXPONENT = 6.0
# Between these powers a cost is a sum of a fixed part and one in proportion; below, less and less of it.
_SUM_FROM, _SUM_TO = 0.3, 1.02
_NORMAL = NormalDist()
_LEAST = 1e-12
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
    """A curve through ``points``, in the order of their sizes.

    ``size`` is the name of the size, ``spread`` the standard deviation of the points from the curve in decades. The
    logarithm of the cost is that of ``coefficient * size ** power`` and that of ``fixed + rate * size``, the second
    with the weight ``share``.
    """

    metric: Metric
    size: str
    points: tuple[CurvePoint, ...]
    coefficient: float
    power: float
    fixed: float
    rate: float
    spread: float

    @property
    def share(self) -> float:
        """The weight of the sum, 0 to 1."""
        return min(self.power / _SUM_FROM, 1.0) if self.power <= _SUM_TO else 0.0

    @property
    def exponent(self) -> float:
        """The local exponent at the largest measured size."""
        cost = self.fixed + self.rate * self.measured_to
        of_sum = self.rate * self.measured_to / cost if cost > 0 else 0.0
        return self.share * of_sum + (1 - self.share) * self.power

    def median(self, size: float) -> float:
        """The cost at a size, in SI units."""
        of_power = math.log(self.coefficient) + self.power * math.log(size)
        of_sum = math.log(max(self.fixed + self.rate * size, _LEAST))
        return math.exp(self.share * of_sum + (1 - self.share) * of_power)

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
    centre = math.log10(curve.median(size))
    half = half_width(curve.power, curve.spread, beyond)
    quantiles = tuple(10 ** (centre + _NORMAL.inv_cdf(level) * half / _NINTH) for level in LEVELS)
    band = Band(10 ** (centre - half), 10 ** (centre + half), COVERAGE)
    return CurveValue(quantiles[MEDIAN], band, quantiles, beyond)


def half_width(power: float, spread: float, beyond: float) -> float:
    """Half of the width of the 80 % band in decades, so many times beyond the largest measured size."""
    at_ten = next(decades for end, decades in DECADES_AT_TEN if power < end)
    return max(DECADES_MEASURED, _NINTH * spread, at_ten * math.log10(max(beyond, 1.0)))


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
    fixed, rate = _sum(points)
    curve = CostCurve(metric, name, points, 10**offset, slope, fixed, rate, 0.0)
    residual = sum(math.log10(point.cost / curve.median(point.size)) ** 2 for point in points)
    return replace(curve, spread=math.sqrt(residual / max(len(points) - 2, 1)))


def _sum(points: Sequence[CurvePoint]) -> tuple[float, float]:
    """The fixed part and the rate of a sum through points, with the least squares of relative errors, none negative."""
    a = [1 / point.cost for point in points]
    b = [point.size / point.cost for point in points]
    aa, ab, bb = (sum(x * y for x, y in zip(left, right, strict=True)) for left, right in ((a, a), (a, b), (b, b)))
    determinant = aa * bb - ab * ab
    fixed = (bb * sum(a) - ab * sum(b)) / determinant if determinant > 0 else -1.0
    rate = (aa * sum(b) - ab * sum(a)) / determinant if determinant > 0 else 0.0
    if fixed < 0:
        return 0.0, sum(b) / bb
    return (fixed, rate) if rate >= 0 else (sum(a) / aa, 0.0)


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
