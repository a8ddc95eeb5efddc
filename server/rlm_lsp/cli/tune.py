"""``rlm-lsp tune``: a team's rows in, a tuned model out, or a line that says why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core import DataError, models

from rlm_lsp.rendering import console

from .extras import training_extra
from .launch import check_full, launched

if TYPE_CHECKING:
    from rlm_core.training.tuning import Verdict


def tune(
    data: list[Path],
    model: str,
    out: Path | None,
    name: str,
    keep: list[Path],
    fewest: int,
    threads: int,
    *,
    accelerate: bool = False,
) -> int:
    """Tune ``model`` and print what held-out groups say; 1 when nothing was better and no model is written.

    ``accelerate``: in the processes that were launched.

    Raises:
        RlmError: bad input, or the ``[train]`` extra is missing.
    """
    place = out if out is not None else models.place_of(name)
    with training_extra(), launched(accelerate) as processes:
        with processes.together():
            directory = models.find(model)
            full = models.summary(directory).kind == "full"
            check_full(accelerate, full, model)
        from rlm_core.training.tuning import Options

        options = Options(name, tuple(keep), fewest, threads)
        if full:
            from rlm_core.training.tuning.full import tune_full

            found = tune_full(data, directory, place, options, console.note, processes=processes)
        else:
            from rlm_core.training.tuning import tune as tune_student

            found = tune_student(data, directory, place, options, console.note)
        with processes.together():
            if not found.verdicts:
                raise DataError(f"{', '.join(map(str, data))}: too few rows to tune on; see the lines above")
        for verdict in found.verdicts:
            print(_told(verdict))
        if found.model is None:
            console.report_error(f"refused: {found.refused}")
            # The main process's status is that of the command.
            return 1 if processes.main else 0
        chosen = name if out is None else place
        print(f"{place}: model {found.model}; use it in a workspace with: rlm-lsp model use {chosen}")
    return 0


def _told(verdict: Verdict) -> str:
    before, after = verdict.before, verdict.after
    ranks = [f"{figures.spearman.value:.3f}" if figures.spearman else "none" for figures in (before, after)]
    what = "" if verdict.kind == "tuned" else ", level and slope only"
    kept = "" if verdict.refused is None else f"; left as it was: {verdict.refused}"
    return (
        f"{verdict.key}: {verdict.rows:,} rows of {verdict.groups:,} groups{what}; on held-out groups Spearman"
        f" {ranks[0]} to {ranks[1]}, median error {before.error:.3f} to {after.error:.3f} (log10),"
        f" inside the 80 % band {before.coverage:.0%} to {after.coverage:.0%}{kept}"
    )
