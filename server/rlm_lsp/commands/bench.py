"""``rlm-lsp bench``: runs the user's own kernels, modules and models, and keeps a row a measurement.

It says what it will run before it does; each file runs in child processes of :mod:`rlm_core.benchmarks.worker`.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rlm_core import DataError, RlmError
from rlm_core.benchmarks.entries import ModuleFile, TritonFile, module_file, triton_file
from rlm_core.benchmarks.rows import Row, RowFile, digest
from rlm_core.benchmarks.worker import Job, Limits, run_job

from .. import console, render
from ..sources import find_sources

Found = TypeVar("Found")
_File = TypeVar("_File", TritonFile, ModuleFile)
_MOST_NAMED, _BATCH = 20, 64
EXTRA = {"torch": "triton", "triton": "triton", "sklearn": "train"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What all benches share: where rows go, limits a child, how long to measure, and which rows to make again."""

    out: Path
    limit: float
    memory: float | None
    effort: float
    retry: bool

    def limits(self, *, on_gpu: bool) -> Limits:
        """Limits of a child. On a GPU none for host memory: its driver reserves addresses beyond all memory."""
        size = self.memory if self.memory is not None else (0.0 if on_gpu else 0.8 * _machine_memory())
        return Limits(case=self.limit, memory=int(size * 2**30))


def bench_triton(paths: Sequence[Path], settings: Settings, *, dry_run: bool, target: str, configs: str) -> int:
    """Measure, compile or check the kernels below ``paths``; returns the exit status.

    Raises:
        RlmError: a package is missing, there is no GPU, or the rows cannot be written.
    """
    from rlm_core.benchmarks.targets import target_named

    _needs("torch", "triton")
    target = target_named(target).name
    interpret = os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on")
    mode = "compile" if dry_run else "interpret" if interpret else "measure"
    errors = _Errors()
    files = list(_each(paths, triton_file, errors, "Triton kernel"))
    for file in files:
        if not file.entries:
            console.note(
                f"{file.path}: no way to call {', '.join(file.kernels)}; add a function bench(), a perf_report,"
                f" or a sheet {file.path.with_suffix('').name}.bench.toml (docs/benchmarking.md)"
            )
    files = [file for file in files if file.entries]
    if mode == "measure" and files:
        _needs_gpu("; compile with --dry-run --target cuda:90, or check results with TRITON_INTERPRET=1")
    verb = {"compile": f"compile for {target}", "interpret": "interpret on the CPU", "measure": "run on the GPU"}[mode]
    _announce(verb, [f"{file.path} ({', '.join(sorted({entry.name for entry in file.entries}))})" for file in files])
    # A process that only compiles must not find a driver.
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "0"}
    environment = {"compile": hidden, "interpret": {**hidden, "TRITON_INTERPRET": "1"}, "measure": {}}[mode]
    told = {"mode": mode, "target": target, "configs": configs, "effort": {"measure": settings.effort}}
    jobs = [
        Job(
            "triton_runner",
            {"kind": "triton", "path": str(batch[0].path.parent)},
            {
                **told,
                "files": [
                    {
                        **_named(file.path, file.digest),
                        "sheet": str(file.sheet.resolve()) if file.sheet is not None else "",
                        "entries": [[entry.way, entry.name] for entry in file.entries],
                    }
                    for file in batch
                ],
            },
            environment,
        )
        for batch in _batches(files)
    ]
    return _run(jobs, settings, errors, on_gpu=mode == "measure")


def bench_torch(
    paths: Sequence[Path],
    settings: Settings,
    *,
    device: str | None,
    dtypes: Sequence[str],
    backends: Sequence[str],
    threads: int,
) -> int:
    """Measure the modules below ``paths``; returns the exit status.

    Raises:
        RlmError: PyTorch is missing, there is no such device, or the rows cannot be written.
    """
    _needs("torch")
    errors = _Errors()
    files = list(_each(paths, module_file, errors, "module with get_inputs"))
    device = device or ("cuda" if _has_gpu() else "cpu")
    if device != "cpu" and files:
        _needs_gpu("; measure with --device cpu")
    _announce(f"run on {device}", [f"{file.path} ({file.module})" for file in files])
    told = {"device": device, "dtypes": list(dtypes), "backends": list(backends), "threads": threads}
    jobs = [
        Job(
            "torch_runner",
            {"kind": "torch", "path": str(batch[0].path.parent)},
            {
                **told,
                "effort": {"measure": settings.effort},
                "files": [{**_named(file.path, file.digest), "module": file.module} for file in batch],
            },
        )
        for batch in _batches(files)
    ]
    return _run(jobs, settings, errors, on_gpu=device != "cpu")


def bench_onnx(
    paths: Sequence[Path],
    settings: Settings,
    *,
    providers: Sequence[str],
    sizes: Sequence[str],
    threads: int,
) -> int:
    """Measure models on this machine's providers; returns the exit status.

    Raises:
        RlmError: a size is not NAME=NUMBER, or the rows cannot be written.
    """
    given = {}
    for entry in sizes:
        name, _, number = entry.partition("=")
        if not name or not number.isdigit():
            raise RlmError(f"--size {entry!r} is not NAME=NUMBER; write it like batch=8")
        given[name] = int(number)
    errors, jobs = _Errors(), []
    for path in paths:
        try:
            file = _named(path, digest(path.read_bytes()))
        except OSError as error:
            errors.report(DataError(f"{path}: cannot be read ({error.strerror}); name an .onnx file"))
            continue
        about = {"kind": "onnx", "path": str(path)}
        options = {**file, "providers": list(providers), "sizes": given, "threads": threads}
        jobs.append(Job("onnx_runner", about, {**options, "effort": {"measure": settings.effort}}))
    _announce("load and run", [str(job.about["path"]) for job in jobs])
    return _run(jobs, settings, errors, on_gpu=False)


