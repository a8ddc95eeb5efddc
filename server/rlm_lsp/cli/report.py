"""``rlm-lsp report``: measurements, and rows of data sets, next to a model's predictions, as one HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rlm_core import DataError, RlmError
from rlm_core.files import atomic_write
from rlm_core.inference import model_store
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.loading import is_remote, load_corrected
from rlm_core.measurement.committed import read_committed
from rlm_core.measurement.known import KnownMeasurements

from rlm_lsp.rendering import console
from rlm_lsp.rendering.abstentions import reason

from . import options
from .options import PATH, DataCommand, open_store, optional_packages, project_folders, write_errors

if TYPE_CHECKING:
    from rlm_core.training.evaluation.measured_report import Comparison, MeasuredRow, MeasuredRows
    from rlm_core.types import Abstention


@click.command(cls=DataCommand)
@click.option("--out", metavar="FILE.html", type=PATH, default="rlm-report.html", help="The file to write.")
@click.option("--model", metavar="NAME|DIR|URL|builtin", default="builtin", help="Model whose predictions are shown.")
@click.option(
    "--before", metavar="NAME|DIR|URL|builtin", help="A second model to compare with, such as the one before tuning."
)
@click.option("--package", "packages", metavar="NAME", multiple=True, help="Only this package; repeatable.")
@click.option(
    "--data", metavar="X.parquet...", type=PATH, multiple=True, help="Data sets to include (needs the [train] extra)."
)
@options.split
@options.most(2000, "Rows of --data")
@click.option("--no-store", is_flag=True, help="Show only the rows of --data.")
@options.store
@options.threads
def command(
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
    """Compare your measurements with predictions in one HTML file (needs the [report] extra).

    The report shows calibration, predicted against measured values, the largest errors, cost by module, and optionally
    two models side by side. The file loads nothing from other hosts.
    """
    with optional_packages():
        from rlm_lsp.rendering.report_page import ReportContent, page
    rows = _rows(packages, data, split, most, store, use_store=not no_store)
    answers, reasons = _answers(model, rows.rows, threads)
    others, _ = _answers(before, rows.rows, threads) if before is not None else (answers, reasons)
    # Both models are shown on the same values.
    pairs = [(answer, other) for answer, other in zip(answers, others, strict=True) if answer and other]
    if not pairs:
        why = f" ({reason(reasons.most_common(1)[0][0])})" if reasons else ""
        raise DataError(f"the model predicts none of {len(rows.rows):,} values{why}; choose another --model")
    shown = [answer for answer, _ in pairs]
    compared = [other for _, other in pairs] if before is not None else []
    left_out = Counter(rows.left_out)
    for abstention, count in reasons.items():
        left_out[f"no prediction because {reason(abstention)}"] += count
    units = len({answer.row.code for answer in shown})
    versus = f", compared with {before}" if before is not None else ""
    about = [
        f"{len(shown):,} measured values of {units:,} units; model {model}{versus}; {date.today().isoformat()}",
        "A value is one metric of one unit: the median of its measurements.",
    ]
    with write_errors(out), atomic_write(out) as partial:
        text = page(ReportContent(shown, compared, left_out, about))
        partial.write_text(text, encoding="utf-8", errors="surrogatepass")
    if left_out:
        console.note(f"{sum(left_out.values()):,} values are left out; the report lists the reasons")
    console.line(f"{out}: written, {out.stat().st_size / 2**20:.1f} MiB; open it in a browser")


def _rows(
    packages: Sequence[str], data: Sequence[Path], split: str, most: int, store: Path | None, *, use_store: bool
) -> MeasuredRows:
    from rlm_core.training.evaluation.measured_report import MeasuredRows, rows_from_data, rows_from_store

    rows = MeasuredRows()
    if use_store:
        kept = open_store(store)
        committed = (one for folder in project_folders() for one in read_committed(folder, console.note))
        shared = [one for one in committed if not packages or {one.package, one.module} & set(packages)]
        known = KnownMeasurements(kept, project_folders(), console.note)
        rows = rows_from_store([*shared, *kept.all(packages)], cpu_name(), known)
        if not rows.rows and not data:
            what = ", ".join(f"{count:,}: {cause}" for cause, count in rows.left_out.items())
            raise DataError(
                f"{kept.path}: holds nothing to show{f' ({what})' if what else ''}; run rlm-lsp measure tests, or name"
                " --data"
            )
    elif not data:
        raise RlmError("--no-store: there is nothing to show; name --data")
    if data:
        with optional_packages():
            rows.rows += rows_from_data(data, split, most).rows
        if not rows.rows:
            raise DataError(f"{', '.join(map(str, data))}: no row of split {split!r}; choose another --split")
    return rows


def _answers(
    model: str, rows: Sequence[MeasuredRow], threads: int
) -> tuple[list[Comparison | None], Counter[Abstention]]:
    """The predictions of a model for rows, as a hover shows them, and the reasons for missing ones."""
    from rlm_core.training.evaluation.measured_report import compare

    predictor = load_corrected(model if is_remote(model) else model_store.find(model), threads=threads)
    return compare(predictor, rows, f"predicting with {model}")
