"""The tools, without the protocol: questions of an agent -> a few lines for it to read, and a structured answer.

Paths must be inside the client's roots; nothing is run and nothing is written. Questions are answered one at a time:
the analyser is not thread-safe, and the model uses all threads that it may use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from rlm_core.errors import DataError, ModelError
from rlm_core.inference.explain import explain, strongest
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.inference.ranking import kernel_ratio, rank
from rlm_core.inference.revisions import compare_revisions
from rlm_core.measurement.known import KnownMeasurements
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.unit_variants import variant_reader
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import decode, read_source
from rlm_core.types import SI_UNIT, CodeText, CostRatio, Prediction, Query, SizeValue

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
from rlm_lsp.rendering.launch_words import launch_fields
from rlm_lsp.rendering.rankings import ranking_lines
from rlm_lsp.settings.project import BudgetTables, ProjectSettings
from rlm_lsp.settings.sizes import without_sizes

from .answers import (
    CandidateAnswer,
    CheckAnswer,
    Comparison,
    Effect,
    ExplanationAnswer,
    FindingRow,
    GrowthAnswer,
    MeasureCommand,
    PredictionRow,
    Predictions,
    RankingAnswer,
    RatioRow,
    UnreadFiles,
    finite,
)
from .requested_units import (
    MOST_UNITS,
    READING,
    Code,
    FolderUnits,
    Progress,
    RequestedUnit,
    RequestedUnits,
    is_for_others,
    named,
    names_of,
    no_progress,
    sized,
)
from .roots import Roots

_STEP_UNITS = 64
_SHOWN_EFFECTS = 10
_MOST_REASONS = 3  # for missing predictions


class AgentTools:
    """Answers questions with a model that is loaded at the first one. ``measured`` is what is known of units."""

    def __init__(self, load: Callable[[], Predictor], measured: KnownMeasurements) -> None:
        self._load, self._measured = load, measured
        self._units = RequestedUnits(measured)

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
        progress: Progress = no_progress,
    ) -> tuple[list[str], Predictions]:
        """The predictions of the units of a text, a file or the files below a folder, the most expensive first.

        Of a folder, tests are left out unless it is one of tests, and files after the first ``MOST_UNITS`` units.

        Raises:
            RlmError: the path or text cannot be used, there is no such unit, or the model cannot be loaded.
        """
        folder = roots.find(code.path) if code.path is not None and code.text is None else None
        if folder is not None and folder.is_dir():
            read = self._units.of_folder(roots, folder, code.path or "", unit, progress)
        else:
            read = FolderUnits(self._units.of_code(roots, code))
        units = sized(read.units if unit is None else named(read.units, unit), code.sizes)
        codes = [entry.analysed.code for entry in units]
        answers: list[list[Prediction]] = []
        for start in range(0, len(codes), _STEP_UNITS):
            progress(READING + (1 - READING) * start / len(codes), say.progress_line("predicted", start, len(codes)))
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
        unsupported = [entry.analysed.unit.qualname for entry, answer in ranked[:limit] if is_for_others(entry, answer)]
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
        return self._compared(
            self._units.of_code(roots, before),
            self._units.of_code(roots, after),
            selection,
            unit,
            after.sizes,
            are_revisions=False,
        )

    def rank(
        self, roots: Roots, candidates: Sequence[Code], selection: QuerySelection, unit: str | None = None
    ) -> tuple[list[str], RankingAnswer]:
        """Rank texts of one function by latency; the sizes are those of the first candidate.

        With a device or a workload in the selection, texts of a kernel.

        Raises:
            RlmError: a text cannot be used, or does not have that function or exactly one.
        """
        query = None
        if selection.devices or selection.workload:
            query = Query("latency", next(iter(selection.devices), None), selection.workload)
        basis, kind = ("call", "function") if query is None else ("kernel", "kernel")
        texts = []
        for number, code in enumerate(candidates):
            units = [entry for entry in self._units.of_code(roots, code) if entry.analysed.code.basis == basis]
            chosen = named(units, unit) if unit is not None else units
            if len(chosen) != 1:
                raise DataError(f"candidate {number}: name one {kind} of these: {names_of(units)}")
            texts.append(chosen[0].analysed.code)
        sizes = [SizeValue(name, value) for name, value in candidates[0].sizes.items()] if candidates else []
        ranking = rank(self._predictor, texts, sizes, query)
        answer = RankingAnswer(
            candidates=[
                CandidateAnswer(place=one.place, slower_than=list(one.slower_than)) for one in ranking.candidates
            ],
            measure=ranking.measure,
            compared=ranking.compared,
            pairs=ranking.pairs,
        )
        return ranking_lines(ranking, [f"candidate {number}" for number in range(len(texts))]), answer

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
        rules = lambda path: without_sizes(self._units.size_rules(path))  # noqa: E731
        analysed = Analyser(self._units.overlay_of(checked.overlay), size_rules=rules).analyse(earlier, file)
        before = [RequestedUnit(file, earlier, entry) for entry in analysed]
        after = self._units.of_code(roots, Code(path))
        return self._compared(before, after, selection, unit, sizes or {}, are_revisions=True)

    def explain(
        self, roots: Roots, code: Code, selection: QuerySelection, unit: str | None = None
    ) -> tuple[list[str], ExplanationAnswer]:
        """Explain the prediction for one unit.

        Raises:
            RlmError: the path or text cannot be used, or does not have that unit or exactly one.
        """
        units = self._units.of_code(roots, code)
        chosen = named(units, unit) if unit is not None else units
        if len(chosen) != 1:
            raise DataError(f"name one unit of these: {names_of(chosen)}")
        [entry] = chosen
        # What the code says is explained, not what was measured of it.
        analysed = replace(entry.analysed, code=replace(entry.analysed.code, measured=()))
        queries = queries_for(self._predictor, analysed.code, selection)
        if not queries:
            raise DataError(f"{analysed.unit.qualname}: the model does not predict this metric for this unit")
        read = variant_reader(entry.parsed, entry.path, analysed, overlay=self._units.overlay)
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
        progress: Progress = no_progress,
    ) -> tuple[list[str], CheckAnswer]:
        """The findings of ``rlm-lsp check`` for a file or folder.

        Raises:
            RlmError: the path cannot be used, or its repository does not have the revision.
        """
        self._units.use(roots)
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
        before: Sequence[RequestedUnit],
        after: Sequence[RequestedUnit],
        selection: QuerySelection,
        unit: str | None,
        sizes: Mapping[str, float],
        *,
        are_revisions: bool,
    ) -> tuple[list[str], Comparison]:
        kernels = {entry.analysed.unit.qualname for entry in (*before, *after) if entry.analysed.unit.kind == "kernel"}
        after = sized(named(after, unit) if unit is not None else after, sizes, before)
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
            raise DataError(f"no unit is on both sides: {names_of(before)} before, {names_of(after)} after")
        lines: list[str] = []
        rows: list[RatioRow] = []
        for start in range(0, len(pairs), _STEP_UNITS):
            step = pairs[start : start + _STEP_UNITS]
            for analysed, change, *predictions in self._ratios(step, selection, are_revisions=are_revisions):
                qualname = analysed.unit.qualname
                if analysed.unit.kind == "function" and any(f"{name}[" in analysed.unit.text for name in kernels):
                    # The GPU does its work, which the latency of a call leaves out.
                    change = replace(change, is_decided=False)
                lines.append(say.ratio_line(qualname, change, predictions[0], predictions[1]))
                rows.append(_ratio_row(qualname, change, predictions[0], predictions[1]))
        at_sizes = {row.qualname for row in rows if row.sizes}
        small = [row.qualname for row in rows if row.ratio is not None and row.qualname not in at_sizes]
        if sizes and small:
            lines.append(say.not_at_sizes_line(list(dict.fromkeys(small)), sizes))
        elif small:
            lines.append(say.RATIOS_ARE_FOR)
        rest = say.unpaired_line(unchanged, new)
        return [*lines, *([rest] if rest else [])], Comparison(rows=rows, unchanged=unchanged, new=new)

    def _ratios(
        self,
        pairs: Sequence[tuple[AnalysedUnit, CodeText, CodeText]],
        selection: QuerySelection,
        *,
        are_revisions: bool,
    ) -> Iterable[tuple[AnalysedUnit, CostRatio, Prediction, Prediction]]:
        predictor = self._predictor
        queries = [queries_for(predictor, after, selection) for _, _, after in pairs]
        texts = [(before, after) for _, before, after in pairs]
        ratios = compare_revisions(predictor, texts, queries) if are_revisions else predictor.compare(texts, queries)
        if ratios is None:
            raise ModelError(f"{predictor.model_id} cannot compare two texts; start the server with an exported model")
        earlier = predictor.predict([before for _, before, _ in pairs], queries)
        later = predictor.predict([after for *_, after in pairs], queries)
        for (analysed, *_), changes, first, second in zip(pairs, ratios, earlier, later, strict=True):
            for change, before, after in zip(changes, first, second, strict=True):
                yield analysed, change, before, after


def _cost(predictions: Sequence[Prediction]) -> float:
    """Return the latency by which units are ordered."""
    medians = [answer.median for answer in predictions if answer.metric == "latency" and answer.median is not None]
    return max(medians, default=-1.0)


def _ratio_row(qualname: str, change: CostRatio, before: Prediction, after: Prediction) -> RatioRow:
    band = change.bands[0] if change.bands else None
    is_same = labels.is_same(change)
    kernels = kernel_ratio(before, after) if change.basis == "kernel" else None
    direction = change.direction if kernels is None else "higher" if kernels > 1 else "lower"
    fields: Mapping[str, Any] = {
        "qualname": qualname,
        "metric": change.metric,
        "device": change.device,
        "state": "same" if is_same else "changed",
        "direction": None if is_same else direction,
        "ratio": change.ratio,
        "low": band.low if band is not None else None,
        "high": band.high if band is not None else None,
        "coverage": band.coverage if band is not None else None,
        "launch_before": launch_fields(before),
        "launch_after": launch_fields(after),
        "probability_higher": 0.0 if is_same else None if change.direction is None else change.above(1.0),
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
