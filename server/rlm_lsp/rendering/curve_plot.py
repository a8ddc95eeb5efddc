"""A small log-log plot of a cost against a size, as SVG in the colours of the page around it.

Input: a :class:`CostCurve`, or the costs of a :class:`SizeTable`. Output: an ``<svg>`` element without scripts, whose
lines and texts have the classes of the page's style sheet, so that it follows a light or dark theme. What was not
measured is dashed, and has its band.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rlm_core.inference.cost_curve import CostCurve, curve_at
from rlm_core.inference.size_table import SizeTable
from rlm_core.types import Metric, Prediction

from . import labels, size_words

_WIDTH, _HEIGHT = 260.0, 140.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 10.0, 26.0
_STEPS = 12  # of the band
# In the Markdown preview of VS Code, whose variables are the colours of its theme.
_EDITOR_STYLE = (
    ".plot text{fill:var(--vscode-descriptionForeground);font-size:11px}"
    ".plot .axis{fill:none;stroke:var(--vscode-descriptionForeground);opacity:.5}"
    ".plot .band{fill:var(--vscode-charts-blue);opacity:.15}"
    ".plot .curve{stroke:var(--vscode-charts-blue);stroke-width:1.5}"
    ".plot .beyond{stroke-dasharray:4 3}"
    ".plot .point{fill:var(--vscode-charts-blue)}"
)


@dataclass(frozen=True, slots=True)
class _Value:
    """A cost at a size with the ends of its band, in SI units."""

    size: float
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Plot:
    """The line of a plot from small sizes to large ones, and the measured points; it is solid up to ``measured_to``."""

    metric: Metric
    size: str
    title: str
    line: tuple[_Value, ...]
    points: tuple[tuple[float, float], ...] = ()
    measured_to: float = 0.0


def curve_svg(curve: CostCurve) -> str:
    """The plot of a curve: its measured points, the line, and the band up to where it holds."""
    sizes = [curve.least * (curve.most / curve.least) ** (step / _STEPS) for step in range(_STEPS + 1)]
    sizes = sorted({*sizes, curve.measured_to})
    values = [(size, value) for size in sizes if (value := curve_at(curve, size)) is not None]
    line = tuple(_Value(size, value.median, value.band.low, value.band.high) for size, value in values)
    title = f"{labels.METRIC_WORDS[curve.metric]} {size_words.curve_words(curve)}"
    points = tuple((point.size, point.cost) for point in curve.points)
    return _svg(_Plot(curve.metric, curve.size, title, line, points, curve.measured_to))


def details_plots(predictions: Sequence[Prediction], table: SizeTable | None) -> str:
    """The plots for the details in VS Code, as a block of HTML: of each metric its curve, else the costs of a table.

    Empty where neither is known.
    """
    curves = [curve for prediction in predictions if (curve := size_words.measured_curve(prediction)) is not None]
    plots = {curve.metric: curve_svg(curve) for curve in curves}
    for metric in dict.fromkeys(cost.metric for row in table.rows for cost in row.costs) if table is not None else ():
        if metric not in plots and table is not None and (plot := _of_table(table, metric)) is not None:
            plots[metric] = _svg(plot)
    if not plots:
        return ""
    figures = "".join(
        f'<figure style="margin:0"><figcaption>{escape(labels.METRIC_WORDS[metric])}</figcaption>{plot}</figure>'
        for metric, plot in plots.items()
    )
    style = f"<style>{_EDITOR_STYLE}</style>"
    return f'<div style="display:flex;flex-wrap:wrap;gap:12px">{style}{figures}</div>'


def _of_table(table: SizeTable, metric: Metric) -> _Plot | None:
    """The plot of costs that a text fixes; None for a single size, and for costs below what measurements resolve."""
    costs = [(row.value, cost) for row in table.rows for cost in row.costs if cost.metric == metric]
    line = tuple(
        _Value(size, cost.median, max(cost.band.low, cost.floor), cost.band.high)
        for size, cost in costs
        if cost.median is not None and cost.band is not None and cost.median > max(cost.floor, 0.0)
        if cost.band.low > 0 or cost.floor > 0
    )
    if len(line) < 2 or not all(math.isfinite(value.high) for value in line):
        return None
    first, last = (
        f"{labels.size(value.size)} {labels.quantity(metric, value.median)}" for value in (line[0], line[-1])
    )
    return _Plot(metric, table.size, f"{labels.METRIC_WORDS[metric]} at {table.size} {first} to {last}", line)


def _svg(plot: _Plot) -> str:
    least, most = plot.line[0].size, plot.line[-1].size
    costs = [cost for _, cost in plot.points]
    low = min([*costs, *(value.low for value in plot.line)])
    high = max([*costs, *(value.high for value in plot.line)])

    def x(size: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(size / least) / math.log(most / least)

    def y(cost: float) -> float:
        span = math.log(high / low) or 1.0
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * math.log(cost / low) / span

    def place(size: float, cost: float) -> str:
        return f"{x(size):.1f},{y(cost):.1f}"

    band = [*(place(value.size, value.high) for value in plot.line)]
    band += reversed([place(value.size, value.low) for value in plot.line])
    parts = {
        "curve": [value for value in plot.line if value.size <= plot.measured_to],
        "curve beyond": [value for value in plot.line if value.size >= plot.measured_to],
    }
    lines = [
        f'<polyline class="{kind}" fill="none" points="{" ".join(places)}"/>'
        for kind, values in parts.items()
        if len(places := [place(value.size, value.median) for value in values]) > 1
    ]
    points = [f'<circle class="point" cx="{x(size):.1f}" cy="{y(cost):.1f}" r="3"/>' for size, cost in plot.points]
    texts = [
        _text(_LEFT - 6, y(high) + 4, labels.quantity(plot.metric, high), "end"),
        _text(_LEFT - 6, y(low), labels.quantity(plot.metric, low), "end"),
        _text(x(least), _HEIGHT - 8, labels.size(least), "start"),
        _text(x(most), _HEIGHT - 8, f"{plot.size} {labels.size(most)}", "end"),
    ]
    axes = (
        f'<path class="axis" fill="none" d="M{_LEFT},{_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}"/>'
        f'<polygon class="band" points="{" ".join(band)}"/>'
    )
    return (
        f'<svg class="plot" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" width="{_WIDTH:.0f}" height="{_HEIGHT:.0f}"'
        f' role="img"><title>{escape(plot.title)}</title>{axes}{"".join([*lines, *points, *texts])}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
