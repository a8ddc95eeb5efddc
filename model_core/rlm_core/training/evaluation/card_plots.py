"""Which plots the model card shows: an evaluation in, PNG files and their captions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlm_core.inference.calibration import COVERAGES
from rlm_core.inference.predictor import Predictor

from . import plots
from .answers import central_levels
from .metrics import Figure, share
from .report import MODEL, STATED, SliceReport
from .run import Evaluation
from .summaries import covered_each

_MOST_LEVELS = 1500


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot of the card: its file, the basis it is about (empty: all) and what it shows."""

    path: Path
    basis: str
    caption: str


def draw(found: Evaluation, predictor: Predictor, folder: Path) -> list[Picture]:
    """Draw all plots into a folder."""
    pictures = [_calibration(found, predictor, folder / "calibration.png")]
    for basis in found.report.bases():
        pictures.append(_measured(found, basis, folder / f"measured-{basis}.png"))
        entries = _entries(found.report.slices, basis)
        if len(entries) > 1:
            path = folder / f"reliability-{basis}.png"
            figures = [entry.figures[MODEL]["cover80"] for entry in entries]
            names = [_label(entry) for entry in entries]
            plots.reliability(names, figures, STATED, f"{basis}: coverage of {100 * STATED:.0f} % bands", path)
            pictures.append(Picture(path, basis, f"Coverage of {100 * STATED:.0f} % bands, line by line."))
    return pictures


def _entries(slices: Sequence[SliceReport], basis: str) -> list[SliceReport]:
    """The lines of a reliability plot: settings where there are any, else slices; those with most rows first."""
    mine = [entry for entry in slices if entry.basis == basis and "cover80" in entry.figures[MODEL]]
    settings = [entry for entry in mine if entry.setting]
    return sorted(settings or mine, key=lambda entry: (entry.metric, -entry.n))


def _label(entry: SliceReport) -> str:
    place = entry.setting or (entry.language if entry.basis != "call" else f"unseen {entry.held_out}")
    return f"{entry.metric}, {place} ({entry.n:,} rows)"


def _answered(found: Evaluation, basis: str) -> list[int]:
    low = found.answers[MODEL].low80
    return [place for place, row in enumerate(found.rows) if row.code.basis == basis and np.isfinite(low[place])]


def _calibration(found: Evaluation, predictor: Predictor, path: Path) -> Picture:
    curves = []
    for basis in found.report.bases():
        places = _answered(found, basis)
        step = max(1, len(places) // _MOST_LEVELS)
        levels = central_levels(predictor, [found.rows[place] for place in places[::step]])
        curves.append(plots.Curve(basis, levels[np.isfinite(levels)], _coverages(found, places)))
    plots.calibration(curves, path)
    return Picture(path, "", "Stated against measured coverage by basis: raw central intervals and calibrated bands.")


def _coverages(found: Evaluation, places: list[int]) -> dict[float, Figure]:
    actual = np.array([found.rows[place].value for place in places])
    groups = np.array([found.rows[place].whole for place in places])
    result = {}
    for stated, name in zip(COVERAGES, ("80", "90"), strict=True):
        low, high = (getattr(found.answers[MODEL], f"{end}{name}")[places] for end in ("low", "high"))
        figure = share(covered_each(low, high, actual, found.floors[places]), groups)
        if figure is not None:
            result[stated] = figure
    return result


def _measured(found: Evaluation, basis: str, path: Path) -> Picture:
    places = _answered(found, basis)
    metrics = dict.fromkeys(found.rows[place].query.metric for place in places)
    parts = []
    for metric in sorted(metrics):
        mine = [place for place in places if found.rows[place].query.metric == metric]
        # What lies at or below the floor is drawn at the floor.
        floors = np.maximum(found.floors[mine], 1e-12)
        measured = np.maximum([found.rows[place].value for place in mine], floors)
        parts.append(plots.Scatter(metric, np.maximum(found.answers[MODEL].median[mine], floors), measured))
    plots.predicted_against_measured(parts, path)
    return Picture(path, basis, "Predicted against measured, test rows.")
