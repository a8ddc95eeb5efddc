"""The ``rlm-lsp`` command: options and help texts only. Each command's module is imported when it is called."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rlm_core import RlmError
from typer.core import TyperGroup

from . import __version__, console


class _Group(TyperGroup):
    """Errors that a user can mend become one line and exit status 2; an interrupt or a closed pipe ends quietly."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            if not sys.stdout.closed:
                sys.stdout.flush()
            return result
        except RlmError as error:
            console.report_error(error)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Python flushes stdout once more at exit; give it something that takes the rest.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Predict what code will cost: latency and memory, in editors and on the command line. Nothing is run.",
)
data_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Build data sets from labels.")
app.add_typer(data_app, name="data")

Model = Annotated[
    str, typer.Option(metavar="DIR|builtin", help="An exported model, or the one that ships with rlm-lsp.")
]
Threads = Annotated[int, typer.Option(min=0, help="Threads of the model; 0 leaves the choice to onnxruntime.")]
DataFiles = Annotated[list[Path], typer.Option("--data", metavar="X.parquet", help="A data set; may be repeated.")]


class RowFormat(StrEnum):
    """How ``predict`` prints."""

    table = "table"
    json = "json"
    jsonl = "jsonl"


class ReportFormat(StrEnum):
    """How ``eval`` prints."""

    table = "table"
    json = "json"


class Labels(StrEnum):
    """The kinds of labels that we can build data sets from."""

    functions = "functions"
    leethub = "leethub"


class Split(StrEnum):
    """Where the rows of a data set go; ``auto`` decides by group."""

    auto = "auto"
    train = "train"
    val = "val"
    cal = "cal"
    test = "test"


class EvaluatedSplit(StrEnum):
    """The rows of a data set that are evaluated."""

    test = "test"
    val = "val"
    cal = "cal"
    train = "train"
    all = "all"


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"rlm-lsp {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show `µ` must not end the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@app.command()
def predict(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH...", help="Source files or directories.")] = None,
    form: Annotated[
        RowFormat, typer.Option("--format", help="A table for people, or JSON in SI units.")
    ] = RowFormat.table,
    batch: Annotated[str | None, typer.Option(metavar="IN.jsonl|-", help="Rows of text and queries instead.")] = None,
    out: Annotated[str, typer.Option(metavar="OUT.jsonl|-", help="Where the answers to --batch go.")] = "-",
    model: Model = "builtin",
    threads: Threads = 0,
) -> None:
    """Predict the cost of every unit in source files."""
    if (batch is None) == (not paths):
        raise RlmError("predict: name paths or give --batch, one of the two")
    if batch is not None:
        from .commands.batch import predict_batch

        raise typer.Exit(predict_batch(batch, out, model, threads))
    from .commands.predict import predict_paths

    raise typer.Exit(predict_paths(paths or [], form.value, model, threads))


@app.command()
def serve(
    stdio: Annotated[bool, typer.Option("--stdio", help="Talk over stdin and stdout (the default).")] = False,
    tcp: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Listen for one client instead.")] = None,
) -> None:
    """Run the language server."""
    if stdio and tcp is not None:
        raise RlmError("serve: give --stdio or --tcp, one of the two")
    from .commands.serve import serve as run

    run(tcp)


@app.command()
def doctor(model: Model = "builtin", threads: Threads = 0) -> None:
    """Show versions, the model, the processor and a self-test."""
    from .commands.doctor import doctor as run

    run(model, threads)


@data_app.command()
def build(
    kind: Annotated[Labels, typer.Argument(help="What the labels are of.")],
    labels: Annotated[Path, typer.Option(help="The label file (.jsonl or .jsonl.gz).")],
    out: Annotated[Path, typer.Option(metavar="X.parquet", help="The data set to write.")],
    source_cache: Annotated[Path | None, typer.Option(help="Where wheels and repositories are kept.")] = None,
    split: Annotated[Split, typer.Option(help="One split for all rows, or by group.")] = Split.auto,
    offline: Annotated[bool, typer.Option("--offline", help="Use what the cache holds; download nothing.")] = False,
    languages: Annotated[str, typer.Option(metavar="a,b", help="Only these languages.")] = "",
) -> None:
    """Recover the source text of labels and write a data set."""
    from .commands.data import build as run

    wanted = [name.strip() for name in languages.split(",") if name.strip()]
    run(kind.value, labels, out, source_cache, split.value, offline=offline, wanted=wanted)


@app.command()
def train(
    data: DataFiles,
    config: Annotated[Path, typer.Option(help="The training configuration.")],
    out: Annotated[Path, typer.Option(help="Directory of checkpoints and logs.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in --out.")] = False,
) -> None:
    """Train a model (needs the [train] extra)."""
    from .commands.develop import train as run

    run(data, config, out, resume=resume)


@app.command()
def export(
    model: Annotated[Path, typer.Option(help="Directory of a trained model.")],
    out: Annotated[Path, typer.Option(help="Directory to write.")],
) -> None:
    """Export a trained model for --model (needs the [train] extra)."""
    from .commands.develop import export as run

    run(model, out)


@app.command(name="eval")
def evaluate(
    data: DataFiles,
    model: Model = "builtin",
    split: Annotated[EvaluatedSplit, typer.Option(help="The rows to evaluate.")] = EvaluatedSplit.test,
    baselines: Annotated[bool, typer.Option("--baselines", help="Fit plain baselines and show them beside.")] = False,
    form: Annotated[ReportFormat, typer.Option("--format", help="A table, or JSON.")] = ReportFormat.table,
    predictions: Annotated[Path | None, typer.Option(metavar="P.parquet", help="Keep every prediction.")] = None,
) -> None:
    """Measure how good a model is (needs the [train] extra)."""
    from .commands.develop import evaluate as run

    run(model, data, split.value, form.value, baselines=baselines, predictions=predictions)


def main() -> None:
    """The entry point of the ``rlm-lsp`` command."""
    app(prog_name=console.PROGRAM)
