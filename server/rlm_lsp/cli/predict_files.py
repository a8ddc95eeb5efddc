"""Source files -> their units with predictions, ready to print: what one process of ``rlm-lsp predict`` does.

A file that cannot be used has an error in one line; what is worth saying about a good one are its notes. Answers are
plain data, which is sent between processes and kept on the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rlm_core import RlmError, SourceError
from rlm_core.errors import AnalysisError, TooComplexError
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.file_units import TextUnits, file_units
from rlm_core.queries.network_sizes import valid_sizes
from rlm_core.source import languages
from rlm_core.source.notebooks import is_notebook
from rlm_core.source.syntax_errors import first_error, without_errors
from rlm_core.types import AbstentionCode, Metric, Prediction

from rlm_lsp.rendering.console import counted
from rlm_lsp.rendering.json_rows import unit_row
from rlm_lsp.rendering.prediction_cells import CostRow, cost_rows, median_of
from rlm_lsp.settings.project import BudgetTables, ProjectSettings
from rlm_lsp.settings.sizes import project_rules
from rlm_lsp.sources import SourceFile

from . import options
from .predict_batches import BatchPredictor, Runner, TextBatch, chunks
from .workers import Note

UNITS_ASKED, UNITS_PER_NODE = 256, 32  # in one call of the model
_SORTED: tuple[Metric, ...] = ("latency", "memory")
_FAILED = (AbstentionCode.ANALYSIS_FAILED, AbstentionCode.MODEL_FAILED, AbstentionCode.SERVER_UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class UnitAnswer:
    """The rows of a unit in a table and as JSON, and its largest medians, see :func:`median_of`."""

    medians: Mapping[str, float]
    table: tuple[CostRow, ...]
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """The units of a file, what is printed about it, and the error for which it has no units.

    ``counts`` is False for a file that is as good as missing, and ``failed`` True if an answer may be better next time.
    """

    units: tuple[UnitAnswer, ...] = ()
    notes: tuple[str, ...] = ()
    error: str | None = None
    counts: bool = True
    failed: bool = False


@dataclass(frozen=True, slots=True)
class _AnalysedFile:
    """A file and its units; ``cells`` are the numbers of the notebook's cells that they are in."""

    source: SourceFile
    units: tuple[AnalysedUnit, ...] = ()
    cells: tuple[int | None, ...] = ()
    notes: tuple[str, ...] = ()
    error: str | None = None
    counts: bool = True


class FilePredictor:
    """Answers about files in this process.

    Raises:
        RlmError: the model cannot be loaded.
    """

    def __init__(self, runner: Runner, selected: QuerySelection, without_measured: bool, note: Note) -> None:
        self._predictor = BatchPredictor(runner)
        self._selected = selected
        self._units_asked = UNITS_ASKED if runner.ray is None else UNITS_PER_NODE
        measured = options.known_measurements(off=without_measured, note=note)
        rules = partial(project_rules, ProjectSettings(BudgetTables()))
        sizes = valid_sizes(selected.workload)
        self._analyser = Analyser(measured=measured, size_rules=rules, call_sizes=True, sizes_of_networks=sizes)

    def __call__(self, sources: Iterable[SourceFile]) -> list[FileAnswer]:
        """The answers about some files, in their order."""
        return list(self.answers(sources))

    def answers(self, sources: Iterable[SourceFile]) -> Iterator[FileAnswer]:
        """The answers about files in their order; only those that wait for the model are kept."""
        waiting: deque[_AnalysedFile] = deque()
        answered: deque[tuple[UnitAnswer, bool]] = deque()

        def units() -> Iterator[tuple[str, AnalysedUnit, int | None]]:
            for source in sources:
                file = _analysed(self._analyser, source)
                waiting.append(file)
                for unit, cell in zip(file.units, file.cells, strict=True):
                    yield str(source.path), unit, cell

        def batches() -> Iterator[tuple[list[tuple[str, AnalysedUnit, int | None]], TextBatch]]:
            for chunk in chunks(units(), self._units_asked):
                codes = [unit.code for _, unit, _ in chunk]
                queries = [queries_for(self._predictor.predictor, code, self._selected) for code in codes]
                yield chunk, TextBatch(codes, queries)

        with self._predictor:
            for chunk, predictions in self._predictor.predict(batches()):
                answered += [
                    (_unit_answer(file, unit, cell, answers), _has_failed(unit, answers))
                    for (file, unit, cell), answers in zip(chunk, predictions, strict=True)
                ]
                while waiting and len(answered) >= len(waiting[0].units):
                    yield _file_answer(waiting.popleft(), answered)
            for file in waiting:
                yield _file_answer(file, answered)


