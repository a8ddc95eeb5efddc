"""``rlm-lsp adapt``: measurements on a new device in, an adapter out; or which candidates to measure."""

from __future__ import annotations

from pathlib import Path

import rlm_core
from rlm_core import DataError
from rlm_core.inference.adaptation import (
    Adapter,
    Measurement,
    RefusedRow,
    adapter_path,
    check_name,
    read_measurements,
    suggest,
    write_adapters,
)
from rlm_core.inference.adaptation import adapt as fit

from rlm_lsp.rendering import console
from rlm_lsp.rendering.abstentions import reason


def adapt(device: str, measurements: Path, model: str, out: Path | None, threads: int) -> None:
    """Fit a device, write its adapter, print what it rests on.

    Raises:
        RlmError: the measurements cannot be used, the model cannot be loaded, or the adapter cannot be written.
    """
    check_name(device)
    rows = _rows(measurements, candidates=False)
    found = fit(rlm_core.load(model, threads=threads), device, rows)
    for problem in found.problems:
        console.note(_refused(problem) if isinstance(problem, RefusedRow) else problem)
    path = out or adapter_path(device)
    write_adapters(found.adapters, path)
    for adapter in found.adapters:
        print(_summary(adapter))
    print(f"{path}: written; predictions for device {device} now rest on it")


def choose(measurements: Path, count: int, model: str, threads: int) -> None:
    """Print the ``count`` rows of a file that are the most worth measuring, as they stand there.

    Raises:
        RlmError: the rows cannot be used, or the model cannot be loaded.
    """
    rows = _rows(measurements, candidates=True)
    lines = measurements.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in suggest(rlm_core.load(model, threads=threads), rows, count):
        print(lines[line - 1])


def _rows(path: Path, *, candidates: bool) -> list[Measurement]:
    rows, problems = read_measurements(path, candidates=candidates)
    for problem in problems:
        console.note(problem)
    if not rows:
        reason = f"none of its {len(problems)} rows can be used" if problems else "it has no rows"
        raise DataError(f"{path}: {reason}; see rlm-lsp adapt --help for the form of a row")
    return rows


def _refused(row: RefusedRow) -> str:
    return f"line {row.line}: {reason(row.reason) if row.reason is not None else 'the model knows no device for it'}"


def _summary(adapter: Adapter) -> str:
    fit = adapter.fit
    texts, known = (
        f"{count} {name}{'' if count == 1 else 's'}"
        for count, name in ((fit.text_count, "text"), (len(adapter.known), "known device"))
    )
    return (
        f"{adapter.basis} {adapter.metric}: {fit.n} measurements of {texts}, {known};"
        f" one left out is missed by a factor of {10**fit.typical_error:.2f} (median)"
    )
