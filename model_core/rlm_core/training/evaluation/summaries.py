"""Summaries over slices: means over languages of programs, and whether bands keep their word in a basis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .answers import Answers
from .baselines import MAIN
from .figures import covered
from .metrics import Array, Indices, codes, mean_within, share, spearman, with_interval
from .report import MODEL, STATED, CoverageReport, MeanReport, SliceReport, large_enough
from .rows import Row

# A language with fewer test rows than this gives no mean of its own within quarters.
MIN_LANGUAGE = 250


def mean_reports(rows: Sequence[Row], answers: Mapping[str, Answers]) -> list[MeanReport]:
    """Means over languages of Spearman, across and within quarters, by metric; problems are resampled as wholes.

    Within quarters only languages of ``MIN_LANGUAGE`` rows count; a single language gives no mean.
    """
    reports = []
    answered = np.isfinite(answers[MODEL].median)
    for metric in ("latency", "memory"):
        places = [p for p, row in enumerate(rows) if answered[p] and row.slice[::2] == ("program", metric)]
        languages = np.array([rows[p].code.language for p in places])
        counts = dict(zip(*np.unique(languages, return_counts=True), strict=True))
        for figure, least in (("in_quarter", MIN_LANGUAGE), ("spearman", 0)):
            wanted = [str(language) for language, count in counts.items() if count >= least]
            if len(wanted) > 1:
                kept = [p for p in places if rows[p].code.language in wanted]
                reports.append(_mean_report(rows, answers, kept, metric, figure, wanted))
    return reports


def _mean_report(
    rows: Sequence[Row],
    answers: Mapping[str, Answers],
    places: Sequence[int],
    metric: str,
    figure: str,
    languages: Sequence[str],
) -> MeanReport:
    actual = np.array([rows[p].value for p in places])
    spoken = np.array([rows[p].code.language for p in places])
    quarters = codes(rows[p].quarter for p in places)
    groups = codes(rows[p].whole for p in places)
    figures = {}
    for name, found in answers.items():
        predicted = found.median[places]
        if np.isnan(predicted).any():
            continue

        def mean(drawn: Indices, predicted: Array = predicted) -> float | None:
            values = []
            for language in languages:
                mine = drawn[spoken[drawn] == language]
                value = (
                    spearman(predicted[mine], actual[mine])
                    if figure == "spearman"
                    else mean_within(predicted[mine], actual[mine], quarters[mine], weighted=True)
                )
                if value is not None:
                    values.append(value)
            return float(np.mean(values)) if values else None

        value = with_interval(groups, mean)
        if value is not None:
            figures[name] = value
    return MeanReport(metric, figure, languages, figures)


def coverage_reports(
    rows: Sequence[Row], model: Answers, floors: Array, slices: Sequence[SliceReport]
) -> list[CoverageReport]:
    """One a basis: over its slices and settings, over all its rows, and against the baseline's widths."""
    reports = []
    banded = np.isfinite(model.low80)
    for basis in MAIN:
        places = [p for p, row in enumerate(rows) if row.code.basis == basis and banded[p]]
        if not places:
            continue
        actual = np.array([rows[p].value for p in places])
        inside = covered_each(model.low80[places], model.high80[places], actual, floors[places])
        groups = codes(rows[p].whole for p in places)
        pooled = share(inside, groups)
        assert pooled is not None
        mine = [(e, e.figures[MODEL]["cover80"]) for e in slices if e.basis == basis and large_enough(e.n, e.groups)]
        judged = [(entry, found.interval) for entry, found in mine if found.interval is not None]
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
                [" ".join(filter(None, (e.language, e.metric, e.held_out, e.setting))) for e in outside],
            )
        )
    return reports


def covered_each(low: Array, high: Array, actual: Array, floors: Array) -> Array:
    """:func:`rlm_core.training.evaluation.figures.covered` for rows with floors of their own."""
    result = np.zeros(len(actual))
    for floor in np.unique(floors):
        mine = floors == floor
        result[mine] = covered(low[mine], high[mine], actual[mine], float(floor))
    return result
