"""A folder of recordings -> measurements: quantiles in SI units, source hashes, locations; finished runs -> the store.

The folder's ``run.json`` says of which run it is, so that a later command can take in what an interrupted one left.
"""

from __future__ import annotations

import json
import os
import platform
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from statistics import quantiles
from typing import Any, cast, get_args

from rlm_core.errors import DataError, RlmError
from rlm_core.folders import ScratchFolder, remove_tree
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement.store import Store
from rlm_core.measurement.types import MACHINES, Kind, Measurement
from rlm_core.serving.ray_cluster import Cluster, Need
from rlm_core.types import Metric

from .recordings import FunctionSamples, Recording, merge_recordings, read_recordings
from .run import Note, SuitePlan, run
from .scaling import key_of, read_scaled, scaled_calls
from .sized_calls import summarise_inputs
from .sources import FunctionFile

MANIFEST = "run.json"
FORMAT = "rlm-run-1"
_SCALES: dict[str, float] = {"latency": 1e-9, "memory": 1.0}
# What is subtracted varies: so many nanoseconds or bytes may a median be below zero.
_NOISE: dict[str, float] = {"latency": 100, "memory": 0}
_RUNS = "runs"
_PARTS = 2  # a core: so that none waits long for the slowest
_TAIL = 20_000  # bytes of what pytest prints


@dataclass(frozen=True, slots=True)
class RunLeader:
    """A run: its name, the process that leads it on which host, and since when (seconds since the epoch).

    ``device`` is the processor that it measures; empty for that of the host.
    """

    name: str
    pid: int
    host: str
    began: float
    device: str = ""

    def write(self, folder: Path) -> None:
        """Keep it in its folder."""
        text = json.dumps({"format": FORMAT, **asdict(self)})
        (folder / MANIFEST).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> RunLeader:
        """The run of a folder.

        Raises:
            DataError: the folder has none.
        """
        path = folder / MANIFEST
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            if fields.pop("format") != FORMAT:
                raise ValueError("another format")
            return cls(
                str(fields["name"]),
                int(fields["pid"]),
                str(fields["host"]),
                float(fields["began"]),
                str(fields.get("device", "")),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: not a run ({error}); remove its folder") from None

    @property
    def is_led(self) -> bool:
        """True if the process that leads the run may still be alive. Processes of other hosts count as alive."""
        return self.host != platform.node() or is_alive(self.pid)


def is_alive(pid: int) -> bool:
    """Return whether a process of this host exists, as far as the system shows it."""
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's process
    return True


@dataclass(slots=True)
class RunMeasurements:
    """The measurements of a run, how many tests they are from, and what was left out by reason.

    ``uncollected`` are the files of tests that could not be read, and why; ``imported`` the packages that were imported
    of those asked for; ``passed`` the number of tests that passed.
    """

    measurements: list[Measurement] = field(default_factory=list)
    tests: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    disturbed: list[str] = field(default_factory=list)
    uncollected: dict[str, str] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)
    passed: int = 0


def collect(folder: Path, device: str) -> RunMeasurements:
    """All measurements of a folder of recordings, made on ``device``.

    Raises:
        DataError: the folder is not that of a run.
    """
    run = RunLeader.read(folder)
    found = RunMeasurements()
    recordings = read_recordings(folder)
    for one in recordings:
        end = one.end or {}
        found.uncollected |= one.uncollected
        found.imported |= set(end.get("imported", ()))
        found.passed += end.get("passed", 0)
    files: dict[str, FunctionFile] = {}
    scaled = read_scaled(folder)
    for metric in _SCALES:
        of_metric = [one for one in recordings if one.header.get("metric") == metric]
        found.tests[metric] = sum(len(one.tests) for one in of_metric)
        reasons = [reason for one in of_metric for reason in one.disturbed]
        found.disturbed += [reason for reason in dict.fromkeys(reasons) if reason not in found.disturbed]
        maker = _MeasurementBuilder(run, device, cast(Metric, metric), of_metric, files, ok=not reasons)
        for seen in merge_recordings(of_metric):
            made = maker.make(seen)
            if isinstance(made, Measurement):
                if curve := scaled.get(key_of(seen.file, seen.qualname, seen.line)):
                    made = replace(made, sized=(*made.sized, *scaled_calls(curve, made.metric)))
                found.measurements.append(made)
            else:
                found.left_out[made] += 1
    return found


