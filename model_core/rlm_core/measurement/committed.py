"""Measurements that are committed with a project: ``.rlm/*.jsonl``, one line per unit, device, Python and workload.

Files are plain text that merges line by line: sorted, without absolute paths, the same whenever the same measurements
are written. Units of a file that share a name have a line each. Files come with a project, so they are read as data
that anyone may have written: regular files only, within limits, every line checked, and a line that cannot be used is
one message.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, get_args

import msgspec

from rlm_core.errors import DataError
from rlm_core.files import atomic_write, read_regular
from rlm_core.source.languages import LANGUAGES
from rlm_core.source.units import accessor_of
from rlm_core.types import BASIS_OF_KIND, Metric

from .types import RUNTIME, Kind, Measurement

FOLDER, FILE = ".rlm", "measurements.jsonl"
# A line holds the text of one unit; a project of 50,000 functions has about 50 MB.
MOST_FILES, MOST_BYTES, MOST_LINE = 64, 128 * 2**20, 2**20
_SHOWN_PROBLEMS = 3
_RUN = "committed"
_DIGITS = 4
_METRICS: tuple[Metric, ...] = ("latency", "memory")
_CALLED = frozenset(kind for kind in get_args(Kind) if BASIS_OF_KIND.get(kind, "call") == "call")

_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class CommittedCost(msgspec.Struct, frozen=True):
    """Quantiles of one metric over calls, in seconds or bytes."""

    p10: _Amount
    p50: _Amount
    p90: _Amount
    calls: _Count

    def __post_init__(self) -> None:
        if not self.p10 <= self.p50 <= self.p90:
            raise ValueError("p10, p50 and p90 must rise")


class CommittedUnit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: a unit as it was measured on one device; ``file`` is relative to the folder that holds ``.rlm``."""

    file: _Name
    unit: _Name
    device: _Name
    runtime: Annotated[str, msgspec.Meta(max_length=1000)]
    date: str
    tests: _Count
    hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    kind: Kind = "function"
    language: str = "python"
    workload: dict[str, str] = {}
    cpu_score: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.0
    latency: CommittedCost | None = None
    memory: CommittedCost | None = None
    text: str = ""

    def __post_init__(self) -> None:
        datetime.fromisoformat(self.date)
        path = PurePosixPath(self.file)
        if path.is_absolute() or ".." in path.parts or "\\" in self.file or PureWindowsPath(self.file).drive:
            raise ValueError("`file` must be relative to the project")
        if self.language not in LANGUAGES:
            raise ValueError(f"unknown language {self.language!r}")

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies the unit and its query: only the newest lines of a key are kept. Lines are sorted by it."""
        workload = (f"{name}={value}" for name, value in sorted(self.workload.items()))
        accessor = accessor_of(self.unit, self.text)
        return self.file, self.unit, accessor, self.kind, self.runtime, self.device, *workload

    def measurements(self, root: Path) -> Iterator[Measurement]:
        """The measurements of a line in a project folder."""
        parts = PurePosixPath(self.file).with_suffix("").parts
        modules = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
        for metric in _METRICS:
            cost: CommittedCost | None = getattr(self, metric)
            if cost is None:
                continue
            yield Measurement(
                source_hash=self.hash,
                source_sha1="",
                device=self.device,
                machine="",
                workload={**self.workload, RUNTIME: self.runtime},
                metric=metric,
                median=cost.p50,
                low=cost.p10,
                high=cost.p90,
                calls=cost.calls,
                tests=self.tests,
                exceptions=0,
                kind=self.kind,
                recursive=False,
                threads=False,
                ok=True,
                package=modules[0],
                version="",
                module=("." if self.kind in _CALLED else "/").join(modules),
                qualname=self.unit,
                file=self.file,
                line=0,
                last_line=0,
                measured_at=self.date,
                run=_RUN,
                path=str(root / self.file),
                language=self.language,
                cpu_score=self.cpu_score,
                text=self.text,
            )


def is_committed(measurement: Measurement) -> bool:
    """Whether a measurement came with a project."""
    return measurement.run == _RUN


def read_committed(root: Path, note: Callable[[str], None]) -> list[Measurement]:
    """The measurements that are committed in a project folder; ``note`` receives a line for what cannot be used."""
    return [one for unit in read_units(root / FOLDER, note) for one in unit.measurements(root)]


def read_units(folder: Path, note: Callable[[str], None]) -> list[CommittedUnit]:
    """The lines of the files in a folder; none where there is no folder."""
    found: list[CommittedUnit] = []
    left = MOST_BYTES
    for path in committed_files(folder):
        try:
            size = path.stat(follow_symlinks=False).st_size
            if size > left:
                note(f"{path}: not read: committed measurements are larger than {MOST_BYTES // 2**20} MiB")
                continue
            left -= size
            data = read_regular(path, size)
        except OSError as error:
            note(f"{path}: cannot be read ({error.strerror})")
            continue
        found += _lines(path, data, note)
    return found


def committed_files(folder: Path) -> list[Path]:
    """The regular files of committed measurements in a folder, by name."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return []
        with os.scandir(folder) as entries:
            files = (entry for entry in entries if entry.is_file(follow_symlinks=False))
            names = [entry.name for entry in files if entry.name.endswith(".jsonl")]
    except OSError:
        return []
    return [folder / name for name in sorted(names)[:MOST_FILES]]


