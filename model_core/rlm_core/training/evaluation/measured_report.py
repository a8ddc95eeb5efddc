"""The numbers behind ``rlm-lsp report``: measured values with their source text -> predictions and what they show.

Rows come from the store of measurements or from data sets. A predictor answers them; out come calibration, coverage by
group, errors by task and the largest surprises. Drawing is done elsewhere, and nothing here needs torch.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rlm_core.errors import SourceError
from rlm_core.inference.predictor import Predictor
from rlm_core.measurement.labels import newest
from rlm_core.measurement.programs.sources import source_of
from rlm_core.measurement.types import BENCHED, RESUMED, Measurement, source_hash
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.measured_lookup import MeasuredUnits
from rlm_core.source.units import read_source
from rlm_core.types import (
    LEVELS,
    METRICS_OF_BASIS,
    Abstention,
    Band,
    CodeText,
    MeasuredPrediction,
    Metric,
    Prediction,
    Query,
    small_answer,
)

from .batches import predictions

Array = npt.NDArray[np.float64]
_Z = 1.959964  # standard deviations of a 95 % interval


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One measured value in SI units, with the query that it answers.

    ``query`` is None where the model's default query is meant, as in a hover. ``low`` and ``high`` are the 10 % and
    90 % quantiles of the measurement, equal to ``value`` where they are unknown. ``group`` is the project group,
    ``path`` the names from there down to the unit, and ``location`` the file and line.
    """

    name: str
    location: str
    group: str
    path: tuple[str, ...]
    code: CodeText
    metric: Metric
    query: Query | None
    value: float
    low: float
    high: float


@dataclass(slots=True)
class MeasuredRows:
    """Rows, and how many measurements were left out, by reason."""

    rows: list[MeasuredRow] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def rows_from_store(
    measurements: Iterable[Measurement], device: str, known: MeasuredUnits | None = None
) -> MeasuredRows:
    """The rows of measurements: one value per unit and metric, on ``device`` if there is one.

    ``known`` looks up what was measured of the functions around a unit, which a prediction takes into account. Of a
    program's inputs the most expensive one counts; kernels, modules and networks have a value per device and workload.
    A unit whose file no longer has its text is left out.
    """
    found, files = MeasuredRows(), _SourceFiles(known)
    best: dict[tuple[object, ...], Measurement] = {}
    for measurement in newest(measurements):
        if reason := _unusable(measurement):
            found.left_out[reason] += 1
            continue
        key: tuple[object, ...] = (
            measurement.source_hash,
            measurement.module,
            measurement.qualname,
            measurement.metric,
        )
        if measurement.kind in BENCHED:
            key = (*key, measurement.device, tuple(sorted(measurement.asked.items())))
        earlier = best.get(key)
        if earlier is None or _rank(measurement, device) > _rank(earlier, device):
            best[key] = measurement
    for measurement in best.values():
        code = files.code(measurement)
        if code is None:
            found.left_out["the file is missing or has changed"] += 1
            continue
        modules = measurement.module.split("." if measurement.basis == "call" else "/")
        # A distribution often has the name of its package.
        if modules[0].lower() == measurement.package.lower():
            modules = modules[1:]
        found.rows.append(
            MeasuredRow(
                measurement.qualname,
                f"{measurement.file}:{measurement.line}",
                measurement.package,
                (measurement.package, *modules, measurement.qualname),
                code,
                measurement.metric,
                Query(measurement.metric, measurement.device, measurement.asked)
                if measurement.kind in BENCHED
                else None,
                measurement.median,
                measurement.low,
                measurement.high,
            )
        )
    return found


def rows_from_data(paths: Sequence[Path], split: str, most: int) -> MeasuredRows:
    """The rows of a split (or ``all``) of data sets, at most ``most`` per task and device. Needs the [train] extra.

    Raises:
        DataError: a file is missing or is not one of our data sets.
    """
    from .rows import select

    found = MeasuredRows()
    for row in select(paths, None if split == "all" else (split,), most).rows:
        name = _name(row.id, row.source)
        # A group is often a module of its project group.
        rest = row.group.removeprefix(row.project_group).strip("/")
        found.rows.append(
            MeasuredRow(
                name,
                row.source,
                row.project_group,
                tuple(filter(None, (row.project_group, *rest.split("/"), name))),
                row.code,
                row.query.metric,
                row.query,
                row.value,
                row.value,
                row.value,
            )
        )
    return found


