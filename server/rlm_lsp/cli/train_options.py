"""Making and keeping models: data sets, training, tuning, evaluation; options and help texts only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from . import models as modelling
from .options import PATH, DataCommand, Group, data_option, model_option, most_option, threads_option

accelerate_option = click.option(
    "--accelerate",
    is_flag=True,
    help="A full model in the processes that `accelerate launch` or `torchrun` started (needs the [rlm] extra).",
)


@click.group(cls=Group)
def data() -> None:
    """Build data sets from labels."""


@data.command()
@click.argument(
    "kind", type=click.Choice(["functions", "leethub", "triton", "nas", "counterfactual", "texts", "code-regression"])
)
@click.option(
    "--labels",
    metavar="PATH",
    type=PATH,
    help="The label file (.jsonl or .jsonl.gz); a folder for triton and nas; for code-regression also .parquet.",
)
@click.option("--out", metavar="X.parquet", type=PATH, required=True, help="The data set to write.")
@click.option("--source-cache", metavar="DIR", type=PATH, help="Where wheels and repositories are kept.")
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
    from .data import build as run

    wanted = [name.strip() for name in languages.split(",") if name.strip()]
    run(kind, labels, out, source_cache, split, offline=offline, wanted=wanted)


@click.command(cls=DataCommand)
@data_option
@click.option("--texts", metavar="X.parquet", type=PATH, multiple=True, help="Unlabelled texts to pretrain on.")
@click.option("--config", metavar="FILE", type=PATH, required=True, help="The training configuration.")
@click.option("--out", metavar="DIR", type=PATH, required=True, help="Directory of checkpoints and logs.")
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint in --out.")
@accelerate_option
def train(
    data: tuple[Path, ...], texts: tuple[Path, ...], config: Path, out: Path, resume: bool, accelerate: bool
) -> None:
    """Train a model (needs the [train] extra)."""
    from .develop import train as run

    run(list(data), list(texts), config, out, resume=resume, accelerate=accelerate)


@click.command(cls=DataCommand)
@click.option("--teacher", metavar="DIR|URL", required=True, help="A full model, or a model server's address.")
@data_option
@click.option("--texts", metavar="X.parquet", type=PATH, multiple=True, help="Unlabelled texts, for the teacher too.")
@click.option("--config", metavar="FILE", type=PATH, help="The student's configuration; may have a table [distill].")
@click.option("--out", metavar="DIR", type=PATH, required=True, help="Directory of checkpoints and logs.")
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint in --out.")
def distill(
    teacher: str, data: tuple[Path, ...], texts: tuple[Path, ...], config: Path | None, out: Path, resume: bool
) -> None:
    """Train a small model on a large one's answers and the labels (needs the [train] extra)."""
    from .develop import distill as run

    run(teacher, list(data), list(texts), config, out, resume=resume)


@click.command(cls=DataCommand)
@data_option
@click.option("--model", metavar="NAME|DIR|builtin", default="builtin", help="The student whose encoder stays.")
@click.option("--name", metavar="NAME", default="refitted", help="What the new model is called.")
@click.option("--out", metavar="DIR", type=PATH, required=True, help="The directory to write.")
def refit(data: tuple[Path, ...], model: str, name: str, out: Path) -> None:
    """Fit a student to new labels on the encoder it has (needs the [train] extra).

    For thousands of labels of functions or programs: minutes, where training takes hours. The data sets are all labels
    of their basis, those of before too; other bases stay as they are.
    """
    from .develop import refit as run

    run(list(data), model, name, out)


@click.command(cls=DataCommand)
@data_option
@click.option("--model", metavar="NAME|DIR|builtin", default="builtin", help="The student to start from.")
@click.option("--name", metavar="NAME", default="tuned", help="What the new model is called.")
@click.option(
    "--out", metavar="DIR", type=PATH, help="Directory to write.", show_default="--name in the user's models folder"
)
@click.option("--keep", metavar="X.parquet", type=PATH, multiple=True, help="Original data, against forgetting it.")
@click.option(
    "--fewest",
    metavar="N",
    type=click.IntRange(min=5),
    default=200,
    help="With fewer rows of a basis and language only level and slope are fitted.",
)
@threads_option
@accelerate_option
def tune(
    data: tuple[Path, ...],
    model: str,
    name: str,
    out: Path | None,
    keep: tuple[Path, ...],
    fewest: int,
    threads: int,
    accelerate: bool,
) -> None:
    """Tune a student on your own measurements (needs the [train] extra).

    Rows come from `rlm-lsp measure export --format parquet --source` or `rlm-lsp data build`. Held-out groups say what
    became better; what did not stays as it was, and where nothing did no model is written (exit status 1).
    """
    from .tune import tune as run

    raise click.exceptions.Exit(run(list(data), model, out, name, list(keep), fewest, threads, accelerate=accelerate))


