"""The files of ``rlm-lsp check`` -> findings: read, judge in batches, report.

Memory stays flat over any number of files.
"""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import cast

from rlm_core import ModelError, RlmError, SourceError
from rlm_core.boundary import guarded
from rlm_core.errors import AnalysisError
from rlm_core.inference.predictor import Predictor
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.devices import answers_for
from rlm_core.queries.file_units import TextUnits, file_units, notebook_units
from rlm_core.queries.measured_lookup import MeasuredUnits
from rlm_core.source.notebooks import cells_of, is_notebook
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import decode
from rlm_core.types import METRICS_OF_BASIS, Basis, CodeText, CostRatio, Prediction, Query, Span

from rlm_lsp.history.comparison import UnitDiff, unit_diffs
from rlm_lsp.rendering import console
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.settings.project import BudgetTable, BudgetTables, ProjectSettings, configured_budgets
from rlm_lsp.sources import SourceFile, find_sources, matches

from .baseline import fingerprint
from .checked_files import CheckedFiles
from .finding import Finding
from .formats import LocatedFinding, Location, TextRegion, region_of
from .judge import UnitCase, cases_of, criteria_of, judge, malformed, read_rules

_BATCH_UNITS, _MAX_STEP_UNITS = 64, 128
_BATCH_FILES = 256


@dataclass(slots=True)
class _File:
    """A text to judge: a file, or the cell of a notebook with this number."""

    path: Path
    source: bytes
    cell: int | None = None
    cases: list[UnitCase] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


