"""The ``rlm-lsp`` command: options and help texts only. Each command's module is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import click
from rlm_core import RlmError

from rlm_lsp import __version__
from rlm_lsp.rendering import console

from . import measure as measuring
from . import train_options as cli_train
from .bench_options import bench
from .options import PATH, Group, cpu_scale_option, model_option, ray_option, threads_option
from .report import report


@click.group(cls=Group, context_settings={"show_default": True})
@click.version_option(__version__, message=f"{console.PROGRAM} %(version)s", help="Print the version and exit.")
def app() -> None:
    """Predict what code will cost: latency and memory, in editors and on the command line.

    Nothing is run to predict.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show `µ` must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@app.command()
@click.argument("paths", metavar="[PATH]...", type=PATH, nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "jsonl"]),
    default="table",
    help="A table for people, or JSON in SI units.",
)
@click.option("--batch", metavar="IN.jsonl|-", help="Rows of text and queries instead of source files.")
@click.option("--out", metavar="OUT.jsonl|-", default="-", help="Where the answers to --batch go.")
@click.option(
    "--device", "devices", metavar="NAME", multiple=True, help="For kernels, modules and networks; may be repeated."
)
@click.option(
    "--workload", metavar="NAME=VALUE", multiple=True, help="Sizes and types, like M=4096, arg0=64x128 or dtype=fp16."
)
@model_option
@threads_option
@ray_option
@cpu_scale_option
def predict(
    paths: tuple[Path, ...],
    form: Literal["table", "json", "jsonl"],
    batch: str | None,
    out: str,
    devices: tuple[str, ...],
    workload: tuple[str, ...],
    model: str,
    threads: int,
    ray: str | None,
) -> None:
    """Predict the cost of every unit in source files or directories."""
    if (batch is None) == (not paths):
        raise RlmError("predict: name paths or give --batch, one of the two")
    if batch is not None:
        from .batch import predict_batch

        raise click.exceptions.Exit(predict_batch(batch, out, model, threads, ray))
    from .predict import asked_for, predict_paths

    raise click.exceptions.Exit(predict_paths(paths, form, model, threads, asked_for(devices, workload), ray))


@app.command()
@click.argument("paths", metavar="[PATH]...", type=PATH, nargs=-1)
@click.option("--diff", metavar="REV", help="Only units that changed since a git revision; tells regressions too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "github", "junit"]),
    default="text",
    help="How findings are written.",
)
@click.option("--output", metavar="FILE", type=PATH, help="Where findings go instead of stdout.")
@click.option("--baseline", metavar="FILE", type=PATH, help="Known findings, which are not reported again.")
@click.option("--update-baseline", is_flag=True, help="Keep all findings of now in the baseline; none is reported.")
@click.option(
    "--fail-on",
    type=click.Choice(["information", "warning", "error"]),
    default="warning",
    help="The mildest findings that give exit status 1.",
)
@click.option(
    "--confidence",
    metavar="P",
    type=click.FloatRange(0.5, 0.99),
    help="Report a budget when it is passed with at least this probability, whatever the settings say.",
)
@click.option("--exclude", metavar="GLOB", multiple=True, help="Files to leave out; may be repeated.")
@model_option
@threads_option
@cpu_scale_option
def check(paths: tuple[Path, ...], model: str, threads: int, **options: Any) -> None:
    """Hold units against their budgets, for CI: exit status 1 when a cost is over its budget.

    Without PATH the working directory is checked. Budgets stand in comments above units (rlm: latency < 1 ms) or as
    globs in pyproject.toml and rlm-lsp.toml.
    """
    from rlm_core.loading import load_personal

    from .check import Options, check_paths

    status = check_paths(paths or (Path(),), Options(**options), lambda: load_personal(model, threads=threads))
    raise click.exceptions.Exit(status)


