"""``rlm-lsp report``: measurements, and data sets, beside a model's predictions, as one HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rlm_core import DataError, RlmError

from rlm_lsp.rendering import console
from rlm_lsp.rendering.abstentions import reason

from .extras import training_extra
from .options import PATH, DataCommand, threads_option

if TYPE_CHECKING:
    from rlm_core.training.report import Answered, Row, Rows
    from rlm_core.types import Abstention


@click.command(cls=DataCommand)
@click.option("--out", metavar="FILE.html", type=PATH, default="rlm-report.html", help="The file to write.")
@click.option(
    "--model", metavar="NAME|DIR|URL|builtin", default="builtin", help="The model whose predictions are shown."
)
@click.option(
    "--before", metavar="NAME|DIR|URL|builtin", help="Another model to compare it with, the one before tuning."
)
@click.option("--package", "packages", metavar="NAME", multiple=True, help="Only this package; may be repeated.")
@click.option(
    "--data", metavar="X.parquet...", type=PATH, multiple=True, help="Rows of data sets too (needs the [train] extra)."
)
@click.option(
    "--split",
    type=click.Choice(["test", "val", "cal", "train", "all"]),
    default="test",
    help="The rows of --data to show.",
)
@click.option(
    "--most",
    metavar="N",
    type=click.IntRange(min=0),
    default=2000,
    help="Rows of --data a slice and device; 0 for all.",
)
@click.option("--no-store", is_flag=True, help="Show the rows of --data alone.")
@click.option("--store", metavar="FILE", type=PATH, help="Where measurements are, instead of the user's data folder.")
@threads_option
def report(
    out: Path,
    model: str,
    before: str | None,
    packages: tuple[str, ...],
    data: tuple[Path, ...],
    split: str,
    most: int,
    no_store: bool,
    store: Path | None,
    threads: int,
) -> None:
    """Write your measurements beside their predictions as one HTML file (needs the [report] extra).

    It shows calibration, predicted against measured, the biggest surprises, cost by module, and two models side by
    side. The file loads nothing from elsewhere.
    """
    with training_extra():
        from rlm_lsp.rendering.report.page import Content, page
    found = _rows(packages, data, split, most, store, use_store=not no_store)
    answered, reasons = _answers(model, found.rows, threads)
    others, _ = _answers(before, found.rows, threads) if before is not None else (answered, reasons)
    # The same values for both.
    both = [(one, other) for one, other in zip(answered, others, strict=True) if one is not None and other is not None]
    if not both:
        why = f" ({reason(reasons.most_common(1)[0][0])})" if reasons else ""
        raise DataError(f"{len(found.rows):,} values: the model answers none of them{why}; name another --model")
    told = [one for one, _ in both]
    compared = [other for _, other in both] if before is not None else []
    left_out = Counter(found.left_out)
    for abstention, count in reasons.items():
        left_out[f"no prediction because {reason(abstention)}"] += count
    about = _about(len(told), len({one.row.code for one in told}), model, before)
    _write(page(Content(told, compared, left_out, about)), out)
    if left_out:
        console.note(f"{sum(left_out.values()):,} values are left out; the file says why")
    print(f"{out}: written, {out.stat().st_size / 2**20:.1f} MiB; open it in a browser")


def _rows(
    packages: Sequence[str], data: Sequence[Path], split: str, most: int, store: Path | None, *, use_store: bool
) -> Rows:
    from rlm_core.inference.adaptation.cpu_score import cpu_name
    from rlm_core.measurement import Store
    from rlm_core.training.report import Rows, from_data, from_store

    found = Rows()
    if use_store:
        kept = Store(store.absolute() if store is not None else None, console.note)
        found = from_store(kept.all(packages), cpu_name())
        if not found.rows and not data:
            what = ", ".join(f"{count:,}: {reason}" for reason, count in found.left_out.items())
            raise DataError(
                f"{kept.path}: holds nothing to show{f' ({what})' if what else ''}; run rlm-lsp measure tests, or name"
                " --data"
            )
    elif not data:
        raise RlmError("--no-store: nothing is left to show; name --data")
    if data:
        with training_extra():
            more = from_data(data, split, most)
        found.rows += more.rows
        if not found.rows:
            raise DataError(f"{', '.join(map(str, data))}: no row of split {split!r}; choose another --split")
    return found


def _answers(model: str, rows: Sequence[Row], threads: int) -> tuple[list[Answered | None], Counter[Abstention]]:
    """What a model says of rows, as a hover would."""
    from rlm_core import models
    from rlm_core.loading import load_personal
    from rlm_core.training.report import answer
    from tqdm import tqdm

    is_remote = model.lower().startswith(("http://", "https://"))
    predictor = load_personal(model if is_remote else models.find(model), threads=threads)
    # `disable=None`: no bar where stderr is no terminal.
    with tqdm(desc=f"predicting with {model}", unit="text", disable=None, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return answer(predictor, rows, progress)


def _about(values: int, units: int, model: str, before: str | None) -> list[str]:
    compared = f", beside {before}" if before is not None else ""
    return [
        f"{values:,} measured values of {units:,} units; model {model}{compared}; {date.today().isoformat()}",
        "A value is one metric of one unit: the median of what was measured.",
    ]


def _write(text: str, out: Path) -> None:
    partial = out.with_name(f"{out.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8", errors="surrogatepass")
        partial.replace(out)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RlmError(f"{out}: cannot be written ({error.strerror}); check the disk and the path") from None
