"""Scored tasks -> the report of an evaluation: dataclasses for JSON, ``str(report)`` as Markdown tables.

Summaries over tasks are made here too: means over languages of programs, and whether bands cover what they state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlm_core.queries.judges import JUDGES
from rlm_core.queries.query_vector import task_name

from .baselines import MAIN
from .metrics import (
    BANDS,
    MIN_CELL,
    RANKS,
    Array,
    Figure,
    RankCorrelation,
    Weights,
    codes,
    covered,
    mean_of,
    with_interval,
)
from .pairs import PairReport
from .rows import PredictionTable, Row

MODEL = "model"
STATED = 0.8
MIN_ROWS, MIN_GROUPS = 30, 10
# Languages with fewer test rows do not count in means within quarters.
MIN_LANGUAGE = 250


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Figures by predictor of one basis, language, metric, judge and kind of held-out group; ``model`` is first.

    ``setting`` is empty for the whole task, else the device (networks: space with device or data set).
    ``n`` rows were scored of ``available`` in the data; the model abstained from ``abstained`` others.
    """

    basis: str
    language: str
    metric: str
    held_out: str
    setting: str
    n: int
    available: int
    abstained: int
    groups: int
    figures: Mapping[str, Mapping[str, Figure]]
    judge: str = ""

    @property
    def name(self) -> str:
        """Basis/language/metric, and the judge of programs where it is not LeetCode."""
        return task_name(self.basis, self.language, self.metric, self.judge or None)

    @property
    def label(self) -> str:
        """Language and metric, and the judge where it is not LeetCode."""
        return f"{self.language} {self.metric}" + (f" on {JUDGES[self.judge].title}" if self.judge else "")


def large_enough(rows: int, groups: int) -> bool:
    """Return whether there are enough rows to report a device or language separately."""
    return rows >= MIN_ROWS and groups >= MIN_GROUPS


@dataclass(frozen=True, slots=True)
class MeanReport:
    """The mean over languages of one figure of programs, by predictor."""

    metric: str
    figure: str
    languages: Sequence[str]
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """How well 80 % bands cover what they state in a basis.

    Of ``reported`` tasks and settings of ``MIN_ROWS`` and ``MIN_GROUPS`` or more, the bootstrap interval of
    ``holding`` holds 80 %; ``outside`` names the others. ``pooled`` is the coverage of all rows. Of ``compared`` tasks
    the model's median band is narrower than the main baseline's in ``narrower``.
    """

    basis: str
    reported: int
    holding: int
    pooled: Figure
    compared: int
    narrower: int
    outside: Sequence[str]


