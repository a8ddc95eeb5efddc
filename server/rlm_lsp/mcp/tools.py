"""The tools, without the protocol: questions of an agent -> a few lines for it to read, and a structured answer.

Paths must be inside the client's roots; nothing is run and nothing is written. Questions are answered one at a time:
the analyser is not thread-safe, and the model uses all threads that it may use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError, ModelError, RlmError, SourceError
from rlm_core.inference.explain import explain, strongest
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.measurement.known import KnownMeasurements
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.function_sizes import SizeRules, input_names_of, is_size_of, with_sizes
from rlm_core.queries.unit_variants import variant_reader
from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.syntax_errors import first_error, without_errors
from rlm_core.source.units import MAX_FILE_BYTES, decode, read_source
from rlm_core.types import SI_UNIT, CodeText, CostRatio, HoldsFor, Prediction, SizedPrediction

from rlm_lsp.findings.checked_files import find_files
from rlm_lsp.findings.checker import Checker
from rlm_lsp.history.comparison import UnitDiff, unit_diffs
from rlm_lsp.history.measurements import command_for
from rlm_lsp.rendering import agent_answers as say
from rlm_lsp.rendering import labels
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.explanations import explanation_text
from rlm_lsp.rendering.finding_messages import committed_note
from rlm_lsp.rendering.json_rows import growth_fields, unit_row
from rlm_lsp.settings.project import BudgetTables, ProjectSettings
from rlm_lsp.settings.sizes import project_rules
from rlm_lsp.sources import find_sources, without_tests

from .answers import (
    CheckAnswer,
    Comparison,
    Effect,
    ExplanationAnswer,
    FindingRow,
    GrowthAnswer,
    MeasureCommand,
    PredictionRow,
    Predictions,
    RatioRow,
    UnreadFiles,
    finite,
)
from .roots import Roots

MOST_UNITS = 300  # of one folder: about 20 seconds on two cores; many clients wait no longer than 60
Progress = Callable[[float, str], None]  # the share that is done, and of what
_STEP_UNITS = 64
_NAMED_UNITS = 8  # in an error
_SHOWN_EFFECTS = 10
_MOST_REASONS = 3  # for missing predictions
_READING = 0.5  # of the time for a folder


def _no_progress(share: float, what: str) -> None:
    """For a caller who does not wait."""


@dataclass(frozen=True, slots=True)
class Code:
    """The code of an agent's request: a path inside the roots, or a text in a language, and sizes of inputs by name."""

    path: str | None = None
    text: str | None = None
    language: str = "python"
    sizes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit and its file, None for a text."""

    path: Path | None
    parsed: ParsedSource
    analysed: AnalysedUnit


@dataclass(slots=True)
class _FolderUnits:
    """Units of a folder that were read, what could not be, and the numbers of files that were not, by their folder."""

    units: list[_Unit] = field(default_factory=list)
    files: int = 0
    failed: list[str] = field(default_factory=list)
    unread: Mapping[str, int] = field(default_factory=dict)


class AgentTools:
    """Answers questions with a model that is loaded at the first one. ``measured`` is what is known of units."""

    def __init__(self, load: Callable[[], Predictor], measured: KnownMeasurements) -> None:
        self._load, self._measured = load, measured
        self._roots, self._settings = Roots(()), ProjectSettings(BudgetTables())
        self._analyser = self._new_analyser()

    @cached_property
    def _predictor(self) -> Predictor:
        return self._load()

    def predict(
        self,
        roots: Roots,
        code: Code,
        selection: QuerySelection,
        unit: str | None = None,
        limit: int = 20,
        progress: Progress = _no_progress,
    ) -> tuple[list[str], Predictions]:
        """The predictions of the units of a text, a file or the files below a folder, the most expensive first.

        Of a folder, tests are left out unless it is one of tests, and files after the first ``MOST_UNITS`` units.

        Raises:
            RlmError: the path or text cannot be used, there is no such unit, or the model cannot be loaded.
        """
        folder = roots.find(code.path) if code.path is not None and code.text is None else None
        if folder is not None and folder.is_dir():
            read = self._folder_units(roots, folder, code.path or "", unit, progress)
        else:
            read = _FolderUnits(self._units(roots, code))
        units = _sized(read.units if unit is None else _named(read.units, unit), code.sizes)
        codes = [entry.analysed.code for entry in units]
        answers: list[list[Prediction]] = []
        for start in range(0, len(codes), _STEP_UNITS):
            progress(_READING + (1 - _READING) * start / len(codes), say.progress_line("predicted", start, len(codes)))
            step = codes[start : start + _STEP_UNITS]
            answers += self._predictor.predict(step, [queries_for(self._predictor, each, selection) for each in step])
        ranked = sorted(zip(units, answers, strict=True), key=lambda entry: -_cost(entry[1]))
        shown = [(entry, answer) for entry, predictions in ranked[:limit] for answer in predictions]
        files = {id(entry): roots.shown(entry.path) if entry.path is not None else "" for entry, _ in shown}
        rows = [
            PredictionRow.model_validate(finite(unit_row(files[id(entry)], entry.analysed, answer)))
            for entry, answer in shown
        ]
        omitted = max(len(units) - limit, 0)
        lines = [
            line
            for entry, predictions in ranked[:limit]
            for line in say.unit_lines(files[id(entry)], entry.analysed, predictions)
        ]
        unsupported = [
            entry.analysed.unit.qualname for entry, answer in ranked[:limit] if _is_for_others(entry, answer)
        ]
        lines += [say.not_at_sizes_line(unsupported, code.sizes)] if code.sizes and unsupported else []
        lines += [say.omitted_line(omitted, "unit")] if omitted else []
        lines += [say.unread_line(read.unread, read.files, MOST_UNITS)] if read.unread else []
        answer = Predictions(
            units=len(units),
            omitted=omitted,
            rows=rows,
            failed=read.failed,
            unread=[UnreadFiles(path=path, files=files) for path, files in read.unread.items()],
        )
        return [*lines, *read.failed], answer

    def compare(
        self, roots: Roots, before: Code, after: Code, selection: QuerySelection, unit: str | None = None
    ) -> tuple[list[str], Comparison]:
        """The costs of the units of ``after`` over those of the units with their names in ``before``.

        Where each side has one unit, the two are compared whatever their names are.

        Raises:
            RlmError: a text cannot be used, there is nothing to compare, or the model cannot compare.
        """
        return self._compared(self._units(roots, before), self._units(roots, after), selection, unit, after.sizes)

    def compare_revision(
        self,
        roots: Roots,
        path: str,
        revision: str,
        selection: QuerySelection,
        unit: str | None = None,
        sizes: Mapping[str, float] | None = None,
    ) -> tuple[list[str], Comparison]:
        """The costs of the units of a file over those that they had at a git revision.

        Raises:
            RlmError: see :meth:`compare`; or the file is not in a repository that has the revision.
        """
        file = roots.find(path)
        checked = find_files([file], diff=revision)
        text = checked.before(file)
        if text is None:
            raise DataError(f"{path}: is not in {revision}; name a revision that has the file")
        parsed = read_source(file)
        if parsed.language == "onnx":
            raise DataError(f"{path}: networks are not compared with a revision")
        earlier = ParsedSource(decode(text, parsed.language, path), parsed.language, may_leave_out=True)
        analysed = Analyser(self._overlay_of(checked.overlay)).analyse(earlier, file)
        before = [_Unit(file, earlier, entry) for entry in analysed]
        return self._compared(before, self._units(roots, Code(path)), selection, unit, sizes or {})

    def explain(
        self, roots: Roots, code: Code, selection: QuerySelection, unit: str | None = None
    ) -> tuple[list[str], ExplanationAnswer]:
        """Explain the prediction for one unit.

        Raises:
            RlmError: the path or text cannot be used, or does not have that unit or exactly one.
        """
        units = self._units(roots, code)
        named = _named(units, unit) if unit is not None else units
        if len(named) != 1:
            raise DataError(f"name one unit of these: {_names(named)}")
        [chosen] = named
        # What the code says is explained, not what was measured of it.
        analysed = replace(chosen.analysed, code=replace(chosen.analysed.code, measured=()))
        queries = queries_for(self._predictor, analysed.code, selection)
        if not queries:
            raise DataError(f"{analysed.unit.qualname}: the model does not predict this metric for this unit")
        read = variant_reader(chosen.parsed, chosen.path, analysed, overlay=self._overlay)
        explanation = explain(self._predictor, analysed.code, queries[0], read)
        first = analysed.unit.span.start_line
        ends = {line for effect in explanation.effects for line in (effect.line, effect.last_line)}
        text = explanation_text(analysed, queries[0], explanation, {line: first + line for line in ends})
        answer = ExplanationAnswer(
            qualname=analysed.unit.qualname,
            metric=queries[0].metric,
            median=explanation.prediction.median,
            unit=SI_UNIT[queries[0].metric],
            effects=[
                Effect(
                    line=first + effect.line + 1,
                    last_line=first + effect.last_line + 1,
                    text=effect.text,
                    ratio=effect.ratio,
                )
                for effect in strongest(explanation, _SHOWN_EFFECTS)
            ],
            abstained=reason(explanation.abstained) if explanation.abstained is not None else None,
        )
        return [text], answer

    def check(
        self,
        roots: Roots,
        path: str,
        revision: str | None = None,
        limit: int = 20,
        progress: Progress = _no_progress,
    ) -> tuple[list[str], CheckAnswer]:
        """The findings of ``rlm-lsp check`` for a file or folder.

        Raises:
            RlmError: the path cannot be used, or its repository does not have the revision.
        """
        self._use(roots)
        checked = find_files([roots.find(path)], diff=revision, allowed=roots.contains)
        checker = Checker(checked, lambda: self._predictor, None, revision or "HEAD", self._measured)
        found = list(checker.run(lambda done, total: progress(done / total, say.progress_line("checked", done, total))))
        rows = [
            FindingRow(
                code=entry.finding.code,
                severity=entry.finding.severity,
                file=entry.location.name,
                line=entry.location.region.line,
                qualname=entry.finding.qualname,
                message=entry.location.said(entry.finding.message),
                probability=entry.finding.probability,
            )
            for entry in found[:limit]
        ]
        answer = CheckAnswer(
            files=checker.files,
            with_budget=checker.with_budget,
            compared=checker.compared,
            committed=checker.committed,
            findings=rows,
            omitted=len(found) - len(rows),
        )
        lines = [say.check_line(checker.files, checker.with_budget, checker.compared, len(found))]
        lines += [committed_note(checker.committed)] if checker.committed else []
        lines += [say.finding_line(row.severity, row.file, row.line, row.message) for row in rows]
        lines += [say.omitted_line(answer.omitted, "finding")] if answer.omitted else []
        lines += [say.missing_line(number, why) for why, number in checker.abstained.most_common(_MOST_REASONS)]
        lines += [say.missing_line(checker.unreadable, "see the log", "file")] if checker.unreadable else []
        return lines, answer

    def measure_command(self, roots: Roots, path: str) -> tuple[list[str], MeasureCommand]:
        """The command line that measures the package of a file; nothing is run.

        Raises:
            RlmError: the file is not in a package, or the project's settings switch measurements off.
        """
        file = roots.find(path)
        if not ProjectSettings(BudgetTables()).of(file).settings.measure:
            raise DataError("the setting `measure` switches measurements off")
        command = command_for(file)
        if command is None:
            inits = [*file.glob("*/__init__.py"), *file.glob("src/*/__init__.py")]
            packages = sorted(str(init.parent.relative_to(file)) for init in inits)
            raise DataError(say.no_package_line(path, packages))
        return [say.measure_line(command)], MeasureCommand(command=command)

    def _compared(
        self,
        before: Sequence[_Unit],
        after: Sequence[_Unit],
        selection: QuerySelection,
        unit: str | None,
        sizes: Mapping[str, float],
    ) -> tuple[list[str], Comparison]:
        after = _sized(_named(after, unit) if unit is not None else after, sizes)
        diffs = unit_diffs([entry.analysed for entry in before], [entry.analysed for entry in after])
        if [diff.state for diff in diffs] == ["new"] and len(before) == 1:
            diffs = [UnitDiff("changed", before[0].analysed.code)]
        pairs = [
            (entry.analysed, diff.before, replace(entry.analysed.code, measured=()))
            for entry, diff in zip(after, diffs, strict=True)
            if diff.before is not None
        ]
        unchanged, new = (
            [entry.analysed.unit.qualname for entry, diff in zip(after, diffs, strict=True) if diff.state == state]
            for state in ("same", "new")
        )
        if not pairs and not unchanged:
            raise DataError(f"no unit is on both sides: {_names(before)} before, {_names(after)} after")
        lines: list[str] = []
        rows: list[RatioRow] = []
        for start in range(0, len(pairs), _STEP_UNITS):
            for analysed, change, *predictions in self._ratios(pairs[start : start + _STEP_UNITS], selection):
                qualname = analysed.unit.qualname
                lines.append(say.ratio_line(qualname, change, predictions[0], predictions[1]))
                rows.append(_ratio_row(qualname, change, predictions[0], predictions[1]))
        small = [row.qualname for row in rows if not row.sizes and row.ratio is not None]
        if sizes and small:
            lines.append(say.not_at_sizes_line(list(dict.fromkeys(small)), sizes))
        elif small:
            lines.append(say.RATIOS_ARE_FOR)
        rest = say.unpaired_line(unchanged, new)
        return [*lines, *([rest] if rest else [])], Comparison(rows=rows, unchanged=unchanged, new=new)

    def _ratios(
        self, pairs: Sequence[tuple[AnalysedUnit, CodeText, CodeText]], selection: QuerySelection
    ) -> Iterable[tuple[AnalysedUnit, CostRatio, Prediction, Prediction]]:
        predictor = self._predictor
        queries = [queries_for(predictor, after, selection) for _, _, after in pairs]
        ratios = predictor.compare([(before, after) for _, before, after in pairs], queries)
        if ratios is None:
            raise ModelError(f"{predictor.model_id} cannot compare two texts; start the server with an exported model")
        earlier = predictor.predict([before for _, before, _ in pairs], queries)
        later = predictor.predict([after for *_, after in pairs], queries)
        for (analysed, *_), changes, first, second in zip(pairs, ratios, earlier, later, strict=True):
            for change, before, after in zip(changes, first, second, strict=True):
                yield analysed, change, before, after

    def _units(self, roots: Roots, code: Code) -> list[_Unit]:
        """The units of a text or of a file."""
        self._use(roots)
        if code.text is not None:
            if len(code.text) > MAX_FILE_BYTES:
                raise SourceError(f"the text is over the limit of {MAX_FILE_BYTES // 2**20} MiB; send less of it")
            language = languages.by_name(code.language).name
            source = decode(code.text.encode("utf-8", errors="replace"), "text", "the text")
            return self._found(None, ParsedSource(source, language, may_leave_out=True), "the text")
        assert code.path is not None, "a question has a path or a text"
        path = roots.find(code.path)
        return self._found(path, read_source(path), code.path)

    def _folder_units(
        self, roots: Roots, folder: Path, shown: str, unit: str | None, progress: Progress
    ) -> _FolderUnits:
        """The units of the files below a folder; with the name of a unit, of the files that contain it."""
        self._use(roots)
        read = _FolderUnits()
        found = find_sources([folder], lambda error: read.failed.append(str(error)))
        files = [file for file in without_tests(found) if roots.contains(file.path) and file.path.stat().st_size]
        read.files = len(files)
        for done, source_file in enumerate(files):
            progress(_READING * done / len(files), say.progress_line("read", done, len(files)))
            if len(read.units) >= MOST_UNITS:
                read.unread = _covering(roots, [file.path for file in files], done)
                break
            name = roots.shown(source_file.path)
            try:
                parsed = read_source(source_file.path, source_file.root)
                if unit is not None and unit.rpartition(".")[2].encode() not in parsed.source:
                    continue
                units = self._analyser.analyse(parsed, source_file.path)
                analysed = without_errors(parsed, units, lambda entry: entry.code.text)
            except RlmError as error:
                read.failed.append(f"{name}: {str(error).removeprefix(f'{source_file.path}: ')}")
                continue
            if len(analysed) < len(units):
                read.failed.append(say.broken_line(name, len(units) - len(analysed), parsed))
            read.units += [_Unit(source_file.path, parsed, entry) for entry in analysed]
        return read

    def _found(self, path: Path | None, parsed: ParsedSource, shown: str) -> list[_Unit]:
        found = self._analyser.analyse(parsed, path)
        units = without_errors(parsed, found, lambda entry: entry.code.text)
        if not units and parsed.language == "python" and (found or parsed.has_error):
            raise SourceError(f"{shown}: does not parse as Python ({first_error(parsed)})")
        if not units:
            title = languages.by_name(parsed.language).title
            what = "function, kernel, module or solution" if parsed.language == "python" else "solution of a problem"
            raise SourceError(f"{shown}: nothing to predict: no {what} that parses as {title}")
        return [_Unit(path, parsed, entry) for entry in units]

    def _use(self, roots: Roots) -> None:
        """Read what has changed on disk again, and after a change of the roots everything."""
        differs = roots != self._roots
        self._roots, self._settings = roots, ProjectSettings(BudgetTables())
        if self._measured.use_roots(roots.folders) or self._measured.changed() or differs:
            self._analyser = self._new_analyser()
        self._analyser.refresh()

    def _new_analyser(self) -> Analyser:
        return Analyser(self._overlay, measured=self._measured, size_rules=self._size_rules, call_sizes=True)

    def _size_rules(self, path: Path | None) -> SizeRules:
        return project_rules(self._settings, path)

    def _overlay(self, path: Path) -> bytes | None:
        """Nothing in place of a file outside the roots, such as one that a link in a package leads to."""
        return None if self._roots.contains(path) else b""

    def _overlay_of(self, earlier: Callable[[Path], bytes | None]) -> Callable[[Path], bytes | None]:
        return lambda path: earlier(path) if self._roots.contains(path) else b""


def _covering(roots: Roots, files: Sequence[Path], done: int) -> Mapping[str, int]:
    """The folders with no file among the first ``done``, and single files: the numbers of files, largest first."""
    begun = {parent for file in files[:done] for parent in file.parents}
    covering: Counter[Path] = Counter()
    for file in files[done:]:
        covering[next(path for path in (file, *file.parents) if path.parent in begun)] += 1
    return {roots.shown(path): number for path, number in covering.most_common()}


def _cost(predictions: Sequence[Prediction]) -> float:
    """Return the latency by which units are ordered."""
    medians = [answer.median for answer in predictions if answer.metric == "latency" and answer.median is not None]
    return max(medians, default=-1.0)


def _named(units: Sequence[_Unit], name: str) -> list[_Unit]:
    """The units with a qualified name.

    Raises:
        DataError: there is none.
    """
    named = [entry for entry in units if entry.analysed.unit.qualname == name]
    if not named:
        raise DataError(f"there is no unit {name!r}; there are: {_names(units)}")
    return named


def _sized(units: Sequence[_Unit], sizes: Mapping[str, float]) -> list[_Unit]:
    """Units with sizes of inputs: those that depend on none of them are as before.

    Raises:
        DataError: a size is that of no unit's input.
    """
    if not sizes:
        return list(units)
    codes = [entry.analysed.code for entry in units]
    inputs = [input_names_of(code.text, code.work, code.measured) if code.basis == "call" else [] for code in codes]
    known = dict.fromkeys(name for names in inputs for name in names)
    unknown = [name for name in sizes if not is_size_of(name, known)]
    if unknown:
        there = f"they depend on {', '.join(list(known)[:_NAMED_UNITS])}" if known else "they depend on no known size"
        raise DataError(f"no cost of {_names(units)} depends on the size of {unknown[0]!r}; {there}")
    return [
        replace(entry, analysed=replace(entry.analysed, code=with_sizes(entry.analysed.code, sizes))) for entry in units
    ]


def _is_for_others(entry: _Unit, predictions: Sequence[Prediction]) -> bool:
    """Return whether sizes were asked about that the latency of a unit is not for, not even as a bound."""
    is_asked = any(size.source == "query" for size in entry.analysed.code.sizes)
    latency = next((answer for answer in predictions if answer.metric == "latency"), None)
    is_sized = isinstance(latency, SizedPrediction) or (
        latency is not None and latency.holds_for in (HoldsFor.ALL_INPUTS, HoldsFor.MEASURED_SIZES)
    )
    return is_asked and latency is not None and latency.median is not None and not is_sized


def _names(units: Sequence[_Unit]) -> str:
    names = [entry.analysed.unit.qualname for entry in units]
    return ", ".join(names[:_NAMED_UNITS]) + (f" and {len(names) - _NAMED_UNITS} more" if names[_NAMED_UNITS:] else "")


def _ratio_row(qualname: str, change: CostRatio, before: Prediction, after: Prediction) -> RatioRow:
    band = change.bands[0] if change.bands else None
    is_same = labels.is_same(change)
    fields: Mapping[str, Any] = {
        "qualname": qualname,
        "metric": change.metric,
        "device": change.device,
        "state": "same" if is_same else "changed",
        "ratio": change.ratio,
        "low": band.low if band is not None else None,
        "high": band.high if band is not None else None,
        "coverage": band.coverage if band is not None else None,
        "probability_higher": 0.0 if is_same else change.above(1.0),
        "sizes": {size.name: size.value for size in change.sizes},
        "crossing": asdict(change.crossing) if change.crossing is not None else None,
        "growth_before": _growth(before),
        "growth_after": _growth(after),
        "abstained": reason(change.abstained) if change.abstained is not None else None,
    }
    return RatioRow.model_validate(finite(fields))


def _growth(prediction: Prediction) -> GrowthAnswer | None:
    fields = growth_fields(prediction.growth)
    return GrowthAnswer.model_validate(fields) if fields is not None else None