def generate(folder: Path, settings: Settings, *, count: int, seed: int, target: str, dtypes: Sequence[str]) -> int:
    """Write modules and the Triton that torch.compile makes of them; returns the exit status.

    Raises:
        RlmError: a package is missing, or the files cannot be written.
    """
    from rlm_core.benchmarks.modules import write_module
    from rlm_core.benchmarks.targets import target_named

    _needs("torch", "triton")
    target = target_named(target).name
    modules = folder / "modules"
    names = []
    try:
        modules.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            written = write_module(seed, number)
            name = f"{written.family.replace('-', '_')}_{seed}_{number:05}.py"
            if not (modules / name).exists():
                (modules / name).write_text(written.source, encoding="utf-8")
            names.append([name, dtypes[number % len(dtypes)]])
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror}); name another folder") from None
    device = "cuda" if _has_gpu() else "cpu"
    _announce(f"compile {'on the GPU' if device == 'cuda' else f'for {target}'}", [f"{count} modules in {modules}"])
    batch = 50
    jobs = [
        Job(
            "generate_runner",
            {"kind": "generate", "path": str(modules)},
            {"modules": names[start : start + batch], "folder": str(modules), "device": device, "target": target},
        )
        for start in range(0, len(names), batch)
    ]
    return _run(jobs, settings, _Errors(), on_gpu=device == "cuda")


def fit_pruner(paths: Sequence[Path], out: Path) -> None:
    """Fit a pruner to the rows of ``bench triton`` and say what it knows.

    Raises:
        RlmError: scikit-learn is missing, the rows hold too few configurations, or the file cannot be written.
    """
    from rlm_core.benchmarks.rows import read_rows

    _needs("sklearn")
    from rlm_core.benchmarks.prune_fit import fit, trials_of

    trials = list(trials_of(row for path in paths for row in read_rows(path)))
    pruner = fit(trials)
    try:
        pruner.save(out)
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror}); name another file") from None
    for kernel in pruner.forests:
        own = [trial for trial in trials if trial.kernel == kernel]
        devices = sorted({trial.choice.device or "unknown device" for trial in own})
        print(f"{kernel}: {len(own)} configurations on {', '.join(devices)}")
    print(f"{out}: written; name it in rlm_core.prune.early_config_prune")


@dataclass(slots=True)
class _Errors:
    """Counts what is reported."""

    count: int = 0

    def report(self, error: RlmError) -> None:
        self.count += 1
        console.report_error(error)


def _each(paths: Sequence[Path], read: Callable[[Path], Found | None], errors: _Errors, what: str) -> Iterable[Found]:
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


def _run(jobs: Sequence[Job], settings: Settings, errors: _Errors, *, on_gpu: bool) -> int:
    made: dict[str, int] = {}
    known = 0
    if not jobs:
        return 2 if errors.count else 0
    with RowFile(settings.out) as rows, console.progress("measuring") as progress:
        for problem in rows.problems:
            console.note(problem)
        for done, job in enumerate(jobs):
            progress(done, len(jobs))
            tally = run_job(job, rows, settings.limits(on_gpu=on_gpu), _print_row, retry=settings.retry)
            known += tally.known
            for status, count in tally.made.items():
                made[status] = made.get(status, 0) + count
    total = sum(made.values())
    bad = total - made.get("ok", 0)
    told = ", ".join(f"{count} {status}" for status, count in sorted(made.items()))
    console.note(
        f"{settings.out}: {total} rows made" + (f" ({told})" if bad else "") + (f", {known} known" if known else "")
    )
    return 2 if errors.count else 1 if bad else 0


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


def _announce(verb: str, what: Sequence[str]) -> None:
    for one in what[:_MOST_NAMED]:
        console.note(f"will {verb}: {one}")
    if len(what) > _MOST_NAMED:
        console.note(f"will {verb}: {len(what) - _MOST_NAMED} more files")


def _named(path: Path, source: str) -> dict[str, str]:
    """A file as runners take it: where it is, what the user calls it, and what is in it."""
    return {"path": str(path.resolve()), "shown": str(path), "source": source}


def _batches(files: Sequence[_File]) -> Iterable[list[_File]]:
    """Files of one folder, some together: starting a process and its GPU takes longer than most kernels.

    Files of two folders may import helpers of one name.
    """
    for _, together in itertools.groupby(files, lambda file: file.path.parent):
        rest = list(together)
        for start in range(0, len(rest), _BATCH):
            yield rest[start : start + _BATCH]


def _needs(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise RlmError(f"{package} is not installed; run: pip install '.[{EXTRA[package]}]'")


def _has_gpu() -> bool:
    """Whether PyTorch finds a GPU, asked in a process of its own so that this one holds none."""
    import subprocess
    import sys

    command = [sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"]
    try:
        return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _needs_gpu(way_out: str) -> None:
    if not _has_gpu():
        raise RlmError(f"PyTorch finds no GPU on this machine{way_out}")


def _machine_memory() -> float:
    """GiB of this machine; 0, which sets no limit, where it cannot be told."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (AttributeError, ValueError, OSError):
        return 0.0
