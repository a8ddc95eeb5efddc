"""Carries out a plan: compiles each program, runs it on each input, and passes on measurements program by program."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from statistics import quantiles
from typing import cast

from rlm_core.errors import DataError
from rlm_core.folders import ScratchFolder
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement.types import MACHINES, Measurement, measured_text
from rlm_core.processes import stop_signals
from rlm_core.serving.ray_cluster import Cluster, Need
from rlm_core.types import Metric

from .plan import ProgramInput, ProgramJob, ProgramPlan, digest_of
from .sandbox import COMPILING, ProgramLimits, Sandbox, SandboxOutcome, SandboxTask, execute, find_sandbox
from .toolchains import InstalledToolchain, find_toolchain, wanted

Keep = Callable[[Sequence[Measurement]], object]
Note = Callable[[str], None]
_MOST_FAILURES = 2


@dataclass(slots=True)
class ProgramCounts:
    """Numbers of measured programs and of pairs of program and input, and of programs or inputs that failed."""

    programs: int = 0
    pairs: int = 0
    failed: int = 0

    def add(self, other: ProgramCounts) -> None:
        """Count another's too."""
        self.programs += other.programs
        self.pairs += other.pairs
        self.failed += other.failed


@dataclass(slots=True)
class _Runs:
    """The runs of a program on one input that count, and how many failed."""

    on: ProgramInput
    outcomes: list[SandboxOutcome] = field(default_factory=list)
    failures: int = 0


def run_name() -> str:
    """A name for what is measured together."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"


def run_plan(plan: ProgramPlan, device: str, keep: Keep, note: Note) -> ProgramCounts:
    """Do a plan on the processor ``device``; ``keep`` gets measurements as they are made, ``note`` lines for people.

    Raises:
        KeyboardInterrupt: the user has stopped the run; what was measured until then has been kept.
    """
    name, result = run_name(), ProgramCounts()
    with stop_signals() as came:
        for job in plan.jobs:
            runs: list[_Runs] = []
            try:
                runs.extend(_measured(plan, job, came, note))
            finally:
                counted = [one for one in runs if one.outcomes]
                result.programs += bool(counted)
                result.pairs += len(counted)
                result.failed += max(len(job.inputs) - len(counted), 0)
                keep([one for mine in counted for one in _measurements(job, mine, device, name)])
    return result


def _measured(plan: ProgramPlan, job: ProgramJob, came: Sequence[int], note: Note) -> Iterator[_Runs]:
    """The runs of a program, each input's given before they are made, so that a stop costs none."""
    path, toolchain = job.program.path, job.found.toolchain
    with ScratchFolder() as folder:
        build = str(folder)
        values = job.values(build)
        for file, text in job.found.files(values).items():
            (folder / file).write_text(text, encoding="utf-8")
        if toolchain.compile:
            task = _task(plan, job, job.found.command(toolchain.compile, values), build, None)
            if failed := execute(plan.sandbox, task, came).failed:
                note(f"{path}: does not compile with {job.found.runtime}: {failed}")
                return
        command = job.found.command(toolchain.run, values)
        for one in job.inputs:
            runs = _Runs(one)
            yield runs
            task = _task(plan, job, command, build, one.path)
            if failed := execute(plan.sandbox, task, came).failed:
                note(f"{path} < {one.name}: {failed}; it does not count")
                continue
            while len(runs.outcomes) < plan.repeat and runs.failures < _MOST_FAILURES:
                outcome = execute(plan.sandbox, task, came)
                if outcome.failed:
                    note(f"{path} < {one.name}: {outcome.failed}; this run does not count")
                    runs.failures += 1
                else:
                    runs.outcomes.append(outcome)


def _task(plan: ProgramPlan, job: ProgramJob, command: list[str], build: str, stdin: Path | None) -> SandboxTask:
    """Compiling may write to the build folder and has separate limits."""
    found, compiles = job.found, stdin is None
    folder = job.program.folder.resolve()
    # A folder as wide as the user's home is not shown: the program alone is.
    seen = job.program.path.resolve() if Path.home().is_relative_to(folder) else folder
    readable = [*found.roots, *(path.parent for path in found.programs.values()), seen]
    environment = {**found.environment, "GOCACHE": f"{build}/.cache"} if compiles else found.environment
    return SandboxTask(
        command, environment, readable, Path(build), COMPILING if compiles else plan.limits, stdin, writable=compiles
    )


