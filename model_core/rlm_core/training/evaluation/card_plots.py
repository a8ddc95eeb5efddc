"""An evaluation -> the plots of the model card as PNG files: calibration, predicted against measured, coverage.

Colours are distinguishable for colour-blind readers (the set of Okabe and Ito, the cividis map).
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

from rlm_core.inference.calibration import COVERAGES, scores
from rlm_core.inference.features import answers_alone
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.student import OnnxPredictor
from rlm_core.queries.devices import answered_by_sheet
from rlm_core.types import SI_UNIT

from .metrics import Array, Figure, mean_of, with_interval
from .report import MODEL, STATED, TaskReport, covered_each
from .rows import Row
from .run import Evaluation

_MOST_LEVELS = 1500  # rows of a basis whose levels are computed
_BATCH = 256
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
_DPI, _COLUMNS, _MOST_LINES = 100, 3, 45
_GRID = np.linspace(0.05, 0.99, 48)


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot of the card: its file, the basis it is about (empty: all) and what it shows."""

    path: Path
    basis: str
    caption: str


def draw_all(found: Evaluation, predictor: Predictor, folder: Path) -> list[Picture]:
    """Draw all plots into a folder."""
    pictures = [_calibration(found, predictor, folder / "calibration.png")]
    for basis in found.report.bases():
        pictures.append(_measured(found, basis, folder / f"measured-{basis}.png"))
        entries = _entries(found.report.slices, basis)
        if len(entries) > 1:
            path = folder / f"reliability-{basis}.png"
            figures = [entry.figures[MODEL]["cover80"] for entry in entries]
            names = [_label(entry) for entry in entries]
            draw_reliability(names, figures, STATED, f"{basis}: coverage of {100 * STATED:.0f} % bands", path)
            pictures.append(
                Picture(path, basis, f"Coverage of {100 * STATED:.0f} % bands by language, device or setting.")
            )
    return pictures


def _entries(slices: Sequence[TaskReport], basis: str) -> list[TaskReport]:
    """The lines of a reliability plot: settings where there are any, else tasks; those with the most rows first."""
    selected = [entry for entry in slices if entry.basis == basis and "cover80" in entry.figures[MODEL]]
    settings = [entry for entry in selected if entry.setting]
    return sorted(settings or selected, key=lambda entry: (entry.metric, -entry.n))


def _label(entry: TaskReport) -> str:
    where = entry.setting or (entry.language if entry.basis != "call" else f"unseen {entry.held_out}")
    return f"{entry.metric}, {where} ({entry.n:,} rows)"


def _answered(found: Evaluation, basis: str) -> list[int]:
    low = found.tables[MODEL].low80
    return [index for index, row in enumerate(found.rows) if row.code.basis == basis and np.isfinite(low[index])]


