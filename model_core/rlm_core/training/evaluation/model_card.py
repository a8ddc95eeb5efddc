"""MODEL_CARD.md and its pages of tables, generated from a model, an evaluation and files of other measurements.

In: a predictor, data sets, and where there are any ``goals.json`` (a list of {task, which, measured, interval,
baseline, goal, met, note}) and ``ablations.json`` (a list of flat objects, one per row). Out: the card with summaries,
and full tables and plots in ``docs/model-card`` next to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError, ModelError
from rlm_core.files import atomic_write
from rlm_core.inference.adaptation import cpu_score
from rlm_core.inference.card import StudentCard
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.student import OnnxPredictor

from . import card_text as words
from .baselines import DESCRIPTIONS, MAIN
from .card_model import (
    SourceCount,
    calibrated,
    count_sources,
    deep_weights,
    files,
    heading,
    sizes,
    training_time,
    what_it_predicts,
)
from .card_plots import Picture, draw_all
from .pairs import MIN_RATIO, SUITES
from .report import MODEL, Report, dropped, factor, figure, percent, plain, table
from .run import MOST_ROWS, examine

PAGES = Path("docs") / "model-card"
# Pages on other data: those that growth_report and cost_ablation of tools/experiments and tests/bench/common_sense
# write, and three written by hand from figures of tools/experiments.
KEPT_PAGES = (
    "growth.md",
    "function-growth.md",
    "cost-analysis.md",
    "common-sense.md",
    "measured-functions.md",
    "judges.md",
)
_GOAL = ("task", "which", "measured", "interval", "baseline", "goal", "met", "note")


@dataclass(frozen=True, slots=True)
class CardInput:
    """Everything that a card is made of: the model, its report, counted rows, plots, and other measurements."""

    card: StudentCard
    directory: Path
    report: Report
    counted: Sequence[SourceCount]
    pictures: Sequence[Picture]
    goals: Sequence[Mapping[str, Any]]
    ablations: Sequence[Mapping[str, Any]]


def write_card(
    predictor: Predictor,
    data: Sequence[Path],
    out: Path,
    *,
    goals: Path | None = None,
    ablations: Path | None = None,
    most: int = MOST_ROWS,
) -> None:
    """Evaluate a model on the test split of data sets and write its card, and tables and plots next to it.

    Raises:
        DataError: unusable data sets, goals or ablations, or ``out`` cannot be written.
        ModelError: the model has no card.
    """
    if not isinstance(predictor, OnnxPredictor):
        raise ModelError(f"{predictor.model_id}: has no card.json to report; name an exported model")
    tables = [read_entries(path) if path is not None else [] for path in (goals, ablations)]
    for entry in tables[0]:
        if missing := [key for key in ("task", "measured", "goal", "met") if key not in entry]:
            raise DataError(f"{goals}: goal {entry.get('task', entry)!r} has no {', '.join(missing)}")
    counted = count_sources(data)
    evaluation = examine(predictor, data, most=most)
    folder = out.parent / PAGES
    try:
        pictures = draw_all(evaluation, predictor, folder)
        content = CardInput(predictor.card, predictor.directory, evaluation.report, counted, pictures, *tables)
        pages = render_pages(content)
        for name in KEPT_PAGES:
            if (folder / name).is_file():
                pages[name] = (folder / name).read_text(encoding="utf-8")
        for name, text in pages.items():
            with atomic_write(folder / name) as partial:
                partial.write_text(text, encoding="utf-8")
        with atomic_write(out) as partial:
            partial.write_text(render_card(content, pages), encoding="utf-8")
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
        raise DataError(f"{path}: not a list of objects; write one object per row")
    return found


def render_card(content: CardInput, pages: Mapping[str, str]) -> str:
    """The card: what the model predicts, how well, where it fails, data and licence, with links to its ``pages``."""
    card, report = content.card, content.report
    links = [f"- [{_title(text)}]({(PAGES / name).as_posix()})" for name, text in pages.items()]
    return _joined(
        f"# Model card: {card.name}",
        words.INTRODUCTION,
        heading(card),
        "## What it predicts",
        what_it_predicts(card),
        words.ANSWERS,
        "## How well it predicts",
        f"Split `{report.split}`, model `{report.model}`; all groups are unseen. {words.SUMMARY}",
        summary(report),
        *(_picture(picture, f"{PAGES.as_posix()}/") for picture in content.pictures if not picture.basis),
        *_titled("### Which of two is more expensive", pair_summary(report)),
        "## Where it fails",
        words.LIMITS,
        "## Data",
        _short_data(content.counted),
        words.NOT_USED,
        "## Licence",
        words.LICENCE,
        "## All tables",
        "\n".join(links),
    )


def render_pages(content: CardInput) -> dict[str, str]:
    """The pages of full tables by file name, those without content left out."""
    card, report = content.card, content.report
    pages: dict[str, list[str]] = {}
    for basis in report.bases():
        name = words.TITLES[basis].lower().replace(" ", "-") + ".md"
        pages[name] = [
            f"# {words.TITLES[basis]}",
            f"Basis `{basis}`: {words.BASES[basis]}.",
            report.ranks(basis),
            *(_titled("## Means over languages", report.mean_table()) if basis == "program" else []),
            *_titled("## Bands", report.bands(basis)),
            *_titled("## By device or setting", report.settings(basis)),
            *(_picture(picture) for picture in content.pictures if picture.basis == basis),
        ]
    pages["bands.md"] = [
        "# Bands and abstentions",
        *_titled("## Coverage", report.coverage_table()),
        *(_picture(picture) for picture in content.pictures if not picture.basis),
        *_titled("## Abstentions", _abstained(report)),
        "## Calibration groups",
        calibrated(card),
    ]
    if report.pairs:
        pages["changes.md"] = ["# Which of two is more expensive", _suites(), report.pair_table()]
    pages["protocol.md"] = [
        "# Data and protocol",
        _data(content.counted),
        words.NOT_USED,
        "## Splits",
        words.PROTOCOL,
        "## How to read the tables",
        words.READING,
        _baselines(report),
        *report.sampled(),
    ]
    pages["model.md"] = [
        "# The model",
        words.PARTS,
        sizes(card),
        files(card, content.directory),
        *_titled("## What each part contributes", _free_table(content.ablations)),
        *_titled("## Weights of the deep part", deep_weights(card)),
        *_titled("## Training time", training_time(card)),
        "## CPU score",
        words.CPU,
        _cpu(),
    ]
    if content.goals:
        pages["goals.md"] = ["# Goals", _goals(content.goals)]
    return {name: _joined(*sections) for name, sections in pages.items()}


def summary(report: Report) -> str:
    """One line per task, with the means over languages for programs."""
    lines = [["basis", "metric", "unseen", "rows", "Spearman", "baseline", "median factor", "in 80 % band"]]
    for basis in report.bases():
        if basis == "program" and report.means:
            lines += _program_lines(report)
            continue
        for entry in report.whole(basis):
            model, other = entry.figures[MODEL], entry.figures.get(MAIN[basis], {})
            error, covers = model.get("error"), model.get("cover80")
            lines.append(
                [
                    basis,
                    entry.metric,
                    entry.held_out,
                    f"{entry.n:,}",
                    figure(model.get("spearman")),
                    plain(other["spearman"].value) if "spearman" in other else "",
                    factor(10**error.value) if error is not None else "",
                    figure(covers, percent),
                ]
            )
    return table(dropped(lines))


def _program_lines(report: Report) -> list[list[str]]:
    lines = []
    for mean in report.means:
        entries = [entry for entry in report.whole("program") if entry.metric == mean.metric]
        kind = "within quarter" if mean.figure == "in_quarter" else "across quarters"
        kind = f"{mean.metric}, {kind}, mean of {len(mean.languages)} languages"
        rows = sum(entry.n for entry in entries if entry.language in mean.languages)
        other = mean.figures.get(MAIN["program"])
        ranks = [figure(mean.figures.get(MODEL)), plain(other.value) if other is not None else ""]
        lines.append(["program", kind, "problem", f"{rows:,}", *ranks, "", ""])
    return lines


def pair_summary(report: Report) -> str:
    """Right directions of the model and its baseline over all languages; empty without pairs."""
    lines = [["pairs", "metric", "count", "right, %", "baseline, %"]]
    for entry in report.pairs:
        if entry.language == "all":
            model, other = entry.figures.get(MODEL), entry.figures.get(MAIN["call"])
            cells = [entry.suite, entry.metric, f"{entry.n:,}", figure(model, percent)]
            lines.append([*cells, percent(other.value) if other is not None else ""])
    return table(dropped(lines)) if len(lines) > 1 else ""


def _short_data(counted: Sequence[SourceCount]) -> str:
    lines = [["labels", "basis", "rows", "licence"]]
    for entry in counted:
        source = words.SOURCES.get(entry.key)
        title, licence = (source.title, source.licence) if source is not None else (entry.key, "not stated")
        lines.append([title, entry.basis, f"{sum(entry.rows.values()):,}", licence])
    return table(lines)


def _joined(*sections: str) -> str:
    return "\n\n".join(section.strip("\n") for section in sections if section) + "\n"


def _title(page: str) -> str:
    return page.partition("\n")[0].removeprefix("# ")


def _titled(title: str, body: str) -> list[str]:
    """A section with its title; nothing when its body is empty."""
    return [title, body] if body else []


def _picture(picture: Picture, folder: str = "") -> str:
    return f"![{picture.caption}]({folder}{picture.path.name})\n\n{picture.caption}"


def _data(counted: Sequence[SourceCount]) -> str:
    splits = ("train", "val", "cal", "test")
    lines = [["labels", "basis", *splits, "groups", "texts", "licence", "what was measured", "left out"]]
    for entry in counted:
        source = words.SOURCES.get(entry.key)
        facts = [source.licence, source.measured, source.left_out] if source is not None else ["not stated", "", ""]
        counts = [f"{entry.rows.get(split, 0):,}" for split in splits]
        title = source.title if source is not None else entry.key
        lines.append([title, entry.basis, *counts, f"{entry.groups:,}", f"{entry.texts:,}", *facts])
    return table(lines)


def _baselines(report: Report) -> str:
    names = dict.fromkeys(name for entry in report.slices for name in entry.figures)
    known = [f"`{name}` is {DESCRIPTIONS[name]}" for name in names if name in DESCRIPTIONS]
    return f"Baselines, fitted on the same training rows: {'; '.join(known)}." if known else ""


def _suites() -> str:
    suites = "; ".join(f"*{name}*: {meaning}" for name, meaning in SUITES.items())
    return (
        f"Right directions in per cent, over pairs whose measured values differ by a factor of {MIN_RATIO:g} or more."
        f" Coverage of the 80 % band of the ratio counts all pairs. Suites: {suites}."
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
    """Objects as a table; columns are their keys in order of first appearance."""
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
