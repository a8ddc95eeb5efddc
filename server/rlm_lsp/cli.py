"""The ``rlm-lsp`` command: options and help texts only. Each command's module is imported when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click
from rlm_core import RlmError

from . import __version__, console
from .commands import measure as measuring
from .commands import models as modelling


@contextmanager
def _quiet_end() -> Iterator[None]:
    """Errors that a user can mend become one line and exit status 2; an interrupt or a closed pipe ends quietly."""
    try:
        try:
            yield
        except click.exceptions.Exit:
            _flush()
            raise
        _flush()
    except RlmError as error:
        console.report_error(error)
        raise click.exceptions.Exit(2) from None
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx is not None else ""
        console.report_error(error.format_message() + hint)
        raise click.exceptions.Exit(2) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None
    except BrokenPipeError:
        # Python flushes stdout once more at exit; give it something that takes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(141) from None


def _flush() -> None:
    if not sys.stdout.closed:
        sys.stdout.flush()


class _Group(click.Group):
    """Lists its commands in the order of this file, shows its help when none is named, and ends quietly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _quiet_end():
            return super().make_context(*args, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _quiet_end():
            return super().invoke(ctx)


class _DataCommand(click.Command):
    """A command without arguments where ``--data A B`` means ``--data A --data B``, so that a shell may expand it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        several = False
        rest = iter(args)
        for word in rest:
            if several and not word.startswith("-"):
                spread += ["--data", word]
                continue
            several = word.partition("=")[0] == "--data"
            spread += [word, *(islice(rest, 1) if word == "--data" else ())]
        return super().parse_args(ctx, spread)


_PATH = click.Path(path_type=Path)
_model = click.option(
    "--model",
    metavar="DIR|URL|builtin",
    default="builtin",
    help="An exported model, a model server's address, or the model that ships with rlm-lsp.",
)
_threads = click.option(
    "--threads",
    type=click.IntRange(min=0),
    default=0,
    help="Threads of the model; 0 leaves the choice to onnxruntime.",
)
_cpu_scale = click.option(
    "--no-cpu-scale",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, option, off: os.environ.update(RLM_LSP_CPU_SCALE="0") if off else None,
    help="Leave latencies as on the machine of the labels, as RLM_LSP_CPU_SCALE=0 does.",
)
_data = click.option(
    "--data",
    type=_PATH,
    multiple=True,
    required=True,
    metavar="X.parquet...",
    help="One data set or several; may be repeated.",
)

_most = click.option(
    "--most",
    metavar="N",
    type=click.IntRange(min=0),
    default=8000,
    help="Rows a slice and device, a seeded sample; 0 for all.",
)


@click.group(cls=_Group, context_settings={"show_default": True})
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
@click.argument("paths", metavar="[PATH]...", type=_PATH, nargs=-1)
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
@_model
@_threads
@_cpu_scale
def predict(
    paths: tuple[Path, ...],
    form: Literal["table", "json", "jsonl"],
    batch: str | None,
    out: str,
    devices: tuple[str, ...],
    workload: tuple[str, ...],
    model: str,
    threads: int,
) -> None:
    """Predict the cost of every unit in source files or directories."""
    if (batch is None) == (not paths):
        raise RlmError("predict: name paths or give --batch, one of the two")
    if batch is not None:
        from .commands.batch import predict_batch

        raise click.exceptions.Exit(predict_batch(batch, out, model, threads))
    from .commands.predict import asked_for, predict_paths

    raise click.exceptions.Exit(predict_paths(paths, form, model, threads, asked_for(devices, workload)))


@app.command()
@click.argument("paths", metavar="[PATH]...", type=_PATH, nargs=-1)
@click.option("--diff", metavar="REV", help="Only units that changed since a git revision; tells regressions too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "github", "junit"]),
    default="text",
    help="How findings are written.",
)
@click.option("--output", metavar="FILE", type=_PATH, help="Where findings go instead of stdout.")
@click.option("--baseline", metavar="FILE", type=_PATH, help="Known findings, which are not reported again.")
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
@_model
@_threads
@_cpu_scale
def check(paths: tuple[Path, ...], model: str, threads: int, **options: Any) -> None:
    """Hold units against their budgets, for CI: exit status 1 when a cost is over its budget.

    Without PATH the working directory is checked. Budgets stand in comments above units (rlm: latency < 1 ms) or as
    globs in pyproject.toml and rlm-lsp.toml.
    """
    from rlm_core.adapt import load_personal

    from .commands.check import Options, check_paths

    status = check_paths(paths or (Path(),), Options(**options), lambda: load_personal(model, threads=threads))
    raise click.exceptions.Exit(status)


@app.command()
@click.option("--stdio", is_flag=True, help="Talk over stdin and stdout (the default).")
@click.option("--tcp", metavar="HOST:PORT", help="Listen for one client instead.")
@_cpu_scale
def serve(stdio: bool, tcp: str | None) -> None:
    """Run the language server."""
    if stdio and tcp is not None:
        raise RlmError("serve: give --stdio or --tcp, one of the two")
    from .commands.serve import serve as run

    run(tcp)


@app.command(name="serve-model")
@click.option("--host", metavar="HOST", default="127.0.0.1", help="Where to listen; beyond this machine with a token.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8765, help="0 takes any free port.")
@_model
@_threads
@click.option("--token-file", metavar="FILE", type=_PATH, help="The token, instead of the one in RLM_LSP_TOKEN.")
@click.option("--certificate", metavar="FILE", type=_PATH, help="A certificate chain (PEM), to serve https.")
@click.option("--key", metavar="FILE", type=_PATH, help="The certificate's private key (PEM).")
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
    from .commands.serve_model import serve_model as run

    run(host, port, model, threads, token_file, certificate, key, **limits)


@app.command()
@_model
@_threads
@click.option("--rescore", is_flag=True, help="Measure the CPU's score again.")
def doctor(model: str, threads: int, rescore: bool) -> None:
    """Show versions, the model, a self-test and the processor; score it once, to scale latencies of calls to it."""
    from .commands.doctor import doctor as run

    run(model, threads, rescore=rescore)


@app.command()
@click.option("--device", metavar="NAME", required=True, help="What the new device is called in queries.")
@click.option("--measurements", metavar="FILE", type=_PATH, required=True, help="Rows of measurements (.jsonl).")
@_model
@click.option("--out", metavar="FILE", type=_PATH, help="Where the adapter goes instead of the user's folder.")
@click.option(
    "--choose", metavar="N", type=click.IntRange(min=1), help="Print the N rows most worth measuring instead."
)
@_threads
def adapt(device: str, measurements: Path, model: str, out: Path | None, choose: int | None, threads: int) -> None:
    """Teach the model a new device (GPU, phone, CPU) from 10 to 100 measurements.

    A row is {"path": "kernels.py", "qualname": "..."} or {"text", "language", "basis"}, with "workload" as in queries,
    "metric" (default latency) and the measured "value" (seconds, bytes), "latency_ms" or "latency_us".
    """
    from .commands import adapt as command

    if choose is not None:
        command.choose(measurements, choose, model, threads)
    else:
        command.adapt(device, measurements, model, out, threads)


@app.group(cls=_Group)
def bench() -> None:
    """Run your own kernels, modules and models on this machine and keep what they take.

    The code of the named files is run, in child processes under limits. A row a measurement is appended to --out as it
    is made; the same command again makes only what is missing.
    """


def _bench_options(command: Any) -> Any:
    """The options that all benches share, given to the command as one ``settings``."""

    @wraps(command)
    def run(out: Path, limit: float, memory: float | None, seconds: float, retry: bool, **options: Any) -> None:
        from .commands.bench import Settings

        raise click.exceptions.Exit(command(settings=Settings(out, limit, memory, seconds, retry), **options))

    for option in (
        click.option("--retry", is_flag=True, help="Make failed rows again too."),
        click.option(
            "--seconds", metavar="S", type=click.FloatRange(0, 600), default=0.1, help="How long to measure a call."
        ),
        click.option("--memory", metavar="GIB", type=click.FloatRange(min=0), help="Memory of a child; 0: no limit."),
        click.option(
            "--limit", metavar="S", type=click.FloatRange(0, min_open=True), default=120.0, help="For one measurement."
        ),
        click.option("--out", metavar="FILE", type=_PATH, default="bench.jsonl", help="Where rows are appended."),
    ):
        run = option(run)
    return run


_target = click.option("--target", metavar="NAME", default="cuda:90", help="A GPU to compile for, like hip:gfx942.")
_dtypes = click.option(
    "--dtype", "dtypes", type=click.Choice(["fp32", "fp16", "bf16"]), multiple=True, help="May be repeated."
)


@bench.command(name="triton")
@click.argument("paths", metavar="PATH...", type=_PATH, nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Compile for --target without a GPU and tell what kernels take of it.")
@_target
@click.option("--configs", type=click.Choice(["all", "best"]), default="all", help="Of autotuned kernels.")
@_bench_options
def bench_triton(paths: tuple[Path, ...], **options: Any) -> int:
    """Measure Triton kernels that have a bench function, a perf_report or a sheet (needs the [triton] extra).

    With TRITON_INTERPRET=1 results are checked on the CPU and nothing is timed.
    """
    from .commands.bench import bench_triton as run

    return run(paths, **options)


@bench.command(name="torch")
@click.argument("paths", metavar="PATH...", type=_PATH, nargs=-1, required=True)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Where to run; by default a GPU where there is one.")
@_dtypes
@click.option("--backend", "backends", type=click.Choice(["eager", "compile"]), multiple=True, help="May be repeated.")
@_threads
@_bench_options
def bench_torch(paths: tuple[Path, ...], dtypes: tuple[str, ...], backends: tuple[str, ...], **options: Any) -> int:
    """Measure PyTorch modules of files with get_inputs (needs the [triton] extra)."""
    from .commands.bench import bench_torch as run

    return run(paths, dtypes=dtypes or ("fp32",), backends=backends or ("eager",), **options)


@bench.command(name="onnx")
@click.argument("paths", metavar="MODEL.onnx...", type=_PATH, nargs=-1, required=True)
@click.option("--provider", "providers", metavar="NAME", multiple=True, help="Of onnxruntime; by default all here.")
@click.option("--size", "sizes", metavar="NAME=N", multiple=True, help="A symbolic dimension; 1 where none is given.")
@_threads
@_bench_options
def bench_onnx(paths: tuple[Path, ...], **options: Any) -> int:
    """Measure latency and peak memory of ONNX models in onnxruntime."""
    from .commands.bench import bench_onnx as run

    return run(paths, **options)


@bench.command(name="generate")
@click.argument("folder", metavar="FOLDER", type=_PATH)
@click.option("--count", metavar="N", type=click.IntRange(1, 1_000_000), default=100, help="Modules to write.")
@click.option("--seed", type=int, default=0, help="The same seed writes the same modules.")
@_target
@_dtypes
@_bench_options
def bench_generate(folder: Path, dtypes: tuple[str, ...], **options: Any) -> int:
    """Write PyTorch modules of many kinds and the Triton that torch.compile makes of them, to train on.

    Measure what was written with rlm-lsp bench torch FOLDER/modules and rlm-lsp bench triton FOLDER/kernels.
    """
    from .commands.bench import generate as run

    return run(folder, dtypes=dtypes or ("fp16", "bf16", "fp32"), **options)


@bench.command(name="pruner")
@click.argument("rows", metavar="ROWS.jsonl...", type=_PATH, nargs=-1, required=True)
@click.option("--out", metavar="FILE", type=_PATH, required=True, help="The pruner to write (.safetensors).")
def bench_pruner(rows: tuple[Path, ...], out: Path) -> None:
    """Fit what ranks the configurations of your kernels on GPUs where they were not measured (needs [train])."""
    from .commands.bench import fit_pruner

    fit_pruner(rows, out)


@app.group(cls=_Group)
def data() -> None:
    """Build data sets from labels."""


@data.command()
@click.argument(
    "kind", type=click.Choice(["functions", "leethub", "triton", "nas", "counterfactual", "texts", "code-regression"])
)
@click.option(
    "--labels",
    metavar="PATH",
    type=_PATH,
    help="The label file (.jsonl or .jsonl.gz); a folder for triton and nas; for code-regression also .parquet.",
)
@click.option("--out", metavar="X.parquet", type=_PATH, required=True, help="The data set to write.")
@click.option("--source-cache", metavar="DIR", type=_PATH, help="Where wheels and repositories are kept.")
@click.option(
    "--split",
    type=click.Choice(["auto", "train", "val", "cal", "test"]),
    default="auto",
    help="One split for all rows, or by group.",
)
@click.option("--offline", is_flag=True, help="Use what the cache holds; download nothing.")
@click.option("--languages", metavar="a,b", default="", show_default=False, help="Only these languages.")
def build(
    kind: Literal["functions", "leethub", "triton", "nas", "counterfactual", "texts", "code-regression"],
    labels: Path | None,
    out: Path,
    source_cache: Path | None,
    split: str,
    offline: bool,
    languages: str,
) -> None:
    """Recover the source text of labels and write a data set."""
    from .commands.data import build as run

    wanted = [name.strip() for name in languages.split(",") if name.strip()]
    run(kind, labels, out, source_cache, split, offline=offline, wanted=wanted)


@app.command(cls=_DataCommand)
@_data
@click.option("--texts", metavar="X.parquet", type=_PATH, multiple=True, help="Unlabelled texts to pretrain on.")
@click.option("--config", metavar="FILE", type=_PATH, required=True, help="The training configuration.")
@click.option("--out", metavar="DIR", type=_PATH, required=True, help="Directory of checkpoints and logs.")
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint in --out.")
def train(data: tuple[Path, ...], texts: tuple[Path, ...], config: Path, out: Path, resume: bool) -> None:
    """Train a model (needs the [train] extra)."""
    from .commands.develop import train as run

    run(list(data), list(texts), config, out, resume=resume)


@app.command(cls=_DataCommand)
@click.option("--teacher", metavar="DIR|URL", required=True, help="A full model, or a model server's address.")
@_data
@click.option("--texts", metavar="X.parquet", type=_PATH, multiple=True, help="Unlabelled texts, for the teacher too.")
@click.option("--config", metavar="FILE", type=_PATH, help="The student's configuration; may have a table [distill].")
@click.option("--out", metavar="DIR", type=_PATH, required=True, help="Directory of checkpoints and logs.")
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint in --out.")
def distill(
    teacher: str, data: tuple[Path, ...], texts: tuple[Path, ...], config: Path | None, out: Path, resume: bool
) -> None:
    """Train a small model on a large one's answers and the labels (needs the [train] extra)."""
    from .commands.develop import distill as run

    run(teacher, list(data), list(texts), config, out, resume=resume)


@app.command(cls=_DataCommand)
@_data
@click.option("--model", metavar="NAME|DIR|builtin", default="builtin", help="The student to start from.")
@click.option("--name", metavar="NAME", default="tuned", help="What the new model is called.")
@click.option(
    "--out", metavar="DIR", type=_PATH, help="Directory to write.", show_default="--name in the user's models folder"
)
@click.option("--keep", metavar="X.parquet", type=_PATH, multiple=True, help="Original data, against forgetting it.")
@click.option(
    "--fewest",
    metavar="N",
    type=click.IntRange(min=5),
    default=200,
    help="With fewer rows of a basis and language only level and slope are fitted.",
)
@_threads
def tune(
    data: tuple[Path, ...],
    model: str,
    name: str,
    out: Path | None,
    keep: tuple[Path, ...],
    fewest: int,
    threads: int,
) -> None:
    """Tune a student on your own measurements (needs the [train] extra).

    Rows come from `rlm-lsp measure export --format parquet --source` or `rlm-lsp data build`. Held-out groups say what
    became better; what did not stays as it was, and where nothing did no model is written (exit status 1).
    """
    from .commands.tune import tune as run

    raise click.exceptions.Exit(run(list(data), model, out, name, list(keep), fewest, threads))


@app.group(cls=_Group, name="model")
def model_() -> None:
    """List, choose, show and verify models."""


for _command in modelling.COMMANDS:
    model_.add_command(_command)


@app.command()
@click.argument("checkpoint", metavar="CHECKPOINT.pt", type=_PATH)
@click.option("--out", metavar="DIR", type=_PATH, required=True, help="Directory to write.")
@click.option("--numbers", type=click.Choice(["ieee", "p10"]), default="ieee", help="Its number tokenizer.")
@click.option("--mantissa-digits", metavar="N", type=click.IntRange(min=1), help="Digits of its mantissas.")
@click.option("--exponent-digits", metavar="N", type=click.IntRange(min=1), help="Digits of its exponents (ieee).")
@click.option("--base", metavar="N", type=click.IntRange(min=2), help="Base of its digits (ieee).")
@click.option("--exponent-range", metavar="N", type=click.IntRange(min=1), help="Its exponents are within ±N (p10).")
@click.option("--special", is_flag=True, help="It has tokens for NaN, infinities and invalid values.")
@click.option("--separator", is_flag=True, help="It writes a separator after each number.")
@click.option("--tokenizer", metavar="FILE", type=_PATH, help="The text tokenizer of its own encoder.")
@click.option("--t5gemma", metavar="NAME|DIR", help="The base of its T5Gemma encoder instead.")
def convert(checkpoint: Path, out: Path, tokenizer: Path | None, t5gemma: str | None, **form: Any) -> None:
    """Convert a checkpoint of regress-lm (needs the [train] extra; runs nothing that the file holds)."""
    from .commands.develop import convert as run

    ours = {"ieee": {"exponent_range"}, "p10": {"base", "exponent_digits"}}[form["numbers"]]
    given = {name: value for name, value in form.items() if value is not None}
    if strange := sorted(given.keys() & ours):
        raise click.UsageError(f"--{strange[0].replace('_', '-')} does not go with --numbers {form['numbers']}")
    run(checkpoint, out, given, tokenizer, t5gemma)


@app.command()
@click.option("--model", metavar="DIR", type=_PATH, required=True, help="Directory of a trained model.")
@click.option("--out", metavar="DIR", type=_PATH, required=True, help="Directory to write.")
def export(model: Path, out: Path) -> None:
    """Export a trained model for --model (needs the [train] extra)."""
    from .commands.develop import export as run

    run(model, out)


@app.command(name="eval", cls=_DataCommand)
@_data
@_model
@click.option(
    "--split",
    type=click.Choice(["test", "val", "cal", "train", "all"]),
    default="test",
    help="The rows to evaluate.",
)
@click.option("--baselines", is_flag=True, help="Fit plain baselines and show them beside.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="A table, or JSON.")
@click.option("--predictions", metavar="P.parquet", type=_PATH, help="Keep every prediction.")
@_most
def evaluate(
    data: tuple[Path, ...],
    model: str,
    split: str,
    baselines: bool,
    form: Literal["table", "json"],
    predictions: Path | None,
    most: int,
) -> None:
    """Measure how good a model is (needs the [train] extra)."""
    from .commands.develop import evaluate as run

    run(model, list(data), split, form, baselines=baselines, predictions=predictions, most=most)


@app.command(cls=_DataCommand)
@_data
@_model
@click.option("--out", metavar="FILE", type=_PATH, default="MODEL_CARD.md", help="The card; plots go beside it.")
@click.option("--goals", metavar="FILE", type=_PATH, help="Goals and what was measured (.json).")
@click.option("--ablations", metavar="FILE", type=_PATH, help="What each part brings (.json).")
@_most
def card(data: tuple[Path, ...], model: str, out: Path, goals: Path | None, ablations: Path | None, most: int) -> None:
    """Write the model card from an evaluation on the test split (needs the [train] extra)."""
    from .commands.card import card as run

    run(model, list(data), out, goals, ablations, most)


@app.group(cls=_Group)
def measure() -> None:
    """Measure your own functions, and keep the figures."""


for _command in measuring.COMMANDS:
    measure.add_command(_command)


def main() -> None:
    """The entry point of the ``rlm-lsp`` command."""
    app(prog_name=console.PROGRAM)
