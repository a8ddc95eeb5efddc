"""``rlm-lsp train``, ``refit``, ``distill``, ``convert``, ``export`` and ``eval``: thin wrappers around the library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from rlm_core import RlmError, models

from rlm_lsp.rendering import console

from .extras import training_extra
from .launch import check_full, launched


def train(
    data: list[Path], texts: list[Path], config: Path, out: Path, *, resume: bool, accelerate: bool = False
) -> None:
    """Train a model on data sets into the directory ``out``; ``accelerate``: in the processes that were launched.

    Raises:
        RlmError: bad input, or the ``[train]`` extra is missing.
    """
    with training_extra(), launched(accelerate) as processes:
        from rlm_core.training.full.training_config import is_full
        from rlm_core.training.student.config import read_toml

        with processes.together():
            full = is_full(config)
            if accelerate:
                read_toml(config)  # a file that cannot be read is not a student's
            check_full(accelerate, full, f"the model of {config}")
            if full and texts:
                raise RlmError(f"--texts: the full model of {config} reads labelled texts only; leave the option out")
        if full:
            from rlm_core.training.full.train import train as run_full

            run_full(data, config, out, resume=resume, processes=processes)
            return
        from rlm_core.training.student.train import train as run

        run(data, config, out, texts=texts, resume=resume)


def distill(teacher: str, data: list[Path], texts: list[Path], config: Path | None, out: Path, *, resume: bool) -> None:
    """Train a student on a teacher's distributions and the labels into the directory ``out``.

    Raises:
        RlmError: bad input, or the ``[train]`` extra is missing.
    """
    with training_extra(), launched(accelerate=False):
        from rlm_core.loading import load
        from rlm_core.training.student.distill import distill as run

        run(load(teacher), data, config, out, texts=texts, resume=resume)


def refit(data: list[Path], model: str, name: str, out: Path) -> None:
    """Fit the labels of data sets on the encoder of ``model`` and write the new model to the directory ``out``.

    Raises:
        RlmError: bad input, or the ``[train]`` extra is missing.
    """
    with training_extra():
        from rlm_core.training.tuning.refit import refit as run

        model_id = run(data, models.find(model), out, name, console.note)
    print(f"{out}: model {model_id}")


def convert(checkpoint: Path, out: Path, form: Mapping[str, Any], tokenizer: Path | None, t5gemma: str | None) -> None:
    """Write a regress-lm checkpoint as a full model into the directory ``out``; ``form`` is its number format.

    Raises:
        RlmError: bad input, or the ``[train]`` or ``[rlm]`` extra is missing.
    """
    with training_extra():
        from rlm_core.training.full import regress_lm, store

        settings = {**form, "special": regress_lm.SPECIAL if form["special"] else ()}
        kind = settings.pop("numbers")
        numbers = regress_lm.p10(**settings) if kind == "p10" else regress_lm.ieee(**settings)
        encoder = None
        if t5gemma is not None:
            from rlm_core.training.full.encoders.pretrained import T5GemmaSettings
            from rlm_core.training.full.encoders.t5gemma import T5GemmaEncoder

            encoder = T5GemmaEncoder(T5GemmaSettings(t5gemma, mode="full"))
        model = regress_lm.convert(checkpoint, numbers, tokenizer, encoder)
        card = store.save(model, out, checkpoint.stem)
    print(f"{out}: written, {sum(weight.numel() for weight in model.parameters()):,} parameters, model {card.model_id}")


def export(model: Path, out: Path) -> None:
    """Export a trained model to the directory that ``--model`` takes.

    Raises:
        RlmError: bad input, or the ``[train]`` extra is missing.
    """
    with training_extra():
        from rlm_core.training.student.export import export as run

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
        from rlm_core.training.evaluation.run import evaluate as run

        report = run(model, data, split, baselines, predictions, most)
    print(json.dumps(asdict(report)) if form == "json" else report)
