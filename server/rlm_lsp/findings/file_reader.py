"""A file of ``rlm-lsp check`` -> its texts with the units to judge: all that is done without the model.

A :class:`FileReader` can be made in several processes, which read different files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from rlm_core import RlmError, SourceError
from rlm_core.boundary import guarded
from rlm_core.errors import AnalysisError
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.file_units import TextUnits, file_units, notebook_units
from rlm_core.queries.measured_lookup import MeasuredUnits
from rlm_core.source.notebooks import cells_of, is_notebook
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import decode

from rlm_lsp.history.comparison import UnitDiff, unit_diffs
from rlm_lsp.settings.project import BudgetTables, ProjectSettings, configured_budgets
from rlm_lsp.settings.sizes import project_rules, without_sizes
from rlm_lsp.sources import SourceFile

from .checked_files import CheckedFiles
from .finding import Finding
from .judge import UnitCase, cases_of, criteria_of, read_rules
from .rewrites import rewrite_findings
from .waits import wait_findings


@dataclass(slots=True)
class JudgedText:
    """A text to judge: a file, or the cell of a notebook with this number."""

    path: Path
    source: bytes
    cell: int | None = None
    cases: list[UnitCase] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """The texts of a file, the numbers of its units and of those with a budget; or why it cannot be read."""

    source: SourceFile
    texts: tuple[JudgedText, ...] = ()
    units: int = 0
    with_budget: int = 0
    error: str | None = None


class FileReader:
    """Reads files, and what they were at a revision. Not thread-safe."""

    def __init__(
        self,
        checked: CheckedFiles,
        confidence: float | None = None,
        revision: str = "HEAD",
        measured: MeasuredUnits | None = None,
    ) -> None:
        self._checked, self._confidence, self._revision = checked, confidence, revision
        self._tables = BudgetTables()
        self._settings = ProjectSettings(self._tables)
        # One for the current texts, one for those of the compared revision.
        rules = partial(project_rules, self._settings)
        self._analyser = Analyser(
            default_sizes=self._default_sizes, measured=measured, size_rules=rules, call_sizes=True
        )
        self._earlier = Analyser(
            checked.overlay, self._default_sizes, size_rules=lambda path: without_sizes(rules(path))
        )

    def __call__(self, sources: Sequence[SourceFile]) -> list[ReadFile]:
        """Read some files, in their order."""
        return [self.read(source) for source in sources]

    def read(self, source: SourceFile) -> ReadFile:
        """Read a file; one that fails costs no other file."""

        def fail(error: Exception) -> ReadFile:
            return _unreadable(source, AnalysisError(f"the check failed ({type(error).__name__}); see the log"))

        return guarded(f"the check of {source.path}", lambda: self._read(source), fail)

    def _default_sizes(self, path: Path | None) -> Mapping[str, str]:
        """The sizes of kernels whose file names none."""
        return self._settings.of(self._checked.real(path)).settings.default_sizes if path is not None else {}

    def _read(self, source: SourceFile) -> ReadFile:
        path, real = source.path, self._checked.real(source.path)
        try:
            texts = file_units(self._analyser, path, source.root)
        except (RlmError, OSError) as error:
            return _unreadable(source, error)
        units = [unit for text in texts for unit in text.units]
        folder = self._settings.of(real)
        configured = configured_budgets(real, folder.relative(real), folder.settings, self._tables.above(real))
        criteria = criteria_of(folder.settings, self._confidence, self._revision)
        diffs = iter(self._diffs(path, texts, units))
        judged, with_budget = [], 0
        for text in texts:
            rules, findings = read_rules(text.parsed, text.units, configured)
            with_budget += sum(bool(of_unit.budgets) for of_unit in rules)
            # The text of a network is not that of its file: its findings are at the start of the file.
            content = text.parsed.source if text.parsed.language != "onnx" else b""
            diffs_of_text = list(islice(diffs, len(text.units)))
            cases = cases_of(text.units, rules, diffs_of_text, criteria, only_changes=True)
            findings += wait_findings(text.units, rules, diffs_of_text)
            findings += rewrite_findings(text.units, rules, diffs_of_text)
            judged.append(JudgedText(path, content, text.cell, cases, findings))
        return ReadFile(source, tuple(judged), len(units), with_budget)

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
            earlier = notebook_units(self._earlier, cells_of(content, str(path)), path)
            return [unit for text in earlier for unit in text.units]
        [language] = [text.parsed.language for text in texts]
        # The bytes of a network are not text.
        if language == "onnx":
            return ()
        return self._earlier.analyse(
            ParsedSource(decode(content, language, str(path)), language, may_leave_out=True), path
        )


def _unreadable(source: SourceFile, error: RlmError | OSError) -> ReadFile:
    if isinstance(error, OSError):
        error = SourceError(f"{source.path}: cannot be read ({error.strerror}); check its permissions")
    elif isinstance(error, AnalysisError):
        error = SourceError(f"{source.path}: {error}")
    return ReadFile(source, error=str(error))
