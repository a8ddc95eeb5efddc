"""``rlm-lsp adapt``: measurements on a new device -> an adapter for it; or the rows most worth measuring next."""

from __future__ import annotations

import json
from pathlib import Path

import click
import rlm_core
from rlm_core import DataError
from rlm_core.inference.adaptation.build import RefusedRow, adapt, suggest
from rlm_core.inference.adaptation.measurements import Measurement, read_measurements
from rlm_core.inference.adaptation.store import Adapter, adapter_path, check_name, write_adapters

from rlm_lsp.rendering import console
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.console import counted

from . import options
from .options import PATH


@click.command()
@click.option("--device", metavar="NAME", required=True, help="Name of the new device in queries.")
@click.option("--measurements", metavar="FILE", type=PATH, required=True, help="Rows of measurements (.jsonl).")
@options.model
@click.option(
    "--out", metavar="FILE", type=PATH, help="File for the adapter.", show_default="in the user's data folder"
)
@click.option(
    "--choose",
    metavar="N",
    type=click.IntRange(min=1),
    help="Instead of adapting, print the N rows that are most worth measuring.",
)
@options.threads
def command(device: str, measurements: Path, model: str, out: Path | None, choose: int | None, threads: int) -> None:
    """Adapt a model to a new device (GPU, phone, CPU) from 10 to 100 measurements.

    A row is {"path": "kernels.py", "qualname": "..."} or {"text", "language", "basis"}, with "workload" as in queries,
    "metric" (default: latency) and the measured "value" (seconds, bytes), "latency_ms" or "latency_us".
    """
    if choose is not None:
        candidates = _read(measurements, candidates=True)
        lines = measurements.read_bytes().splitlines()
        for line in suggest(rlm_core.load(model, threads=threads), candidates, choose):
            print(json.dumps(json.loads(lines[line - 1])))
        return
    check_name(device)
    adaptation = adapt(rlm_core.load(model, threads=threads), device, _read(measurements, candidates=False))
    for problem in adaptation.problems:
        console.note(_refusal(problem) if isinstance(problem, RefusedRow) else problem)
    path = out or adapter_path(device)
    write_adapters(adaptation.adapters, path)
    for adapter in adaptation.adapters:
        console.line(_summary(adapter))
    console.line(f"{path}: written; predictions for {device} use it from now on")


def _read(path: Path, *, candidates: bool) -> list[Measurement]:
    rows, problems = read_measurements(path, candidates=candidates)
    for problem in problems:
        console.note(problem)
    if not rows:
        why = f"none of its {len(problems)} rows can be used" if problems else "it has no rows"
        raise DataError(f"{path}: {why}; `rlm-lsp adapt --help` describes the rows")
    return rows


def _refusal(row: RefusedRow) -> str:
    why = reason(row.reason) if row.reason is not None else "the model knows no device for it"
    return f"line {row.line}: {why}"


def _summary(adapter: Adapter) -> str:
    fit = adapter.fit
    return (
        f"{adapter.basis} {adapter.metric}: {fit.n} measurements of {counted(fit.text_count, 'text')},"
        f" {counted(len(adapter.known), 'known device')};"
        f" median error of a measurement left out: a factor of {10**fit.typical_error:.2f}"
    )
