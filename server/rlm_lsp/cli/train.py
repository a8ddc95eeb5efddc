"""``rlm-lsp train``: data sets -> a trained student or full model; with ``--teacher``, a distilled student."""

from __future__ import annotations

from pathlib import Path

import click
from rlm_core import RlmError

from . import options
from .options import PATH, DataCommand, check_accelerate, training_processes


@click.command(cls=DataCommand)
@options.data
@click.option("--texts", metavar="X.parquet", type=PATH, multiple=True, help="Unlabelled texts; repeatable.")
@click.option(
    "--config", metavar="FILE", type=PATH, help="Training configuration; required without --teacher.", default=None
)
@click.option(
    "--teacher", metavar="DIR|URL", help="Train a student on the predictions of this model and on the labels."
)
@click.option("--out", metavar="DIR", type=PATH, required=True, help="Directory for checkpoints and logs.")
@options.resume
@options.accelerate
def command(
    data: tuple[Path, ...],
    texts: tuple[Path, ...],
    config: Path | None,
    teacher: str | None,
    out: Path,
    resume: bool,
    accelerate: bool,
) -> None:
    """Train a model (needs the [train] extra).

    The configuration selects a student or a full model. A student is pretrained on --texts. With --teacher, a full
    model or the address of a model server, the student also learns from the teacher's predictions; its configuration
    may have a table [distill].
    """
    if config is None and teacher is None:
        raise click.UsageError("--config is missing; it is optional only with --teacher", click.get_current_context())
    if accelerate and teacher is not None:
        raise click.UsageError("--accelerate does not apply to --teacher", click.get_current_context())
    with training_processes(accelerate) as processes:
        if teacher is not None:
            from rlm_core.loading import load
            from rlm_core.training.student.distill import distill

            distill(load(teacher), data, config, out, texts=texts, resume=resume)
            return
        assert config is not None
        from rlm_core.training.full.training_config import is_full

        with processes.together():
            full = is_full(config)
            check_accelerate(accelerate, full, f"the model of {config}")
            if full and texts:
                raise RlmError(f"--texts: the full model of {config} uses labelled texts only; leave the option out")
        if full:
            from rlm_core.training.full.train import train as train_full

            train_full(data, config, out, resume=resume, processes=processes)
        else:
            from rlm_core.training.student.train import train as train_student

            train_student(data, config, out, texts=texts, resume=resume)
