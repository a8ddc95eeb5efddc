"""The trees of one task, fitted again and put into a model: ``python -m rlm_core.training.trees_refit``.

For a task whose trees answer alone: nothing else of the model depends on them. The bands, and those for devices that
are known by their data sheet, are fitted with them, as in ``rlm-lsp train``. Rows near the floor of their measurement
say only that they cost little; they take no part.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlm_core.errors import DataError
from rlm_core.inference import trees
from rlm_core.inference.card import read_card
from rlm_core.inference.features import all_feature_names, answers_alone
from rlm_core.inference.residuals import forest_of
from rlm_core.inference.student import TREES

from .corpus import Corpus, known_devices, load_corpus
from .student.config import load_config
from .student.trees_fit import TreesFit, fit_trees


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit and write the trees of a task."""
    parser = argparse.ArgumentParser(prog="python -m rlm_core.training.trees_refit", description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="data sets of rlm-lsp data build")
    parser.add_argument("--task", default="kernel/triton/latency", help="whose trees answer alone")
    parser.add_argument("--config", type=Path, required=True, help="as for rlm-lsp train")
    parser.add_argument("--model", type=Path, required=True, help="directory of the model to write to")
    chosen = parser.parse_args(arguments)
    if not answers_alone(chosen.task):
        raise DataError(f"{chosen.task}: its trees do not answer alone; train the model again")
    corpus = load_corpus(chosen.data, tasks=[chosen.task])
    put_into(chosen.model, corpus, fit_trees(corpus, load_config(chosen.config).trees))


def put_into(model: Path, corpus: Corpus, fit: TreesFit) -> None:
    """Replace the trees, the bands and the known devices of a task in a model."""
    card = read_card(model)  # before a file of it changes
    trees.put(fit.forests, all_feature_names(), model / TREES)
    devices = {**card.devices, **known_devices(corpus)}
    others = {key: own for key, own in card.residuals.items() if forest_of(key) not in fit.forests}
    residuals = {**others, **fit.residuals}
    replace(card, devices=devices, residuals=residuals, files={}).write(model, list(card.files))


if __name__ == "__main__":
    main()
