"""``rlm-lsp card``: MODEL_CARD.md, generated whole from a model, an evaluation and the files of other measurements.

In: a model, data sets, and where there are any ``goals.json`` (a list of {task, which, measured, interval, baseline,
goal, met, note}) and ``ablations.json`` (a list of flat objects, one a row). Out: Markdown, and plots beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError, ModelError
from rlm_core.inference.adaptation import cpu_score
from rlm_core.inference.card import Card
from rlm_core.inference.student import OnnxPredictor
from rlm_core.loading import load

from . import card_text as words
from .baselines import DESCRIPTIONS
from .card_model import calibrated, deep_weights, files, heading, sizes, training_time, what_it_predicts
from .card_plots import Picture, draw
from .markdown import dropped, table
from .origins import NOT_USED, ORIGINS, OriginCount, count_origins
from .pairs import MIN_RATIO, SUITES
from .report import Report
from .run import MOST_ROWS, examine

PLOTS = Path("docs") / "model-card"
_GOAL = ("task", "which", "measured", "interval", "baseline", "goal", "met", "note")


def write_card(
    model: str,
    data: Sequence[Path],
    out: Path,
    *,
    goals: Path | None = None,
    ablations: Path | None = None,
    most: int = MOST_ROWS,
) -> None:
    """Evaluate a model on the test split of data sets and write its card, with plots in ``docs/model-card`` beside it.

    Raises:
        DataError: unusable data sets, goals or ablations, or ``out`` cannot be written.
        ModelError: an unusable model, or one without a card.
    """
    predictor = load(model)
    if not isinstance(predictor, OnnxPredictor):
        raise ModelError(f"{model}: has no card.json to report; name an exported model")
    tables = [read_entries(path) if path is not None else [] for path in (goals, ablations)]
    for entry in tables[0]:
        if lacking := [key for key in ("task", "measured", "goal", "met") if key not in entry]:
            raise DataError(f"{goals}: goal {entry.get('task', entry)!r} lacks {', '.join(lacking)}")
    origins = count_origins(data)
    found = examine(predictor, data, most=most)
    try:
        pictures = draw(found, predictor, out.parent / PLOTS)
        text = render(
            predictor.card, predictor.directory, found.report, origins, pictures, tables[0], tables[1], out.parent
        )
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{out}: the card cannot be written ({error.strerror}); check the directory") from None


def read_entries(path: Path) -> list[dict[str, Any]]:
    """A JSON file that holds a list of objects.

    Raises:
        DataError: it cannot be read or holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a JSON file") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); write a list of objects") from None
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise DataError(f"{path}: not a list of objects; write one object a row")
    return found


def render(
    card: Card,
    directory: Path,
    report: Report,
    origins: Sequence[OriginCount],
    pictures: Sequence[Picture],
    goals: Sequence[Mapping[str, Any]],
    ablations: Sequence[Mapping[str, Any]],
    root: Path,
) -> str:
    """The card's text; ``directory`` holds the model's files, pictures are linked relative to ``root``."""
    sections = [
        f"# Model card: {card.name}",
        words.INTRODUCTION,
        "## What it predicts",
        what_it_predicts(card),
        words.ANSWERS,
        "## What it is",
        heading(card),
        words.PARTS,
        sizes(card),
        files(card, directory),
        "## Data",
        _data(origins),
        NOT_USED,
        words.PROTOCOL,
        "## How good it is",
        f"Split `{report.split}`, model `{report.model}`.",
        words.READING,
        _baselines(report),
        *report.sampled(),
        *_bases(report, pictures, root),
        *_titled("### Means over languages", report.mean_table()),
        *_titled("### Bands", report.coverage_table()),
        *(_picture(picture, root) for picture in pictures if not picture.basis),
        *_titled("### Which of two is costlier", report.pair_table(), _suites()),
        *_titled("### Where it abstained", _abstained(report)),
        *_titled("## Goals", _goals(goals)),
        *_titled("## What each part brings", _free_table(ablations)),
        *_titled("### Weights of the deep part", deep_weights(card)),
        *_titled("## Training time", training_time(card)),
        "## Calibration groups",
        calibrated(card),
        "## CPU score",
        words.CPU,
        _cpu(),
        "## What to keep in mind",
        words.LIMITS,
    ]
    return "\n\n".join(section.strip("\n") for section in sections if section) + "\n"