def _measurements(job: ProgramJob, runs: _Runs, device: str, name: str) -> Iterator[Measurement]:
    program, machine = job.program, platform.machine().lower()
    metrics = {
        "latency": [one.seconds for one in runs.outcomes],
        "memory": [float(one.peak_bytes) for one in runs.outcomes],
    }
    for metric, samples in metrics.items():
        low, median, high = _quantiles(samples)
        yield Measurement(
            source_hash=program.hash,
            source_sha1=program.sha1,
            device=device,
            machine=MACHINES.get(machine, machine),
            workload={"runtime": job.found.runtime, "input": runs.on.name, "input_sha1": runs.on.digest},
            metric=cast(Metric, metric),
            median=median,
            low=low,
            high=high,
            calls=len(samples),
            tests=1,
            exceptions=runs.failures,
            kind="program",
            recursive=False,
            threads=False,
            ok=True,
            package=program.folder.resolve().name,
            version="",
            module=program.name.rpartition(".")[0],
            qualname=program.qualname,
            file=program.name,
            line=program.line,
            last_line=program.last_line,
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            run=name,
            path=str(program.path.resolve()),
            language=program.language,
            text=measured_text(program.text, program.language),
        )


def _quantiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """The 10 %, 50 % and 90 % quantiles."""
    if len(samples) == 1:
        return (samples[0],) * 3
    tenths = quantiles(samples, n=10, method="inclusive")
    return tenths[0], tenths[4], tenths[8]


@dataclass(frozen=True, slots=True)
class _NodeOrder:
    """A job, what its program's file holds, the interpreter for Python, and of the plan the rest by its names."""

    job: ProgramJob
    digest: str
    python: str
    sandbox: str
    limits: ProgramLimits
    repeat: int


@dataclass(frozen=True, slots=True)
class _NodeResult:
    """Measurements, messages and counts."""

    measurements: list[Measurement]
    notes: list[str]
    result: ProgramCounts


def spread_plan(plan: ProgramPlan, cluster: Cluster, python: str, keep: Keep, note: Note) -> ProgramCounts:
    """Do a plan on a cluster whose nodes have the same files at the same paths; see :func:`.run.run_plan`."""
    name, whole = run_name(), ProgramCounts()

    def order(job: ProgramJob) -> _NodeOrder:
        digest = digest_of(job.program.path)
        return _NodeOrder(job, digest, python, plan.sandbox.name, plan.limits, plan.repeat)

    for found in cluster.spread(measure_on_node, plan.jobs, Need(), order):
        job = plan.jobs[found.index]
        if found.value is None:
            note(f"{job.program.path}: {found.error}")
            whole.failed += len(job.inputs)
            continue
        for line in found.value.notes:
            note(line)
        whole.add(found.value.result)
        keep([replace(one, run=name) for one in found.value.measurements])
    return whole


def measure_on_node(order: _NodeOrder) -> _NodeResult:
    """On a node: measure a program with the toolchain and in the kind of sandbox that the plan names.

    Raises:
        DataError: the node lacks one of them, or its files are others.
    """
    job, program = order.job, order.job.program
    expected = {program.path: order.digest} | {one.path: one.digest for one in job.inputs}
    for path, digest in expected.items():
        if digest_of(path) != digest:
            raise DataError(f"{path}: is another file on a node; share its folder with all nodes")
    found = _toolchain(program.language, order.python)
    if found is None:
        raise DataError(f"nothing on a node runs {program.language}; install {wanted(program.language)} there")
    plan = ProgramPlan((replace(job, found=found),), (), _sandbox(order.sandbox), order.limits, order.repeat)
    measurements: list[Measurement] = []
    notes: list[str] = []
    result = run_plan(plan, cpu_name(), measurements.extend, notes.append)
    return _NodeResult(measurements, notes, result)


@lru_cache
def _toolchain(language: str, python: str) -> InstalledToolchain | None:
    return find_toolchain(language, python)


@lru_cache
def _sandbox(name: str) -> Sandbox:
    return find_sandbox("bubblewrap" if name == "bubblewrap" else "limits")