def _file_answer(file: _AnalysedFile, answered: deque[tuple[UnitAnswer, bool]]) -> FileAnswer:
    of_file = [answered.popleft() for _ in file.units]
    failed = any(failed for _, failed in of_file)
    return FileAnswer(tuple(unit for unit, _ in of_file), file.notes, file.error, file.counts, failed)


def _unit_answer(file: str, unit: AnalysedUnit, cell: int | None, answers: Sequence[Prediction]) -> UnitAnswer:
    return UnitAnswer(
        {metric: median_of(unit, answers, metric) for metric in _SORTED},
        tuple(cost_rows(":".join(filter(None, [file, _cell(cell)])), unit, answers)),
        tuple(unit_row(file, unit, answer, cell) for answer in answers),
    )


def _has_failed(unit: AnalysedUnit, answers: Sequence[Prediction]) -> bool:
    reasons = [answer.abstained.code for answer in answers if answer.abstained is not None]
    return bool(unit.failure) or any(reason in _FAILED for reason in reasons)


def _analysed(analyser: Analyser, source: SourceFile) -> _AnalysedFile:
    try:
        # An empty __init__.py in a folder is normal; an empty file that the user names is an error.
        if not source.named and source.path.stat().st_size == 0:
            return _AnalysedFile(source, counts=False)
        texts = file_units(analyser, source.path, source.root)
        notes: list[str] = []
        found = [(unit, text.cell) for text in texts for unit in _without_errors(source, text, notes)]
        if not found:
            notes += _why_no_unit(source, texts)
    except AnalysisError as error:
        if isinstance(error, TooComplexError) and not source.named and source.path.suffix != ".py":
            # Solutions of programming problems are shorter. It may be a table of translations in `.ts`.
            return _AnalysedFile(source, counts=False)
        return _AnalysedFile(source, error=f"{source.path}: {error}")
    except RlmError as error:
        return _AnalysedFile(source, error=str(error))
    except OSError as error:
        return _AnalysedFile(source, error=f"{source.path}: cannot be read ({error.strerror}); check its permissions")
    return _AnalysedFile(source, tuple(unit for unit, _ in found), tuple(cell for _, cell in found), tuple(notes))


def _without_errors(source: SourceFile, text: TextUnits, notes: list[str]) -> list[AnalysedUnit]:
    """The units of a text that have no syntax error."""
    units = without_errors(text.parsed, text.units, lambda unit: unit.code.text)
    if len(units) < len(text.units) and (units or text.cell is not None):
        left = counted(len(text.units) - len(units), "unit")
        place = ", ".join(filter(None, [_cell(text.cell), first_error(text.parsed)]))
        notes.append(f"{source.path}: {left} with syntax errors left out ({place})")
    return units


def _cell(number: int | None) -> str:
    return f"cell {number}" if number is not None else ""


def _why_no_unit(source: SourceFile, texts: Sequence[TextUnits]) -> list[str]:
    """Return the message about a file without units.

    Raises:
        SourceError: it has syntax errors.
    """
    if is_notebook(source.path):
        return [f"{source.path}: nothing to predict (no function in a Python cell)"] if source.named else []
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
        return []
    if entry.grammar is None or parsed.language == "python":
        return [f"{source.path}: nothing to predict (no function, kernel, module or solution)"]
    mark = "#" if parsed.language == "ruby" else "//"
    return [
        f"{source.path}: nothing to predict: the file does not look like a solution of a programming problem;"
        f" write `{mark} rlm: program` above its code to predict it as one"
    ]
