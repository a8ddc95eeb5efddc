"""A small log-log plot of a measured cost against a size, as SVG in the colours of the page around it.

Input: a :class:`CostCurve`. Output: an ``<svg>`` element without scripts, whose lines and texts have the classes of the
report's style sheet, so that it follows the light or dark mode. What is extrapolated is dashed, with its band.
"""

from __future__ import annotations

import math
from html import escape

from rlm_core.inference.cost_curve import CostCurve, curve_at

from . import labels, size_words

_WIDTH, _HEIGHT = 260.0, 140.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 10.0, 26.0
_STEPS = 12  # of the band


def curve_svg(curve: CostCurve) -> str:
    """The plot of a curve: its measured points, the line, and the band up to where it holds."""
    sizes = [curve.least * (curve.most / curve.least) ** (step / _STEPS) for step in range(_STEPS + 1)]
    values = [value for size in sizes if (value := curve_at(curve, size)) is not None]
    sizes = sizes[: len(values)]
    costs = [point.cost for point in curve.points]
    low = min(*costs, *(value.band.low for value in values))
    high = max(*costs, *(value.band.high for value in values))

    def x(size: float) -> float:
        span = math.log(curve.most / curve.least)
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(size / curve.least) / span

    def y(cost: float) -> float:
        span = math.log(high / low) or 1.0
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * math.log(cost / low) / span

    upper = [f"{x(size):.1f},{y(value.band.high):.1f}" for size, value in zip(sizes, values, strict=True)]
    lower = [f"{x(size):.1f},{y(value.band.low):.1f}" for size, value in zip(sizes, values, strict=True)]
    ends = [
        (size, value.median) for size in (curve.least, curve.measured_to, sizes[-1]) if (value := curve_at(curve, size))
    ]
    lines = [
        f'<line class="{kind}" x1="{x(one[0]):.1f}" y1="{y(one[1]):.1f}" x2="{x(two[0]):.1f}" y2="{y(two[1]):.1f}"/>'
        for kind, one, two in zip(("curve", "curve beyond"), ends, ends[1:], strict=False)
    ]
    points = [f'<circle class="point" cx="{x(p.size):.1f}" cy="{y(p.cost):.1f}" r="3"/>' for p in curve.points]
    texts = [
        _text(_LEFT - 6, y(high) + 4, labels.quantity(curve.metric, high), "end"),
        _text(_LEFT - 6, y(low), labels.quantity(curve.metric, low), "end"),
        _text(x(curve.least), _HEIGHT - 8, labels.size(curve.least), "start"),
        _text(x(curve.most), _HEIGHT - 8, f"{curve.size} {labels.size(curve.most)}", "end"),
    ]
    axes = (
        f'<path class="axis" d="M{_LEFT},{_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}"/>'
        f'<polygon class="band" points="{" ".join([*upper, *reversed(lower)])}"/>'
    )
    title = escape(f"{labels.METRIC_WORDS[curve.metric]} {size_words.curve_words(curve)}")
    return (
        f'<svg class="plot" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" width="{_WIDTH:.0f}" height="{_HEIGHT:.0f}"'
        f' role="img"><title>{title}</title>{axes}{"".join([*lines, *points, *texts])}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
