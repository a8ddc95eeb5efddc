"""What the benches share: their settings, the files that they take, and child processes whose rows are kept."""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from rlm_core import DataError, RlmError
from rlm_core.measurement.gpu.bench_entries import ModuleFile, TritonFile
from rlm_core.measurement.gpu.bench_rows import Row, RowFile
from rlm_core.measurement.gpu.worker import Event, Job, Keeper, Limits, run_job, work_through
from rlm_core.serving.cluster import Cluster, Need

from rlm_lsp.rendering import console
from rlm_lsp.rendering import values as render
from rlm_lsp.sources import find_sources

from .bench_store import keep_for_editor

Found = TypeVar("Found")
_File = TypeVar("_File", TritonFile, ModuleFile)
_MOST_NAMED, _BATCH = 20, 64
EXTRA = {"torch": "triton", "triton": "triton", "sklearn": "train"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What all benches share: where rows go, limits a child, how long to measure, and which rows to make again.

    ``keep``: what rows say goes to the store too, ``store`` or else the user's. ``ray`` is the address of a cluster to
    measure on, None for this machine.
    """

    out: Path
    limit: float
    memory: float | None
    effort: float
    retry: bool
    keep: bool
    store: Path | None
    ray: str | None = None

    def limits(self, *, on_gpu: bool) -> Limits:
        """Limits of a child. On a GPU none for host memory: its driver reserves addresses beyond all memory."""
        size = self.memory if self.memory is not None else (0.0 if on_gpu else 0.8 * _machine_memory())
        return Limits(case=self.limit, memory=int(size * 2**30))


@dataclass(slots=True)
class Errors:
    """Counts what is reported."""

    count: int = 0

    def report(self, error: RlmError) -> None:
        """Tell an error."""
        self.count += 1
        console.report_error(error)


def each(paths: Sequence[Path], read: Callable[[Path], Found | None], errors: Errors, what: str) -> Iterable[Found]:
    """What ``read`` finds in the files below ``paths``; a file that was named and has nothing is said."""
    for source in find_sources(paths, errors.report):
        if source.path.suffix not in (".py", ".toml"):
            continue
        try:
            found = read(source.path)
        except RlmError as error:
            errors.report(error)
            continue
        if found is not None:
            yield found
        elif source.named:
            errors.report(DataError(f"{source.path}: holds no {what}; name a file that does"))


def run_jobs(jobs: Sequence[Job], settings: Settings, errors: Errors, *, on_gpu: bool) -> int:
    """Run all jobs, keep and print their rows, and return the exit status: 2 after errors, 1 after bad rows."""
    if not jobs:
        return 2 if errors.count else 0
    with RowFile(settings.out) as rows, console.progress("measuring") as progress:
        for problem in rows.problems:
            console.note(problem)
        keeper = Keeper(rows, _print_row, retry=settings.retry)
        try:
            if settings.ray is not None:
                _spread(settings.ray, jobs, keeper, settings, errors, progress, on_gpu=on_gpu)
            else:
                for done, job in enumerate(jobs):
                    progress(done, len(jobs))
                    run_job(job, keeper, settings.limits(on_gpu=on_gpu))
        finally:
            keep_for_editor(jobs, settings, errors.report)
    made = keeper.tally.made
    total = sum(made.values())
    bad = total - made.get("ok", 0)
    told = ", ".join(f"{count} {status}" for status, count in sorted(made.items()))
    console.note(
        f"{settings.out}: {total} rows made"
        + (f" ({told})" if bad else "")
        + (f", {keeper.tally.known} known" if keeper.tally.known else "")
    )
    return 2 if errors.count else 1 if bad else 0


def _spread(
    address: str,
    jobs: Sequence[Job],
    keeper: Keeper,
    settings: Settings,
    errors: Errors,
    progress: console.Progress,
    *,
    on_gpu: bool,
) -> None:
    with Cluster(address, console.note) as cluster:
        # Measurements are not to disturb one another: each has a GPU of its own, or a node.
        need = Need(gpus=1) if on_gpu else Need(cluster.cores)
        done = 0
        for result in cluster.stream(measured, jobs, need, lambda job: (job, frozenset(keeper.done), settings, on_gpu)):
            if result.error:
                errors.report(DataError(f"{jobs[result.index].about['path']}: {result.error}"))
            elif result.value is not None:
                keeper.take(result.value)
            done += result.last
            progress(done, len(jobs))


def measured(order: tuple[Job, frozenset[str], Settings, bool]) -> Iterator[Event]:
    """On a node of a cluster: work through a job but for the keys that are done, under the node's own limits."""
    job, done, settings, on_gpu = order
    if not on_gpu:
        # It has asked for none.
        job = replace(job, environment={**job.environment, "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""})
    with closing(work_through(job, done, settings.limits(on_gpu=on_gpu))) as events:
        yield from events


def _print_row(row: Row) -> None:
    if row.get("summary"):
        return
    case = " ".join(f"{name}={value}" for name, value in (row.get("case") or {}).items())
    config = " ".join(f"{name}={value}" for name, value in (row.get("config") or {}).items())
    words = [str(row.get("path", "")), str(row.get("entry") or row.get("name") or ""), str(row.get("device", ""))]
    print("  ".join(filter(None, (*words, case, config, _outcome(row)))))


def _outcome(row: Row) -> str:
    if row["status"] != "ok":
        return f"{row['status']}: {row.get('error', '')}"
    told = []
    if "latency" in row:
        told.append(f"{_time(row['latency'])} ({_time(row['p20'])}-{_time(row['p80'])})")
    if row.get("memory") is not None:
        told.append(render.quantity("memory", row["memory"]))
    if row.get("checked"):
        told.append("result agrees")
    for launch in row.get("launches") or ():
        resources: Mapping[str, Any] = launch.get("resources") or {}
        figures = " ".join(f"{name}={number}" for name, number in resources.items())
        told.append(f"{launch['kernel']}" + (f" [{figures}]" if figures else ""))
    if "kernels" in row:
        told.append(f"{len(row['kernels'])} kernels")
    return ", ".join(told) or "ok"


def _time(seconds: float) -> str:
    return render.quantity("latency", seconds)


def announce(verb: str, what: Sequence[str]) -> None:
    """Say what will be run, before it is."""
    for one in what[:_MOST_NAMED]:
        console.note(f"will {verb}: {one}")
    if len(what) > _MOST_NAMED:
        console.note(f"will {verb}: {len(what) - _MOST_NAMED} more files")


def named(path: Path, source: str) -> dict[str, str]:
    """A file as runners take it: where it is, what the user calls it, and what is in it."""
    return {"path": str(path.resolve()), "shown": str(path), "source": source}


def batches(files: Sequence[_File], settings: Settings) -> Iterable[list[_File]]:
    """Files of one folder, some together: starting a process and its GPU takes longer than most kernels.

    Files of two folders may import helpers of one name. On a cluster each goes by itself, so that all nodes have some.
    """
    size = _BATCH if settings.ray is None else 1
    for _, together in itertools.groupby(files, lambda file: file.path.parent):
        rest = list(together)
        for start in range(0, len(rest), size):
            yield rest[start : start + size]


def needs(*packages: str) -> None:
    """See that packages are installed.

    Raises:
        RlmError: one is not.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise RlmError(f"{package} is not installed; run: pip install '.[{EXTRA[package]}]'")


def has_gpu() -> bool:
    """Whether PyTorch finds a GPU, asked in a process of its own so that this one holds none."""
    import subprocess
    import sys

    command = [sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"]
    try:
        return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def needs_gpu(way_out: str) -> None:
    """See that there is a GPU.

    Raises:
        RlmError: there is none; the message ends with the way out.
    """
    if not has_gpu():
        raise RlmError(f"PyTorch finds no GPU on this machine{way_out}")


def _machine_memory() -> float:
    """GiB of this machine; 0, which sets no limit, where it cannot be told."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (AttributeError, ValueError, OSError):
        return 0.0