def _name(row_id: str, source: str) -> str:
    """The function that the id of a data set's row names, else the file that it comes from."""
    named = next((part.split(":") for part in row_id.split("/") if part.count(":") >= 3), None)
    return named[2] if named is not None else source.rpartition("/")[2] or row_id


def _unusable(measurement: Measurement) -> str:
    if not measurement.ok:
        return "the run's calibration was disturbed"
    if measurement.kind in RESUMED:
        return "generators and coroutines are measured per resume"
    if measurement.metric not in METRICS_OF_BASIS[measurement.basis]:
        return f"the {measurement.metric} of a {measurement.kind} is not predicted"
    return "" if measurement.path else "imported from another machine, without its source text"


def _rank(measurement: Measurement, device: str) -> tuple[bool, str, float]:
    # One run of a program may take seconds, so that its inputs differ in time.
    return (
        measurement.device == device,
        measurement.run if measurement.kind == "program" else measurement.measured_at,
        measurement.median,
    )


class _SourceFiles:
    """The units of source files, each file read once."""

    def __init__(self, known: MeasuredUnits | None) -> None:
        self._analyser = Analyser(measured=known)
        self._units: dict[Path, dict[tuple[str, str], CodeText]] = {}

    def code(self, measurement: Measurement) -> CodeText | None:
        """The text of a unit for the predictor; None if the file no longer has it."""
        path = Path(measurement.path)
        if path not in self._units:
            self._units[path] = self._read(path)
        return self._units[path].get((measurement.qualname, measurement.source_hash))

    def _read(self, path: Path) -> dict[tuple[str, str], CodeText]:
        found: dict[tuple[str, str], CodeText] = {}
        try:
            parsed = read_source(path)
        except SourceError:
            return found
        for unit in self._analyser.analyse(parsed, path):
            key = (unit.unit.qualname, source_hash(unit.unit.text, unit.unit.language))
            found.setdefault(key, unit.code)
        whole = source_of(path)
        if whole is not None:
            text, _ = whole
            found.setdefault(("<file>", source_hash(text, parsed.language)), CodeText(text, parsed.language, "program"))
        return found


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row with its prediction, whose ``median``, ``band`` (80 %) and ``quantiles`` are there."""

    row: MeasuredRow
    prediction: Prediction

    @property
    def task(self) -> str:
        """Basis and metric, like ``call latency``."""
        return f"{self.row.code.basis} {self.row.metric}"

    @property
    def band(self) -> Band:
        """The 80 % band."""
        return self.prediction.bands[0]

    @property
    def measured(self) -> float:
        """The measured value, at least the floor that the labels resolve."""
        return max(self.row.value, self.prediction.floor)

    @property
    def median(self) -> float:
        """The predicted median, at least that floor."""
        return max(self.prediction.median or 0.0, self.prediction.floor)

    @property
    def is_covered(self) -> bool:
        """True if the measured value is inside the band."""
        return self.band.low <= self.measured <= max(self.band.high, self.prediction.floor)

    @property
    def factor(self) -> float:
        """Measured value over predicted median; 1 where both are 0."""
        if self.median <= 0 or self.measured <= 0:
            return 1.0 if self.median == self.measured else (self.measured + 1) / (self.median + 1)
        return self.measured / self.median


def compare(
    predictor: Predictor, rows: Sequence[MeasuredRow], title: str = "predicting"
) -> tuple[list[Comparison | None], Counter[Abstention]]:
    """The prediction for each row (None where the model abstains), and the reasons to abstain.

    A row without a query gets the model's default one, as in a hover. The prediction is the one that a hover shows next
    to a measured value: what was measured of the unit itself does not count. ``title`` names the progress bar.
    """
    comparisons: list[Comparison | None] = [None] * len(rows)
    reasons: Counter[Abstention] = Counter()
    pairs = [(row.code, _query(predictor, row)) for row in rows]
    for number, prediction in predictions(predictor, pairs, title):
        if prediction.abstained is not None:
            reasons[prediction.abstained] += 1
        else:
            small = small_answer(prediction)
            plain = small.predicted if isinstance(small, MeasuredPrediction) else small
            comparisons[number] = Comparison(rows[number], plain)
    return comparisons, reasons


def _query(predictor: Predictor, row: MeasuredRow) -> Query:
    if row.query is not None:
        return row.query
    defaults = predictor.default_queries(row.code.basis, row.code.language)
    return next((query for query in defaults if query.metric == row.metric), Query(row.metric))


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of ``rows`` values inside their 80 % bands, with its 95 % interval (Wilson)."""

    name: str
    rows: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """Rank correlation (None where it has no meaning), median factor of error and coverage of one task."""

    name: str
    rows: int
    groups: int
    spearman: float | None
    error: float
    coverage: float


