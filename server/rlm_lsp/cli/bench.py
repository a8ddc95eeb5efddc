"""``rlm-lsp bench``: runs the user's own kernels, modules and models, and keeps a row a measurement.

It says what it will run before it does; each file runs in child processes of :mod:`rlm_core.measurement.gpu.worker`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rlm_core import DataError, RlmError
from rlm_core.measurement.gpu.bench_entries import module_file, triton_file
from rlm_core.measurement.gpu.bench_rows import digest
from rlm_core.measurement.gpu.worker import Job

from rlm_lsp.rendering import console

from .bench_jobs import Errors, Settings, announce, batches, each, has_gpu, named, needs, needs_gpu, run_jobs


def bench_triton(paths: Sequence[Path], settings: Settings, *, dry_run: bool, target: str, configs: str) -> int:
    """Measure, compile or check the kernels below ``paths``; returns the exit status.

    Raises:
        RlmError: a package is missing, there is no GPU, or the rows cannot be written.
    """
    from rlm_core.measurement.gpu.targets import target_named

    needs("torch", "triton")
    target = target_named(target).name
    interpret = os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on")
    mode = "compile" if dry_run else "interpret" if interpret else "measure"
    errors = Errors()
    files = list(each(paths, triton_file, errors, "Triton kernel"))
    for file in files:
        if not file.entries:
            console.note(
                f"{file.path}: no way to call {', '.join(file.kernels)}; add a function bench(), a perf_report,"
                f" or a sheet {file.path.with_suffix('').name}.bench.toml (docs/benchmarking.md)"
            )
    files = [file for file in files if file.entries]
    if mode == "measure" and files and settings.ray is None:
        needs_gpu("; compile with --dry-run --target cuda:90, or check results with TRITON_INTERPRET=1")
    verb = {"compile": f"compile for {target}", "interpret": "interpret on the CPU", "measure": "run on the GPU"}[mode]
    announce(verb, [f"{file.path} ({', '.join(sorted({entry.name for entry in file.entries}))})" for file in files])
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
                        **named(file.path, file.digest),
                        "sheet": str(file.sheet.resolve()) if file.sheet is not None else "",
                        "entries": [[entry.way, entry.name] for entry in file.entries],
                    }
                    for file in batch
                ],
            },
            environment,
        )
        for batch in batches(files, settings)
    ]
    return run_jobs(jobs, settings, errors, on_gpu=mode == "measure")


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
        RlmError: PyTorch is missing, there is no such device or none is named, or the rows cannot be written.
    """
    needs("torch")
    errors = Errors()
    files = list(each(paths, module_file, errors, "module with get_inputs"))
    if device is None and settings.ray is not None:
        raise RlmError("bench torch --ray: nodes may differ; say where to run with --device cpu or --device cuda")
    device = device or ("cuda" if has_gpu() else "cpu")
    if device != "cpu" and files and settings.ray is None:
        needs_gpu("; measure with --device cpu")
    announce(f"run on {device}", [f"{file.path} ({file.module})" for file in files])
    told = {"device": device, "dtypes": list(dtypes), "backends": list(backends), "threads": threads}
    jobs = [
        Job(
            "torch_runner",
            {"kind": "torch", "path": str(batch[0].path.parent)},
            {
                **told,
                "effort": {"measure": settings.effort},
                "files": [{**named(file.path, file.digest), "module": file.module} for file in batch],
            },
        )
        for batch in batches(files, settings)
    ]
    return run_jobs(jobs, settings, errors, on_gpu=device != "cpu")


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
    errors, jobs = Errors(), []
    for path in paths:
        try:
            file = named(path, digest(path.read_bytes()))
        except OSError as error:
            errors.report(DataError(f"{path}: cannot be read ({error.strerror}); name an .onnx file"))
            continue
        about = {"kind": "onnx", "path": str(path)}
        options = {**file, "providers": list(providers), "sizes": given, "threads": threads}
        jobs.append(Job("onnx_runner", about, {**options, "effort": {"measure": settings.effort}}))
    announce("load and run", [str(job.about["path"]) for job in jobs])
    return run_jobs(jobs, settings, errors, on_gpu=False)


def generate(folder: Path, settings: Settings, *, count: int, seed: int, target: str, dtypes: Sequence[str]) -> int:
    """Write modules and the Triton that torch.compile makes of them; returns the exit status.

    Raises:
        RlmError: a package is missing, or the files cannot be written.
    """
    from rlm_core.measurement.gpu.modules import write_module
    from rlm_core.measurement.gpu.targets import target_named

    needs("torch", "triton")
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
    device = "cuda" if has_gpu() else "cpu"
    announce(f"compile {'on the GPU' if device == 'cuda' else f'for {target}'}", [f"{count} modules in {modules}"])
    batch = 50
    jobs = [
        Job(
            "generate_runner",
            {"kind": "generate", "path": str(modules)},
            {"modules": names[start : start + batch], "folder": str(modules), "device": device, "target": target},
        )
        for start in range(0, len(names), batch)
    ]
    return run_jobs(jobs, settings, Errors(), on_gpu=device == "cuda")


def fit_pruner(paths: Sequence[Path], out: Path) -> None:
    """Fit a pruner to the rows of ``bench triton`` and say what it knows.

    Raises:
        RlmError: scikit-learn is missing, the rows hold too few configurations, or the file cannot be written.
    """
    from rlm_core.measurement.gpu.bench_rows import read_rows

    needs("sklearn")
    from rlm_core.training.pruner_fit import fit, trials_of

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
    print(f"{out}: written; name it in rlm_core.measurement.gpu.autotune_pruner.early_config_prune")