@app.command()
@click.option("--stdio", is_flag=True, help="Talk over stdin and stdout (the default).")
@click.option("--tcp", metavar="HOST:PORT", help="Listen for one client instead.")
@cpu_scale_option
def serve(stdio: bool, tcp: str | None) -> None:
    """Run the language server."""
    if stdio and tcp is not None:
        raise RlmError("serve: give --stdio or --tcp, one of the two")
    from .serve import serve as run

    run(tcp)


@app.command(name="serve-model")
@click.option("--host", metavar="HOST", default="127.0.0.1", help="Where to listen; beyond this machine with a token.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8765, help="0 takes any free port.")
@model_option
@threads_option
@click.option("--token-file", metavar="FILE", type=PATH, help="The token, instead of the one in RLM_LSP_TOKEN.")
@click.option("--certificate", metavar="FILE", type=PATH, help="A certificate chain (PEM), to serve https.")
@click.option("--key", metavar="FILE", type=PATH, help="The certificate's private key (PEM).")
@click.option("--workers", type=click.IntRange(1, 64), default=1, help="Batches that the model works on at once.")
@click.option("--max-batch", metavar="TEXTS", type=click.IntRange(1, 4096), default=64, help="Texts in a batch.")
@click.option("--max-wait", metavar="MS", type=click.FloatRange(0, 1000), default=0, help="How long a batch fills.")
@click.option("--max-queue", metavar="TEXTS", type=click.IntRange(min=1), default=4096, help="Texts that may wait.")
@click.option("--max-texts", type=click.IntRange(min=1), default=256, help="Texts in a request.")
@click.option("--max-characters", type=click.IntRange(min=1), default=200_000, help="Characters in a text.")
@click.option("--max-body", metavar="MIB", type=click.IntRange(1, 1024), default=16, help="Size of a request.")
@click.option("--timeout", metavar="S", type=click.FloatRange(min=0, min_open=True), default=60, help="For a request.")
def serve_model(
    host: str,
    port: int,
    model: str,
    threads: int,
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    **limits: Any,
) -> None:
    """Serve a model to a team over HTTP (needs the [serve] extra); others name it as --model http://HOST:PORT."""
    from .serve_model import serve_model as run

    run(host, port, model, threads, token_file, certificate, key, **limits)


@app.command()
@model_option
@threads_option
@click.option("--rescore", is_flag=True, help="Measure the CPU's score again.")
def doctor(model: str, threads: int, rescore: bool) -> None:
    """Show versions, the model, a self-test and the processor; score it once, to scale latencies of calls to it."""
    from .doctor import doctor as run

    run(model, threads, rescore=rescore)


@app.command()
@click.option("--device", metavar="NAME", required=True, help="What the new device is called in queries.")
@click.option("--measurements", metavar="FILE", type=PATH, required=True, help="Rows of measurements (.jsonl).")
@model_option
@click.option("--out", metavar="FILE", type=PATH, help="Where the adapter goes instead of the user's folder.")
@click.option(
    "--choose", metavar="N", type=click.IntRange(min=1), help="Print the N rows most worth measuring instead."
)
@threads_option
def adapt(device: str, measurements: Path, model: str, out: Path | None, choose: int | None, threads: int) -> None:
    """Teach the model a new device (GPU, phone, CPU) from 10 to 100 measurements.

    A row is {"path": "kernels.py", "qualname": "..."} or {"text", "language", "basis"}, with "workload" as in queries,
    "metric" (default latency) and the measured "value" (seconds, bytes), "latency_ms" or "latency_us".
    """
    from . import adapt as command

    if choose is not None:
        command.choose(measurements, choose, model, threads)
    else:
        command.adapt(device, measurements, model, out, threads)


for _command in (bench, *cli_train.COMMANDS):
    app.add_command(_command)


@app.group(cls=Group)
def measure() -> None:
    """Measure your own functions and programs, and keep the figures."""


for _command in measuring.COMMANDS:
    measure.add_command(_command)

app.add_command(report)


def main() -> None:
    """The entry point of the ``rlm-lsp`` command."""
    app(prog_name=console.PROGRAM)