def by_task(comparisons: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    """The rows of each basis and metric, in the order of their names."""
    return _grouped(comparisons, lambda entry: entry.task)


def calibration(comparisons: Sequence[Comparison]) -> dict[str, list[tuple[float, float]]]:
    """The share of measured values below each predicted quantile, by task: ``(level, share)``.

    A value equal to the quantile, as at the floor of what is measured, counts half.
    """
    found = {}
    for name, selected in by_task(comparisons).items():
        values = np.array([entry.measured for entry in selected])
        floors = np.array([entry.prediction.floor for entry in selected])
        quantiles = np.maximum(np.array([entry.prediction.quantiles for entry in selected]), floors[:, None])
        below = (values[:, None] < quantiles) + 0.5 * (values[:, None] == quantiles)
        found[name] = list(zip(LEVELS, below.mean(axis=0).tolist(), strict=True))
    return found


def coverage_by_group(comparisons: Sequence[Comparison], most: int = 30) -> list[Coverage]:
    """Coverage of each group and task, at most ``most``, those with the most rows first."""
    parts = _grouped(comparisons, lambda entry: f"{entry.row.group}, {entry.task}")
    found = [coverage(name, selected) for name, selected in parts.items()]
    return sorted(found, key=lambda group: (-group.rows, group.name))[:most]


def coverage(name: str, selected: Sequence[Comparison]) -> Coverage:
    """The coverage of some rows."""
    count = len(selected)
    share = sum(entry.is_covered for entry in selected) / count
    centre, spread = share + _Z**2 / (2 * count), _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    whole = 1 + _Z**2 / count
    return Coverage(name, count, share, max((centre - spread) / whole, 0.0), min((centre + spread) / whole, 1.0))


def task_summaries(comparisons: Sequence[Comparison]) -> list[TaskSummary]:
    """The figures of each task."""
    found = []
    for name, selected in by_task(comparisons).items():
        errors = [abs(math.log10(max(entry.factor, 1e-12))) for entry in selected]
        predicted, measured = (
            np.array([getattr(entry, which) for entry in selected]) for which in ("median", "measured")
        )
        found.append(
            TaskSummary(
                name,
                len(selected),
                len({entry.row.group for entry in selected}),
                rank_correlation(predicted, measured),
                10 ** float(np.median(errors)),
                coverage(name, selected).share,
            )
        )
    return found


def surprises(comparisons: Sequence[Comparison], most: int = 200) -> list[Comparison]:
    """The rows outside their bands with the largest factors of error, above or below."""
    outside = [entry for entry in comparisons if not entry.is_covered]
    return sorted(outside, key=lambda entry: -abs(math.log(max(entry.factor, 1e-12))))[:most]


def rank_correlation(first: Array, second: Array) -> float | None:
    """Spearman's rank correlation; None when either is constant."""
    if len(first) < 3 or len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return None
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Array) -> Array:
    """Ranks, those of equal values averaged."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: Array = np.cumsum(counts) - (counts - 1) / 2
    return mean[inverse]


def _grouped(comparisons: Sequence[Comparison], key: Callable[[Comparison], str]) -> dict[str, list[Comparison]]:
    found: dict[str, list[Comparison]] = defaultdict(list)
    for entry in comparisons:
        found[key(entry)].append(entry)
    return dict(sorted(found.items()))
