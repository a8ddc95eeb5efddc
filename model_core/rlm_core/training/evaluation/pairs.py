"""Which of two is more expensive: pairs of rows -> the share of right directions, and what ratio bands cover."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from rlm_core.inference.student import OnnxPredictor

from .metrics import Array, Figure, mean_of, median_of, with_interval
from .rows import Row

MIN_RATIO = 1.25
_BATCH = 256  # pairs
MOST_PER_GROUP = 50
MIN_GROUPS = 10  # for a separate line of a language
SUITES = {
    "same problem": "two solutions of one problem in one language, judged in the same half year",
    "revisions": "two versions of one file of one repository",
    "edits": "a generated function and an edit of it that changes its measured cost",
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Indices of two rows of one task, the group that intervals resample, and log10 of second value over first.

    ``changed`` pairs differ by ``MIN_RATIO`` and by more than the measurement's noise: their direction is known.
    """

    first: int
    second: int
    group: str
    ratio: float
    changed: bool


@dataclass(frozen=True, slots=True)
class Ratios:
    """Predicted log10 ratios of pairs with the ends of their 80 % bands, ``(pairs,)`` each; NaN where there is none."""

    median: Array
    low: Array
    high: Array

    def of(self, chosen: npt.NDArray[np.int64]) -> Ratios:
        """Those of some pairs."""
        return Ratios(self.median[chosen], self.low[chosen], self.high[chosen])


@dataclass(frozen=True, slots=True)
class PairReport:
    """The share of right directions by predictor, for one suite, language (``all``: of all) and metric.

    ``n`` pairs of ``groups`` groups changed; ``cover80`` and ``width80`` (a factor) are those of the model's ratio
    bands on all ``pairs``, changed or not.
    """

    suite: str
    language: str
    metric: str
    n: int
    groups: int
    figures: Mapping[str, Figure]
    pairs: int = 0
    cover80: Figure | None = None
    width80: Figure | None = None


def predict_ratios(predictor: OnnxPredictor, rows: Sequence[Row], pairs: Sequence[Pair]) -> Ratios:
    """The ratios of pairs of rows as a predictor's model of changes predicts them."""
    found = np.full((3, len(pairs)), np.nan)
    for start in range(0, len(pairs), _BATCH):
        batch = pairs[start : start + _BATCH]
        texts = [(rows[pair.first].code, rows[pair.second].code) for pair in batch]
        queries = [[rows[pair.second].query] for pair in batch]
        for index, [ratio] in enumerate(predictor.compare(texts, queries), start):
            if ratio.ratio is not None:
                band = ratio.bands[0]
                found[:, index] = np.log10([ratio.ratio, band.low, band.high])
    return Ratios(*found)


def report_pairs(
    rows: Sequence[Row],
    predicted: Mapping[str, Array],
    ratios: Mapping[str, Callable[[Sequence[Pair]], Ratios]] = MappingProxyType({}),
) -> list[PairReport]:
    """All suites that the rows hold pairs for.

    Args:
        rows: rows of any bases.
        predicted: by predictor, medians in SI units, ``(rows,)``; pairs with NaN are left out for all.
        ratios: by predictor, a function that predicts ratios of pairs better than its medians do.
    """
    suites = {"same problem": same_problem(rows), "revisions": revisions(rows), "edits": edited(rows)}
    known = np.all([np.isfinite(values) for values in predicted.values()], axis=0)
    reports = []
    for suite, found in suites.items():
        of_metric: dict[str, list[Pair]] = defaultdict(list)
        for pair in found:
            if known[pair.first] and known[pair.second]:
                of_metric[rows[pair.first].task.metric].append(pair)
        for metric, pairs in sorted(of_metric.items()):
            reports += _reports(suite, metric, pairs, rows, predicted, ratios)
    return [report for report in reports if report.n]


