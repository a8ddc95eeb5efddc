"""``rlm-lsp eval``: how accurate and how well calibrated a model is on data sets; with ``--card``, its model card."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click
from rlm_core import DataError
from rlm_core.loading import load

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
) -> None:
    """Evaluate a model on data sets (needs the [train] extra)."""
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
