"""Cost by module as treemaps: the area is what one call of each unit costs, the colour how far the model was off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import plotly.graph_objects as go
from rlm_core.training.evaluation.measured_report import Comparison
from rlm_core.types import Basis, Metric

from rlm_lsp.rendering import labels as render

from .figures import Chart

MOST_UNITS = 2000
_SCALE = ((0.0, "#3b8ed6"), (0.5, "#8a8f98"), (1.0, "#e07b39"))
_WORDS = {"measured": "measured", "median": "predicted"}
_KINDS: dict[Basis, str] = {"call": "functions", "program": "programs"}
_METRICS: tuple[Metric, ...] = ("latency", "memory")
_OTHER = "(smaller ones)"


def treemaps(rows: Sequence[Comparison]) -> Iterator[tuple[str, Chart]]:
    """A treemap of measured and one of predicted cost for latency and memory, each with the title of its button.

    Functions and programs have their own: one run of a program costs more than all calls of a package.
    """
    for basis, kind in _KINDS.items():
        for metric in _METRICS:
            mine = [one for one in rows if one.row.metric == metric and one.row.code.basis == basis]
            for which, word in _WORDS.items():
                if sum(getattr(one, which) for one in mine) > 0:
                    name = f"modules-{basis}-{word}-{metric}"
                    yield f"{kind}: {word} {render.METRIC_WORDS[metric]}", _treemap(name, mine, metric, which)


def _treemap(name: str, rows: Sequence[Comparison], metric: Metric, which: str) -> Chart:
    sums: dict[tuple[str, ...], list[float]] = {}
    ordered = sorted(rows, key=lambda one: -getattr(one, which))
    for number, one in enumerate(ordered):
        path = one.row.path if number < MOST_UNITS else (_OTHER,)
        # Two units of a module may share a name.
        while number < MOST_UNITS and path in sums:
            path = (*path[:-1], f"{path[-1]}'")
        for depth in range(len(path) + 1):
            known = sums.setdefault(path[:depth], [0.0, 0.0])
            known[0] += one.measured
            known[1] += one.median
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
                "colorscale": _SCALE,
                "cmin": -2,
                "cmax": 2,
                "colorbar": {
                    "title": {"text": "measured / predicted"},
                    "tickvals": [-2, -1, 0, 1, 2],
                    "ticktext": ["1/100", "1/10", "1", "10", "100"],
                },
            },
            customdata=[[render.quantity(metric, value) for value in sums[path]] for path in paths],
            hovertemplate="%{label}<br>measured %{customdata[0]}<br>predicted %{customdata[1]}<extra></extra>",
        )
    )
    figure.update_layout(
        height=560, margin={"l": 0, "r": 0, "t": 10, "b": 0}, paper_bgcolor="rgba(0,0,0,0)", template="none"
    )
    words = f"{_WORDS[which]} {render.METRIC_WORDS[metric]}"
    return Chart(name, figure, f"{words} by module")


def _tilt(measured: float, predicted: float) -> float:
    """The decimal logarithm of measured over predicted."""
    return math.log10(measured / predicted) if measured > 0 and predicted > 0 else 0.0