def _reports(
    suite: str,
    metric: str,
    pairs: Sequence[Pair],
    rows: Sequence[Row],
    predicted: Mapping[str, Array],
    ratios: Mapping[str, Callable[[Sequence[Pair]], Ratios]],
) -> list[PairReport]:
    """Return reports of all pairs, and of each of several languages with ``MIN_GROUPS`` groups or more."""
    languages = np.array([rows[pair.first].task.language for pair in pairs])
    groups = np.array([pair.group for pair in pairs])
    changed = np.array([pair.changed for pair in pairs])
    said, bands = {}, None
    for name, values in predicted.items():
        first, second = (values[[getattr(pair, place) for pair in pairs]] for place in ("first", "second"))
        said[name] = second - first
        if name in ratios:
            bands = ratios[name](pairs)
            said[name] = bands.median
    right = {name: directions(pairs, values) for name, values in said.items()}
    true = np.array([pair.ratio for pair in pairs])

    def report(language: str, chosen: npt.NDArray[np.int64]) -> PairReport:
        some = chosen[changed[chosen]]
        shares = {name: with_interval(groups[some], mean_of(values[some])) for name, values in right.items()}
        figures = {name: figure for name, figure in shares.items() if figure is not None}
        own = _bands(true[chosen], bands.of(chosen), groups[chosen]) if bands is not None else {}
        return PairReport(suite, language, metric, len(some), len(np.unique(groups[some])), figures, len(chosen), **own)

    reports = [report("all", np.arange(len(pairs)))]
    names = sorted(set(languages.tolist()))
    for language in names if len(names) > 1 else ():
        chosen = np.flatnonzero(languages == language)
        if len(np.unique(groups[chosen])) >= MIN_GROUPS:
            reports.append(report(language, chosen))
    return reports


def _bands(true: Array, ratios: Ratios, groups: npt.NDArray[np.str_]) -> dict[str, Figure | None]:
    known = np.isfinite(ratios.low)
    inside = ((ratios.low <= true) & (true <= ratios.high)).astype(np.float64)[known]
    width = (10 ** (ratios.high - ratios.low))[known]
    if not known.any():
        return {"cover80": None, "width80": None}
    return {
        "cover80": with_interval(groups[known], mean_of(inside)),
        "width80": with_interval(groups[known], median_of(width)),
    }


def directions(pairs: Sequence[Pair], said: Array) -> Array:
    """1 where the predicted direction is right, 0 where it is wrong, a half where no difference is predicted."""
    true = np.sign([pair.ratio for pair in pairs])
    return np.where(np.sign(said) == 0, 0.5, (np.sign(said) == true).astype(np.float64))


def same_problem(rows: Sequence[Row]) -> list[Pair]:
    """Solutions of one problem in one language and half year, at most ``MOST_PER_GROUP`` pairs of each."""
    return _pairs_of_programs(rows, lambda row: (row.group, row.task, _half_year(row)))


def revisions(rows: Sequence[Row]) -> list[Pair]:
    """Versions of one file: the same repository and path, another blob."""

    def key(row: Row) -> tuple[object, ...]:
        repository, at, rest = row.source.partition("@")
        _, colon, path = rest.partition(":")
        # A row without a file pairs with no other.
        return (repository, path, row.group, row.task) if at and colon else (row.id,)

    return _pairs_of_programs(rows, key)


def edited(rows: Sequence[Row]) -> list[Pair]:
    """Functions and their edits, in the order of the edits."""
    index = {row.id: number for number, row in enumerate(rows)}
    pairs = []
    for second, row in enumerate(rows):
        first = index.get(row.edit_of) if row.edit_of is not None else None
        if first is not None:
            ratio = math.log10(row.value / rows[first].value)
            changed = abs(ratio) >= max(math.log10(MIN_RATIO), row.noise or 0.0)
            pairs.append(Pair(first, second, row.project_group, ratio, changed))
    return pairs


def _pairs_of_programs(rows: Sequence[Row], key: Callable[[Row], tuple[object, ...]]) -> list[Pair]:
    cells: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.code.basis == "program":
            cells[key(row)].append(place)
    rng = np.random.default_rng(0)
    found = []
    for members in cells.values():
        pairs = []
        for first, second in combinations(members, 2):
            if rows[first].code.text != rows[second].code.text:
                ratio = math.log10(rows[second].value / rows[first].value)
                pairs.append(Pair(first, second, rows[first].group, ratio, abs(ratio) >= math.log10(MIN_RATIO)))
        if len(pairs) > MOST_PER_GROUP:
            pairs = [pairs[i] for i in np.sort(rng.choice(len(pairs), MOST_PER_GROUP, replace=False))]
        found += pairs
    return found


def _half_year(row: Row) -> str:
    day = row.query.workload.get("date", "")
    return f"{day[:4]}H{1 if day[5:7] <= '06' else 2}" if day else ""