def _titled(title: str, body: str, note: str = "") -> list[str]:
    """A section with its title; nothing when its body is empty."""
    return [part for part in (title, note, body) if part] if body else []


def _bases(report: Report, pictures: Sequence[Picture], root: Path) -> list[str]:
    sections = []
    for basis in report.bases():
        sections += [f"### Basis `{basis}`: {words.BASES[basis]}", report.ranks(basis), report.bands(basis)]
        sections += [report.settings(basis), *(_picture(p, root) for p in pictures if p.basis == basis)]
    return sections


def _picture(picture: Picture, root: Path) -> str:
    return f"![{picture.caption}]({picture.path.relative_to(root).as_posix()})\n\n{picture.caption}"


def _data(origins: Sequence[OriginCount]) -> str:
    splits = ("train", "val", "cal", "test")
    lines = [["labels", "basis", *splits, "groups", "texts", "licence", "what was measured", "left out"]]
    for entry in origins:
        origin = ORIGINS.get(entry.key)
        told = [origin.licence, origin.measured, origin.left_out] if origin is not None else ["not stated", "", ""]
        counts = [f"{entry.rows.get(split, 0):,}" for split in splits]
        title = origin.title if origin is not None else entry.key
        lines.append([title, entry.basis, *counts, f"{entry.groups:,}", f"{entry.texts:,}", *told])
    return table(lines)


def _baselines(report: Report) -> str:
    names = dict.fromkeys(name for entry in report.slices for name in entry.figures)
    told = [f"`{name}` is {DESCRIPTIONS[name]}" for name in names if name in DESCRIPTIONS]
    return f"Baselines, fitted on the same training rows: {'; '.join(told)}." if told else ""


def _suites() -> str:
    told = "; ".join(f"*{name}*: {meaning}" for name, meaning in SUITES.items())
    return (
        f"Share of right directions in per cent, over pairs whose measured values differ by a factor of {MIN_RATIO:g}"
        f" or more; how often the 80 % band of the ratio covers is counted over all pairs. {told[0].upper()}{told[1:]}."
    )


def _abstained(report: Report) -> str:
    scored = {basis: sum(entry.n for entry in report.whole(basis)) for basis in report.bases()}
    lines = [["basis", "reason", "rows", "rows answered"]]
    for basis, reasons in report.abstained.items():
        lines += [[basis, why, f"{count:,}", f"{scored.get(basis, 0):,}"] for why, count in reasons.items()]
    return table(lines) if len(lines) > 1 else ""


def _goals(goals: Sequence[Mapping[str, Any]]) -> str:
    if not goals:
        return ""
    lines = [list(_GOAL)] + [[_cell(entry.get(key)) for key in _GOAL] for entry in goals]
    return table(dropped(lines))


def _free_table(entries: Sequence[Mapping[str, Any]]) -> str:
    """Objects as a table, their keys as columns in the order they first come."""
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    if not names:
        return ""
    return table([names, *([_cell(entry.get(name)) for name in names] for entry in entries)])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return "–".join(_cell(part) for part in value)
    return str(value)


def _cpu() -> str:
    lines = [["CPython", "interpreter loop", "allocation", "numpy", "spread, log10"]]
    for version, rates in cpu_score.REFERENCE.items():
        parts = [f"{value:,.0f}" for value in (rates.interpreter, rates.allocation, rates.numpy)]
        lines.append([version, *parts, f"{rates.spread:.4f}"])
    return f"{table(lines)}\n\nMeasured on: {cpu_score.REFERENCE_HOW}."
