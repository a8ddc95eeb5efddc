"""``rlm-lsp sizes``: the inputs that the costs of functions depend on, with the known values and their sources.

With ``--write`` the project's configuration gets a table to fill in: one commented line for each function with an input
of unknown size. Lines that are there already stay as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click
from rlm_core import RlmError, loading
from rlm_core.errors import DataError
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import queries_for
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.file_units import file_units
from rlm_core.queries.function_sizes import input_names_of
from rlm_core.queries.package_files import package_of
from rlm_core.types import Prediction, SizeValue

from rlm_lsp.rendering import console, labels, size_words
from rlm_lsp.rendering.console import ErrorCounter, counted
from rlm_lsp.rendering.escaping import printable
from rlm_lsp.rendering.json_rows import size_value_fields
from rlm_lsp.rendering.prediction_cells import cost_rows, median_of
from rlm_lsp.settings.project import BudgetTables, ProjectSettings
from rlm_lsp.settings.size_table import SizeTableFile, UnknownSizes
from rlm_lsp.settings.sizes import project_rules
from rlm_lsp.sources import SourceFile, find_sources, without_tests

from . import options
from .options import PATH

_UNITS_ASKED = 128
_WRITTEN = 20
_NOT_KNOWN: Mapping[str, None] = {"value": None, "source": None, "rule": None}


@dataclass(frozen=True, slots=True)
class SizedFunction:
    """A function whose cost depends on inputs: the known value of each, and its costs as they are shown."""

    path: Path
    line: int
    name: str
    qualname: str
    inputs: tuple[tuple[str, SizeValue | None], ...]
    latency: str
    median: float

    @property
    def unknown(self) -> tuple[str, ...]:
        """The inputs whose size nothing but measurements gives."""
        return tuple(name for name, value in self.inputs if value is None or value.source == "recorded")


@click.command()
@click.argument("paths", metavar="[PATH]...", type=PATH, nargs=-1)
@options.output_format("table", "json", help="A table, or JSON.")
@click.option("--top", metavar="N", type=click.IntRange(1), help="Only the N most expensive functions.")
@click.option(
    "--write",
    is_flag=True,
    help=f"Add a table to fill in to the configuration, for the {_WRITTEN} most expensive functions or --top.",
)
@options.model
@options.threads
@options.no_measured
@options.strict
@options.cpu_scale
def command(
    paths: tuple[Path, ...],
    form: Literal["table", "json"],
    top: int | None,
    write: bool,
    model: str,
    threads: int,
    no_measured: bool,
) -> None:
    """List the inputs that costs depend on, and their known sizes.

    The most expensive function comes first. Each input has its value and where that comes from: a comment
    `# rlm: sizes items=10k`, `[tool.rlm-lsp.sizes]`, a measurement, or calls in
    the project. Without a value, costs are for small inputs.

    Without PATH, list the working directory. Tests in a directory are left out.
    """
    tally = ErrorCounter()
    sources = without_tests(find_sources(paths or (Path(),), tally.report))
    analyser = Analyser(
        measured=options.known_measurements(off=no_measured),
        size_rules=lambda path: project_rules(settings, path),
        call_sizes=True,
    )
    settings = ProjectSettings(BudgetTables())
    with console.failures(), console.progress("reading") as progress:
        predictor = loading.load_corrected(model, threads=threads, stored=True)
        found = list(_functions(analyser, predictor, sources, tally, progress))
    found.sort(key=lambda function: (-function.median, str(function.path), function.line))
    shown = found[:top]
    (_write_json if form == "json" else _write_table)(shown)
    unknown = [function for function in shown if function.unknown]
    listed = counted(len(unknown), "function")
    console.note(f"{counted(len(found), 'function')} with inputs; {listed} listed with an unknown size")
    if write:
        _write(unknown[: top or _WRITTEN], paths[0] if paths else Path())
    raise click.exceptions.Exit(2 if tally.count else 0)


def _functions(
    analyser: Analyser,
    predictor: Predictor,
    sources: Sequence[SourceFile],
    tally: ErrorCounter,
    progress: console.Progress,
) -> Iterator[SizedFunction]:
    units = _units(analyser, sources, tally, progress)
    while chunk := list(islice(units, _UNITS_ASKED)):
        codes = [analysed.code for _, analysed in chunk]
        answers = predictor.predict(codes, [queries_for(predictor, code) for code in codes])
        for (path, analysed), predictions in zip(chunk, answers, strict=True):
            yield _function(path, analysed, predictions)


def _units(
    analyser: Analyser, sources: Sequence[SourceFile], tally: ErrorCounter, progress: console.Progress
) -> Iterator[tuple[Path, AnalysedUnit]]:
    """The functions of files whose costs depend on inputs."""
    for done, source in enumerate(sources):
        progress(done, len(sources))
        try:
            is_python = source.path.suffix == ".py" and (source.named or source.path.stat().st_size > 0)
            texts = file_units(analyser, source.path, source.root) if is_python else []
        except (RlmError, OSError) as error:
            tally.report(error if isinstance(error, RlmError) else DataError(f"{source.path}: cannot be read"))
            continue
        for text in texts:
            for analysed in text.units:
                code = analysed.code
                if analysed.unit.kind == "function" and input_names_of(code.text, code.work, code.measured):
                    yield source.path, analysed


def _function(path: Path, analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> SizedFunction:
    code, unit = analysed.code, analysed.unit
    known = {size.name: size for size in code.sizes}
    module = package_of(path.absolute())[1]
    median = median_of(analysed, predictions, "latency")
    [row] = cost_rows(str(path), analysed, predictions)[:1]
    return SizedFunction(
        path,
        unit.name.start_line + 1,
        f"{module}.{unit.qualname}" if module else unit.qualname,
        unit.qualname,
        tuple((name, known.get(name)) for name in input_names_of(code.text, code.work, code.measured)),
        row.costs.get("latency", "-"),
        -1.0 if math.isnan(median) else median,
    )


def _write_table(functions: Sequence[SizedFunction]) -> None:
    rows = [("WHERE", "UNIT", "LATENCY (80 % BAND)", "INPUT", "SIZE", "FROM")]
    for function in functions:
        first = f"{function.path}:{function.line}", function.qualname, function.latency
        for place, (name, value) in enumerate(function.inputs):
            size = labels.size(value.value) if value is not None else "?"
            source = size_words.source(value) if value is not None else "not known"
            rows.append((*(first if not place else ("", "", "")), name, size, source))
    shown = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown if functions else ():
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _write_json(functions: Sequence[SizedFunction]) -> None:
    rows: list[dict[str, Any]] = [
        {
            "file": str(function.path),
            "line": function.line,
            "qualname": function.qualname,
            "name": function.name,
            "latency": function.median if 0 <= function.median < math.inf else None,
            "inputs": [
                {"name": name, **(size_value_fields(value) if value is not None else _NOT_KNOWN)}
                for name, value in function.inputs
            ],
        }
        for function in functions
    ]
    print(json.dumps(rows, indent=1))


def _write(functions: Sequence[SizedFunction], path: Path) -> None:
    """Add the functions to the configuration above a path.

    Raises:
        RlmError: it cannot be read or written.
    """
    file = SizeTableFile.above(path)
    entries = [
        UnknownSizes(
            function.name,
            {
                name: value.value if (value := dict(function.inputs)[name]) is not None else None
                for name in function.unknown
            },
            f"{function.path}:{function.line}",
        )
        for function in functions
    ]
    added = file.add(entries)
    if added:
        console.line(
            f"{file.path}: {counted(added, 'line')} added to [{file.section}]; fill them in and uncomment them"
        )
    else:
        console.line(f"{file.path}: nothing to add to [{file.section}]")
