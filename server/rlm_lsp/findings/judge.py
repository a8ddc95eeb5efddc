"""The judge of ``rlm-lsp check`` and of the editor: which units of a file have findings.

Input: the analysed units of a file, what applies to each (budgets, ignored metrics, its earlier text), the settings as
:class:`Criteria`, and two callbacks that ask the model. Output: findings. Nothing is read from disk here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rlm_core.boundary import each
from rlm_core.inference.guarded import failed
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.queries.function_sizes import input_names_of, is_size_of
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import (
    Abstention,
    AbstentionCode,
    CodeText,
    CostRatio,
    Prediction,
    Query,
    SizedPrediction,
    Unit,
)

from rlm_lsp.budgets.comments import MalformedBudget, read_comments
from rlm_lsp.budgets.rules import (
    ActiveBudget,
    Rules,
    budget_of,
    budget_queries,
    rules_of,
    sized_texts,
    sizes_of_budget,
)
from rlm_lsp.budgets.syntax import Budget, render
from rlm_lsp.history.comparison import GROWING, UNCHANGED, UnitDiff, WorkChange, work_change
from rlm_lsp.rendering.finding_messages import (
    computing_only_message,
    over_budget_message,
)
from rlm_lsp.rendering.size_words import sizes
from rlm_lsp.rendering.work_words import plain, unknown_waits
from rlm_lsp.settings.model import Settings

from .finding import (
    DEFAULT_CONFIDENCE,
    OF_COMPARISONS,
    Confidence,
    Criteria,
    Finding,
    RegressionRule,
    RelatedLocation,
    rests_on_committed,
)
from .regressions import RevisedCosts, grown, is_own_change, new_endless

# One question per unit, the answers in that order; Compare returns None if the model cannot compare.
Predict = Callable[[Sequence[tuple[CodeText, Sequence[Query]]]], Sequence[Sequence[Prediction]]]
Compare = Callable[[Sequence[tuple[CodeText, CodeText, Sequence[Query]]]], "Sequence[Sequence[CostRatio]] | None"]


# Of a full hash messages show so many digits.
_HASH, _HASH_DIGITS = re.compile(r"[0-9a-f]{40}"), 12


@dataclass(frozen=True, slots=True)
class UnitCase:
    """A unit to judge: its rules, and its text at the compared revision where it has been edited since.

    Without an edit (of the unit or of what it calls) there is no ``before``, so that nothing but its budget is judged.
    ``is_edited`` is also set where unedited units are judged too.
    """

    analysed: AnalysedUnit
    rules: Rules
    criteria: Criteria
    before: CodeText | None = None
    is_edited: bool = True


@dataclass(slots=True)
class Judgement:
    """The findings of a unit, and the model's reasons for the answers that it did not give.

    ``committed`` is the number of its budgets that were judged by measurements that came with the project;
    ``is_slower`` and ``is_faster`` say whether its latency has changed for sure since the revision.
    """

    findings: list[Finding] = field(default_factory=list)
    abstained: list[Abstention] = field(default_factory=list)
    committed: int = 0
    is_slower: bool = False
    is_faster: bool = False

    def add_predictions(self, case: UnitCase, predictions: Sequence[Prediction]) -> None:
        """Check the predictions against the budgets of the unit."""
        self.abstained += [p.abstained for p in predictions if p.abstained is not None and budget_of(p, case.rules)]
        self.committed += sum(rests_on_committed(p) for p in predictions if budget_of(p, case.rules))
        unit = case.analysed.unit
        self._add(case, over_budget(unit, case.rules, predictions, case.criteria.confidence))
        if case.is_edited:
            self._add(case, computing_only(case.analysed, case.rules, predictions))

    def add_at_sizes(self, case: UnitCase, code: CodeText, predictions: Sequence[Prediction]) -> None:
        """Check the predictions for the sizes of ``code`` against the budgets that name these."""
        unit, asked = case.analysed.unit, {size.name: size.value for size in code.sizes if size.source == "query"}
        rules = Rules(
            tuple(
                active
                for active in case.rules.budgets
                if {name: size.value for name, size in sizes_of_budget(active.budget).items()} == asked
            ),
            case.rules.ignored,
        )
        findings = over_budget(unit, rules, predictions, case.criteria.confidence)
        self._add(case, findings)
        for prediction in predictions:
            known = isinstance(prediction, SizedPrediction) and prediction.at.kind != "bound"
            if prediction.abstained is not None:
                self.abstained.append(prediction.abstained)
            elif not known and not any(finding.metric == prediction.metric for finding in findings):
                at = {"sizes": sizes(code.sizes), "unit": unit.qualname}
                self.abstained.append(Abstention(AbstentionCode.NOT_AT_SIZES, at))

    def add_changes(
        self,
        case: UnitCase,
        changes: Sequence[CostRatio],
        answers: tuple[Sequence[Prediction], Sequence[Prediction]],
        work: WorkChange,
    ) -> None:
        """Look for costs that have grown or grow faster, and for a new loop that may not end.

        All costs that have grown are one finding.

        ``answers`` are the predictions for the unit at the revision and now.
        """
        self.abstained += [change.abstained for change in changes if change.abstained is not None]
        before, after = case.before, case.analysed.code
        if before is not None and is_own_change(before, after):
            unit, costs = case.analysed.unit, RevisedCosts.of(changes, answers, case.criteria.regression)
            findings = grown(unit, case.rules, costs.larger, costs.new_costs, work.growth, case.criteria, after)
            self._add(case, findings)
            self.is_slower = any(finding.metric == "latency" for finding in findings)
            self.is_faster = costs.is_faster and not self.is_slower
        if work.wait is not None:
            self._add(case, new_endless(case.analysed.unit, case.rules, work.wait, case.criteria.revision))

    def _add(self, case: UnitCase, findings: Sequence[Finding]) -> None:
        work, first_line = case.analysed.code.work, case.analysed.unit.span.start_line
        self.findings += [replace(finding, work=work, first_line=first_line) for finding in findings]


def criteria_of(settings: Settings, confidence: float | None = None, revision: str = "HEAD") -> Criteria:
    """The criteria that settings contain; ``confidence`` replaces the lowest probability of a finding."""
    severity = settings.severity
    least = settings.budget_confidence if confidence is None else confidence
    return Criteria(
        Confidence(least, severity["information"], severity["warning"], severity["error"]),
        RegressionRule(settings.change_ratio, settings.change_confidence),
        settings.selection,
        revision[:_HASH_DIGITS] if _HASH.fullmatch(revision) else revision,
        settings.growth_confidence,
    )


def read_rules(
    parsed: ParsedSource, units: Sequence[AnalysedUnit], configured: Sequence[ActiveBudget]
) -> tuple[list[Rules], list[Finding]]:
    """The rules of each unit of a source text, from its comments and the configuration, and the malformed comments."""
    comments = read_comments(parsed, [entry.unit for entry in units])
    rules = [rules_of(entry.unit, above, configured) for entry, above in zip(units, comments.units, strict=True)]
    mistakes = [
        MalformedBudget(text, located.span, render([located.budget]), entry.unit)
        for entry, above in zip(units, comments.units, strict=True)
        for located in above.budgets
        if (text := _without_input(entry.code, located.budget)) is not None
    ]
    return rules, malformed([*comments.malformed, *mistakes])


def _without_input(code: CodeText, budget: Budget) -> str | None:
    """Return what is wrong where a function's budget names sizes that its cost does not depend on, else None."""
    if code.basis != "call" or not budget.workload or code.work is None:
        return None
    inputs = input_names_of(code.text, code.work, code.measured)
    unknown = [name for name, _ in budget.workload if not is_size_of(name, inputs)]
    if not unknown:
        return None
    known = f"it depends on {', '.join(inputs)}" if inputs else "its text shows no size that it depends on"
    return f"the cost does not depend on the size of {', '.join(unknown)}; {known}"


