"""``rlm-lsp bench``: run the user's own kernels, modules and networks, and store what they cost.

Every command announces what it will run. Each file runs in child processes of :mod:`rlm_core.measurement.gpu.worker`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rlm_core import DataError, RlmError
from rlm_core.measurement.gpu.bench_rows import digest, read_rows
from rlm_core.measurement.gpu.bench_spec import module_file, triton_file
from rlm_core.measurement.gpu.targets import target_named
from rlm_core.measurement.gpu.worker import RunnerJob

from rlm_lsp.rendering import console
from rlm_lsp.rendering.console import ErrorCounter

from . import options
from .bench_jobs import BenchSettings, announce, bench_files, file_batches, has_gpu, job_file, run_jobs
from .options import PATH, CommandT, Group, require, write_errors

_GENERATED_PER_JOB = 50


@click.group(cls=Group)
def command() -> None:
    """Benchmark your own kernels, modules and networks on this machine.

    The code in the files is run, in child processes with resource limits. Each measurement is appended to --out as a
    row; running the same command again measures only what is missing. Latencies are also stored for hovers, next to the
    measurements of `rlm-lsp measure`.
    """


def _bench_options(run: Callable[..., int]) -> Callable[..., None]:
    """Add the options of all benchmarks, passed on as one ``settings``."""

    @wraps(run)
    def bench(**arguments: Any) -> None:
        names = [field.name for field in fields(BenchSettings) if field.name in arguments]
        settings = BenchSettings(**{name: arguments.pop(name) for name in names})
        raise click.exceptions.Exit(run(settings=settings, **arguments))

    for option in (
        options.store,
        click.option("--no-store", is_flag=True, help="Write rows to --out only, not to the store."),
        click.option("--retry", is_flag=True, help="Repeat failed measurements."),
        click.option(
            "--seconds",
            metavar="S",
            type=click.FloatRange(0, 600),
            default=0.1,
            help="Seconds to spend on measuring each call.",
        ),
        click.option(
            "--memory", metavar="GIB", type=click.FloatRange(min=0), help="Memory limit of a child process (0: none)."
        ),
        click.option(
            "--limit",
            metavar="S",
            type=click.FloatRange(0, min_open=True),
            default=120.0,
            help="Time limit of one measurement in seconds.",
        ),
        click.option("--out", metavar="FILE", type=PATH, default="bench.jsonl", help="File to append rows to."),
    ):
        bench = option(bench)
    return bench


_paths_argument = click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
_target_option = click.option(
    "--target", metavar="NAME", default="cuda:90", help="GPU architecture to compile for, such as hip:gfx942."
)


def _dtype_option(*default: str) -> Callable[[CommandT], CommandT]:
    choice = click.Choice(["fp32", "fp16", "bf16"])
    return click.option("--dtype", "dtypes", type=choice, multiple=True, default=default, help="Data type; repeatable.")


@command.command()
@_paths_argument
@click.option("--dry-run", is_flag=True, help="Compile for --target without a GPU, and show the resources used.")
@_target_option
@click.option(
    "--configs", type=click.Choice(["all", "best"]), default="all", help="Configurations of autotuned kernels."
)
@options.ray
@options.ray_gpu
@_bench_options
def triton(paths: tuple[Path, ...], settings: BenchSettings, dry_run: bool, target: str, configs: str) -> int:
    """Benchmark Triton kernels that have a bench function, a perf_report or a sheet (needs the [triton] extra).

    With TRITON_INTERPRET=1, results are checked on the CPU and nothing is timed.
    """
    require("triton", "torch", "triton")
    target = target_named(target).name
    interpret = os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on")
    mode = "compile" if dry_run else "interpret" if interpret else "measure"
    errors = ErrorCounter()
    files = list(bench_files(paths, triton_file, errors, "Triton kernel"))
    for file in files:
        if not file.entries:
            console.note(
                f"{file.path}: no way to call {', '.join(file.kernels)}; add a function bench(), a perf_report,"
                f" or a sheet {file.path.with_suffix('').name}.bench.toml (docs/benchmarking.md)"
            )
    files = [file for file in files if file.entries]
    if mode == "measure" and files and settings.ray is None:
        _require_gpu("; compile with --dry-run --target cuda:90, or check results with TRITON_INTERPRET=1")
    verb = {"compile": f"compile for {target}", "interpret": "interpret on the CPU", "measure": "run on the GPU"}[mode]
    announce(verb, [f"{file.path} ({', '.join(sorted({entry.name for entry in file.entries}))})" for file in files])
    # A process that only compiles must not find a GPU driver.
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "0"}
    environment = {"compile": hidden, "interpret": {**hidden, "TRITON_INTERPRET": "1"}, "measure": {}}[mode]
    arguments = {"mode": mode, "target": target, "configs": configs, "effort": {"measure": settings.seconds}}
    jobs = []
    for batch in file_batches(files, settings):
        entries = [
            {
                **job_file(file.path, file.digest),
                "sheet": str(file.sheet.resolve()) if file.sheet is not None else "",
                "entries": [[entry.way, entry.name] for entry in file.entries],
            }
            for file in batch
        ]
        about = {"kind": "triton", "path": str(batch[0].path.parent)}
        jobs.append(RunnerJob("triton_runner", about, {**arguments, "files": entries}, environment))
    return run_jobs(jobs, settings, errors, on_gpu=mode == "measure")


@command.command()
@_paths_argument
@click.option(
    "--device", type=click.Choice(["cpu", "cuda"]), help="Device to run on.", show_default="cuda if there is a GPU"
)
@_dtype_option("fp32")
@click.option(
    "--backend",
    "backends",
    type=click.Choice(["eager", "compile"]),
    multiple=True,
    default=("eager",),
    help="How to run a module; repeatable.",
)
@options.threads
@options.ray
@options.ray_gpu
@_bench_options
def torch(
    paths: tuple[Path, ...],
    settings: BenchSettings,
    device: str | None,
    dtypes: tuple[str, ...],
    backends: tuple[str, ...],
    threads: int,
) -> int:
    """Benchmark PyTorch modules in files that define get_inputs (needs the [triton] extra)."""
    require("triton", "torch")
    errors = ErrorCounter()
    files = list(bench_files(paths, module_file, errors, "module with get_inputs"))
    if device is None and settings.ray is not None:
        raise RlmError("bench torch --ray: nodes may differ; choose --device cpu or --device cuda")
    device = device or ("cuda" if has_gpu() else "cpu")
    if device != "cpu" and files and settings.ray is None:
        _require_gpu("; measure with --device cpu")
    announce(f"run on {device}", [f"{file.path} ({file.module})" for file in files])
    arguments = {"device": device, "dtypes": list(dtypes), "backends": list(backends), "threads": threads}
    jobs = []
    for batch in file_batches(files, settings):
        modules = [{**job_file(file.path, file.digest), "module": file.module} for file in batch]
        about = {"kind": "torch", "path": str(batch[0].path.parent)}
        jobs.append(
            RunnerJob("torch_runner", about, {**arguments, "effort": {"measure": settings.seconds}, "files": modules})
        )
    return run_jobs(jobs, settings, errors, on_gpu=device != "cpu")


@command.command()
@click.argument("paths", metavar="MODEL.onnx...", type=PATH, nargs=-1, required=True)
@click.option(
    "--provider",
    "providers",
    metavar="NAME",
    multiple=True,
    help="Execution provider of onnxruntime; repeatable.",
    show_default="all available",
)
@click.option(
    "--size",
    "sizes",
    metavar="NAME=N",
    multiple=True,
    help="Value of a symbolic dimension; repeatable.",
    show_default="1",
)
@options.threads
@options.ray
@_bench_options
def onnx(
    paths: tuple[Path, ...], settings: BenchSettings, providers: tuple[str, ...], sizes: tuple[str, ...], threads: int
) -> int:
    """Benchmark latency and peak memory of ONNX models in onnxruntime."""
    dimensions = {}
    for entry in sizes:
        name, _, number = entry.partition("=")
        if not name or not number.isdigit():
            raise RlmError(f"--size {entry!r} is not NAME=NUMBER; write it like batch=8")
        dimensions[name] = int(number)
    errors, jobs = ErrorCounter(), []
    for path in paths:
        try:
            file = job_file(path, digest(path.read_bytes()))
        except OSError as error:
            errors.report(DataError(f"{path}: cannot be read ({error.strerror}); name an .onnx file"))
            continue
        about = {"kind": "onnx", "path": str(path)}
        arguments = {**file, "providers": list(providers), "sizes": dimensions, "threads": threads}
        jobs.append(RunnerJob("onnx_runner", about, {**arguments, "effort": {"measure": settings.seconds}}))
    announce("load and run", [str(job.about["path"]) for job in jobs])
    return run_jobs(jobs, settings, errors, on_gpu=False)


@command.command()
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("--count", metavar="N", type=click.IntRange(1, 1_000_000), default=100, help="Number of modules.")
@click.option("--seed", metavar="N", type=int, default=0, help="The same seed generates the same modules.")
@_target_option
@_dtype_option("fp16", "bf16", "fp32")
@_bench_options
def generate(folder: Path, settings: BenchSettings, count: int, seed: int, target: str, dtypes: tuple[str, ...]) -> int:
    """Generate PyTorch modules, and the Triton code that torch.compile makes of them, as training data.

    Then measure them with `rlm-lsp bench torch FOLDER/modules` and `rlm-lsp bench triton FOLDER/kernels`.
    """
    from rlm_core.measurement.gpu.modules import write_module

    require("triton", "torch", "triton")
    target = target_named(target).name
    modules = folder / "modules"
    names = []
    with write_errors(folder, "name another folder"):
        modules.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            written = write_module(seed, number)
            name = f"{written.family.replace('-', '_')}_{seed}_{number:05}.py"
            if not (modules / name).exists():
                (modules / name).write_text(written.source, encoding="utf-8")
            names.append([name, dtypes[number % len(dtypes)]])
    device = "cuda" if has_gpu() else "cpu"
    announce(f"compile {'on the GPU' if device == 'cuda' else f'for {target}'}", [f"{count} modules in {modules}"])
    arguments = {"folder": str(modules), "device": device, "target": target}
    jobs = [
        RunnerJob(
            "generate_runner",
            {"kind": "generate", "path": str(modules)},
            {**arguments, "modules": names[start : start + _GENERATED_PER_JOB]},
        )
        for start in range(0, len(names), _GENERATED_PER_JOB)
    ]
    return run_jobs(jobs, settings, ErrorCounter(), on_gpu=device == "cuda")


@command.command()
@click.argument("rows", metavar="ROWS.jsonl...", type=PATH, nargs=-1, required=True)
@click.option("--out", metavar="FILE", type=PATH, required=True, help="The pruner to write (.safetensors).")
def pruner(rows: tuple[Path, ...], out: Path) -> None:
    """Fit a pruner that ranks the configurations of your kernels for GPUs where they were not measured.

    ROWS are the rows of `rlm-lsp bench triton`. Needs the [train] extra.
    """
    require("train", "sklearn")
    from rlm_core.training.pruner_fit import fit, trials_of

    trials = list(trials_of(row for path in rows for row in read_rows(path)))
    fitted = fit(trials)
    with write_errors(out):
        fitted.save(out)
    for kernel in fitted.forests:
        of_kernel = [trial for trial in trials if trial.kernel == kernel]
        devices = sorted({trial.choice.device or "unknown device" for trial in of_kernel})
        console.line(f"{kernel}: {len(of_kernel)} configurations on {', '.join(devices)}")
    console.line(f"{out}: written; pass it to rlm_core.measurement.gpu.autotune_pruner.early_config_prune")


def _require_gpu(advice: str) -> None:
    if not has_gpu():
        raise RlmError(f"PyTorch finds no GPU on this machine{advice}")