@click.group(cls=Group, name="model")
def model_() -> None:
    """List, choose, show and verify models."""


for _command in modelling.COMMANDS:
    model_.add_command(_command)


@click.command()
@click.argument("checkpoint", metavar="CHECKPOINT.pt", type=PATH)
@click.option("--out", metavar="DIR", type=PATH, required=True, help="Directory to write.")
@click.option("--numbers", type=click.Choice(["ieee", "p10"]), default="ieee", help="Its number tokenizer.")
@click.option("--mantissa-digits", metavar="N", type=click.IntRange(min=1), help="Digits of its mantissas.")
@click.option("--exponent-digits", metavar="N", type=click.IntRange(min=1), help="Digits of its exponents (ieee).")
@click.option("--base", metavar="N", type=click.IntRange(min=2), help="Base of its digits (ieee).")
@click.option("--exponent-range", metavar="N", type=click.IntRange(min=1), help="Its exponents are within ±N (p10).")
@click.option("--special", is_flag=True, help="It has tokens for NaN, infinities and invalid values.")
@click.option("--separator", is_flag=True, help="It writes a separator after each number.")
@click.option("--tokenizer", metavar="FILE", type=PATH, help="The text tokenizer of its own encoder.")
@click.option("--t5gemma", metavar="NAME|DIR", help="The base of its T5Gemma encoder instead.")
def convert(checkpoint: Path, out: Path, tokenizer: Path | None, t5gemma: str | None, **form: Any) -> None:
    """Convert a checkpoint of regress-lm (needs the [train] extra; runs nothing that the file holds)."""
    from .develop import convert as run

    ours = {"ieee": {"exponent_range"}, "p10": {"base", "exponent_digits"}}[form["numbers"]]
    given = {name: value for name, value in form.items() if value is not None}
    if strange := sorted(given.keys() & ours):
        raise click.UsageError(f"--{strange[0].replace('_', '-')} does not go with --numbers {form['numbers']}")
    run(checkpoint, out, given, tokenizer, t5gemma)


@click.command()
@click.option("--model", metavar="DIR", type=PATH, required=True, help="Directory of a trained model.")
@click.option("--out", metavar="DIR", type=PATH, required=True, help="Directory to write.")
def export(model: Path, out: Path) -> None:
    """Export a trained model for --model (needs the [train] extra)."""
    from .develop import export as run

    run(model, out)


@click.command(name="eval", cls=DataCommand)
@data_option
@model_option
@click.option(
    "--split",
    type=click.Choice(["test", "val", "cal", "train", "all"]),
    default="test",
    help="The rows to evaluate.",
)
@click.option("--baselines", is_flag=True, help="Fit plain baselines and show them beside.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="A table, or JSON.")
@click.option("--predictions", metavar="P.parquet", type=PATH, help="Keep every prediction.")
@most_option
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
    from .develop import evaluate as run

    run(model, list(data), split, form, baselines=baselines, predictions=predictions, most=most)


@click.command(cls=DataCommand)
@data_option
@model_option
@click.option("--out", metavar="FILE", type=PATH, default="MODEL_CARD.md", help="The card; plots go beside it.")
@click.option("--goals", metavar="FILE", type=PATH, help="Goals and what was measured (.json).")
@click.option("--ablations", metavar="FILE", type=PATH, help="What each part brings (.json).")
@most_option
def card(data: tuple[Path, ...], model: str, out: Path, goals: Path | None, ablations: Path | None, most: int) -> None:
    """Write the model card from an evaluation on the test split (needs the [train] extra)."""
    from .card import card as run

    run(model, list(data), out, goals, ablations, most)


# In the order of the help text.
COMMANDS: tuple[click.Command, ...] = (data, train, refit, distill, tune, model_, convert, export, evaluate, card)
