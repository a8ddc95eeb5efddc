"""The plots of the model card as PNG files: calibration, predicted against measured, coverage by language or device.

Colours are told apart by colour-blind readers (Okabe and Ito's set, the cividis map).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogFormatter, MaxNLocator

from rlm_core.types import SI_UNIT

from .metrics import Array, Figure

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
_DPI, _COLUMNS, _MOST_LINES = 100, 3, 45
_GRID = np.linspace(0.05, 0.99, 48)


@dataclass(frozen=True, slots=True)
class Curve:
    """A basis in the calibration plot.

    ``levels (rows,)`` are the smallest levels of uncalibrated central intervals that cover the values (empty: unknown);
    ``bands`` the measured coverage of the calibrated bands by stated coverage.
    """

    basis: str
    levels: Array
    bands: Mapping[float, Figure]


@dataclass(frozen=True, slots=True)
class Scatter:
    """Predicted and measured values of one basis and metric, in SI units, ``(rows,)`` each."""

    metric: str
    predicted: Array
    measured: Array


def calibration(curves: Sequence[Curve], path: Path) -> None:
    """Stated against measured coverage: a panel a basis."""
    canvas, panels = _panels(len(curves), 2.5)
    for panel, curve in zip(panels, curves, strict=True):
        panel.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
        if len(curve.levels):
            measured = [float((curve.levels <= level).mean()) for level in _GRID]
            panel.plot(_GRID, measured, color=ORANGE, linewidth=1.4, linestyle="--", label="before calibration")
        for number, (stated, found) in enumerate(curve.bands.items()):
            label = "bands as shown, 95 % interval" if number == 0 else None
            panel.errorbar(
                [stated],
                [found.value],
                yerr=_errors([found]),
                fmt="o",
                color=BLUE,
                capsize=3,
                markersize=5,
                label=label,
            )
        panel.set(title=curve.basis, xlim=(0, 1), ylim=(0, 1), aspect="equal")
        panel.set_xlabel("stated coverage")
    panels[0].set_ylabel("measured coverage")
    _legend(canvas, panels[0])
    _save(canvas, path)


def predicted_against_measured(parts: Sequence[Scatter], path: Path) -> None:
    """A panel a metric: both axes logarithmic but for accuracy, darker to brighter with more rows, the diagonal."""
    canvas, panels = _panels(len(parts), 3.6)
    for panel, part in zip(panels, parts, strict=True):
        both = np.concatenate([part.measured, part.predicted])
        logs = part.metric != "accuracy"
        low, high = float(both.min()), float(both.max())
        if logs:
            low, high = math.log10(low) - 0.1, math.log10(high) + 0.1
        first, second = (np.log10(v) if logs else v for v in (part.measured, part.predicted))
        shown = panel.hexbin(
            first,
            second,
            gridsize=42,
            extent=(low, high, low, high),
            bins="log",
            mincnt=1,
            cmap="cividis",
            linewidths=0.1,
        )
        bar = canvas.colorbar(shown, ax=panel, shrink=0.8, label="rows")
        bar.ax.yaxis.set_major_formatter(LogFormatter())
        bar.ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.5)))
        panel.plot([low, high], [low, high], color=ORANGE, linewidth=1)
        unit = {"1": "share", "B": "bytes", "s": "seconds"}[SI_UNIT[part.metric]]
        panel.set(title=part.metric, xlabel=f"measured, {unit}", ylabel=f"predicted, {unit}", aspect="equal")
        if logs:
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{value:g}}}$"))
                axis.set_major_locator(MaxNLocator(6, integer=True))
    _save(canvas, path)


def reliability(names: Sequence[str], found: Sequence[Figure], stated: float, title: str, path: Path) -> None:
    """Measured coverage of a band with its interval, a line a language or device, ``_MOST_LINES`` at most."""
    names, found = names[:_MOST_LINES], found[:_MOST_LINES]
    canvas, panel = plt.subplots(figsize=(7, 1.3 + 0.19 * len(names)), layout="constrained")
    places = np.arange(len(names))[::-1]
    panel.axvline(stated, color=GREY, linewidth=0.9, linestyle=":")
    kept = [figure.interval is None or figure.interval[0] <= stated <= figure.interval[1] for figure in found]
    for colour, marker, holds in ((BLUE, "o", True), (ORANGE, "s", False)):
        mine = [i for i, keeps in enumerate(kept) if keeps is holds]
        label = "interval holds the stated coverage" if holds else "interval misses it"
        if mine:
            panel.errorbar(
                [found[i].value for i in mine],
                places[mine],
                xerr=_errors([found[i] for i in mine]),
                fmt=marker,
                color=colour,
                markersize=4,
                capsize=2,
                linewidth=1,
                label=label,
            )
    panel.set_yticks(places, names, fontsize=7)
    panel.set(title=title, xlabel="measured coverage, 95 % interval", ylim=(-0.7, len(names) - 0.3))
    panel.set_xlim(right=1.005)
    _legend(canvas, panel)
    _save(canvas, path)


def _errors(found: Sequence[Figure]) -> Array:
    """Distances down and up to the ends of intervals, ``(2, figures)``."""
    ends = [(f.value, f.value) if f.interval is None else f.interval for f in found]
    return np.array([[max(f.value - e[0], 0), max(e[1] - f.value, 0)] for f, e in zip(found, ends, strict=True)]).T


def _panels(count: int, size: float) -> tuple[Canvas, list[Axes]]:
    """``count`` panels, at most ``_COLUMNS`` in a row."""
    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    canvas, grid = plt.subplots(
        rows, columns, figsize=(size * columns * 1.15, size * rows), squeeze=False, layout="constrained"
    )
    for extra in grid.flat[count:]:
        extra.set_visible(False)
    return canvas, list(grid.flat[:count])


def _legend(canvas: Canvas, panel: Axes) -> None:
    """A legend below everything, where it hides nothing."""
    handles, labels = panel.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)


def _save(canvas: Canvas, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # No date or version in the file: the same figures give the same bytes.
    canvas.savefig(path, dpi=_DPI, metadata={"Software": None}, pil_kwargs={"optimize": True})
    plt.close(canvas)