def cases_of(
    units: Sequence[AnalysedUnit],
    rules: Sequence[Rules],
    diffs: Sequence[UnitDiff],
    criteria: Criteria,
    *,
    only_changes: bool = False,
) -> list[UnitCase]:
    """The units that have a budget or have changed; with ``only_changes`` those that are the same are left out."""
    cases = (
        UnitCase(analysed, of_unit, criteria, diff.before if diff.is_edit else None, diff.is_edit or not only_changes)
        for analysed, of_unit, diff in zip(units, rules, diffs, strict=True)
        if not (only_changes and diff.state == "same")
    )
    return [case for case in cases if case.rules.budgets or case.before is not None]


def judge(predictor: Predictor, cases: Sequence[UnitCase], predict: Predict, compare: Compare) -> list[Judgement]:
    """Judge units: their predictions against their budgets, and how their costs have changed since the revision.

    ``predictor`` gives the default queries; ``predict`` and ``compare`` answer them. A unit that cannot be judged
    has the reason instead of findings.
    """
    return each(
        "the check of a unit",
        cases,
        lambda some: _judged(predictor, some, predict, compare),
        lambda case, error: Judgement(abstained=[failed(error)]),
    )


def _judged(predictor: Predictor, cases: Sequence[UnitCase], predict: Predict, compare: Compare) -> list[Judgement]:
    judgements = [Judgement() for _ in cases]
    with_budget = [
        (case, judgement, code, queries)
        for case, judgement in zip(cases, judgements, strict=True)
        for code, queries in _questions(predictor, case)
    ]
    if with_budget:
        answers = predict([(code, queries) for *_, code, queries in with_budget])
        for (case, judgement, code, _), predictions in zip(with_budget, answers, strict=True):
            if code is case.analysed.code:
                judgement.add_predictions(case, predictions)
            else:
                judgement.add_at_sizes(case, code, predictions)
    changed = [
        (case, judgement, case.before, _cost_queries(predictor, case))
        for case, judgement in zip(cases, judgements, strict=True)
        if case.before is not None
    ]
    if changed:
        ratios = compare([(before, case.analysed.code, queries) for case, _, before, queries in changed])
        if ratios is not None:
            earlier = predict([(before, queries) for _, _, before, queries in changed])
            newer = predict([(case.analysed.code, queries) for case, _, _, queries in changed])
            for (case, judgement, before, _), changes, *answers in zip(changed, ratios, earlier, newer, strict=True):
                both = answers[0], answers[1]
                growing = case.analysed.code.basis in GROWING
                work = work_change(before, case.analysed.code, both) if growing else UNCHANGED
                judgement.add_changes(case, changes, both, work)
    return judgements