class _MeasurementBuilder:
    """Makes the measurements of one metric of a run."""

    def __init__(
        self,
        run: RunLeader,
        device: str,
        metric: Metric,
        recordings: list[Recording],
        files: dict[str, FunctionFile],
        *,
        ok: bool,
    ) -> None:
        self._run, self._device, self._metric, self._files, self._ok = run, device, metric, files, ok
        self._versions: dict[str, list[str]] = {}
        for one in recordings:
            self._versions |= (one.end or {}).get("versions", {})
        header: dict[str, Any] = recordings[0].header if recordings else {}
        version = ".".join(str(header.get("python", "")).split(".")[:2])
        self._workload = {"runtime": f"{header.get('implementation', 'cpython')}-{version}"}
        machine = str(header.get("machine", "")).lower()
        self._machine = MACHINES.get(machine, machine)
        self._measured_at = datetime.fromtimestamp(run.began, UTC).isoformat(timespec="seconds")

    def make(self, seen: FunctionSamples) -> Measurement | str:
        """The measurement of a function, or why there is none."""
        if not seen.samples:
            return "every call ended in an exception"
        path = Path(seen.file)
        try:
            if path.stat().st_mtime > self._run.began:
                return "the file changed while the tests ran"
        except OSError:
            return "the file is gone"
        if seen.file not in self._files:
            self._files[seen.file] = FunctionFile(path)
        source = self._files[seen.file].function(seen.qualname, seen.line)
        if source is None:
            return "not found in its file"
        found = _quantiles(seen.samples.tolist())
        if found[1] < -_NOISE[self._metric]:
            return "hidden by the cost of measuring"
        low, median, high = (max(value, 0.0) * _SCALES[self._metric] for value in found)
        top = seen.module.partition(".")[0]
        package, version = self._versions.get(top, [top, ""])
        inputs = summarise_inputs(seen, _SCALES[self._metric])
        return Measurement(
            source_hash=source.hash,
            source_sha1=source.sha1,
            device=self._device,
            machine=self._machine,
            workload=self._workload,
            metric=self._metric,
            median=median,
            low=low,
            high=high,
            calls=len(seen.samples),
            tests=seen.tests,
            exceptions=seen.exceptions,
            kind=cast(Kind, seen.kind) if seen.kind in get_args(Kind) else "function",
            recursive=seen.recursive,
            threads=seen.threads,
            ok=self._ok,
            package=package,
            version=version,
            module=seen.module,
            qualname=seen.qualname,
            file=_relative(path, seen.module),
            line=seen.line,
            last_line=source.last_line,
            measured_at=self._measured_at,
            run=self._run.name,
            path=str(path.resolve()),
            text=source.measured_text,
            sizes=inputs.sizes,
            sized=inputs.sized,
            first=inputs.first,
        )


def _quantiles(samples: list[int]) -> tuple[float, float, float]:
    """The 10 %, 50 % and 90 % quantiles."""
    if len(samples) == 1:
        return (float(samples[0]),) * 3
    tenths = quantiles(samples, n=10, method="inclusive")
    return tenths[0], tenths[4], tenths[8]


def _relative(path: PurePath, module: str) -> str:
    """A module's file relative to where it is imported from, as far as its name shows it."""
    parts = module.split(".")
    wanted = [*parts, "__init__.py"] if path.name == "__init__.py" else [*parts[:-1], f"{parts[-1]}.py"]
    tail = path.parts[-len(wanted) :]
    return "/".join(wanted) if list(tail) == wanted else path.name


