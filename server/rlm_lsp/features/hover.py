"""Hover on a unit's header: all that the model says about it, and how far that can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types
from rlm_core import notes as level_notes
from rlm_core.types import Prediction, Unit

from .. import render
from ..documents import Analysis, Placed

if TYPE_CHECKING:
    from ..server import Server


async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """The hover of the unit whose header is under the cursor; waits for the model where it has not answered yet."""
    analysis = await ls.analysis(params.text_document.uri)
    placed = unit_at(analysis, params.position.line) if analysis is not None else None
    if placed is None:
        return None
    await ls.engine.wait_loaded()
    code = placed.analysed.code
    if ls.engine.cached(code) is None:
        await ls.engine.predict([code])
    predictions = ls.engine.cached(code)
    if not predictions:
        return None
    text = hover_text(placed.analysed.unit, predictions, markdown=ls.markup == types.MarkupKind.Markdown)
    return types.Hover(types.MarkupContent(ls.markup, text))


def unit_at(analysis: Analysis, line: int) -> Placed | None:
    """The innermost unit with ``line`` in its header."""
    candidates = [unit for unit in analysis.units if line in unit.header_lines]
    return min(candidates, key=lambda unit: _length(unit.analysed.unit), default=None)


def _length(unit: Unit) -> int:
    return unit.span.end_byte - unit.span.start_byte


def hover_text(unit: Unit, predictions: Sequence[Prediction], *, markdown: bool) -> str:
    """The text of a hover: values, bands, their calibration, the query, the model."""
    name = "this file" if unit.qualname == "<file>" else f"`{unit.qualname}`" if markdown else unit.qualname
    blocks = [f"{f'**{name}**' if markdown else name}: {render.BASIS_WORDS[predictions[0].basis]}"]
    answered = [prediction for prediction in predictions if prediction.bands]
    if answered:
        blocks.append(_table(answered) if markdown else "\n".join(_values(prediction) for prediction in answered))
    notes = [_calibration(prediction) for prediction in answered]
    notes += [changed for prediction in answered if (changed := _changed(prediction))]
    notes += [
        f"{render.METRIC_WORDS[prediction.metric]}: no prediction, {prediction.abstained}"
        for prediction in predictions
        if prediction.abstained is not None
    ]
    notes += _asked(answered)
    notes.append(f"model {predictions[0].model}")
    if any(prediction.truncated for prediction in predictions):
        notes.append("the text is long: the model read only its start and its end")
    blocks.append("\n".join(f"- {note}" for note in notes) if markdown else "\n".join(notes))
    return "\n\n".join(blocks)


def _table(predictions: Sequence[Prediction]) -> str:
    coverages = list(dict.fromkeys(band.coverage for prediction in predictions for band in prediction.bands))
    lines = [
        "| | median | " + " | ".join(f"{coverage * 100:.0f} % band" for coverage in coverages) + " |",
        "|---|---|" + "---|" * len(coverages),
    ]
    for prediction in predictions:
        bands = {band.coverage: render.band(prediction.metric, band, prediction.floor) for band in prediction.bands}
        cells = [render.METRIC_WORDS[prediction.metric], render.median(prediction)]
        cells += [bands.get(coverage, "") for coverage in coverages]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _values(prediction: Prediction) -> str:
    bands = (
        f"{band.coverage * 100:.0f} % band {render.band(prediction.metric, band, prediction.floor)}"
        for band in prediction.bands
    )
    return f"{render.METRIC_WORDS[prediction.metric]}: median {render.median(prediction)}, {', '.join(bands)}"


def _calibration(prediction: Prediction) -> str:
    band = prediction.bands[0]
    name, _ = level_notes.split(band.level)
    start = f"{render.METRIC_WORDS[prediction.metric]}: {band.coverage * 100:.0f} % band,"
    device = level_notes.adapted_device(name)
    if device is not None:
        return f"{start} from {band.rows:,} measurements on {device}, each left out in turn"
    return f"{start} calibrated on {band.groups:,} groups ({band.rows:,} measurements, {name})"


def _changed(prediction: Prediction) -> str:
    """What was done to the numbers for this machine, empty when nothing was."""
    _, note = level_notes.split(prediction.bands[0].level)
    return f"{render.METRIC_WORDS[prediction.metric]}: {note}" if note else ""


def _asked(predictions: Sequence[Prediction]) -> list[str]:
    """Device and workload, once when they are the same for all metrics."""
    asked: dict[str, list[str]] = {}
    for prediction in predictions:
        workload = [f"{name} {value}" for name, value in sorted(prediction.workload.items())]
        parts = [*([f"device {prediction.device}"] if prediction.device else []), *workload]
        if parts:
            asked.setdefault(", ".join(parts), []).append(render.METRIC_WORDS[prediction.metric])
    if len(asked) <= 1:
        return list(asked)
    return [f"{' and '.join(metrics)}: {text}" for text, metrics in asked.items()]
