"""``rlm-lsp eval``: how accurate and how well calibrated a model is on data sets.

With ``--card``, its model card; with ``--protocol``, the table of the paper for a published model on published data.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click
from rlm_core import DataError
from rlm_core.inference.model_store import BUILTIN
from rlm_core.loading import is_remote, load

from . import options
from .options import PATH, DataCommand, optional_packages, require


@click.command(cls=DataCommand)
@options.data
@options.model
@options.split
@click.option("--baselines", is_flag=True, help="Also fit plain baselines and show their results.")
@options.output_format("table", "json")
@click.option("--predictions", metavar="P.parquet", type=PATH, help="Write all predictions to this file.")
@options.most(8000)
@click.option(
    "--card", metavar="FILE", type=PATH, help="Write a model card, with baselines and plots, instead of a table."
)
@click.option("--goals", metavar="FILE", type=PATH, help="Goals and their measured values, for the card (.json).")
@click.option("--ablations", metavar="FILE", type=PATH, help="Contribution of each part, for the card (.json).")
@click.option(
    "--protocol",
    type=click.Choice(["rlm-paper"]),
    help="Evaluate a published model as its paper does (arXiv 2509.26476), on its data sets as published.",
)
@click.option(
    "--space",
    "spaces",
    metavar="NAME",
    multiple=True,
    show_default="all known",
    help="With --protocol, evaluate this space only, such as APPS or NASNet; repeatable.",
)
@click.option(
    "--rows",
    metavar="N",
    type=click.IntRange(min=2),
    show_default="512",
    help="With --protocol, first rows of each space (CDSS: of each language).",
)
@click.option(
    "--draws", metavar="N", type=click.IntRange(min=1), show_default="8", help="With --protocol, draws per row."
)
def command(
    data: tuple[Path, ...],
    model: str,
    split: str,
    baselines: bool,
    form: Literal["table", "json"],
    predictions: Path | None,
    most: int,
    card: Path | None,
    goals: Path | None,
    ablations: Path | None,
    protocol: str | None,
    spaces: tuple[str, ...],
    rows: int | None,
    draws: int | None,
) -> None:
    """Evaluate a model on data sets (needs the [train] extra)."""
    if protocol is None and (spaces or rows is not None or draws is not None):
        raise DataError("eval: --space, --rows and --draws are for the paper's table; add --protocol rlm-paper")
    if protocol is not None:
        if card or goals or ablations or baselines or predictions or split != "test":
            raise DataError(
                f"eval: --protocol {protocol} evaluates the published rows; leave out --card, --goals, --ablations, "
                "--baselines, --predictions and --split"
            )
        _print_paper_table(data, model, form, spaces, rows, draws)
        return
    if card is None and (goals or ablations):
        raise DataError("eval: --goals and --ablations are for a model card; add --card FILE")
    if card is not None and (split != "test" or form != "table" or predictions):
        raise DataError("eval: --card evaluates the test split; leave out --split, --format and --predictions")
    if card is not None:
        require("train", "matplotlib")
        with optional_packages():
            from rlm_core.training.evaluation.model_card import write_card

            write_card(load(model), data, card, goals=goals, ablations=ablations, most=most)
        print(card)
        return
    with optional_packages():
        from rlm_core.training.evaluation.run import evaluate

        report = evaluate(load(model), data, split, baselines, predictions, most)
    print(json.dumps(asdict(report)) if form == "json" else report)


def _print_paper_table(
    data: tuple[Path, ...],
    model: str,
    form: Literal["table", "json"],
    names: tuple[str, ...],
    rows: int | None,
    draws: int | None,
) -> None:
    if is_remote(model) or model == BUILTIN:
        raise DataError(
            f"--protocol: {model} is not a full model on this machine; name the directory of one with --model"
        )
    with optional_packages():
        from rlm_core.training.full import paper_protocol

        report = paper_protocol.evaluate_directory(
            Path(model),
            data,
            names,
            rows=paper_protocol.ROWS if rows is None else rows,
            draws=paper_protocol.DRAWS if draws is None else draws,
        )
    print(json.dumps(asdict(report)) if form == "json" else report)