def _questions(predictor: Predictor, case: UnitCase) -> Iterator[tuple[CodeText, Sequence[Query]]]:
    """The questions about the budgets of a unit: about its text as it is, and at each of the sizes that they name."""
    code = case.analysed.code
    if queries := budget_queries(predictor, code, case.rules, _devices(case.criteria)):
        yield code, queries
    yield from sized_texts(code, case.rules)


def over_budget(
    unit: Unit, rules: Rules, predictions: Sequence[Prediction], confidence: Confidence = DEFAULT_CONFIDENCE
) -> list[Finding]:
    """A finding for each prediction of a unit that exceeds the budget that applies to it, surely enough."""
    findings = []
    for prediction in predictions:
        active = budget_of(prediction, rules)
        if active is None:
            continue
        above = prediction.above(active.budget.value)
        probability = 1 - above if prediction.metric == "accuracy" else above
        severity = confidence.severity(probability)
        if severity is None:
            continue
        text = render([active.budget])
        related = (RelatedLocation(f"the budget: {text}", active.span, active.path),) if active.span is not None else ()
        findings.append(
            Finding(
                "over-budget",
                severity,
                over_budget_message(unit, active.budget, prediction, probability),
                unit.name,
                unit.qualname,
                prediction.metric,
                text,
                probability,
                related,
                prediction,
            )
        )
    return findings


def computing_only(analysed: AnalysedUnit, rules: Rules, predictions: Sequence[Prediction]) -> list[Finding]:
    """A finding where the latency that a budget is about does not include what the unit waits for."""
    unit = analysed.unit
    for prediction in predictions:
        active = budget_of(prediction, rules)
        missing = unknown_waits(analysed, prediction)
        if active is not None and missing:
            text = render([active.budget])
            message = computing_only_message(unit, active.budget, missing)
            return [Finding("wait", OF_COMPARISONS, message, unit.name, unit.qualname, "latency", text)]
    return []


def malformed(entries: Sequence[MalformedBudget]) -> list[Finding]:
    """A finding for each text that is not a valid budget: nothing is checked against it."""
    return [
        Finding(
            "malformed-budget",
            "error",
            plain(f"malformed budget: {entry.message}"),
            entry.span,
            entry.unit.qualname if entry.unit is not None else "",
            budget=entry.text,
        )
        for entry in entries
    ]


def _devices(criteria: Criteria) -> QuerySelection:
    """The selection of budgets: they name their metrics themselves."""
    return replace(criteria.costs, metrics=None)


def _cost_queries(predictor: Predictor, case: UnitCase) -> tuple[Query, ...]:
    """The queries about a unit whose answers are costs, without the metrics that its comments ignore."""
    queries = queries_for(predictor, case.analysed.code, case.criteria.costs)
    return tuple(query for query in queries if query.metric not in ("accuracy", *case.rules.ignored))
