"""The judge of ``rlm-lsp check`` and of the editor: which units of a file have findings.

Input: the analysed units of a file, what applies to each (budgets, ignored metrics, its earlier text), the settings as
:class:`Criteria`, and two callbacks that ask the model. Output: findings. Nothing is read from disk here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Abstention, CodeText, CostRatio, Prediction, Query, Unit

from rlm_lsp.budgets.comments import MalformedBudget, read_comments
from rlm_lsp.budgets.rules import ActiveBudget, Rules, budget_of, budget_queries, rules_of
from rlm_lsp.budgets.syntax import render
from rlm_lsp.history.comparison import UnitDiff
from rlm_lsp.history.work_changes import GROWING, GrowthRise, WaitChange, WorkChange, work_change
from rlm_lsp.rendering.finding_messages import (
    computing_only_message,
    growth_message,
    over_budget_message,
    regression_message,
    wait_message,
)
from rlm_lsp.rendering.work_words import unknown_waits
from rlm_lsp.settings.model import Settings

from .finding import DEFAULT_CONFIDENCE, DEFAULT_REGRESSION, Confidence, Finding, RegressionRule, RelatedLocation

# One question per unit, the answers in that order; Compare returns None if the model cannot compare.
Predict = Callable[[Sequence[tuple[CodeText, Sequence[Query]]]], Sequence[Sequence[Prediction]]]
Compare = Callable[[Sequence[tuple[CodeText, CodeText, Sequence[Query]]]], "Sequence[Sequence[CostRatio]] | None"]


@dataclass(frozen=True, slots=True)
class Criteria:
    """When a prediction is a finding, which costs are predicted, and the revision that units are compared with.

    ``growth`` is the lowest probability of both growth classes at which a rise is a finding.
    """

    confidence: Confidence = DEFAULT_CONFIDENCE
    regression: RegressionRule = DEFAULT_REGRESSION
    costs: QuerySelection = DEFAULT_SELECTION
    revision: str = "HEAD"
    growth: float = 0.6


DEFAULT_CRITERIA = Criteria()


@dataclass(frozen=True, slots=True)
class UnitCase:
    """A unit to judge: its rules, and its text at the compared revision where it has changed since."""

    analysed: AnalysedUnit
    rules: Rules
    criteria: Criteria
    before: CodeText | None = None


@dataclass(slots=True)
class Judgement:
    """The findings of a unit, and the model's reasons for the answers that it did not give."""

    findings: list[Finding] = field(default_factory=list)
    abstained: list[Abstention] = field(default_factory=list)

    def add_predictions(self, case: UnitCase, predictions: Sequence[Prediction]) -> None:
        """Check the predictions against the budgets of the unit."""
        self.abstained += [p.abstained for p in predictions if p.abstained is not None and budget_of(p, case.rules)]
        unit = case.analysed.unit
        self._add(case, over_budget(unit, case.rules, predictions, case.criteria.confidence))
        self._add(case, computing_only(case.analysed, case.rules, predictions))

    def add_changes(self, case: UnitCase, changes: Sequence[CostRatio]) -> None:
        """Look for costs that have grown."""
        self.abstained += [change.abstained for change in changes if change.abstained is not None]
        self._add(case, regressions(case.analysed.unit, case.rules, changes, case.criteria))

    def add_work(self, case: UnitCase, change: WorkChange) -> None:
        """Look for costs that grow faster, and for new waits."""
        unit = case.analysed.unit
        self._add(case, growths(unit, case.rules, change.growth, case.criteria))
        if change.wait is not None:
            self._add(case, new_waits(unit, case.rules, change.wait, case.criteria.revision))

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
        revision,
        settings.growth_confidence,
    )


def read_rules(
    parsed: ParsedSource, units: Sequence[AnalysedUnit], configured: Sequence[ActiveBudget]
) -> tuple[list[Rules], list[Finding]]:
    """The rules of each unit of a source text, from its comments and the configuration, and the malformed comments."""
    comments = read_comments(parsed, [entry.unit for entry in units])
    rules = [rules_of(entry.unit, above, configured) for entry, above in zip(units, comments.units, strict=True)]
    return rules, malformed(comments.malformed)


def cases_of(
    units: Sequence[AnalysedUnit],
    rules: Sequence[Rules],
    diffs: Sequence[UnitDiff],
    criteria: Criteria,
    *,
    only_changes: bool = False,
) -> list[UnitCase]:
    """The units that have a budget or have changed; with ``only_changes`` those that are the same are left out."""
    return [
        UnitCase(analysed, of_unit, criteria, diff.before)
        for analysed, of_unit, diff in zip(units, rules, diffs, strict=True)
        if (of_unit.budgets or diff.before is not None) and not (only_changes and diff.state == "same")
    ]