def new_run(store: Store, device: str = "", began: float | None = None) -> Path:
    """A folder for what a run sees, next to the store; this process leads the run.

    It is of this machine and begins now, unless ``device`` and ``began`` say otherwise; see :class:`RunLeader`.

    Raises:
        DataError: it cannot be made.
    """
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:8]}"
    folder = store.path.parent / _RUNS / name
    try:
        folder.mkdir(parents=True)
        RunLeader(name, os.getpid(), platform.node(), time.time() if began is None else began, device).write(folder)
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be made ({error.strerror}); check the disk or name another --store"
        ) from None
    return folder


def import_run(store: Store, folder: Path) -> RunMeasurements:
    """Add what a run has seen to the store; then its folder goes.

    Raises:
        DataError: the store cannot be written; the folder stays.
    """
    # Imported late, since it takes numpy, which tests that are measured in this process may do without.
    from rlm_core.inference.adaptation.cpu_score import cpu_name, stored

    device = RunLeader.read(folder).device
    found = collect(folder, device or cpu_name())
    score = stored()
    if score is not None and device in ("", score.cpu):
        found.measurements = [replace(one, cpu_score=score.overall) for one in found.measurements]
    store.add(found.measurements)
    remove_tree(folder)
    return found


def _is_written(recording: Recording) -> bool:
    """Return whether the recording's process, which may outlive the one that started it, is still writing."""
    return recording.end is None and is_alive(int(recording.header.get("pid", 0)))


def import_left_runs(store: Store, note: Callable[[str], None]) -> None:
    """Import the runs next to a store whose leading process has ended; ``note`` receives a line for each."""
    for folder in sorted((store.path.parent / _RUNS).glob("*/")):
        try:
            if RunLeader.read(folder).is_led or any(_is_written(one) for one in read_recordings(folder)):
                continue
            found = import_run(store, folder)
        except DataError as error:
            note(str(error))
            continue
        if found.measurements:
            note(f"an interrupted run was taken in: measurements: {len(found.measurements):,}")


@dataclass(frozen=True, slots=True)
class SuiteShare:
    """The result of one node: its recordings by name, its processor, the output of pytest, and lines for people."""

    recordings: dict[str, bytes]
    device: str
    node: str
    printed: str
    notes: list[str] = field(default_factory=list)


def spread_tests(
    plan: SuitePlan, cluster: Cluster, store: Store, note: Note, show: Callable[[str], None], places: list[Path]
) -> None:
    """Run the tests of a plan on a cluster; folders of what was seen, one a kind of processor, are added to ``places``.

    ``note`` gets lines for people, ``show`` what pytest prints.

    Raises:
        RlmError: a folder cannot be written, or the cluster not be used.
    """
    began = time.time()
    count = _PARTS * cluster.places(Need())
    runs: dict[str, Path] = {}
    orders = (replace(plan, part=(number, count)) for number in range(count))
    for found in cluster.spread(run_on_node, orders, Need()):
        if found.value is None:
            note(f"part {found.index + 1} of the tests: {found.error}")
            continue
        part = found.value
        show(part.printed)
        for line in part.notes:
            note(f"{part.node}: {line}")
        if not part.recordings:
            continue
        if part.device not in runs:
            runs[part.device] = new_run(store, part.device, began)
            places.append(runs[part.device])
        try:
            for name, data in part.recordings.items():
                (runs[part.device] / f"{found.index}-{name}").write_bytes(data)
        except OSError as error:
            raise DataError(f"{runs[part.device]}: cannot be written ({error.strerror}); free some space") from None


def run_on_node(plan: SuitePlan) -> SuiteShare:
    """On a node: run a part of the tests and give back what was seen, whatever became of it.

    Raises:
        DataError: the node has no such project.
    """
    if not plan.folder.is_dir():
        raise DataError(f"{plan.folder}: is not on node {platform.node()}; share the project with all nodes")
    notes: list[str] = []
    with ScratchFolder() as folder:
        with (folder / "printed").open("w+b") as output:
            try:
                run(plan, folder, notes.append, output)
            except RlmError as error:
                notes.append(str(error))
            output.seek(max(0, output.seek(0, 2) - _TAIL))
            printed = output.read().decode(errors="replace")
        recordings = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    return SuiteShare(recordings, cpu_name(), platform.node(), printed, notes)
