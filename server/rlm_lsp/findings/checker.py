"""The files of ``rlm-lsp check`` -> findings: read, judge in batches, report.

Memory stays flat over any number of files.
"""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol, cast

from rlm_core import ModelError
from rlm_core.inference.predictor import Predictor
from rlm_core.queries.devices import answers_for
from rlm_core.queries.measured_lookup import MeasuredUnits
from rlm_core.types import METRICS_OF_BASIS, Basis, CodeText, CostRatio, Prediction, Query, Span

from rlm_lsp.rendering import console
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.settings.project import BudgetTable, BudgetTables, ProjectSettings
from rlm_lsp.sources import SourceFile, find_sources, matches

from .baseline import fingerprint
from .checked_files import CheckedFiles
from .file_reader import FileReader, JudgedText, ReadFile
from .finding import Finding
from .formats import LocatedFinding, Location, TextRegion, region_of
from .judge import judge, malformed

_BATCH_UNITS, _MAX_STEP_UNITS = 64, 128
_BATCH_FILES = 256


class ReadFiles(Protocol):
    """Reads files, and gives them in their order."""

    def __call__(self, sources: Sequence[SourceFile]) -> Generator[ReadFile]:
        """Read these files."""
        ...


def map_in_process(reader: FileReader) -> ReadFiles:
    """Read files one by one in this process."""

    def read(sources: Sequence[SourceFile]) -> Generator[ReadFile]:
        yield from map(reader.read, sources)

    return read


