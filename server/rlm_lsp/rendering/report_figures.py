"""Charts of the report: measured and predicted values -> plotly figures.

The page sets the colours of background and text; those of the data are set here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from rlm_core.training.evaluation.measured_report import Comparison, Coverage, TaskSummary
from rlm_core.types import Basis, Metric

from . import labels

MOST_POINTS = 3000
_COLOURS = (
    "#3b8ed6",
    "#e07b39",
    "#2ca58d",
    "#b069c9",
    "#c9a227",
    "#d4577a",
    "#7a8791",
    "#8c6bb1",
    "#5aa02c",
    "#a6761d",
)
_GREY = "#8a8f98"
MOST_UNITS = 2000
_RATIO_COLOURS = ((0.0, "#3b8ed6"), (0.5, "#8a8f98"), (1.0, "#e07b39"))
_VALUE_WORDS = {"measured": "measured", "median": "predicted"}
_KINDS: dict[Basis, str] = {"call": "functions", "program": "programs"}
_METRICS: tuple[Metric, ...] = ("latency", "memory")
_REST = "(smaller ones)"
_MARGIN = {"l": 70, "r": 20, "t": 20, "b": 60}


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure with its name in the page, and a description for readers who cannot see it."""

    name: str
    figure: go.Figure
    shows: str


