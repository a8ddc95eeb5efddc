"""``rlm-lsp predict``: source files -> a table with a row per unit, or JSON with one per query.

Files are analysed and predicted in batches, so that only rows are kept of a repository. A file that cannot be used is
reported in one line and makes the exit status 2; the others are answered. Rows of ``--batch`` are answered by
:mod:`.predict_rows`.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
from rlm_core import RlmError, SourceError
from rlm_core.errors import AnalysisError
from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.file_units import TextUnits, file_units
from rlm_core.queries.judges import JUDGES
from rlm_core.queries.measured_lookup import MeasuredUnits
from rlm_core.source import languages
from rlm_core.source.notebooks import is_notebook
from rlm_core.source.syntax_errors import first_error, without_errors
from rlm_core.types import Metric, Prediction

from rlm_lsp.rendering import console
from rlm_lsp.rendering.console import ErrorCounter, counted
from rlm_lsp.rendering.escaping import printable
from rlm_lsp.rendering.json_rows import unit_row
from rlm_lsp.rendering.prediction_cells import CostRow, cost_rows, median_of
from rlm_lsp.sources import SourceFile, find_sources, without_tests

from . import options
from .options import PATH
from .predict_batches import BatchPredictor, Runner, TextBatch, chunks
from .predict_rows import predict_rows

_Form = Literal["table", "json", "jsonl"]
_Order = Literal["latency", "memory", "file"]
_METRICS: tuple[Metric, ...] = ("latency", "memory", "accuracy")
_UNITS_ASKED, _UNITS_PER_NODE = 256, 32  # in one call of the model


@click.command()
@click.argument("paths", metavar="[PATH]...", type=PATH, nargs=-1)
@options.output_format("table", "json", "jsonl", help="A table, or JSON in SI units.")
@click.option(
    "--sort",
    "order",
    type=click.Choice(["latency", "memory", "file"]),
    help="Most expensive first, or as in the files (default: latency; with JSON: file).",
)
@click.option("--top", metavar="N", type=click.IntRange(1), help="Only the N most expensive units.")
@click.option(
    "--batch",
    metavar="IN.jsonl|IN.parquet|-",
    help="Read rows of texts and queries instead of source files; a path or a URI.",
)
@click.option(
    "--out", metavar="OUT.jsonl|OUT.parquet|-", default="-", help="File for the answers to --batch; a path or a URI."
)
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
@options.ray_gpu
@options.no_measured
@options.strict
@options.cpu_scale
def command(
    paths: tuple[Path, ...],
    form: _Form,
    order: _Order | None,
    top: int | None,
    batch: str | None,
    out: str,
    devices: tuple[str, ...],
    workload: tuple[str, ...],
    judge: str | None,
    model: str,
    threads: int,
    ray: str | None,
    ray_gpu: str | None,
    no_measured: bool,
) -> None:
    """Predict the cost of every unit in source files or directories.

    Without PATH, predict the working directory. Tests in a directory are left out, unless you name them or their
    folder.
    """
    if batch is not None and paths:
        raise RlmError("predict: give either paths or --batch")
    if batch is None and out != "-":
        raise RlmError("predict: --out is for --batch; redirect the output instead: rlm-lsp predict PATH > FILE")
    if batch is not None and (devices or workload or judge):
        raise RlmError("predict: the rows of --batch name their queries; omit --device, --workload and --judge")
    if batch is not None and (order or top):
        raise RlmError("predict: the answers to --batch are in the order of its rows; omit --sort and --top")
    if top is not None and order == "file":
        raise RlmError("predict: --top is for the most expensive units; sort by latency or memory")
    runner = Runner(model, threads, ray, ray_gpu)
    with console.failures():
        if batch is not None:
            status = predict_rows(batch, out, runner)
        else:
            known = options.known_measurements(off=no_measured)
            selected = query_selection(devices, workload, judge)
            by = order or ("latency" if form == "table" or top is not None else "file")
            status = _predict_paths(paths or (Path(),), form, by, top, selected, runner, known)
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
    """A unit and its file, as the user named it; ``cell`` is the number of a notebook's cell."""

    file: str
    analysed: AnalysedUnit
    cell: int | None = None


_UnitPredictions = tuple[_FileUnit, list[Prediction]]
_Answer_ = TypeVar("_Answer_")


@dataclass(slots=True)
class _Tally(ErrorCounter):
    files: int = 0
    units: int = 0


