"""``rlm-lsp predict``: source files -> one row per unit and query; or rows of texts and queries -> rows of predictions.

Files are analysed and predicted in batches, so memory does not grow with the size of a repository. A file or row that
cannot be used is reported in one line and makes the exit status 2; the others are answered.

The rows of ``--batch``, in JSON Lines, and their answers in the same order:

    {"id", "text", "language", "basis", "queries": [{"metric", "device"?, "workload"?}], "callees"?}
    {"id", "predictions": [...]}  or  {"id", "line", "error"}
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TextIO

import click
import msgspec
from rlm_core import DataError, RlmError, SourceError
from rlm_core.errors import TooComplexError
from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit, Analyser, MeasuredUnits
from rlm_core.queries.judges import JUDGES
from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import read_source
from rlm_core.types import Basis, Callee, CodeText, MeasuredPrediction, Metric, Prediction, Query

from rlm_lsp.rendering import console
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.abstentions import other_judge, reason
from rlm_lsp.rendering.console import ErrorCounter, counted
from rlm_lsp.rendering.escaping import printable
from rlm_lsp.rendering.hover import measured_note
from rlm_lsp.rendering.json_rows import prediction_fields, unit_row
from rlm_lsp.rendering.work_words import growth_words
from rlm_lsp.sources import SourceFile, find_sources

from . import options
from .options import PATH, write_errors
from .predict_batches import BatchPredictor, TextBatch, chunks

_UNITS_WRITTEN = 256  # that a table aligns together
_UNITS_ASKED, _UNITS_PER_NODE = 256, 32  # in one call of the model
_ROWS_ASKED = 64


@click.command()
@click.argument("paths", metavar="[PATH]...", type=PATH, nargs=-1)
@options.output_format("table", "json", "jsonl", help="A table, or JSON in SI units.")
@click.option("--batch", metavar="IN.jsonl|-", help="Read rows of texts and queries instead of source files.")
@click.option("--out", metavar="OUT.jsonl|-", default="-", help="File for the answers to --batch.")
@click.option(
    "--device", "devices", metavar="NAME", multiple=True, help="Device for kernels, modules and networks; repeatable."
)
@click.option(
    "--workload",
    metavar="NAME=VALUE",
    multiple=True,
    help="A size or type, such as M=4096, arg0=64x128 or dtype=fp16; repeatable.",
)
@click.option(
    "--judge",
    metavar="NAME",
    type=click.Choice(list(JUDGES)),
    help="Online judge for programs: leetcode, boj or atcoder (default: the one that a file looks like). A"
    " `# rlm: judge=` comment takes precedence.",
)
@options.model
@options.threads
@options.ray
@options.no_measured
@options.cpu_scale
def command(
    paths: tuple[Path, ...],
    form: Literal["table", "json", "jsonl"],
    batch: str | None,
    out: str,
    devices: tuple[str, ...],
    workload: tuple[str, ...],
    judge: str | None,
    model: str,
    threads: int,
    ray: str | None,
    no_measured: bool,
) -> None:
    """Predict the cost of every unit in source files or directories."""
    if (batch is None) == (not paths):
        raise RlmError("predict: give either paths or --batch")
    if batch is not None:
        status = _predict_rows(batch, out, model, threads, ray)
    else:
        known = options.known_measurements(off=no_measured)
        selected = query_selection(devices, workload, judge)
        status = _predict_paths(paths, form, selected, model, threads, ray, known)
    raise click.exceptions.Exit(status)


def query_selection(devices: Sequence[str], workload: Sequence[str], judge: str | None = None) -> QuerySelection:
    """The queries that ``--device NAME``, ``--workload NAME=VALUE`` and ``--judge NAME`` select.

    Raises:
        RlmError: a workload is not of the form NAME=VALUE.
    """
    if not devices and not workload and judge is None:
        return DEFAULT_SELECTION
    for entry in workload:
        if not all(entry.partition("=")):
            raise RlmError(f"--workload {entry!r} is not NAME=VALUE; write it like M=4096 or dtype=fp16")
    return QuerySelection(
        None, tuple(devices), {name: value for name, _, value in (entry.partition("=") for entry in workload)}, judge
    )


@dataclass(frozen=True, slots=True)
class _FileUnit:
    """A unit and its file, as the user named it."""

    file: str
    analysed: AnalysedUnit


_UnitPredictions = tuple[_FileUnit, list[Prediction]]


@dataclass(slots=True)
class _Tally(ErrorCounter):
    files: int = 0
    units: int = 0


def _predict_paths(
    paths: Sequence[Path],
    form: Literal["table", "json", "jsonl"],
    selected: QuerySelection,
    model: str,
    threads: int,
    ray: str | None,
    known: MeasuredUnits,
) -> int:
    tally = _Tally()
    sources = find_sources(paths, tally.report)
    write = {"table": _write_table, "json": _write_json, "jsonl": _write_jsonl}[form]
    with ExitStack() as stack:
        predictor = stack.enter_context(BatchPredictor(model, threads, ray)) if sources else None
        started = time.perf_counter()
        units = _analyse(sources, tally, known, stack.enter_context(console.progress("predicting")))
        size = _UNITS_ASKED if ray is None else _UNITS_PER_NODE
        predicted = _predict_units(predictor, units, selected, size) if predictor is not None else ()
        write(chunks(predicted, _UNITS_WRITTEN))
    seconds = time.perf_counter() - started
    console.note(
        f"{counted(tally.files, 'file')}, {counted(tally.units, 'unit')} in {seconds:.1f} s"
        f" ({tally.units / max(seconds, 1e-9):.0f} units/s)"
        + (f", {counted(tally.count, 'path')} failed" if tally.count else "")
    )
    return 2 if tally.count else 0


def _analyse(
    sources: Sequence[SourceFile], tally: _Tally, known: MeasuredUnits, progress: console.Progress
) -> Iterator[_FileUnit]:
    analyser = Analyser(measured=known)
    for done, source in enumerate(sources):
        progress(done, len(sources))
        try:
            # An empty __init__.py in a folder is normal; an empty file that the user names is an error.
            if not source.named and source.path.stat().st_size == 0:
                continue
            parsed = read_source(source.path)
            units = analyser.analyse(parsed, source.path)
            if not units:
                _explain_no_unit(source, parsed)
        except TooComplexError as error:
            tally.report(SourceError(f"{source.path}: {error}"))
            continue
        except RlmError as error:
            tally.report(error)
            continue
        except OSError as error:
            tally.report(SourceError(f"{source.path}: cannot be read ({error.strerror}); check its permissions"))
            continue
        tally.files += 1
        tally.units += len(units)
        yield from (_FileUnit(str(source.path), unit) for unit in units)


def _explain_no_unit(source: SourceFile, parsed: ParsedSource) -> None:
    entry = languages.by_name(parsed.language)
    # The text of a program may have errors; a grammar need not know each dialect either, such as JSX.
    if parsed.language == "python" and parsed.root.has_error:
        raise SourceError(f"{source.path}: has syntax errors and no unit that parses as {entry.title}; fix its syntax")
    if not source.named:
        return
    if entry.grammar is None or parsed.language == "python":
        console.note(f"{source.path}: nothing to predict (no function, kernel, module or solution)")
    else:
        mark = "#" if parsed.language == "ruby" else "//"
        console.note(
            f"{source.path}: nothing to predict: the file does not look like a solution of a programming problem;"
            f" write `{mark} rlm: program` above its code to predict it as one"
        )


def _predict_units(
    predictor: BatchPredictor, units: Iterable[_FileUnit], selected: QuerySelection, size: int
) -> Iterator[_UnitPredictions]:
    def batches() -> Iterator[tuple[list[_FileUnit], TextBatch]]:
        for chunk in chunks(units, size):
            codes = [unit.analysed.code for unit in chunk]
            yield chunk, TextBatch(codes, [queries_for(predictor.predictor, code, selected) for code in codes])

    for chunk, predictions in predictor.predict(batches()):
        yield from zip(chunk, predictions, strict=True)


_Batches = Iterator[list[_UnitPredictions]]


def _rows(batches: _Batches) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for unit, predictions in batch:
            yield from (unit_row(unit.file, unit.analysed, prediction) for prediction in predictions)


def _write_jsonl(batches: _Batches) -> None:
    for row in _rows(batches):
        print(json.dumps(row))


def _write_json(batches: _Batches) -> None:
    separator = "[\n"
    for row in _rows(batches):
        sys.stdout.write(f"{separator}{json.dumps(row)}")
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def _write_table(batches: _Batches) -> None:
    """Print aligned columns, batch by batch; a later batch may widen them."""
    header = ("WHERE", "UNIT", "BASIS", "METRIC", "80 % BAND", "MEDIAN", "NOTE")
    widths = [len(title) for title in header]
    for number, batch in enumerate(batches):
        lines = [
            tuple(map(printable, _cells(unit, prediction))) for unit, predictions in batch for prediction in predictions
        ]
        widths = [max(width, *(len(line[i]) for line in lines)) for i, width in enumerate(widths)] if lines else widths
        for line in [header, *lines] if number == 0 else lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cells(unit: _FileUnit, prediction: Prediction) -> tuple[str, ...]:
    band = prediction.band
    return (
        f"{unit.file}:{unit.analysed.unit.name.start_line + 1}",
        unit.analysed.unit.qualname,
        prediction.basis,
        _metric(unit.analysed, prediction),
        render.band(prediction.metric, band, prediction.floor) if band else "-",
        render.marked_median(prediction) or "-",
        "; ".join(_notes(unit.analysed, prediction)),
    )


def _metric(analysed: AnalysedUnit, prediction: Prediction) -> str:
    """The metric, with the device and the sizes where a unit may have several."""
    has_devices = prediction.basis in ("kernel", "module", "network") and prediction.device is not None
    sizes = list(prediction.workload.items()) if prediction.basis == "kernel" else []
    if prediction.basis == "module" and analysed.sizes is not None:
        named = {name for workload in analysed.sizes.workloads for name in workload}
        sizes = [(name, value) for name, value in prediction.workload.items() if name in named]
    parts = [str(prediction.device) if has_devices else "", " ".join(f"{name}={value}" for name, value in sizes)]
    return ", ".join([prediction.metric, *filter(None, parts)])


def _notes(analysed: AnalysedUnit, prediction: Prediction) -> Iterator[str]:
    """What was measured, what the unit waits for, how its cost grows, why the number is missing or less certain."""
    work, band = analysed.code.work, prediction.band
    if isinstance(prediction, MeasuredPrediction):
        yield measured_note(prediction)
    waits = render.wait_text(prediction, work)
    if waits:
        yield waits
    if prediction.growth is not None and (growth := growth_words(prediction.growth)):
        yield growth.replace("`", "")
    if prediction.abstained is not None:
        yield reason(prediction.abstained)
    if (other := other_judge(analysed.code, prediction)) is not None:
        yield other
    if band is not None and band.source.by_data_sheet and prediction.source == "predicted":
        yield "by its data sheet"
    if prediction.truncated:
        yield "text truncated"


class _CalleeRow(msgspec.Struct):
    text: str
    level: Annotated[int, msgspec.Meta(ge=1, le=127)] = 1


class _QueryRow(msgspec.Struct):
    metric: Metric
    device: str | None = None
    workload: dict[str, str] | None = None


class _Row(msgspec.Struct):
    id: str | int
    text: str
    language: str
    basis: Basis
    queries: Annotated[list[_QueryRow], msgspec.Meta(min_length=1)]
    callees: list[str | _CalleeRow] = []

    def code(self) -> CodeText:
        callees = (
            Callee(callee) if isinstance(callee, str) else Callee(callee.text, callee.level) for callee in self.callees
        )
        return CodeText(self.text, self.language, self.basis, tuple(callees))


class _RowId(msgspec.Struct):
    id: str | int | None = None


@dataclass(frozen=True, slots=True)
class _BadRow:
    line: int
    id: str | int | None
    error: str


def _predict_rows(source: str, out: str, model: str, threads: int, ray: str | None) -> int:
    """Answer the rows of ``source`` into ``out`` (``-``: stdin, stdout); the exit status is 2 if any row is bad."""
    with ExitStack() as stack:
        lines: Iterable[bytes] = sys.stdin.buffer if source == "-" else stack.enter_context(_open(source))
        predictor = stack.enter_context(BatchPredictor(model, threads, ray))
        target: TextIO = sys.stdout
        if out != "-":
            with write_errors(out):
                target = stack.enter_context(Path(out).open("w", encoding="utf-8"))
        good = bad = 0
        for rows, predictions in predictor.predict(_row_batches(lines)):
            answers = iter(predictions)
            for row in rows:
                if isinstance(row, _BadRow):
                    bad += 1
                    answer: dict[str, Any] = {"id": row.id, "line": row.line, "error": row.error}
                else:
                    good += 1
                    answer = {"id": row.id, "predictions": [prediction_fields(entry) for entry in next(answers)]}
                target.write(json.dumps(answer) + "\n")
            target.flush()
    console.note(f"{good:,} rows answered, {bad:,} bad")
    return 2 if bad else 0


def _open(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise RlmError(f"{path}: cannot be read ({error.strerror}); check the path") from None


def _row_batches(lines: Iterable[bytes]) -> Iterator[tuple[list[_Row | _BadRow], TextBatch]]:
    for chunk in chunks(_read_rows(lines), _ROWS_ASKED):
        good = [row for row in chunk if isinstance(row, _Row)]
        queries = [[Query(entry.metric, entry.device, entry.workload or {}) for entry in row.queries] for row in good]
        yield chunk, TextBatch([row.code() for row in good], queries)


def _read_rows(lines: Iterable[bytes]) -> Iterator[_Row | _BadRow]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line, type=_Row)
            languages.by_name(row.language)
            if not row.text.strip():
                raise DataError("`text` must not be blank")
            yield row
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, RlmError) as error:
            yield _BadRow(number, _id_of(line), str(error))


def _id_of(line: bytes) -> str | int | None:
    """The id of a row that cannot be used, if it has one."""
    try:
        return msgspec.json.decode(line, type=_RowId).id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