def judge(predictor: Predictor, cases: Sequence[UnitCase], predict: Predict, compare: Compare) -> list[Judgement]:
    """Judge units: their predictions against their budgets, and how their costs have changed since the revision.

    ``predictor`` gives the default queries; ``predict`` and ``compare`` answer them.
    """
    judgements = [Judgement() for _ in cases]
    with_budget = [
        (case, judgement, queries)
        for case, judgement in zip(cases, judgements, strict=True)
        if (queries := budget_queries(predictor, case.analysed.code, case.rules, _devices(case.criteria)))
    ]
    if with_budget:
        answers = predict([(case.analysed.code, queries) for case, _, queries in with_budget])
        for (case, judgement, _), predictions in zip(with_budget, answers, strict=True):
            judgement.add_predictions(case, predictions)
    changed = [
        (case, judgement, case.before, _cost_queries(predictor, case))
        for case, judgement in zip(cases, judgements, strict=True)
        if case.before is not None
    ]
    if changed:
        ratios = compare([(before, case.analysed.code, queries) for case, _, before, queries in changed])
        for (case, judgement, *_), changes in zip(changed, ratios or (), strict=ratios is not None):
            judgement.add_changes(case, changes)
        if ratios is not None:
            _add_work(changed, predict)
    return judgements


def _add_work(changed: Sequence[tuple[UnitCase, Judgement, CodeText, tuple[Query, ...]]], predict: Predict) -> None:
    """Compare the growth and the waits of units with those at the revision."""
    growing = [entry for entry in changed if entry[0].analysed.code.basis in GROWING]
    if not growing:
        return
    before = predict([(before, queries) for _, _, before, queries in growing])
    after = predict([(case.analysed.code, queries) for case, _, _, queries in growing])
    for (case, judgement, earlier, _), *answers in zip(growing, before, after, strict=True):
        change = work_change(earlier, case.analysed.code, (answers[0], answers[1]))
        judgement.add_work(case, change)


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


def regressions(
    unit: Unit, rules: Rules, changes: Sequence[CostRatio], criteria: Criteria = DEFAULT_CRITERIA
) -> list[Finding]:
    """A finding for each cost of a unit that has grown since the criteria's revision, surely enough."""
    findings = []
    rule = criteria.regression
    for change in changes:
        probability = change.above(rule.ratio)
        severity = replace(criteria.confidence, least=rule.probability).severity(probability)
        # A higher accuracy is not a cost.
        if change.metric == "accuracy" or change.metric in rules.ignored or severity is None:
            continue
        findings.append(
            Finding(
                "regression",
                severity,
                regression_message(unit, change, criteria.revision, rule.ratio, probability),
                unit.name,
                unit.qualname,
                change.metric,
                change.metric if change.device is None else f"{change.metric} on {change.device}",
                probability,
                change=change,
            )
        )
    return findings


def growths(
    unit: Unit, rules: Rules, rises: Sequence[GrowthRise], criteria: Criteria = DEFAULT_CRITERIA
) -> list[Finding]:
    """A finding for each cost of a unit that grows faster with its inputs than at the criteria's revision."""
    findings = []
    for rise in rises:
        severity = replace(criteria.confidence, least=criteria.growth).severity(rise.probability)
        if severity is None or rise.metric in rules.ignored:
            continue
        findings.append(
            Finding(
                "growth",
                severity,
                growth_message(unit, rise, criteria.revision),
                unit.name,
                unit.qualname,
                rise.metric,
                f"{rise.metric} {rise.after.growth_class}",
                rise.probability,
                rise=rise,
            )
        )
    return findings


def new_waits(unit: Unit, rules: Rules, change: WaitChange, revision: str = "HEAD") -> list[Finding]:
    """A finding for what a unit waits for and did not at the revision.

    It is information, since a wait may be intended; a unit that may not end gets a warning.
    """
    if "latency" in rules.ignored:
        return []
    kinds = [wait.kind.value for wait in change.waits]
    kinds += ["endless"] if change.endless is not None else []
    kinds += ["sleep"] if change.seconds is not None else []
    return [
        Finding(
            "wait",
            "warning" if change.endless is not None else "information",
            wait_message(unit, change, revision),
            unit.name,
            unit.qualname,
            "latency",
            ", ".join(kinds),
        )
    ]


def computing_only(analysed: AnalysedUnit, rules: Rules, predictions: Sequence[Prediction]) -> list[Finding]:
    """A finding where the latency that a budget is about does not include what the unit waits for."""
    unit = analysed.unit
    for prediction in predictions:
        active = budget_of(prediction, rules)
        missing = unknown_waits(analysed, prediction)
        if active is not None and missing:
            text = render([active.budget])
            message = computing_only_message(unit, active.budget, missing)
            return [Finding("wait", "information", message, unit.name, unit.qualname, "latency", text)]
    return []


def malformed(entries: Sequence[MalformedBudget]) -> list[Finding]:
    """A finding for each text that is not a valid budget: nothing is checked against it."""
    return [
        Finding(
            "malformed-budget",
            "error",
            f"malformed budget: {entry.message}",
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
