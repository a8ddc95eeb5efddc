"""Measured values with the source text that they belong to: from the store of measurements, or from data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlm_core.errors import SourceError
from rlm_core.measurement.labels import newest
from rlm_core.measurement.programs.sources import source_of
from rlm_core.measurement.types import BENCHED, RESUMED, Measurement, source_hash
from rlm_core.queries.analysis import Analyser
from rlm_core.source.units import read_source
from rlm_core.types import METRICS_OF_BASIS, CodeText, Metric, Query


@dataclass(frozen=True, slots=True)
class Row:
    """One measured value in SI units, with the question that it answers.

    ``query`` is None where the model's defaults are asked, as a hover does. ``low`` and ``high`` are the 10 % and 90 %
    quantiles of the measurement, equal to ``value`` where they are unknown. ``group`` is the package or family, and
    ``path`` the names from there down to the unit.
    """

    name: str
    place: str
    group: str
    path: tuple[str, ...]
    code: CodeText
    metric: Metric
    query: Query | None
    value: float
    low: float
    high: float


@dataclass(slots=True)
class Rows:
    """Rows, and how many measurements were left out, by reason."""

    rows: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def from_store(measurements: Iterable[Measurement], device: str) -> Rows:
    """The rows of what was measured: of each unit and metric one value, on ``device`` if there is one.

    Of a program's inputs the one that costs most counts; kernels, modules and networks have a value a device and
    workload. A unit whose file no longer has its text is left out.
    """
    found, files = Rows(), _Files()
    best: dict[tuple[object, ...], Measurement] = {}
    for one in newest(measurements):
        if reason := _unusable(one):
            found.left_out[reason] += 1
            continue
        key: tuple[object, ...] = (one.source_hash, one.module, one.qualname, one.metric)
        if one.kind in BENCHED:
            key = (*key, one.device, tuple(sorted(one.asked.items())))
        known = best.get(key)
        if known is None or _rank(one, device) > _rank(known, device):
            best[key] = one
    for one in best.values():
        code = files.code(one)
        if code is None:
            found.left_out["the file is gone or has changed since"] += 1
            continue
        modules = one.module.split("." if one.basis == "call" else "/")
        # A distribution often has the name of its package.
        if modules[0].lower() == one.package.lower():
            modules = modules[1:]
        found.rows.append(
            Row(
                one.qualname,
                f"{one.file}:{one.line}",
                one.package,
                (one.package, *modules, one.qualname),
                code,
                one.metric,
                Query(one.metric, one.device, one.asked) if one.kind in BENCHED else None,
                one.median,
                one.low,
                one.high,
            )
        )
    return found


def from_data(paths: Sequence[Path], split: str, most: int) -> Rows:
    """The rows of a split (or ``all``) of data sets, at most ``most`` a slice and device. Needs the [train] extra.

    Raises:
        DataError: a file is missing or is none of our data sets.
    """
    from rlm_core.training.evaluation.rows import select

    found = Rows()
    for row in select(paths, None if split == "all" else (split,), most).rows:
        name = _name(row.id, row.source)
        # A group is often a module below its family.
        rest = row.group.removeprefix(row.family).strip("/")
        found.rows.append(
            Row(
                name,
                row.source,
                row.family,
                tuple(filter(None, (row.family, *rest.split("/"), name))),
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
    """What a row of a data set is about: the function that its id names, else the file that it comes from."""
    named = next((part.split(":") for part in row_id.split("/") if part.count(":") >= 3), None)
    return named[2] if named is not None else source.rpartition("/")[2] or row_id


def _unusable(one: Measurement) -> str:
    if not one.ok:
        return "the run's calibration was disturbed"
    if one.kind in RESUMED:
        return "generators and coroutines are measured a resume at a time"
    if one.metric not in METRICS_OF_BASIS[one.basis]:
        return f"the {one.metric} of a {one.kind} is not predicted"
    return "" if one.path else "taken in from another machine: its text is not here"


def _rank(one: Measurement, device: str) -> tuple[bool, str, float]:
    # One run of a program may take seconds, so that its inputs differ in time.
    return one.device == device, one.run if one.kind == "program" else one.measured_at, one.median


class _Files:
    """The units of source files, each file read once."""

    def __init__(self) -> None:
        self._analyser = Analyser()
        self._units: dict[Path, dict[tuple[str, str], CodeText]] = {}

    def code(self, one: Measurement) -> CodeText | None:
        """What the predictor reads of a unit; None if its text is not there any more."""
        path = Path(one.path)
        if path not in self._units:
            self._units[path] = self._read(path)
        return self._units[path].get((one.qualname, one.source_hash))

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
