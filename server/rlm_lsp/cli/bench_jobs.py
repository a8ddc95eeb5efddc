"""Runs the jobs of ``rlm-lsp bench``: files -> child processes, here or on a cluster -> rows, printed and stored."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from rlm_core import DataError, RlmError
from rlm_core.measurement.gpu.bench_rows import Row, RowFile, read_rows
from rlm_core.measurement.gpu.bench_spec import ModuleFile, TritonFile
from rlm_core.measurement.gpu.measurements import measurements_of
from rlm_core.measurement.gpu.worker import Event, RowCollector, RunnerJob, RunnerLimits, run_job, work_through
from rlm_core.serving.ray_cluster import Cluster, Need

from rlm_lsp.rendering import console
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.console import ErrorCounter
from rlm_lsp.sources import find_sources

from .options import check_ray_gpu, open_store

_File = TypeVar("_File", TritonFile, ModuleFile)
_MOST_ANNOUNCED, _FILES_PER_JOB = 20, 64


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """The options of all benchmarks.

    ``out`` is the file of rows; ``limit`` (seconds) and ``memory`` (GiB; None: most of the machine) limit one child;
    ``seconds`` is the time to measure a call. Without ``no_store``, results also go to the store of measurements,
    ``store`` or else the user's. ``ray`` is the address of a cluster to measure on, None for this machine;
    ``ray_gpu`` is the kind of its GPUs to use, None for any.
    """

    out: Path
    limit: float
    memory: float | None
    seconds: float
    retry: bool
    no_store: bool
    store: Path | None
    ray: str | None = None
    ray_gpu: str | None = None

    def limits(self, *, on_gpu: bool) -> RunnerLimits:
        """Limits of a child. On a GPU, host memory is unlimited: the driver reserves addresses beyond all memory."""
        size = self.memory if self.memory is not None else (0.0 if on_gpu else 0.8 * _machine_memory())
        return RunnerLimits(case=self.limit, memory=int(size * 2**30))


def bench_files(
    paths: Sequence[Path], read: Callable[[Path], _File | None], errors: ErrorCounter, what: str
) -> Iterator[_File]:
    """The files below ``paths`` that ``read`` accepts; a file that the user named and ``read`` rejects is an error."""
    for source in find_sources(paths, errors.report):
        if source.path.suffix not in (".py", ".toml"):
            continue
        try:
            file = read(source.path)
        except RlmError as error:
            errors.report(error)
            continue
        if file is not None:
            yield file
        elif source.named:
            errors.report(DataError(f"{source.path}: holds no {what}; name a file that does"))


def job_file(path: Path, source: str) -> dict[str, str]:
    """A file in a job: its path, its name as the user wrote it, and the digest of its content."""
    return {"path": str(path.resolve()), "shown": str(path), "source": source}


def file_batches(files: Sequence[_File], settings: BenchSettings) -> Iterator[list[_File]]:
    """Files of one folder that run in one child: starting a process with a GPU takes longer than most kernels.

    Files of different folders run apart, because they may import different helpers of the same name. On a cluster each
    file runs alone, so that all nodes get some.
    """
    size = _FILES_PER_JOB if settings.ray is None else 1
    for _, group in itertools.groupby(files, lambda file: file.path.parent):
        rest = list(group)
        for start in range(0, len(rest), size):
            yield rest[start : start + size]


def announce(verb: str, names: Sequence[str]) -> None:
    """Print what will be run, before it is."""
    for name in names[:_MOST_ANNOUNCED]:
        console.note(f"will {verb}: {name}")
    if len(names) > _MOST_ANNOUNCED:
        console.note(f"will {verb}: {len(names) - _MOST_ANNOUNCED} more files")


def has_gpu() -> bool:
    """Return whether PyTorch finds a GPU; asked in a child process, so that this process does not occupy the GPU."""
    command = [sys.executable, "-P", "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"]
    try:
        return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def run_jobs(jobs: Sequence[RunnerJob], settings: BenchSettings, errors: ErrorCounter, *, on_gpu: bool) -> int:
    """Run all jobs, append and print their rows; the exit status is 2 after errors, 1 after failed measurements.

    Raises:
        RlmError: the settings name a kind of GPU that has no effect, or the cluster cannot be used.
    """
    check_ray_gpu(settings.ray_gpu, settings.ray, on_gpu=on_gpu)
    if not jobs:
        return 2 if errors.count else 0
    with RowFile(settings.out) as rows, console.progress("measuring") as progress:
        for problem in rows.problems:
            console.note(problem)
        keeper = RowCollector(rows, _print_row, retry=settings.retry)
        try:
            if settings.ray is not None:
                _run_on_cluster(settings.ray, jobs, keeper, settings, errors, progress, on_gpu=on_gpu)
            else:
                for done, job in enumerate(jobs):
                    progress(done, len(jobs))
                    run_job(job, keeper, settings.limits(on_gpu=on_gpu))
        finally:
            _store_measurements(jobs, settings, errors)
    made = keeper.tally.made
    total = sum(made.values())
    failed = total - made.get("ok", 0)
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(made.items()))
    console.note(
        f"{settings.out}: {total} new rows"
        + (f" ({statuses})" if failed else "")
        + (f", {keeper.tally.known} known" if keeper.tally.known else "")
    )
    return 2 if errors.count else 1 if failed else 0


def _run_on_cluster(
    address: str,
    jobs: Sequence[RunnerJob],
    keeper: RowCollector,
    settings: BenchSettings,
    errors: ErrorCounter,
    progress: console.Progress,
    *,
    on_gpu: bool,
) -> None:
    with Cluster(address, console.note) as cluster:
        # Measurements must not disturb each other: each gets a GPU, or a whole node.
        need = Need(gpus=1, accelerator=settings.ray_gpu) if on_gpu else Need(cluster.cores)
        done = 0
        for result in cluster.stream(
            run_on_node, jobs, need, lambda job: (job, frozenset(keeper.done), settings, on_gpu)
        ):
            if result.error:
                errors.report(DataError(f"{jobs[result.index].about['path']}: {result.error}"))
            elif result.value is not None:
                keeper.take(result.value)
            done += result.last
            progress(done, len(jobs))


def run_on_node(order: tuple[RunnerJob, frozenset[str], BenchSettings, bool]) -> Iterator[Event]:
    """Run a job on a node of a cluster, except for the keys that are done, with the node's own limits."""
    job, done, settings, on_gpu = order
    if not on_gpu:
        # Ray assigned no GPU to this job.
        job = replace(job, environment={**job.environment, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""})
    with closing(work_through(job, done, settings.limits(on_gpu=on_gpu))) as events:
        yield from events