def export_committed(measurements: Iterable[Measurement], folder: Path, root: Path, note: Callable[[str], None]) -> int:
    """Write measurements of the project in ``root`` into a folder, and return the number of lines.

    Of each unit, device, Python and workload the newest measurement counts. Lines of others stay, unless one of the
    same key is newer here.

    Raises:
        DataError: the file cannot be written.
    """
    units = _newest([*read_units(folder, note), *_units(measurements, root.resolve())])
    if not units:
        return 0
    path = folder / FILE
    data = b"".join(msgspec.json.encode(unit) + b"\n" for unit in units)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            raise DataError(f"{path}: is a link; remove it")
        if not path.is_file() or path.read_bytes() != data:
            with atomic_write(path) as partial:
                partial.write_bytes(data)
        # Lines of other files are in this one now.
        for other in committed_files(folder):
            if other != path:
                other.unlink()
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another --to") from None
    return len(units)


def _newest(units: Iterable[CommittedUnit]) -> list[CommittedUnit]:
    """The newest lines of each key, sorted. Several of one date and different texts are units that share a name."""
    newest: dict[tuple[str, ...], dict[str, CommittedUnit]] = {}
    for unit in units:
        of_key = newest.setdefault(unit.key, {})
        known = next(iter(of_key.values()), unit)
        if _at(known.date) > _at(unit.date):
            continue
        if _at(known.date) < _at(unit.date):
            of_key.clear()
        of_key[unit.hash] = unit
    return [of_key[digest] for _, of_key in sorted(newest.items()) for digest in sorted(of_key)]


def _units(measurements: Iterable[Measurement], root: Path) -> Iterator[CommittedUnit]:
    """The lines of measurements: the metrics of a text of a unit share one."""
    found: dict[tuple[object, ...], CommittedUnit] = {}
    for one in sorted(measurements, key=lambda one: (_at(one.measured_at), one.run, one.metric)):
        file = _file(one, root)
        if file is None or not one.ok or one.metric not in _METRICS:
            continue
        cost = CommittedCost(_short(one.low), _short(one.median), _short(one.high), one.calls)
        unit = CommittedUnit(
            file,
            one.qualname,
            one.device,
            one.workload.get(RUNTIME, ""),
            one.measured_at,
            one.tests,
            one.source_hash,
            one.kind,
            one.language,
            one.asked,
            _short(one.cpu_score),
            text=one.text,
        )
        key = unit.key, unit.hash
        known = found.get(key)
        costs: dict[str, Any] = {one.metric: cost}
        if known is not None:
            costs = {"latency": known.latency, "memory": known.memory, **costs}
            # A line may have a latency without a score, and a memory with one.
            costs |= {"cpu_score": unit.cpu_score or known.cpu_score, "text": unit.text or known.text}
        found[key] = msgspec.structs.replace(unit, **costs)
    yield from found.values()


def _file(one: Measurement, root: Path) -> str | None:
    """The file of a measurement below a project folder; None where it is not below it."""
    if one.path:
        path = Path(one.path)
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else None
    # From another machine: the file is known relative to where it is imported from.
    for start in ("", "src/"):
        if (root / start / one.file).is_file():
            return f"{start}{one.file}"
    return None


def _lines(path: Path, data: bytes, note: Callable[[str], None]) -> Iterator[CommittedUnit]:
    problems = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            if len(line) > MOST_LINE:
                raise DataError("the line is too long")
            unit = msgspec.json.decode(line, type=CommittedUnit)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, DataError) as error:
            problems += 1
            if problems <= _SHOWN_PROBLEMS:
                note(f"{path}:{number}: not a line of `rlm-lsp measure export --to` ({error}); fix or remove it")
            continue
        yield unit
    if problems > _SHOWN_PROBLEMS:
        note(f"{path}: {problems - _SHOWN_PROBLEMS:,} more lines cannot be used")


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _at(date: str) -> float:
    """An ISO date as a number that orders dates of any time zone."""
    return datetime.fromisoformat(date).timestamp()


def signature_of(folder: Path) -> Sequence[object]:
    """What changes when the committed measurements of a folder do."""
    found: list[object] = []
    for path in committed_files(folder):
        try:
            state = path.stat(follow_symlinks=False)
        except OSError:
            continue
        found.append((path.name, state.st_mtime_ns, state.st_size, state.st_ino))
    return found