class Checker:
    """Checks files with a predictor, which is loaded when it is first needed, and counts what it has checked."""

    def __init__(
        self,
        checked: CheckedFiles,
        load: Callable[[], Predictor],
        confidence: float | None = None,
        revision: str = "HEAD",
        measured: MeasuredUnits | None = None,
    ) -> None:
        self._checked, self._load = checked, load
        self._confidence, self._revision = confidence, revision
        self._predictor: Predictor | None = None
        self._tables = BudgetTables()
        self.settings = ProjectSettings(self._tables)
        self._reported_tables: dict[Path, BudgetTable] = {}
        self._matched: set[tuple[Path, str]] = set()
        # One for the current texts, one for those of the compared revision.
        self._analyser = Analyser(default_sizes=self._default_sizes, measured=measured)
        self._earlier = Analyser(checked.overlay, self._default_sizes)
        self.files = self.units = self.with_budget = self.compared = self.committed = 0
        self.errors = self.unreadable = 0
        self.abstained: Counter[str] = Counter()

    def run(self, progress: console.Progress) -> Iterator[LocatedFinding]:
        """The findings of all files in their order, those of a file by position.

        Raises:
            RlmError: the model cannot be loaded or cannot compare.
        """
        batch: list[_File] = []
        waiting = 0
        for done, source in enumerate(self._checked.files):
            progress(done, len(self._checked.files))
            for file in self._tried(source):
                batch.append(file)
                waiting += len(file.cases)
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

    def _default_sizes(self, path: Path | None) -> Mapping[str, str]:
        """The sizes of kernels whose file names none."""
        return self.settings.of(self._checked.real(path)).settings.default_sizes if path is not None else {}

    def _tried(self, source: SourceFile) -> list[_File]:
        """A file as :meth:`_read` has it; one that fails is reported and costs no other file."""

        def fail(error: Exception) -> list[_File]:
            self._report_unreadable(source, AnalysisError(f"the check failed ({type(error).__name__}); see the log"))
            return []

        return guarded(f"the check of {source.path}", lambda: self._read(source), fail)

    def _read(self, source: SourceFile) -> list[_File]:
        """A file with its units to judge, or the cells of a notebook with theirs.

        Before them comes their configuration, the first time that one with mistakes is met.
        """
        path, real = source.path, self._checked.real(source.path)
        folder = self.settings.of(real)
        if folder.excludes(real):
            return []
        try:
            if path.is_file() and path.stat().st_size == 0:
                return []
            texts = file_units(self._analyser, path, source.root)
        except (RlmError, OSError) as error:
            self._report_unreadable(source, error)
            return []
        units = [unit for text in texts for unit in text.units]
        self.files += 1
        self.units += len(units)
        table, mistakes = self._table(real)
        self._matched |= {(table.path, entry.glob) for entry in table.entries_of(real)} if table is not None else set()
        configured = configured_budgets(real, folder.relative(real), folder.settings, table)
        criteria = criteria_of(folder.settings, self._confidence, self._revision)
        diffs = iter(self._diffs(path, texts, units))
        files = []
        for text in texts:
            rules, findings = read_rules(text.parsed, text.units, configured)
            self.with_budget += sum(bool(of_unit.budgets) for of_unit in rules)
            # The text of a network is not that of its file: its findings are at the start of the file.
            content = text.parsed.source if text.parsed.language != "onnx" else b""
            diffs_of_text = list(islice(diffs, len(text.units)))
            cases = cases_of(text.units, rules, diffs_of_text, criteria, only_changes=True)
            files.append(_File(path, content, text.cell, cases, findings))
        return [*mistakes, *files]

    def _report_unreadable(self, source: SourceFile, error: RlmError | OSError) -> None:
        if isinstance(error, OSError):
            error = SourceError(f"{source.path}: cannot be read ({error.strerror}); check its permissions")
        elif isinstance(error, AnalysisError):
            error = SourceError(f"{source.path}: {error}")
        self.unreadable += 1
        if source.named:
            self.errors += 1
            console.report_error(error)
        else:
            console.note(f"not checked: {error}")

    def _table(self, path: Path) -> tuple[BudgetTable | None, list[_File]]:
        """The budgets configured above a file, and the mistakes in them when they are met for the first time."""
        table = self._tables.above(path)
        if table is None or table.path in self._reported_tables:
            return table, []
        self._reported_tables[table.path] = table
        if not table.malformed or (self._checked.compares and not self._checked.is_changed(table.path)):
            return table, []
        return table, [_File(table.path, table.source, findings=malformed(table.malformed))]

    def _diffs(self, path: Path, texts: Sequence[TextUnits], units: Sequence[AnalysedUnit]) -> list[UnitDiff]:
        """The units compared with the earlier revision; all are new where nothing is compared."""
        content = self._checked.before(path)
        before: Sequence[AnalysedUnit] = ()
        if content:
            with suppress(SourceError):
                before = self._units_before(path, texts, content)
        return unit_diffs(before, units)

    def _units_before(self, path: Path, texts: Sequence[TextUnits], content: bytes) -> Sequence[AnalysedUnit]:
        """The units that a file had with the ``content`` of the earlier revision.

        Raises:
            SourceError: it cannot be read or analysed.
        """
        if is_notebook(path):
            earlier = notebook_units(self._earlier, cells_of(content, str(path)))
            return [unit for text in earlier for unit in text.units]
        [language] = [text.parsed.language for text in texts]
        # The bytes of a network are not text.
        if language == "onnx":
            return ()
        return self._earlier.analyse(
            ParsedSource(decode(content, language, str(path)), language, may_leave_out=True), path
        )

    def _report(self, batch: Sequence[_File]) -> Iterator[LocatedFinding]:
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
                self.abstained.update(map(reason, judgement.abstained))
            release_memory()
        for file in batch:
            for finding in sorted(file.findings, key=lambda finding: finding.span.start_byte):
                yield self._located(file, finding)

    def _predict(self, questions: Sequence[tuple[CodeText, Sequence[Query]]]) -> Sequence[Sequence[Prediction]]:
        assert self._predictor is not None
        return self._predictor.predict([code for code, _ in questions], [queries for _, queries in questions])

    def _compare(self, questions: Sequence[tuple[CodeText, CodeText, Sequence[Query]]]) -> list[list[CostRatio]]:
        assert self._predictor is not None
        self.compared += len(questions)
        pairs = [(before, after) for before, after, _ in questions]
        ratios = self._predictor.compare(pairs, [queries for *_, queries in questions])
        if ratios is None:
            raise ModelError(f"--diff: {self._predictor.model_id} cannot compare two texts; name an exported model")
        return ratios

    def _located(self, file: _File, finding: Finding) -> LocatedFinding:
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
