"""``rlm-lsp train``, ``distill``, ``export`` and ``eval``: thin wrappers that need the ``[train]`` extra."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from rlm_core import RlmError

from .extras import training_extra


def train(data: list[Path], texts: list[Path], config: Path, out: Path, *, resume: bool) -> None:
    """Train a model on data sets into the directory ``out``.

    Raises:
        RlmError: bad input, or the ``[train]`` extra is missing.
    """
    with training_extra():
        from rlm_core.full.train.config import is_full

        if is_full(config):
            if texts:
                raise RlmError(f"--texts: the full model of {config} reads labelled texts only; leave the option out")
            from rlm_core.full.train.run import train as run_full

            run_full(data, config, out, resume=resume)
            return
        from rlm_core.train.run import train as run

        run(data, config, out, texts=texts, resume=resume)


def distill(teacher: str, data: list[Path], texts: list[Path], config: Path | None, out: Path, *, resume: bool) -> None:
    """Train a student on a teacher's distributions and the labels into the directory ``out``.

    Raises:
        RlmError: bad input, or the ``[train]`` extra is missing.
    """
    with training_extra():
        from rlm_core.full.train.distill import distill as run

        run(teacher, data, config, out, texts=texts, resume=resume)


def export(model: Path, out: Path) -> None:
    """Export a trained model to the directory that ``--model`` takes.

    Raises:
        RlmError: bad input, or the ``[train]`` extra is missing.
    """
    with training_extra():
        from rlm_core.export import export as run

        run(model, out)


def evaluate(
    model: str,
    data: list[Path],
    split: str,
    form: Literal["table", "json"],
    *,
    baselines: bool,
    predictions: Path | None,
    most: int,
) -> None:
    """Print how good a model is on a split of data sets, beside plain baselines when wanted.

    Raises:
        RlmError: bad input, or the ``[train]`` extra is missing.
    """
    with training_extra():
        from rlm_core.evaluate.run import evaluate as run

        report = run(model, data, split, baselines, predictions, most)
    print(json.dumps(asdict(report)) if form == "json" else report)