@dataclass(frozen=True, slots=True)
class Report:
    """One evaluation; ``abstained`` counts rows by basis and reason, ``most`` is the limit per task and device."""

    model: str
    split: str
    most: int
    slices: Sequence[TaskReport]
    means: Sequence[MeanReport]
    coverage: Sequence[CoverageReport]
    pairs: Sequence[PairReport]
    abstained: Mapping[str, Mapping[str, int]]

    def __str__(self) -> str:
        parts = [f"model {self.model}, split {self.split}", *self.sampled()]
        for basis in self.bases():
            parts += [f"{basis}:", self.ranks(basis), self.bands(basis), self.settings(basis)]
        parts += [self.mean_table(), self.coverage_table(), self.pair_table(), *self.abstentions()]
        return "\n\n".join(part for part in parts if part)

    def bases(self) -> list[str]:
        """The bases of the scored tasks, in the order of their pages."""
        return [basis for basis in MAIN if any(entry.basis == basis for entry in self.slices)]

    def whole(self, basis: str) -> list[TaskReport]:
        """The tasks of a basis, without their settings."""
        return [entry for entry in self.slices if entry.basis == basis and not entry.setting]

    def sampled(self) -> list[str]:
        """A line where not all rows were scored."""
        names = [
            f"{entry.name} of unseen {entry.held_out} ({entry.n + entry.abstained:,} of {entry.available:,} rows)"
            for entry in self.slices
            if not entry.setting and entry.n + entry.abstained < entry.available
        ]
        return (
            [f"a seeded sample of at most {self.most:,} rows per task and device: {', '.join(names)}"] if names else []
        )

    def ranks(self, basis: str) -> str:
        """Rank correlations and errors of all predictors, one table per basis."""
        lines = [["task", "unseen", "predictor", "rows", "groups", *RANKS.values()]]
        for entry in self.whole(basis):
            for name, found in entry.figures.items():
                lines.append(
                    [
                        entry.label,
                        entry.held_out,
                        name,
                        f"{entry.n:,}",
                        f"{entry.groups:,}",
                        *(figure(found.get(key)) for key in RANKS),
                    ]
                )
        return table(dropped(lines))

    def bands(self, basis: str) -> str:
        """Coverage and width of the bands of the model and the main baseline."""
        lines = [["task", "unseen", "predictor", *BANDS.values()]]
        for entry in self.whole(basis):
            lines += [
                [entry.label, entry.held_out, name, *_band_cells(entry.figures[name])]
                for name in (MODEL, MAIN[basis])
                if "cover80" in entry.figures.get(name, {})
            ]
        return table(dropped(lines)) if len(lines) > 1 else ""

    def settings(self, basis: str) -> str:
        """The model and the main baseline by device (networks: by setting); empty without several."""
        lines = [["metric", "device or setting", "rows", "groups", "Spearman", MAIN[basis], "Kendall", MAIN[basis]]]
        lines[0] += ["median log10 error", *list(BANDS.values())[:2]]
        for entry in self.slices:
            if entry.basis != basis or not entry.setting:
                continue
            selected, other = entry.figures[MODEL], entry.figures.get(MAIN[basis], {})
            cells = [entry.label, entry.setting, f"{entry.n:,}", f"{entry.groups:,}"]
            for key in ("spearman", "kendall"):
                cells += [figure(selected.get(key)), plain(other[key].value) if key in other else ""]
            lines.append([*cells, figure(selected.get("error")), *_band_cells(selected)[:2]])
        return table(dropped(lines)) if len(lines) > 1 else ""

    def mean_table(self) -> str:
        """The means over languages of programs; empty without programs."""
        lines = [["programs", "figure", "languages", "predictor", "mean"]]
        for entry in self.means:
            languages = f"{len(entry.languages)}: {', '.join(entry.languages)}"
            for number, (name, found) in enumerate(entry.figures.items()):
                lines.append([entry.metric, RANKS[entry.figure], "" if number else languages, name, figure(found)])
        return table(lines) if len(lines) > 1 else ""

    def coverage_table(self) -> str:
        """The summary of 80 % bands."""
        lines = [["basis", "interval holds 80 %", "pooled coverage, %", "narrower than the baseline's", "outside"]]
        for entry in self.coverage:
            holding = "no task is large enough"
            if entry.reported:
                holding = f"{entry.holding} of {entry.reported} ({percent(entry.holding / entry.reported)} %)"
            narrower = f"{entry.narrower} of {entry.compared}" if entry.compared else ""
            lines.append([entry.basis, holding, figure(entry.pooled, percent), narrower, "; ".join(entry.outside)])
        return table(dropped(lines)) if len(lines) > 1 else ""

    def pair_table(self) -> str:
        """The share of right directions and what ratio bands cover, in per cent; empty without pairs."""
        names = list(dict.fromkeys(name for entry in self.pairs for name in entry.figures))
        lines = [["pairs", "metric", "language", "pairs", "groups", *names, "80 % ratio band covers", "width"]]
        for entry in self.pairs:
            cells = [entry.suite, entry.metric, entry.language, f"{entry.n:,}", f"{entry.groups:,}"]
            right = [figure(entry.figures.get(name), percent) for name in names]
            lines.append([*cells, *right, figure(entry.cover80, percent), figure(entry.width80, factor)])
        return table(lines) if len(lines) > 1 else ""

    def abstentions(self) -> Iterable[str]:
        """A line per basis and reason."""
        return [
            f"{basis}: abstained from {count:,} rows: {reason}"
            for basis, reasons in self.abstained.items()
            for reason, count in reasons.items()
        ]


def _band_cells(found: Mapping[str, Figure]) -> list[str]:
    return [figure(found.get(key), percent if key.startswith("cover") else factor) for key in BANDS]


def mean_reports(rows: Sequence[Row], tables: Mapping[str, PredictionTable]) -> list[MeanReport]:
    """Means over languages of Spearman on LeetCode, across and within quarters, by metric.

    Whole problems are resampled. Within quarters only languages of ``MIN_LANGUAGE`` rows count; a single language has
    no mean.
    """
    reports = []
    answered = np.isfinite(tables[MODEL].median)
    for metric in ("latency", "memory"):
        indices = [
            p
            for p, (row, known) in enumerate(zip(rows, answered, strict=True))
            if known and (row.task.basis, row.task.metric, row.task.judge) == ("program", metric, "")
        ]
        languages = np.array([rows[p].code.language for p in indices])
        counts = dict(zip(*np.unique(languages, return_counts=True), strict=True))
        for figure, least in (("in_quarter", MIN_LANGUAGE), ("spearman", 0)):
            wanted = [str(language) for language, count in counts.items() if count >= least]
            if len(wanted) > 1:
                kept = [p for p in indices if rows[p].code.language in wanted]
                reports.append(_mean_report(rows, tables, kept, metric, figure, wanted))
    return reports