def _calibration(found: Evaluation, predictor: Predictor, path: Path) -> Picture:
    curves = []
    for basis in found.report.bases():
        places = _answered(found, basis)
        step = max(1, len(places) // _MOST_LEVELS)
        levels = central_levels(predictor, [found.rows[index] for index in places[::step]])
        curves.append(Curve(basis, levels[np.isfinite(levels)], _coverages(found, places)))
    draw_calibration(curves, path)
    return Picture(
        path, "", "Stated and measured coverage by basis: central intervals before calibration, and calibrated bands."
    )


def _coverages(found: Evaluation, places: list[int]) -> dict[float, Figure]:
    actual = np.array([found.rows[index].value for index in places])
    groups = np.array([found.rows[index].whole for index in places])
    result = {}
    for stated, name in zip(COVERAGES, ("80", "90"), strict=True):
        low, high = (getattr(found.tables[MODEL], f"{end}{name}")[places] for end in ("low", "high"))
        figure = with_interval(groups, mean_of(covered_each(low, high, actual, found.floors[places])))
        if figure is not None:
            result[stated] = figure
    return result


def _measured(found: Evaluation, basis: str, path: Path) -> Picture:
    places = _answered(found, basis)
    metrics = dict.fromkeys(found.rows[index].query.metric for index in places)
    parts = []
    for metric in sorted(metrics):
        selected = [index for index in places if found.rows[index].query.metric == metric]
        # Values at or below the floor are drawn at the floor.
        floors = np.maximum(found.floors[selected], 1e-12)
        measured = np.maximum([found.rows[index].value for index in selected], floors)
        parts.append(Scatter(metric, np.maximum(found.tables[MODEL].median[selected], floors), measured))
    draw_scatter(parts, path)
    return Picture(path, basis, "Predicted and measured values of test rows.")


def central_levels(predictor: Predictor, rows: Sequence[Row]) -> Array:
    """The smallest level whose uncalibrated central interval covers each row's value, ``(rows,)``; NaN if unknown.

    The share of rows at or below t is the measured coverage of the interval that states t. Forests that predict alone
    have no interval before their calibration.
    """
    levels = np.full(len(rows), np.nan)
    if not isinstance(predictor, OnnxPredictor):
        return levels
    with_head = np.flatnonzero([_uses_head(predictor, row) for row in rows])
    for start in range(0, len(with_head), _BATCH):
        indices = with_head[start : start + _BATCH]
        batch = [rows[int(i)] for i in indices]
        probabilities, tasks = predictor.distributions([row.code for row in batch], [row.query for row in batch])
        for task in np.unique(tasks):
            selected = np.flatnonzero(tasks == task)
            values = np.array([batch[int(i)].value for i in selected])
            levels[indices[selected]] = scores(probabilities[selected], predictor.card.tasks[task].scale, values)
    return levels


def _uses_head(predictor: OnnxPredictor, row: Row) -> bool:
    basis = row.code.basis
    return not answers_alone(row.task.name) and not answered_by_sheet(basis, row.query.device, predictor.devices(basis))


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


def draw_calibration(curves: Sequence[Curve], path: Path) -> None:
    """Stated against measured coverage: one panel per basis."""
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


def draw_scatter(parts: Sequence[Scatter], path: Path) -> None:
    """One panel per metric: both axes logarithmic except for accuracy, brighter with more rows, with the diagonal."""
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
        unit = {"1": "share", "B": "bytes", "s": "seconds", "J": "joules"}[SI_UNIT[part.metric]]
        panel.set(title=part.metric, xlabel=f"measured, {unit}", ylabel=f"predicted, {unit}", aspect="equal")
        if logs:
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{value:g}}}$"))
                axis.set_major_locator(MaxNLocator(6, integer=True))
    _save(canvas, path)


def draw_reliability(names: Sequence[str], found: Sequence[Figure], stated: float, title: str, path: Path) -> None:
    """Measured coverage of a band with its interval: one line per language or device, at most ``_MOST_LINES``."""
    names, found = names[:_MOST_LINES], found[:_MOST_LINES]
    canvas, panel = plt.subplots(figsize=(7, 1.3 + 0.19 * len(names)), layout="constrained")
    places = np.arange(len(names))[::-1]
    panel.axvline(stated, color=GREY, linewidth=0.9, linestyle=":")
    kept = [figure.interval is None or figure.interval[0] <= stated <= figure.interval[1] for figure in found]
    for colour, marker, holds in ((BLUE, "o", True), (ORANGE, "s", False)):
        selected = [i for i, keeps in enumerate(kept) if keeps is holds]
        label = "interval holds the stated coverage" if holds else "interval misses it"
        if selected:
            panel.errorbar(
                [found[i].value for i in selected],
                places[selected],
                xerr=_errors([found[i] for i in selected]),
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
    """A legend below all panels."""
    handles, labels = panel.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)


def _save(canvas: Canvas, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # No date or version in the file: the same figures give the same bytes.
    canvas.savefig(path, dpi=_DPI, metadata={"Software": None}, pil_kwargs={"optimize": True})
    plt.close(canvas)
