"""``rlm-lsp bench``: options and help texts; :mod:`.commands.bench` does it."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

import click

from .options import PATH, Group, ray_option, store_option, threads_option


@click.group(cls=Group)
def bench() -> None:
    """Run your own kernels, modules and models on this machine and keep what they take.

    The code of the named files is run, in child processes under limits. A row a measurement is appended to --out as it
    is made; the same command again makes only what is missing. Times are also kept for hovers to show, beside what
    rlm-lsp measure keeps.
    """


def _bench_options(command: Any) -> Any:
    """The options that all benches share, given to the command as one ``settings``."""

    @wraps(command)
    def run(
        out: Path,
        limit: float,
        memory: float | None,
        seconds: float,
        retry: bool,
        no_store: bool,
        store: Path | None,
        ray: str | None = None,
        **options: Any,
    ) -> None:
        from .bench_jobs import Settings

        settings = Settings(out, limit, memory, seconds, retry, not no_store, store, ray)
        raise click.exceptions.Exit(command(settings=settings, **options))

    for option in (
        store_option,
        click.option("--no-store", is_flag=True, help="Keep rows in --out alone, not for the editor too."),
        click.option("--retry", is_flag=True, help="Make failed rows again too."),
        click.option(
            "--seconds", metavar="S", type=click.FloatRange(0, 600), default=0.1, help="How long to measure a call."
        ),
        click.option("--memory", metavar="GIB", type=click.FloatRange(min=0), help="Memory of a child; 0: no limit."),
        click.option(
            "--limit", metavar="S", type=click.FloatRange(0, min_open=True), default=120.0, help="For one measurement."
        ),
        click.option("--out", metavar="FILE", type=PATH, default="bench.jsonl", help="Where rows are appended."),
    ):
        run = option(run)
    return run


_target = click.option("--target", metavar="NAME", default="cuda:90", help="A GPU to compile for, like hip:gfx942.")
_dtypes = click.option(
    "--dtype", "dtypes", type=click.Choice(["fp32", "fp16", "bf16"]), multiple=True, help="May be repeated."
)


@bench.command(name="triton")
@click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Compile for --target without a GPU and tell what kernels take of it.")
@_target
@click.option("--configs", type=click.Choice(["all", "best"]), default="all", help="Of autotuned kernels.")
@ray_option
@_bench_options
def bench_triton(paths: tuple[Path, ...], **options: Any) -> int:
    """Measure Triton kernels that have a bench function, a perf_report or a sheet (needs the [triton] extra).

    With TRITON_INTERPRET=1 results are checked on the CPU and nothing is timed.
    """
    from .bench import bench_triton as run

    return run(paths, **options)


@bench.command(name="torch")
@click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Where to run; by default a GPU where there is one.")
@_dtypes
@click.option("--backend", "backends", type=click.Choice(["eager", "compile"]), multiple=True, help="May be repeated.")
@threads_option
@ray_option
@_bench_options
def bench_torch(paths: tuple[Path, ...], dtypes: tuple[str, ...], backends: tuple[str, ...], **options: Any) -> int:
    """Measure PyTorch modules of files with get_inputs (needs the [triton] extra)."""
    from .bench import bench_torch as run

    return run(paths, dtypes=dtypes or ("fp32",), backends=backends or ("eager",), **options)


@bench.command(name="onnx")
@click.argument("paths", metavar="MODEL.onnx...", type=PATH, nargs=-1, required=True)
@click.option("--provider", "providers", metavar="NAME", multiple=True, help="Of onnxruntime; by default all here.")
@click.option("--size", "sizes", metavar="NAME=N", multiple=True, help="A symbolic dimension; 1 where none is given.")
@threads_option
@ray_option
@_bench_options
def bench_onnx(paths: tuple[Path, ...], **options: Any) -> int:
    """Measure latency and peak memory of ONNX models in onnxruntime."""
    from .bench import bench_onnx as run

    return run(paths, **options)


@bench.command(name="generate")
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("--count", metavar="N", type=click.IntRange(1, 1_000_000), default=100, help="Modules to write.")
@click.option("--seed", type=int, default=0, help="The same seed writes the same modules.")
@_target
@_dtypes
@_bench_options
def bench_generate(folder: Path, dtypes: tuple[str, ...], **options: Any) -> int:
    """Write PyTorch modules of many kinds and the Triton that torch.compile makes of them, to train on.

    Measure what was written with rlm-lsp bench torch FOLDER/modules and rlm-lsp bench triton FOLDER/kernels.
    """
    from .bench import generate as run

    return run(folder, dtypes=dtypes or ("fp16", "bf16", "fp32"), **options)


@bench.command(name="pruner")
@click.argument("rows", metavar="ROWS.jsonl...", type=PATH, nargs=-1, required=True)
@click.option("--out", metavar="FILE", type=PATH, required=True, help="The pruner to write (.safetensors).")
def bench_pruner(rows: tuple[Path, ...], out: Path) -> None:
    """Fit what ranks the configurations of your kernels on GPUs where they were not measured (needs [train])."""
    from .bench import fit_pruner

    fit_pruner(rows, out)
