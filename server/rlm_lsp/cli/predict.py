"""``rlm-lsp predict PATH...``: source files in, a row per unit and metric out.

Files are analysed and predicted in batches, so memory stays flat over a whole repository. A file that cannot be read
costs one line on stderr and the exit status 2; the others still get their rows.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rlm_core import RlmError, SourceError
from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import read_source
from rlm_core.types import Band, Prediction

from rlm_lsp.rendering import console
from rlm_lsp.rendering import values as render
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.json_rows import unit_row
from rlm_lsp.sources import SourceFile, find_sources

from .predict_on import Answering, Questions, chunks

Format = Literal["table", "json", "jsonl"]
_BATCH_UNITS = 256  # that are written together
_ASKED_UNITS = {False: 256, True: 32}  # that are asked together: here, and by a node of a cluster


@dataclass(frozen=True, slots=True)
class FileUnit:
    """A unit and the file in which it stands, as the user named it."""

    file: str
    analysed: AnalysedUnit


Predicted = tuple[FileUnit, list[Prediction]]


@dataclass(slots=True)
class _Tally:
    files: int = 0
    units: int = 0
    errors: int = 0

    def report(self, error: RlmError) -> None:
        self.errors += 1
        console.report_error(error)


def asked_for(devices: Sequence[str], workload: Sequence[str]) -> QuerySelection:
    """What the options ``--device NAME`` and ``--workload NAME=VALUE`` ask.

    Raises:
        RlmError: a workload is not of the form NAME=VALUE.
    """
    if not devices and not workload:
        return DEFAULT_SELECTION
    for entry in workload:
        if not all(entry.partition("=")):
            raise RlmError(f"--workload {entry!r} is not NAME=VALUE; write it like M=4096 or dtype=fp16")
    return QuerySelection(
        None, tuple(devices), {name: value for name, _, value in (entry.partition("=") for entry in workload)}
    )


def predict_paths(
    paths: Sequence[Path],
    form: Format,
    model: str,
    threads: int,
    asked: QuerySelection = DEFAULT_SELECTION,
    ray: str | None = None,
) -> int:
    """Print the predictions for all units below ``paths`` and return the exit status.

    ``ray`` is the address of a cluster whose nodes are asked; files are read here.

    Raises:
        RlmError: the model cannot be loaded, or the cluster not be used.
    """
    tally = _Tally()
    sources = find_sources(paths, tally.report)
    write = {"table": _write_table, "json": _write_json, "jsonl": _write_jsonl}[form]
    with ExitStack() as stack:
        answering = stack.enter_context(Answering(model, threads, ray)) if sources else None
        started = time.perf_counter()
        units = _analysed(sources, tally, stack.enter_context(console.progress("predicting")))
        found = _predicted(answering, units, asked, _ASKED_UNITS[ray is not None]) if answering is not None else ()
        write(chunks(found, _BATCH_UNITS))
    seconds = time.perf_counter() - started
    console.note(
        f"{_count(tally.files, 'file')}, {_count(tally.units, 'unit')} in {seconds:.1f} s"
        f" ({tally.units / max(seconds, 1e-9):.0f} units/s)"
        + (f", {_count(tally.errors, 'path')} failed" if tally.errors else "")
    )
    return 2 if tally.errors else 0


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _analysed(sources: Sequence[SourceFile], tally: _Tally, progress: console.Progress) -> Iterator[FileUnit]:
    analyser = Analyser()
    for done, source in enumerate(sources):
        progress(done, len(sources))
        try:
            # An empty __init__.py is no fault of the user's; an empty file that they name may be.
            if not source.named and source.path.stat().st_size == 0:
                continue
            parsed = read_source(source.path)
            units = analyser.analyse(parsed, source.path)
            if not units:
                _explain_no_unit(source, parsed)
        except RlmError as error:
            tally.report(error)
            continue
        except OSError as error:
            tally.report(SourceError(f"{source.path}: cannot be read ({error.strerror}); check its permissions"))
            continue
        tally.files += 1
        tally.units += len(units)
        yield from (FileUnit(str(source.path), unit) for unit in units)


def _explain_no_unit(source: SourceFile, parsed: ParsedSource) -> None:
    entry = languages.by_name(parsed.language)
    if entry.grammar is not None and parsed.root.has_error:
        raise SourceError(
            f"{source.path}: has syntax errors and no unit that parses as {entry.title}; correct its syntax"
        )
    if source.named:
        console.note(f"{source.path}: nothing to predict (no function, kernel, module or solution)")


def _predicted(
    answering: Answering, units: Iterable[FileUnit], asked: QuerySelection, size: int
) -> Iterator[Predicted]:
    sent: deque[list[FileUnit]] = deque()

    def questions() -> Iterator[Questions]:
        for batch in chunks(units, size):
            sent.append(batch)
            yield Questions([unit.analysed.code for unit in batch], asked)

    for answers in answering.answers(questions()):
        yield from zip(sent.popleft(), answers, strict=True)


Batches = Iterator[list[Predicted]]


def _rows(batches: Batches) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for unit, predictions in batch:
            yield from (unit_row(unit.file, unit.analysed, prediction) for prediction in predictions)


def _write_jsonl(batches: Batches) -> None:
    for row in _rows(batches):
        print(json.dumps(row))


def _write_json(batches: Batches) -> None:
    separator = "[\n"
    for row in _rows(batches):
        sys.stdout.write(f"{separator}{json.dumps(row)}")
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def _write_table(batches: Batches) -> None:
    """Aligned columns, batch by batch; a later batch may widen them."""
    header = ("WHERE", "UNIT", "BASIS", "METRIC", "80 % BAND", "MEDIAN", "NOTE")
    widths = [len(title) for title in header]
    for number, batch in enumerate(batches):
        lines = [_cells(unit, prediction) for unit, predictions in batch for prediction in predictions]
        widths = [max(width, *(len(line[i]) for line in lines)) for i, width in enumerate(widths)] if lines else widths
        for line in [header, *lines] if number == 0 else lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _metric(prediction: Prediction) -> str:
    """The metric, with its device and a kernel's sizes where a unit may be asked about several."""
    several = prediction.basis in ("kernel", "module", "network") and prediction.device is not None
    sizes = prediction.workload.items() if prediction.basis == "kernel" else ()
    told = [*([str(prediction.device)] if several else []), " ".join(f"{name}={value}" for name, value in sizes)]
    return ", ".join([prediction.metric, *filter(None, told)])


def _cells(unit: FileUnit, prediction: Prediction) -> tuple[str, ...]:
    band = prediction.band
    return (
        f"{unit.file}:{unit.analysed.unit.name.start_line + 1}",
        unit.analysed.unit.qualname,
        prediction.basis,
        _metric(prediction),
        render.band(prediction.metric, band, prediction.floor) if band else "-",
        render.median(prediction) or "-",
        reason(prediction.abstained) if prediction.abstained is not None else "; ".join(_notes(prediction, band)),
    )


def _notes(prediction: Prediction, band: Band | None) -> Iterator[str]:
    if band is not None and band.source.by_data_sheet:
        yield "by its data sheet"
    if prediction.truncated:
        yield "text truncated"
