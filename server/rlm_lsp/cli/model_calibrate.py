"""``rlm-lsp model calibrate``: the intervals of a converted model, calibrated on measured rows."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rlm_core import DataError
from rlm_core.inference import model_store
from rlm_core.loading import is_remote

from rlm_lsp.rendering import console

from . import options
from .options import DataCommand, optional_packages

_SPLITS = ["cal", "val", "test", "train", "all"]


@click.command(cls=DataCommand)
@click.argument("model", metavar="NAME|DIR")
@options.data
@click.option("--split", type=click.Choice(_SPLITS), default="cal", help="Split of the data sets to use.")
@options.most(1000)
def calibrate(model: str, data: tuple[Path, ...], split: str, most: int) -> None:
    """Calibrate the intervals of a model of `rlm-lsp model add` on measured rows (needs the [rlm] and [train] extras).

    Use rows that the model was not trained on. Tasks with rows of fewer than 30 groups stay as they are. The id of the
    model changes; restart a running server to use the calibration.
    """
    if is_remote(model):
        raise DataError(f"{model}: is a model server; calibrate the model on the machine that serves it")
    directory = model_store.find(model)
    with optional_packages():
        from rlm_core.inference.calibration import MIN_GROUPS
        from rlm_core.training.full import calibrate as calibration
        from tqdm import tqdm

        # `disable=None`: no bar where stderr is not a terminal.
        with tqdm(
            desc="calibrating", unit="row", file=sys.stderr, leave=False, dynamic_ncols=True, disable=None
        ) as bar:

            def show(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            result = calibration.calibrate(directory, data, None if split == "all" else [split], most, show)
    share = f"{calibration.COVERAGE:.0%}".replace("%", " %")
    cells = [["task", "space", "rows", "groups", f"{share} interval before", "after"]]
    for task in result.tasks:
        after = f"{task.after:.1%}" if task.after is not None else "as before" if task.kept else "uncalibrated"
        cells.append([task.task, task.space, f"{task.rows:,}", f"{task.groups:,}", f"{task.before:.1%}", after])
    console.print_table(cells)
    for task in result.tasks:
        if task.after is None:
            state = "keeps its calibration" if task.kept else "is not calibrated"
            console.line(
                f"{task.task} {state}: its rows are of {console.counted(task.groups, 'group')}, and a "
                f"calibration needs {MIN_GROUPS}"
            )
    console.line(f"model        {result.model_id}")
