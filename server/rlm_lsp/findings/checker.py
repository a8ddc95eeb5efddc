"""Files -> findings: read, ask the model in batches, report; memory stays flat over any number of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from rlm_core import ModelError, RlmError, SourceError
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.devices import answers_for
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import decode, read_source
from rlm_core.types import METRICS_OF_BASIS, Basis, CodeText, Query, Span

from rlm_lsp.budgets import BudgetTable, BudgetTables, Rules, budget_of, budget_queries, read_comments, rules_of
from rlm_lsp.history.pairing import comparing, earlier, same
from rlm_lsp.memory import release
from rlm_lsp.rendering import console
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.sources import SourceFile

from .baseline import fingerprint
from .checked_files import Checked
from .finding import Finding, malformed, over_budget, regressions
from .formats import Place, Region, Reported, region_of
from .profile import Profile, Profiles

_BATCH_UNITS, _MOST_UNITS = 64, 128
_BATCH_FILES = 256


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit to ask about: its rules, and what it was at the compared revision, if it has changed since."""

    analysed: AnalysedUnit
    rules: Rules
    before: CodeText | None = None


@dataclass(slots=True)
class _File:
    path: Path
    source: bytes
    profile: Profile
    units: list[_Unit] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


class Checker:
    """Checks files with a predictor, which is loaded when it is first needed; counts what it has seen."""

    def __init__(
        self, checked: Checked, load: Callable[[], Predictor], least: float | None = None, since: str = "HEAD"
    ) -> None:
        self._checked, self._load = checked, load
        self._least, self._since = least, since
        self._predictor: Predictor | None = None
        self._tables = BudgetTables()
        self.profiles = Profiles(self._tables)
        self._configs: dict[Path, BudgetTable] = {}
        # One for the texts as they are, one for those of the compared revision.
        self._analyser = Analyser(default_sizes=self._default_sizes)
        self._earlier = Analyser(checked.overlay, self._default_sizes)
        self.files = self.units = self.with_budget = self.compared = self.errors = 0
        self.unchecked: Counter[str] = Counter()

    def run(self, progress: console.Progress) -> Iterator[Reported]:
        """The findings of all files in their order, those of a file by place.

        Raises:
            RlmError: the model cannot be loaded or cannot compare.
        """
        batch: list[_File] = []
        waiting = 0
        for done, source in enumerate(self._checked.files):
            progress(done, len(self._checked.files))
            for file in self._read(source):
                batch.append(file)
                waiting += len(file.units)
            if waiting >= _BATCH_UNITS or len(batch) >= _BATCH_FILES:
                yield from self._report(batch)
                batch, waiting = [], 0
        yield from self._report(batch)

    @property
    def unknown_devices(self) -> list[str]:
        """Devices of configured budgets that the model knows for no kind of unit: those budgets hold for nothing."""
        if self._predictor is None:
            return []
        known = {basis: self._predictor.devices(cast(Basis, basis)) for basis in METRICS_OF_BASIS}
        said = {entry.placed.budget.device for table in self._configs.values() for entry in table.budgets}
        return sorted(
            device
            for device in said
            if device is not None and not any(answers_for(basis, device, learned) for basis, learned in known.items())
        )

    def _default_sizes(self, path: Path | None) -> Mapping[str, str]:
        """The sizes of kernels whose file names none."""
        return self.profiles.of(self._checked.real(path)).settings.default_sizes if path is not None else {}

    def _read(self, source: SourceFile) -> list[_File]:
        """A file with its units to ask about, behind its configuration when that has mistakes and is new here."""
        path, real = source.path, self._checked.real(source.path)
        profile = self.profiles.of(real)
        if profile.excludes(real):
            return []
        try:
            if path.is_file() and path.stat().st_size == 0:
                return []
            parsed = read_source(path)
            units = self._analyser.analyse(parsed, path)
        except (RlmError, OSError) as error:
            self._unreadable(source, error)
            return []
        self.files += 1
        self.units += len(units)
        text, language = parsed.source, parsed.language
        comments = read_comments(parsed, [entry.unit for entry in units])
        # What is read of a network is not its file's text: its findings stand at the start.
        file = _File(path, text if language != "onnx" else b"", profile, findings=malformed(comments.malformed))
        table, found = self._config(real, profile)
        configured = table.held_of(real) if table is not None else ()
        befores = self._befores(path, language, units)
        for analysed, told, before in zip(units, comments.units, befores, strict=True):
            rules = rules_of(analysed.unit, told, configured)
            self.with_budget += bool(rules.held)
            is_same = before is not None and same(before, analysed.code)
            if not is_same and (rules.held or before is not None):
                file.units.append(_Unit(analysed, rules, before))
        return [*found, file]

    def _unreadable(self, source: SourceFile, error: RlmError | OSError) -> None:
        if isinstance(error, OSError):
            error = SourceError(f"{source.path}: cannot be read ({error.strerror}); check its permissions")
        if source.named:
            self.errors += 1
            console.report_error(error)
        else:
            console.note(f"not checked: {error}")

    def _config(self, path: Path, profile: Profile) -> tuple[BudgetTable | None, list[_File]]:
        """The configuration of a file, and its mistakes when it is met for the first time."""
        table = self._tables.above(path)
        if table is None or table.path in self._configs:
            return table, []
        self._configs[table.path] = table
        if not table.malformed or (self._checked.compares and not self._checked.is_changed(table.path)):
            return table, []
        return table, [_File(table.path, table.source, profile, findings=malformed(table.malformed))]

    def _befores(self, path: Path, language: str, units: Sequence[AnalysedUnit]) -> list[CodeText | None]:
        """What each unit was at the compared revision; None for a new one, and where nothing is compared."""
        before = self._checked.before(path)
        # The bytes of a network are no text.
        if not before or language == "onnx":
            return [None] * len(units)
        try:
            was = self._earlier.analyse(ParsedSource(decode(before, language, str(path)), language), path)
        except SourceError:
            return [None] * len(units)
        return [entry.code if entry is not None else None for entry in earlier(was, units)]

    def _report(self, batch: Sequence[_File]) -> Iterator[Reported]:
        asked = [(file, unit) for file in batch for unit in file.units]
        if asked and self._predictor is None:
            self._predictor = self._load()
        # One file may have a thousand units, and what their texts leave behind is given back in between.
        for start in range(0, len(asked), _MOST_UNITS):
            part = asked[start : start + _MOST_UNITS]
            assert self._predictor is not None
            self._hold(self._predictor, part)
            self._compare(self._predictor, [(file, unit) for file, unit in part if unit.before is not None])
            release()
        for file in batch:
            for finding in sorted(file.findings, key=lambda finding: finding.span.start_byte):
                yield self._reported(file, finding)

    def _hold(self, predictor: Predictor, asked: Sequence[tuple[_File, _Unit]]) -> None:
        """Hold units against their budgets."""
        queries = [
            budget_queries(predictor, unit.analysed.code, unit.rules, file.profile.asked) for file, unit in asked
        ]
        wanted = [(file, unit, line) for (file, unit), line in zip(asked, queries, strict=True) if line]
        answers = predictor.predict([unit.analysed.code for _, unit, _ in wanted], [line for _, _, line in wanted])
        for (file, unit, _), line in zip(wanted, answers, strict=True):
            self.unchecked.update(reason(p.abstained) for p in line if p.abstained and budget_of(p, unit.rules))
            file.findings += over_budget(unit.analysed.unit, unit.rules, line, file.profile.confidence(self._least))

    def _compare(self, predictor: Predictor, asked: Sequence[tuple[_File, _Unit]]) -> None:
        """Tell which changed units cost more than they did."""
        if not asked:
            return
        model = comparing(predictor)
        if model is None:
            raise ModelError(f"--diff: {predictor.model_id} cannot compare two texts; name an exported model")
        pairs = [(unit.before, unit.analysed.code) for _, unit in asked if unit.before is not None]
        queries = [_costs(predictor, unit, file.profile.asked) for file, unit in asked]
        self.compared += len(pairs)
        for (file, unit), line in zip(asked, model.changes(pairs, queries), strict=True):
            self.unchecked.update(reason(change.abstained) for change in line if change.abstained is not None)
            rule, confidence = file.profile.regression, file.profile.confidence(None)
            file.findings += regressions(unit.analysed.unit, unit.rules, line, self._since, rule, confidence)

    def _reported(self, file: _File, finding: Finding) -> Reported:
        place = self._place(file.path, file.source, finding.span)
        related = tuple(
            (
                other.message,
                self._place(file.path, file.source, other.span)
                if other.path is None
                else self._place(other.path, self._configs[other.path].source, other.span),
            )
            for other in finding.related
        )
        return Reported(finding, place, related, fingerprint(place.name, finding))

    def _place(self, path: Path, source: bytes, span: Span) -> Place:
        region = region_of(source, span) if source else Region(1, 1, 1, 1)
        return Place(_shown(path), self._checked.name_of(path), region)


def _costs(predictor: Predictor, unit: _Unit, asked: QuerySelection) -> tuple[Query, ...]:
    """The questions about a unit whose answers are costs, but for what its comments ignore."""
    queries = queries_for(predictor, unit.analysed.code, asked)
    return tuple(query for query in queries if query.metric != "accuracy" and query.metric not in unit.rules.ignored)


def _shown(path: Path) -> str:
    """A path as the user named it; one that we found, from the working folder where that is shorter."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_absolute() and path.is_relative_to(here) else str(path)