def calibration(curves: Mapping[str, Sequence[tuple[float, float]]]) -> Chart:
    """The share of measured values below each predicted quantile, one line per task."""
    figure = go.Figure(layout=_layout(height=420))
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line={"color": _GREY, "dash": "dot"}, name="calibrated")
    for (name, points), colour in zip(curves.items(), _cycle(len(curves)), strict=True):
        levels, shares = zip(*points, strict=True)
        figure.add_scatter(
            x=levels,
            y=shares,
            mode="lines+markers",
            name=name,
            line={"color": colour},
            customdata=[percent(share) for share in shares],
            hovertemplate="quantile %{x:.3f}: %{customdata} of values are below it<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(title="predicted quantile", range=[0, 1])
    figure.update_yaxes(title="share of measured values below it", range=[0, 1], **_percent_ticks(0, 1))
    return Chart("calibration", figure, "share of measured values below each predicted quantile, by basis and metric")


def coverage(groups: Sequence[Coverage]) -> Chart:
    """Coverage of 80 % bands with its interval, one line per group."""
    names = [f"{group.name} ({group.rows:,})" for group in groups]
    figure = go.Figure(layout=_layout(height=130 + 24 * len(groups), margin=_MARGIN | {"l": 20}))
    figure.add_scatter(
        x=[group.share for group in groups],
        y=names,
        mode="markers",
        marker={
            "color": [_COLOURS[not group.low <= 0.8 <= group.high] for group in groups],
            "size": 9,
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [group.high - group.share for group in groups],
            "arrayminus": [group.share - group.low for group in groups],
            "color": _GREY,
        },
        customdata=[percent(group.share) for group in groups],
        hovertemplate="%{y}: %{customdata} inside<extra></extra>",
        showlegend=False,
    )
    figure.add_vline(x=0.8, line={"color": _GREY, "dash": "dot"})
    figure.update_xaxes(title="values inside the 80 % band, 95 % interval", range=[-0.02, 1.02], **_percent_ticks(0, 1))
    figure.update_yaxes(autorange="reversed", automargin=True)
    return Chart("coverage", figure, "coverage of 80 % bands by group")


def scatter(metric: Metric, rows: Sequence[Comparison]) -> Chart:
    """Predicted against measured values, on logarithmic axes except for accuracies; at most ``MOST_POINTS`` rows."""
    shown = sample(rows)
    figure = go.Figure(layout=_layout(height=520))
    both = [value for point in shown for value in (point.median, point.measured) if value > 0]
    ends = [min(both, default=1.0), max(both, default=1.0)]
    figure.add_scatter(
        x=ends,
        y=ends,
        mode="lines",
        line={"color": _GREY, "dash": "dot"},
        name="measured as predicted",
        hoverinfo="skip",
    )
    bases = sorted({point.row.code.basis for point in shown})
    for basis, colour in zip(bases, _cycle(len(bases)), strict=True):
        of_basis = [point for point in shown if point.row.code.basis == basis]
        figure.add_scatter(
            x=[point.median for point in of_basis],
            y=[point.measured for point in of_basis],
            mode="markers",
            name=basis,
            marker={"color": colour, "size": 6, "opacity": 0.6},
            customdata=[[_named(point), predicted(point), measured(point)] for point in of_basis],
            hovertemplate="%{customdata[0]}<br>predicted %{customdata[1]}<br>measured %{customdata[2]}<extra></extra>",
        )
    kind = _percent_ticks(*ends) if metric == "accuracy" else _log_ticks(metric, *ends)
    figure.update_xaxes(title=f"predicted {labels.METRIC_WORDS[metric]} (median)", **kind)
    figure.update_yaxes(title=f"measured {labels.METRIC_WORDS[metric]}", **kind)
    return Chart(f"scatter-{metric}", figure, f"predicted against measured {labels.METRIC_WORDS[metric]}")


def tuning(before: Sequence[TaskSummary], after: Sequence[TaskSummary]) -> Chart:
    """Median factor of error of two models, one line per task that both predict."""
    known = {task.name: task for task in after}
    pairs = [(task, known[task.name]) for task in before if task.name in known]
    figure = go.Figure(layout=_layout(height=150 + 40 * len(pairs), margin=_MARGIN | {"l": 20}))
    for first, second in pairs:
        figure.add_scatter(
            x=[first.error, second.error],
            y=[first.name] * 2,
            mode="lines",
            line={"color": _GREY},
            showlegend=False,
            hoverinfo="skip",
        )
    for number, (name, symbol) in enumerate((("before", "circle-open"), ("after", "circle"))):
        figure.add_scatter(
            x=[pair[number].error for pair in pairs],
            y=[pair[number].name for pair in pairs],
            mode="markers",
            name=name,
            marker={"color": _COLOURS[1 - number], "size": 12, "symbol": symbol, "line": {"width": 2}},
            text=[labels.error(pair[number].error) for pair in pairs],
            hovertemplate="%{y}: %{text}<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(title="median factor between predicted and measured (1 is exact)", ticksuffix="×")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return Chart("tuning", figure, "error before and after tuning")


def treemaps(rows: Sequence[Comparison]) -> Iterator[tuple[str, Chart]]:
    """Treemaps of cost by module, measured and predicted, for latency and memory; each with the title of its button.

    The area is the cost of one call of each unit, the colour the ratio of measured to predicted. Functions and programs
    are separate: one run of a program costs more than all calls of a package.
    """
    for basis, kind in _KINDS.items():
        for metric in _METRICS:
            of_basis = [
                comparison
                for comparison in rows
                if comparison.row.metric == metric and comparison.row.code.basis == basis
            ]
            for which, word in _VALUE_WORDS.items():
                if sum(getattr(entry, which) for entry in of_basis) > 0:
                    name = f"modules-{basis}-{word}-{metric}"
                    yield f"{kind}: {word} {labels.METRIC_WORDS[metric]}", _treemap(name, of_basis, metric, which)


def _treemap(name: str, rows: Sequence[Comparison], metric: Metric, which: str) -> Chart:
    sums: dict[tuple[str, ...], list[float]] = {}
    ordered = sorted(rows, key=lambda comparison: -getattr(comparison, which))
    for number, comparison in enumerate(ordered):
        path = comparison.row.path if number < MOST_UNITS else (_REST,)
        # Two units of a module may share a name.
        while number < MOST_UNITS and path in sums:
            path = (*path[:-1], f"{path[-1]}'")
        for depth in range(len(path) + 1):
            known = sums.setdefault(path[:depth], [0.0, 0.0])
            known[0] += comparison.measured
            known[1] += comparison.median
    paths = list(sums)
    values = [sums[path][0 if which == "measured" else 1] for path in paths]
    figure = go.Figure(
        go.Treemap(
            ids=["/".join(("all", *path)) for path in paths],
            labels=[path[-1] if path else "all" for path in paths],
            parents=["/".join(("all", *path[:-1])) if path else "" for path in paths],
            values=values,
            branchvalues="total",
            maxdepth=4,
            marker={
                "colors": [_tilt(*sums[path]) for path in paths],
                "colorscale": _RATIO_COLOURS,
                "cmin": -2,
                "cmax": 2,
                "colorbar": {
                    "title": {"text": "measured / predicted"},
                    "tickvals": [-2, -1, 0, 1, 2],
                    "ticktext": ["1/100", "1/10", "1", "10", "100"],
                },
            },
            customdata=[[labels.quantity(metric, value) for value in sums[path]] for path in paths],
            hovertemplate="%{label}<br>measured %{customdata[0]}<br>predicted %{customdata[1]}<extra></extra>",
        )
    )
    figure.update_layout(
        height=560, margin={"l": 0, "r": 0, "t": 10, "b": 0}, paper_bgcolor="rgba(0,0,0,0)", template="none"
    )
    words = f"{_VALUE_WORDS[which]} {labels.METRIC_WORDS[metric]}"
    return Chart(name, figure, f"{words} by module")


def _tilt(measured: float, predicted: float) -> float:
    """The decimal logarithm of measured over predicted."""
    return math.log10(measured / predicted) if measured > 0 and predicted > 0 else 0.0


def sample(rows: Sequence[Comparison]) -> list[Comparison]:
    """At most ``MOST_POINTS`` rows, the same ones every time."""
    if len(rows) <= MOST_POINTS:
        return list(rows)
    return random.Random(0).sample(list(rows), MOST_POINTS)  # noqa: S311 (no secret)


def predicted(comparison: Comparison) -> str:
    """The predicted median and band of a comparison, for people."""
    words = labels.band(comparison.row.metric, comparison.band, comparison.prediction.floor)
    return f"{labels.median(comparison.prediction)} ({words})"


def measured(comparison: Comparison) -> str:
    """The measured value of a comparison, for people."""
    return labels.quantity(comparison.row.metric, comparison.row.value)


def percent(share: float) -> str:
    """A share as the rest of the program writes it: ``80 %``."""
    return f"{share * 100:.0f} %"


def _percent_ticks(low: float, high: float) -> dict[str, object]:
    """At most eight ticks at round shares from ``low`` to ``high``."""
    step = next((step for step in (1, 2, 5, 10, 20) if high - low < 0.07 * step), 20)
    values = [tick / 100 for tick in range(step * math.floor(100 * low / step), math.ceil(100 * high) + step, step)]
    return {"type": "linear", "tickvals": values, "ticktext": [percent(value) for value in values]}


def _log_ticks(metric: Metric, low: float, high: float) -> dict[str, object]:
    """Ticks from ``low`` to ``high`` that need no fraction: of memory, powers of two."""
    wide: tuple[float, ...] = (1,) if high > 100 * low else (1, 2, 5)
    base = 10.0
    if metric == "memory":
        base, wide = 32.0, (1,) if high > 1024 * low else (1, 2, 4, 8, 16)
    exponents = range(math.floor(math.log(low, base)), math.ceil(math.log(high, base)) + 1)
    values = [step * base**exponent for exponent in exponents for step in wide]
    return {"type": "log", "tickvals": values, "ticktext": [labels.quantity(metric, value) for value in values]}


def _named(comparison: Comparison) -> str:
    return f"{comparison.row.name}<br>{comparison.row.location}"


def _layout(*, height: int, margin: Mapping[str, int] = _MARGIN) -> go.Layout:
    return go.Layout(
        height=height,
        margin=dict(margin),
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        hovermode="closest",
        template="none",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    )


def _cycle(count: int) -> list[str]:
    return [_COLOURS[number % len(_COLOURS)] for number in range(count)]
