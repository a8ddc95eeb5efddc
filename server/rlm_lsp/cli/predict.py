"""``rlm-lsp predict``: source files -> a table with a row per unit, or JSON with one per query.

Files are analysed and predicted in batches, in several processes where that pays, so that only rows are kept of a
repository. A file that cannot be used is reported in one line and makes the exit status 2; the others are answered.
Rows of ``--batch`` are answered by :mod:`.predict_rows`.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
from rlm_core import RlmError
from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection
from rlm_core.loading import is_full
from rlm_core.queries.judges import JUDGES
from rlm_core.types import Metric

from rlm_lsp.rendering import console
from rlm_lsp.rendering.console import ErrorCounter, counted
from rlm_lsp.rendering.escaping import printable
from rlm_lsp.rendering.prediction_cells import CostRow
from rlm_lsp.sources import SourceFile, find_sources, without_tests

from . import options
from .file_answers import FileAnswers
from .options import PATH
from .predict_batches import Runner
from .predict_files import FileAnswer, FilePredictor, UnitAnswer
from .predict_rows import predict_rows
from .workers import batches_for, results

_Form = Literal["table", "json", "jsonl"]
_Order = Literal["latency", "memory", "file"]
_METRICS: tuple[Metric, ...] = ("latency", "memory", "accuracy", "energy")


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
@options.jobs
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
    jobs: int,
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
            by = order or ("latency" if form == "table" or top is not None else "file")
            files = _FileRunner(runner, query_selection(devices, workload, judge), no_measured, jobs)
            status = _predict_paths(paths or (Path(),), form, by, top, files)
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


_Answer_ = TypeVar("_Answer_")


@dataclass(slots=True)
class _Tally(ErrorCounter):
    files: int = 0
    units: int = 0


def _predict_paths(paths: Sequence[Path], form: _Form, order: _Order, top: int | None, files: _FileRunner) -> int:
    tally = _Tally()
    found = find_sources(paths, tally.report, notebooks=True)
    sources = without_tests(found)
    started = time.perf_counter()
    with console.progress("predicting") as progress, closing(files.answers(sources)) as answers:
        predicted = _counted(answers, tally, len(sources), progress)
        if form == "table":
            rows = [row for rows in _sorted(predicted, lambda unit: unit.table, order, top) for row in rows]
            _write_table(rows, order)
            if len(sources) == 1:
                _write_chart(rows)
        else:
            write = {"json": _write_json, "jsonl": _write_jsonl}[form]
            write(row for rows in _sorted(predicted, lambda unit: unit.rows, order, top) for row in rows)
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


def _counted(
    answers: Iterable[FileAnswer], tally: _Tally, total: int, progress: console.Progress
) -> Iterator[UnitAnswer]:
    """The units of files; what is to be said about each file is printed and counted."""
    progress(0, total)
    for done, answer in enumerate(answers, 1):
        for text in answer.notes:
            console.note(text)
        if answer.error is not None:
            tally.report(answer.error)
        elif answer.counts:
            tally.files += 1
            tally.units += len(answer.units)
        progress(done, total)
        yield from answer.units


def _sorted(
    predicted: Iterable[UnitAnswer],
    rows_of: Callable[[UnitAnswer], Sequence[_Answer_]],
    order: _Order,
    top: int | None,
) -> Iterator[Sequence[_Answer_]]:
    """The rows of each unit: as they come, or the most expensive first, and what is not predicted last."""
    if order == "file":
        yield from map(rows_of, predicted)
        return
    found = []
    for unit in predicted:
        cost = unit.medians[order]
        # What has no such metric, such as the memory of a kernel, is less than all that has one.
        found.append((-1.0 if math.isnan(cost) else cost, rows_of(unit)))
    found.sort(key=lambda entry: -entry[0])
    yield from (rows for _, rows in found[:top])


@dataclass(frozen=True, slots=True)
class _FileRunner:
    """The sources of answers about files: known answers, and processes for the others."""

    runner: Runner
    selected: QuerySelection
    without_measured: bool
    jobs: int

    def answers(self, sources: Sequence[SourceFile]) -> Generator[FileAnswer]:
        """The answers about files, in their order."""
        known = FileAnswers(self.runner, self.selected, without_measured=self.without_measured)
        keys = [known.key(source) for source in sources]
        hits = [known.find(key) is not None for key in keys]
        with closing(self._made([source for source, hit in zip(sources, hits, strict=True) if not hit])) as made:
            try:
                for source, key, hit in zip(sources, keys, hits, strict=True):
                    # Found again instead of kept, since a repository may be large; another process may have removed it.
                    answer = known.find(key) if hit else next(made)
                    if answer is None:
                        [answer] = self._made([source])
                    if key is not None and not hit:
                        known.keep(key, answer)
                    yield answer
            finally:
                known.save()

    def _made(self, sources: Sequence[SourceFile]) -> Generator[FileAnswer]:
        if not sources:
            return
        if self.runner.ray is not None:
            yield from FilePredictor(self.runner, self.selected, self.without_measured, console.note).answers(sources)
            return
        # A full model takes all the memory, or the GPU.
        jobs, batches = batches_for(sources, self.jobs if not is_full(self.runner.model) else 1)
        runner = replace(self.runner, threads=max(self.runner.threads // jobs, 1)) if jobs > 1 else self.runner
        make = partial(FilePredictor, runner, self.selected, self.without_measured)
        yield from results(make, batches, jobs, _lost, console.note)


def _lost(source: SourceFile, reason: str) -> FileAnswer:
    return FileAnswer(error=f"{source.path}: the process that predicted it died ({reason}); exclude the file")


def _write_chart(rows: Sequence[CostRow]) -> None:
    """Print the most expensive operators of a network on the first device where they are known."""
    for line in next(filter(None, (row.chart for row in rows)), ()):
        print(printable(line))


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
