"""``rlm-lsp measure list``, ``export`` and ``import``: stored measurements, and files of them and of other tools."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, Literal

import click
from rlm_core import DataError, RlmError
from rlm_core.files import atomic_write, read_json_lines
from rlm_core.measurement import Measurement, Store
from rlm_core.measurement.committed import FILE, FOLDER, export_committed
from rlm_core.measurement.functions.collect import import_left_runs
from rlm_core.measurement.imported.places import ImportedResult, import_result
from rlm_core.measurement.labels import Label, from_labels, newest, to_labels, with_source
from rlm_core.measurement.types import RUNTIME

from rlm_lsp.rendering import console
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.console import counted

from . import options
from .options import PATH, open_store, optional_packages, write_errors

_packages_argument = click.argument("packages", metavar="[PACKAGE]...", nargs=-1)


@click.command(name="list")
@_packages_argument
@click.option("--functions", is_flag=True, help="One row per unit instead of one per package.")
@options.output_format("table", "json")
@options.store
def list_(packages: tuple[str, ...], functions: bool, form: Literal["table", "json"], store: Path | None) -> None:
    """List the stored measurements."""
    kept = open_store(store)
    import_left_runs(kept, console.note)
    if functions:
        rows = [_unit_row(measurement) for measurement in newest(kept.all(packages))]
        rows.sort(key=lambda row: (row["package"], row["function"], row["metric"]))
        if form == "table":
            rows = [{**row, "sizes": render.size_ranges(row["sizes"])} for row in rows]
    else:
        rows = [
            {name: getattr(summary, name) for name in summary.__slots__}
            for summary in kept.summaries()
            if not packages or summary.package in packages
        ]
    if form == "json":
        print(json.dumps(rows, indent=1))
    elif rows:
        console.print_table([list(rows[0]), *([str(value) for value in row.values()] for row in rows)])
    else:
        console.note(f"{kept.path}: no measurements yet; run rlm-lsp measure tests or rlm-lsp bench")


def _unit_row(measurement: Measurement) -> dict[str, Any]:
    asked = " ".join(f"{name}={value}" for name, value in measurement.asked.items())
    where = measurement.module if measurement.basis == "call" else measurement.file
    return {
        "package": measurement.package,
        "function": f"{where}:{measurement.qualname}",
        "metric": measurement.metric,
        "runtime": measurement.workload.get(RUNTIME, ""),
        "input": measurement.workload.get("input") or asked,
        "sizes": {name: list(astuple(spread)) for name, spread in measurement.sizes.items()},
        "median": render.measured(measurement),
        "calls": f"{measurement.calls:,}",
        "tests": f"{measurement.tests:,}",
        "date": measurement.measured_at[:10],
        "device": measurement.device,
    }


@click.command()
@_packages_argument
@options.output_format("jsonl", "parquet")
@click.option("--out", metavar="FILE|-", default="-", help="File for the rows.")
@click.option(
    "--to",
    metavar="DIR",
    type=PATH,
    help="Write the measurements of the project in the working directory into DIR, usually .rlm, to commit them.",
)
@click.option(
    "--source",
    is_flag=True,
    help="Add the source text of functions and callees if unchanged; with Parquet, the result is a training data set.",
)
@click.option("--all-runs", is_flag=True, help="Export all stored runs instead of each function's newest.")
@options.store
def export(
    packages: tuple[str, ...],
    form: Literal["jsonl", "parquet"],
    out: str,
    to: Path | None,
    source: bool,
    all_runs: bool,
    store: Path | None,
) -> None:
    """Write measurements as labels for `data build functions`, `train`, `tune` or `measure import`, or to commit.

    Rows contain source text only with --source. With --to, write the measurements of this project as one line per unit,
    with the text that was measured; the editor, `predict` and `check` read them from the folder .rlm of a project.
    """
    if to is not None:
        _export_to(to, packages, open_store(store))
        return
    if form == "parquet" and out == "-":
        raise RlmError("measure export: Parquet needs a file; add --out FILE")
    kept = open_store(store)
    measurements = kept.all(packages)
    if not all_runs:
        measurements = newest(measurements)
    labels = to_labels(measurements)
    if not labels:
        raise DataError(f"{kept.path}: holds no measurement{' of ' + ', '.join(packages) if packages else ''}")
    without = with_source(labels, measurements) if source else 0
    with write_errors(out):
        _write_labels(labels, form, out, source=source)
    if without:
        console.note(f"{without:,} of {len(labels):,} rows have no text: their files are missing or have changed")


def _export_to(folder: Path, packages: Sequence[str], kept: Store) -> None:
    """Write the measurements of the project in the working directory into a folder that can be committed."""
    import_left_runs(kept, console.note)
    root = Path.cwd()
    count = export_committed(kept.all(packages), folder, root, console.note)
    console.note(f"{folder / FILE}: {count:,} lines")
    if folder.absolute() != root / FOLDER:
        console.note(f"measurements are read from {FOLDER} in the project's folder: {root / FOLDER}")
    if not count:
        raise DataError(
            f"{kept.path}: holds no measurement of {root}; run rlm-lsp measure tests in the project's folder"
        )


def _write_labels(labels: list[Label], form: str, out: str, *, source: bool) -> None:
    if form == "parquet":
        with optional_packages():
            from rlm_core.training.datasets import measured
        if source:
            console.note(f"{out}: {measured.write_training_rows(labels, Path(out)):,} rows to train on")
        else:
            measured.write_labels(labels, Path(out))
        return
    lines = (json.dumps(row) + "\n" for row in labels)
    if out == "-":
        sys.stdout.writelines(lines)
        return
    with atomic_write(Path(out)) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(lines)


@click.command(name="import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@options.store
def import_(files: tuple[Path, ...], store: Path | None) -> None:
    """Import measurements of other machines, or results of other tools.

    FILE is what `rlm-lsp measure export` wrote, a profile of cProfile, or the results of pytest --benchmark-json or of
    CodSpeed's walltime mode. Results of other tools are for the project in the working directory.
    """
    kept = open_store(store)
    for path in files:
        result = import_result(path, Path.cwd()) if path.suffix != ".parquet" else None
        if result is not None:
            _add_result(kept, path, result)
            continue
        if path.suffix == ".parquet":
            with optional_packages():
                from rlm_core.training.datasets import measured
            measurements = list(from_labels(measured.read_labels(path)))
        else:
            measurements = list(from_labels(read_json_lines(path)))
        console.note(f"{path}: {kept.add(measurements):,} measurements imported")


def _add_result(kept: Store, path: Path, result: ImportedResult) -> None:
    """Store what another tool measured, and say what is left out."""
    count = kept.add(result.measurements)
    console.note(f"{path}: the latency of {counted(count, 'function')} imported from {result.tool}")
    for reason, number in result.left_out.most_common():
        console.note(f"left out {number:,}: {reason}")
