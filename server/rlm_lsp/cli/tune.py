"""``rlm-lsp tune``: a team's measurements -> a tuned model, or the reason why there is none; or a refitted student."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from rlm_core import DataError
from rlm_core.inference import model_store

from rlm_lsp.rendering import console

from . import options
from .options import PATH, DataCommand, check_accelerate, optional_packages, training_processes

if TYPE_CHECKING:
    from rlm_core.training.tuning.judging import TuningResult


@click.command(cls=DataCommand)
@options.data
@click.option("--model", metavar="NAME|DIR|builtin", default="builtin", help="The model to start from.")
@click.option("--name", metavar="NAME", help="Name of the new model.", show_default="tuned, or refitted")
@click.option(
    "--out", metavar="DIR", type=PATH, help="Directory to write.", show_default="--name in the user's models folder"
)
@click.option("--refit", is_flag=True, help="Refit a student to all labels of a basis instead of tuning it.")
@click.option("--work", is_flag=True, help="Join a student with work facts again, after a training or --refit.")
@click.option(
    "--keep", metavar="X.parquet", type=PATH, multiple=True, help="Original data, to prevent forgetting; repeatable."
)
@click.option(
    "--fewest",
    metavar="N",
    type=click.IntRange(min=5),
    default=200,
    help="With fewer rows of a basis and language, fit only an offset and a slope.",
)
@options.threads
@options.accelerate
@click.pass_context
def command(
    context: click.Context,
    data: tuple[Path, ...],
    model: str,
    name: str | None,
    out: Path | None,
    refit: bool,
    work: bool,
    keep: tuple[Path, ...],
    fewest: int,
    threads: int,
    accelerate: bool,
) -> None:
    """Tune a model on your own measurements (needs the [train] extra).

    Rows come from `rlm-lsp measure export --format parquet --source` or `rlm-lsp data build`. The result is checked on
    held-out groups: what did not improve stays unchanged, and if nothing improved, no model is written (exit status 1).

    With --refit, everything except the encoder of a student is fitted again, to thousands of labels of functions or
    programs. This takes minutes, training takes hours. --data must hold all labels of a basis, the original ones too;
    the other bases stay unchanged. There is no check.

    With --work, only the part that joins predictions with work facts is fitted again, to functions that the model was
    not trained on. --data holds generated functions, those written by hand, and real ones, best as the call graphs
    that `data build calls` writes.
    """
    if refit and work:
        raise click.UsageError("--refit and --work are separate steps; run --refit first", context)
    name = name or ("refitted" if refit else "joined" if work else "tuned")
    directory = out if out is not None else model_store.new_directory(name)
    if refit or work:
        for option in ("keep", "fewest", "threads", "accelerate"):
            if context.get_parameter_source(option) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"--{option} does not apply to {'--refit' if refit else '--work'}", context)
        _refit(data, model, name, directory, work=work)
    elif not _tune(data, model, name, directory, keep, fewest, threads, accelerate, shown=name if out is None else out):
        raise click.exceptions.Exit(1)


def _refit(data: Sequence[Path], model: str, name: str, directory: Path, *, work: bool) -> None:
    with optional_packages():
        from rlm_core.training.tuning.refit import fit_known_work, refit

        fit = fit_known_work if work else refit
        model_id = fit(data, model_store.find(model), directory, name, console.note)
    console.line(f"{directory}: model {model_id}")


def _tune(
    data: Sequence[Path],
    model: str,
    name: str,
    directory: Path,
    keep: tuple[Path, ...],
    fewest: int,
    threads: int,
    accelerate: bool,
    *,
    shown: str | Path,
) -> bool:
    """Tune and print the results on held-out groups; False if nothing improved."""
    with training_processes(accelerate) as processes:
        with processes.together():
            base = model_store.find(model)
            full = model_store.summary(base).kind == "full"
            check_accelerate(accelerate, full, model)
        from rlm_core.training.tuning.run import Options

        options = Options(name, keep, fewest, threads)
        if full:
            from rlm_core.training.tuning.full import tune_full

            outcome = tune_full(data, base, directory, options, console.note, processes=processes)
        else:
            from rlm_core.training.tuning.run import tune

            outcome = tune(data, base, directory, options, console.note)
        with processes.together():
            if not outcome.results:
                raise DataError(f"{', '.join(map(str, data))}: too few rows to tune on; see the lines above")
        for result in outcome.results:
            console.line(_describe(result))
        if outcome.model is None:
            console.report_error(f"refused: {outcome.refused}")
            # The status of the main process is that of the command.
            return not processes.main
        console.line(f"{directory}: model {outcome.model}; use it in a workspace with: rlm-lsp model use {shown}")
    return True


def _describe(result: TuningResult) -> str:
    before, after = result.before, result.after
    ranks = [f"{figures.spearman.value:.3f}" if figures.spearman else "none" for figures in (before, after)]
    what = "" if result.kind == "tuned" else ", offset and slope only"
    unchanged = "" if result.refused is None else f"; unchanged: {result.refused}"
    return (
        f"{result.key}: {result.rows:,} rows of {result.groups:,} groups{what}; on held-out groups Spearman"
        f" {ranks[0]} to {ranks[1]}, median error {before.error:.3f} to {after.error:.3f} (log10),"
        f" inside the 80 % band {before.coverage:.0%} to {after.coverage:.0%}{unchanged}"
    )