class Checker:
    """Checks files with a predictor, which is loaded when it is first needed, and counts what it has checked."""

    def __init__(
        self,
        checked: CheckedFiles,
        load: Callable[[], Predictor],
        confidence: float | None = None,
        revision: str = "HEAD",
        measured: MeasuredUnits | None = None,
        read: ReadFiles | None = None,
    ) -> None:
        """``read`` reads files as a :class:`FileReader` with the same arguments does, but in other processes."""
        self._checked, self._load = checked, load
        self._read_files: ReadFiles = read or map_in_process(FileReader(checked, confidence, revision, measured))
        self._predictor: Predictor | None = None
        self._tables = BudgetTables()
        self.settings = ProjectSettings(self._tables)
        self._reported_tables: dict[Path, BudgetTable] = {}
        self._matched: set[tuple[Path, str]] = set()
        self.files = self.units = self.with_budget = self.committed = 0
        self.compared = self.slower = self.faster = 0
        self.errors = self.unreadable = 0
        self.abstained: Counter[str] = Counter()

    def run(self, progress: console.Progress) -> Iterator[LocatedFinding]:
        """The findings of all files in their order, those of a file by position.

        Raises:
            RlmError: the model cannot be loaded or cannot compare.
        """
        batch: list[JudgedText] = []
        waiting = 0
        sources = [source for source in self._checked.files if self._is_checked(source)]
        progress(0, len(sources))
        with closing(self._read_files(sources)) as files:
            for done, file in enumerate(files, 1):
                progress(done, len(sources))
                for text in self._take(file):
                    batch.append(text)
                    waiting += len(text.cases)
                if waiting >= _BATCH_UNITS or len(batch) >= _BATCH_FILES:
                    yield from self._report(batch)
                    batch, waiting = [], 0
        yield from self._report(batch)

    @property
    def unknown_devices(self) -> list[str]:
        """Devices of configured budgets that the model knows for no kind of unit: those budgets have no effect."""
        if self._predictor is None:
            return []
        known = {basis: self._predictor.devices(cast(Basis, basis)) for basis in METRICS_OF_BASIS}
        entries = [entry for table in self._reported_tables.values() for entry in table.budgets]
        devices = {active.budget.device for entry in entries for active in entry.budgets} - {None}
        return sorted(
            device
            for device in devices
            if device is not None and not any(answers_for(basis, device, learned) for basis, learned in known.items())
        )

    def unmatched_globs(self) -> list[tuple[str, str]]:
        """The globs of configured budgets that no source file below their configuration matches, each with its file.

        Files that were not checked count too: ``--diff`` and a named folder leave most of them out.
        """
        unmatched: list[tuple[str, str]] = []
        for table in self._reported_tables.values():
            left = [entry.glob for entry in table.budgets if (table.path, entry.glob) not in self._matched]
            folder = table.path.parent
            sources = find_sources([folder], lambda error: None, notebooks=True) if left else []
            names = [source.path.relative_to(folder).as_posix() for source in sources]
            unmatched += [(_shown(table.path), glob) for glob in left if not any(matches(glob, name) for name in names)]
        return unmatched

    def _is_checked(self, source: SourceFile) -> bool:
        """False for a file that the settings exclude, and for an empty one."""
        real = self._checked.real(source.path)
        try:
            return not self.settings.of(real).excludes(real) and (
                not source.path.is_file() or source.path.stat().st_size > 0
            )
        except OSError:
            return True  # which its reader explains

    def _take(self, file: ReadFile) -> list[JudgedText]:
        """The texts of a file; before them comes their configuration, the first time that one with mistakes is met."""
        if file.error is not None:
            self._report_unreadable(file.source, file.error)
            return []
        self.files += 1
        self.units += file.units
        self.with_budget += file.with_budget
        real = self._checked.real(file.source.path)
        table, mistakes = self._table(real)
        self._matched |= {(table.path, entry.glob) for entry in table.entries_of(real)} if table is not None else set()
        return [*mistakes, *file.texts]

    def _report_unreadable(self, source: SourceFile, error: str) -> None:
        self.unreadable += 1
        if source.named:
            self.errors += 1
            console.report_error(error)
        else:
            console.note(f"not checked: {error}")

    def _table(self, path: Path) -> tuple[BudgetTable | None, list[JudgedText]]:
        """The budgets configured above a file, and the mistakes in them when they are met for the first time."""
        table = self._tables.above(path)
        if table is None or table.path in self._reported_tables:
            return table, []
        self._reported_tables[table.path] = table
        if not table.malformed or (self._checked.compares and not self._checked.is_changed(table.path)):
            return table, []
        return table, [JudgedText(table.path, table.source, findings=malformed(table.malformed))]

    def _report(self, batch: Sequence[JudgedText]) -> Iterator[LocatedFinding]:
        cases = [(file, case) for file in batch for case in file.cases]
        if cases and self._predictor is None:
            self._predictor = self._load()
        # One file may have a thousand units; the memory that their texts need is released in between.
        for start in range(0, len(cases), _MAX_STEP_UNITS):
            step = cases[start : start + _MAX_STEP_UNITS]
            assert self._predictor is not None
            judgements = judge(self._predictor, [case for _, case in step], self._predict, self._compare)
            for (file, _), judgement in zip(step, judgements, strict=True):
                file.findings += judgement.findings
                self.committed += judgement.committed
                self.slower += judgement.is_slower
                self.faster += judgement.is_faster
                self.abstained.update(map(reason, judgement.abstained))
            release_memory()
        for file in batch:
            for finding in sorted(file.findings, key=lambda finding: finding.span.start_byte):
                yield self._located(file, finding)

    def _predict(self, questions: Sequence[tuple[CodeText, Sequence[Query]]]) -> Sequence[Sequence[Prediction]]:
        assert self._predictor is not None
        return self._predictor.predict([code for code, _ in questions], [queries for _, queries in questions])

    def _compare(self, questions: Sequence[tuple[CodeText, CodeText, Sequence[Query]]]) -> list[list[CostRatio]]:
        # Imports numpy, which a check without a comparison does not need.
        from rlm_core.inference.revisions import compare_revisions

        assert self._predictor is not None
        self.compared += len(questions)
        pairs = [(before, after) for before, after, _ in questions]
        ratios = compare_revisions(self._predictor, pairs, [queries for *_, queries in questions])
        if ratios is None:
            raise ModelError(f"--diff: {self._predictor.model_id} cannot compare two texts; name an exported model")
        return ratios

    def _located(self, file: JudgedText, finding: Finding) -> LocatedFinding:
        location = self._location(file.path, file.source, finding.span, file.cell)
        related = tuple(
            (
                other.message,
                self._location(file.path, file.source, other.span, file.cell)
                if other.path is None
                else self._location(other.path, self._reported_tables[other.path].source, other.span),
            )
            for other in finding.related
        )
        return LocatedFinding(finding, location, related, fingerprint(location.name, finding))

    def _location(self, path: Path, source: bytes, span: Span, cell: int | None = None) -> Location:
        region = region_of(source, span) if source else TextRegion(1, 1, 1, 1)
        return Location(_shown(path), self._checked.name_of(path), region, cell)


def _shown(path: Path) -> str:
    """A path as the user named it; an absolute one relative to the working folder where it is below that."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_absolute() and path.is_relative_to(here) else str(path)


def release_memory() -> None:
    """Return freed memory to the system; glibc keeps what texts of many lengths leave behind, hundreds of MiB."""
    if sys.platform == "linux":
        # Other C libraries on Linux have no such function.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