def _predict_paths(
    paths: Sequence[Path],
    form: _Form,
    order: _Order,
    top: int | None,
    selected: QuerySelection,
    runner: Runner,
    known: MeasuredUnits,
) -> int:
    tally = _Tally()
    found = find_sources(paths, tally.report, notebooks=True)
    sources = without_tests(found)
    with ExitStack() as stack:
        predictor = stack.enter_context(BatchPredictor(runner)) if sources else None
        started = time.perf_counter()
        units = _analyse(sources, tally, known, stack.enter_context(console.progress("predicting")))
        size = _UNITS_ASKED if runner.ray is None else _UNITS_PER_NODE
        predicted = _predict_units(predictor, units, selected, size) if predictor is not None else iter(())
        if form == "table":
            _write_table([row for answers in _sorted(predicted, _table_rows, order, top) for row in answers], order)
        else:
            write = {"json": _write_json, "jsonl": _write_jsonl}[form]
            write(row for answers in _sorted(predicted, _json_rows, order, top) for row in answers)
    seconds = time.perf_counter() - started
    omitted = len(found) - len(sources)
    console.note(
        f"{counted(tally.files, 'file')}, {counted(tally.units, 'unit')} in {seconds:.1f} s"
        f" ({tally.units / max(seconds, 1e-9):.0f} units/s)"
        + (f", {counted(tally.count, 'path')} failed" if tally.count else "")
        + (f"; the {top} most expensive shown" if top is not None and top < tally.units else "")
        + (f"; {counted(omitted, 'file')} of tests left out: name one to see it" if omitted else "")
    )
    return 2 if tally.count else 0


def _sorted(
    predicted: Iterable[_UnitPredictions],
    rows_of: Callable[[_FileUnit, Sequence[Prediction]], list[_Answer_]],
    order: _Order,
    top: int | None,
) -> Iterator[list[_Answer_]]:
    """The rows of each unit: as they come, or the most expensive first, and what is not predicted last."""
    if order == "file":
        yield from (rows_of(unit, answers) for unit, answers in predicted)
        return
    found = []
    for unit, answers in predicted:
        cost = median_of(unit.analysed, answers, order)
        # What has no such metric, such as the memory of a kernel, is less than all that has one.
        found.append((-1.0 if math.isnan(cost) else cost, rows_of(unit, answers)))
    found.sort(key=lambda entry: -entry[0])
    yield from (rows for _, rows in found[:top])


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
            texts = file_units(analyser, source.path, source.root)
            units = [unit for text in texts for unit in _without_errors(source, text)]
            if not units:
                _explain_no_unit(source, texts)
        except AnalysisError as error:
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
        yield from units


def _without_errors(source: SourceFile, text: TextUnits) -> list[_FileUnit]:
    """The units of a text that have no syntax error."""
    units = without_errors(text.parsed, text.units, lambda unit: unit.code.text)
    if len(units) < len(text.units) and (units or text.cell is not None):
        left = counted(len(text.units) - len(units), "unit")
        place = ", ".join(filter(None, [_cell(text.cell), first_error(text.parsed)]))
        console.note(f"{source.path}: {left} with syntax errors left out ({place})")
    return [_FileUnit(str(source.path), unit, text.cell) for unit in units]


def _cell(number: int | None) -> str:
    return f"cell {number}" if number is not None else ""


def _explain_no_unit(source: SourceFile, texts: Sequence[TextUnits]) -> None:
    if is_notebook(source.path):
        if source.named:
            console.note(f"{source.path}: nothing to predict (no function in a Python cell)")
        return
    [parsed] = [text.parsed for text in texts]
    entry = languages.by_name(parsed.language)
    # The text of a program may have errors; a grammar need not know each dialect either, such as JSX.
    if parsed.language == "python" and parsed.has_error:
        where = first_error(parsed)
        place = f" ({where})" if where else ""
        raise SourceError(
            f"{source.path}: has syntax errors and no unit that parses as {entry.title}{place}; fix its syntax"
        )
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


def _table_rows(unit: _FileUnit, predictions: Sequence[Prediction]) -> list[CostRow]:
    return cost_rows(":".join(filter(None, [unit.file, _cell(unit.cell)])), unit.analysed, predictions)


def _json_rows(unit: _FileUnit, predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    return [unit_row(unit.file, unit.analysed, prediction, unit.cell) for prediction in predictions]


def _write_jsonl(rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        print(json.dumps(row))


def _write_json(rows: Iterable[dict[str, Any]]) -> None:
    separator = "[\n"
    for row in rows:
        sys.stdout.write(f"{separator}{json.dumps(row)}")
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def _write_table(rows: Sequence[CostRow], order: _Order) -> None:
    """Print aligned columns, without those that have nothing; the metric that sorts comes first."""
    metrics = sorted(_METRICS, key=lambda metric: metric != order)
    columns = {"WHERE": [row.where for row in rows], "UNIT": [row.unit for row in rows]}
    columns["ON"] = [row.on for row in rows]
    columns |= {f"{metric.upper()} (80 % BAND)": [row.costs.get(metric, "") for row in rows] for metric in metrics}
    columns["NOTE"] = [row.note for row in rows]
    shown = {title: [printable(cell) for cell in cells] for title, cells in columns.items() if any(cells)}
    widths = [max(map(len, (title, *cells))) for title, cells in shown.items()]
    for line in [tuple(shown), *zip(*shown.values(), strict=True)]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
