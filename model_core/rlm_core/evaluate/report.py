"""The report of an evaluation: dataclasses for JSON, ``str(report)`` as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .metrics import BandFigures, Figures, Interval


@dataclass(frozen=True, slots=True)
class SliceReport:
    """One basis x language x metric x what was held out: figures by predictor, ``model`` first."""

    basis: str
    language: str
    metric: str
    held_out: str
    n: int
    groups: int
    figures: Mapping[str, Figures]


@dataclass(frozen=True, slots=True)
class Report:
    """All slices of one evaluation, and how many rows the model abstained from, by reason."""

    model: str
    split: str
    slices: Sequence[SliceReport]
    abstained: Mapping[str, int]

    def __str__(self) -> str:
        parts = [f"model {self.model}, split {self.split}", _ranks(self.slices), _bands(self.slices)]
        within = _mean_within(self.slices)
        if within:
            parts.append(within)
        parts += [f"abstained from {count} rows: {reason}" for reason, count in self.abstained.items()]
        return "\n\n".join(parts)


def _ranks(slices: Iterable[SliceReport]) -> str:
    head = ["slice", "unseen", "predictor", "n", "groups", "Spearman", "95 %", "by family", "in quarter", "Kendall"]
    lines = [[*head, "median log10 error", "floor AUC"]]
    for entry in slices:
        for name, figures in entry.figures.items():
            lines.append(
                [
                    f"{entry.basis}/{entry.language}/{entry.metric}",
                    entry.held_out,
                    name,
                    str(entry.n),
                    str(entry.groups),
                    _number(figures.spearman),
                    _interval(figures.spearman_interval),
                    _number(figures.spearman_by_family),
                    _number(figures.spearman_within),
                    _number(figures.kendall),
                    _number(figures.error),
                    _number(figures.floor_auc),
                ]
            )
    return _table(lines)


def _bands(slices: Iterable[SliceReport]) -> str:
    lines = [["slice", "unseen", "80 % covers", "95 %", "width", "90 % covers", "95 %", "width"]]
    for entry in slices:
        figures = entry.figures["model"]
        bands: list[BandFigures | None] = [figures.band80, figures.band90]
        cells = [f"{entry.basis}/{entry.language}/{entry.metric}", entry.held_out]
        for band in bands:
            if band is not None:
                cells += [f"{100 * band.coverage:.1f} %", _interval(band.interval, 100), f"{band.width:.2g}x"]
        lines.append(cells)
    return _table(lines)


def _mean_within(slices: Iterable[SliceReport]) -> str:
    """Programs: the mean over languages of Spearman within language x quarter, one line a metric and predictor."""
    values: dict[tuple[str, str], list[float]] = {}
    for entry in slices:
        for name, figures in entry.figures.items():
            if figures.spearman_within is not None:
                values.setdefault((entry.metric, name), []).append(figures.spearman_within)
    if not values:
        return ""
    lines = [["program metric", "predictor", "languages", "mean Spearman in quarter"]]
    lines += [
        [metric, name, str(len(found)), _number(sum(found) / len(found))] for (metric, name), found in values.items()
    ]
    return _table(lines)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _interval(interval: Interval | None, scale: float = 1) -> str:
    form: Callable[[float], str] = (lambda v: f"{v:.1f}") if scale > 1 else (lambda v: f"{v:.3f}")
    return "" if interval is None else f"{form(scale * interval[0])}–{form(scale * interval[1])}"


def _table(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rows = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([rows[0], rule, *rows[1:]])
