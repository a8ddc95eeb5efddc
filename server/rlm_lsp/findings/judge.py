"""The judge of ``rlm-lsp check`` and of the editor: which units of a file have findings.

Input: the analysed units of a file, what applies to each (budgets, ignored metrics, its earlier text), the settings as
:class:`Criteria`, and two callbacks that ask the model. Output: findings. Nothing is read from disk here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from rlm_core.boundary import each
from rlm_core.inference.guarded import failed
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.queries.function_sizes import input_names_of, is_size_of
from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import (
    Abstention,
    AbstentionCode,
    CodeText,
    CostRatio,
    Metric,
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
from rlm_lsp.history.comparison import GROWING, UNCHANGED, GrowthRise, UnitDiff, WaitChange, WorkChange, work_change
from rlm_lsp.rendering.finding_messages import (
    computing_only_message,
    growth_message,
    over_budget_message,
    regression_message,
    wait_message,
)
from rlm_lsp.rendering.size_words import sizes
from rlm_lsp.rendering.work_words import plain, unknown_waits
from rlm_lsp.settings.model import Settings

from .finding import (
    DEFAULT_CONFIDENCE,
    DEFAULT_REGRESSION,
    OF_COMPARISONS,
    Confidence,
    Finding,
    RegressionRule,
    RelatedLocation,
    rests_on_committed,
)

# What a function must cost at least for a regression to be a finding, in SI units: below that a line more or less, or a
# callee that the model can now see, changes the cost by a large ratio.
LEAST_COSTS: Mapping[Metric, float] = MappingProxyType({"latency": 1e-5, "memory": 2.0**15})
# One question per unit, the answers in that order; Compare returns None if the model cannot compare.
Predict = Callable[[Sequence[tuple[CodeText, Sequence[Query]]]], Sequence[Sequence[Prediction]]]
Compare = Callable[[Sequence[tuple[CodeText, CodeText, Sequence[Query]]]], "Sequence[Sequence[CostRatio]] | None"]


@dataclass(frozen=True, slots=True)
class Criteria:
    """The criteria of findings, the costs that are predicted, and the revision that units are compared with.

    ``growth`` is the lowest probability of both growth classes at which a rise is a finding.
    """

    confidence: Confidence = DEFAULT_CONFIDENCE
    regression: RegressionRule = DEFAULT_REGRESSION
    costs: QuerySelection = DEFAULT_SELECTION
    revision: str = "HEAD"
    growth: float = 0.8


DEFAULT_CRITERIA = Criteria()


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

    ``committed`` is the number of its budgets that were judged by measurements that came with the project.
    """

    findings: list[Finding] = field(default_factory=list)
    abstained: list[Abstention] = field(default_factory=list)
    committed: int = 0

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
        self, case: UnitCase, changes: Sequence[CostRatio], new_costs: Mapping[Metric, float], work: WorkChange
    ) -> None:
        """Look for costs that have grown or grow faster, and for new waits; all that have grown are one finding."""
        self.abstained += [change.abstained for change in changes if change.abstained is not None]
        if case.before is not None and is_own_change(case.before, case.analysed.code):
            self._add(case, grown(case.analysed.unit, case.rules, changes, new_costs, work.growth, case.criteria))
        if work.wait is not None:
            self._add(case, new_waits(case.analysed.unit, case.rules, work.wait, case.criteria.revision))

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
                growing = case.analysed.code.basis in GROWING
                work = work_change(before, case.analysed.code, (answers[0], answers[1])) if growing else UNCHANGED
                judgement.add_changes(case, changes, _new_costs(changes, answers[0], answers[1]), work)
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


def grown(
    unit: Unit,
    rules: Rules,
    changes: Sequence[CostRatio],
    new_costs: Mapping[Metric, float] = MappingProxyType({}),
    rises: Sequence[GrowthRise] = (),
    criteria: Criteria = DEFAULT_CRITERIA,
) -> list[Finding]:
    """One finding if costs of a unit have grown, or grow faster, since the criteria's revision, surely enough.

    A function whose new cost is small is left out: small costs change by large ratios. So is a rise to n log n or
    less, such as the first loop over an input.
    """
    rule = criteria.regression
    is_function = unit.kind == "function"
    small = {metric for metric, cost in new_costs.items() if is_function and cost < LEAST_COSTS.get(metric, 0.0)}
    costs = [
        (change, probability)
        for change in changes
        # A higher accuracy is not a cost.
        if change.metric not in ("accuracy", *rules.ignored, *small)
        and (probability := change.above(rule.ratio)) >= rule.probability
    ]
    fast = [
        rise
        for rise in rises
        if rise.metric not in rules.ignored and rise.is_fast and rise.probability >= criteria.growth
    ]
    if not costs and not fast:
        return []
    probability = max([probability for _, probability in costs] or [rise.probability for rise in fast])
    if not costs:
        return [
            Finding(
                "growth",
                OF_COMPARISONS,
                growth_message(unit, fast, criteria.revision),
                unit.name,
                unit.qualname,
                fast[0].metric,
                f"{fast[0].metric} {fast[0].after.growth_class}",
                probability,
                rise=fast[0],
            )
        ]
    first = costs[0][0]
    return [
        Finding(
            "regression",
            OF_COMPARISONS,
            regression_message(unit, costs, fast, criteria.revision, rule.ratio),
            unit.name,
            unit.qualname,
            first.metric,
            first.metric if first.device is None else f"{first.metric} on {first.device}",
            probability,
            change=first,
            rise=fast[0] if fast else None,
        )
    ]


def is_own_change(before: CodeText, after: CodeText) -> bool:
    """Return whether a unit's own code has changed, and not only what it calls, which has its own findings.

    Comments, layout, type hints and names of variables are not code.
    """
    first, second = (canonical(code.text, code.language, CanonicalForm.NEUTRAL) for code in (before, after))
    return first != second


def _new_costs(
    changes: Sequence[CostRatio], before: Sequence[Prediction], after: Sequence[Prediction]
) -> dict[Metric, float]:
    """Return the current cost per metric, in SI units: predicted, or the earlier prediction times the ratio if larger.

    The ratio also counts where an edit makes a difference for larger inputs than those of tests.
    """
    medians = {prediction.metric: prediction.median for prediction in reversed(before)}
    costs: dict[Metric, float] = {
        prediction.metric: prediction.median for prediction in reversed(after) if prediction.median is not None
    }
    for change in changes:
        if change.metric in costs and change.ratio is not None:
            costs[change.metric] = max(costs[change.metric], (medians.get(change.metric) or 0.0) * change.ratio)
    return costs


def new_waits(unit: Unit, rules: Rules, change: WaitChange, revision: str = "HEAD") -> list[Finding]:
    """A finding for what a unit waits for and did not at the revision, a loop that may not end included."""
    if "latency" in rules.ignored:
        return []
    kinds = [wait.kind.value for wait in change.waits]
    kinds += ["endless"] if change.endless is not None else []
    kinds += ["sleep"] if change.seconds is not None else []
    return [
        Finding(
            "wait",
            OF_COMPARISONS,
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