def _mean_report(
    rows: Sequence[Row],
    tables: Mapping[str, PredictionTable],
    indices: Sequence[int],
    metric: str,
    figure: str,
    languages: Sequence[str],
) -> MeanReport:
    actual = np.array([rows[p].value for p in indices])
    spoken = np.array([rows[p].code.language for p in indices])
    quarters = codes(rows[p].quarter for p in indices)
    groups = codes(rows[p].whole for p in indices)
    of_language = [np.flatnonzero(spoken == language) for language in languages]
    in_quarters = figure == "in_quarter"
    figures = {}
    for name, table_of in tables.items():
        predicted = table_of.median[indices]
        if np.isnan(predicted).any():
            continue
        parts = [
            RankCorrelation(predicted[rows], actual[rows], quarters[rows], MIN_CELL)
            if in_quarters
            else RankCorrelation(predicted[rows], actual[rows])
            for rows in of_language
        ]

        def mean(weights: Weights, parts: list[RankCorrelation] = parts) -> float | None:
            pairs = zip(parts, of_language, strict=True)
            values = [part.mean(weights[rows], weighted=in_quarters) for part, rows in pairs]
            known = [value for value in values if value is not None]
            return float(np.mean(known)) if known else None

        value = with_interval(groups, mean)
        if value is not None:
            figures[name] = value
    return MeanReport(metric, figure, languages, figures)


def coverage_reports(
    rows: Sequence[Row], model: PredictionTable, floors: Array, slices: Sequence[TaskReport]
) -> list[CoverageReport]:
    """One per basis: over its tasks and settings, over all its rows, and against the widths of the baseline."""
    reports = []
    banded = np.isfinite(model.low80)
    for basis in MAIN:
        indices = [p for p, row in enumerate(rows) if row.code.basis == basis and banded[p]]
        if not indices:
            continue
        actual = np.array([rows[p].value for p in indices])
        inside = covered_each(model.low80[indices], model.high80[indices], actual, floors[indices])
        groups = codes(rows[p].whole for p in indices)
        pooled = with_interval(groups, mean_of(inside))
        assert pooled is not None
        selected = [
            (e, e.figures[MODEL]["cover80"]) for e in slices if e.basis == basis and large_enough(e.n, e.groups)
        ]
        judged = [(entry, found.interval) for entry, found in selected if found.interval is not None]
        outside = [entry for entry, ends in judged if not ends[0] <= STATED <= ends[1]]
        pairs = [
            (entry.figures[MODEL]["width80"].value, entry.figures[MAIN[basis]]["width80"].value)
            for entry in slices
            if entry.basis == basis and not entry.setting and "width80" in entry.figures.get(MAIN[basis], {})
        ]
        reports.append(
            CoverageReport(
                basis,
                len(judged),
                len(judged) - len(outside),
                pooled,
                len(pairs),
                sum(own < other for own, other in pairs),
                [" ".join(filter(None, (e.label, e.held_out, e.setting))) for e in outside],
            )
        )
    return reports


def covered_each(low: Array, high: Array, actual: Array, floors: Array) -> Array:
    """:func:`rlm_core.training.evaluation.metrics.covered` for rows with separate floors."""
    result = np.zeros(len(actual))
    for floor in np.unique(floors):
        selected = floors == floor
        result[selected] = covered(low[selected], high[selected], actual[selected], float(floor))
    return result


def table(lines: Sequence[Sequence[str]]) -> str:
    """A table of a head line and others, columns aligned."""
    clean = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    widths = [max(3, *(len(line[i]) for line in clean)) for i in range(len(clean[0]))]
    rows = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in clean
    ]
    return "\n".join([rows[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *rows[1:]])


def dropped(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Lines without the columns that are empty below the head."""
    kept = [i for i in range(len(lines[0])) if any(line[i] for line in lines[1:])]
    return [[line[i] for i in kept] for line in lines]


def plain(value: float) -> str:
    """A correlation or an error: three decimals."""
    return f"{value:.3f}"


def percent(value: float) -> str:
    """A share in per cent, without the sign."""
    return f"{100 * value:.1f}"


def factor(value: float) -> str:
    """A ratio: 4.5x, 110x."""
    return f"{value:,.0f}x" if value >= 100 else f"{value:.3g}x"


def figure(found: Figure | None, form: Callable[[float], str] = plain) -> str:
    """A figure with its interval in brackets; empty for none."""
    if found is None:
        return ""
    ends = found.interval
    return form(found.value) + (f" ({form(ends[0])}–{form(ends[1])})" if ends is not None else "")