def _store_measurements(jobs: Sequence[RunnerJob], settings: BenchSettings, errors: ErrorCounter) -> None:
    """Store the rows about the jobs' files for the editor, also those of an earlier, interrupted run."""
    files = [file for job in jobs for file in job.options.get("files", [job.options]) if "shown" in file]
    if settings.no_store or not files:
        return
    store = open_store(settings.store)
    try:
        taken = measurements_of(read_rows(settings.out), {file["shown"]: Path(file["path"]) for file in files})
        count = store.add(taken.measurements)
    except RlmError as error:
        errors.report(error)
        return
    for reason, left_out in taken.left_out.most_common():
        console.note(f"not stored for the editor: {left_out:,} rows: {reason}")
    if count:
        console.note(
            f"stored in {store.path}: {count:,} measurements; list them with: rlm-lsp measure list --functions"
        )


def _print_row(row: Row) -> None:
    if row.get("summary"):
        return
    case = " ".join(f"{name}={value}" for name, value in (row.get("case") or {}).items())
    config = " ".join(f"{name}={value}" for name, value in (row.get("config") or {}).items())
    words = [str(row.get("path", "")), str(row.get("entry") or row.get("name") or ""), str(row.get("device", ""))]
    console.line("  ".join(filter(None, (*words, case, config, _outcome(row)))))


def _outcome(row: Row) -> str:
    if row["status"] != "ok":
        return f"{row['status']}: {row.get('error', '')}"
    parts = []
    if "latency" in row:
        median, low, high = (render.quantity("latency", row[name]) for name in ("latency", "p20", "p80"))
        parts.append(f"{median} ({low}-{high})")
    if row.get("memory") is not None:
        parts.append(render.quantity("memory", row["memory"]))
    if row.get("checked"):
        parts.append("result agrees")
    for launch in row.get("launches") or ():
        resources: Mapping[str, Any] = launch.get("resources") or {}
        figures = " ".join(f"{name}={number}" for name, number in resources.items())
        parts.append(f"{launch['kernel']}" + (f" [{figures}]" if figures else ""))
    if "kernels" in row:
        parts.append(f"{len(row['kernels'])} kernels")
    return ", ".join(parts) or "ok"


def _machine_memory() -> float:
    """Memory of this machine in GiB; 0, which sets no limit, if it is unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (AttributeError, ValueError, OSError):
        return 0.0
