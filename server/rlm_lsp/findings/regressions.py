"""Costs that an edit has made larger or smaller, and loops that may not end since: comparisons -> findings.

Input: a unit, the ratios of its costs since the revision, and the predictions for both texts. Output: findings, and
whether the unit is faster. A finding needs more than a comparison, since of two revisions of a function most cost the
same: both texts must fix their cost. Where anything about a function is unknown, no rule that was examined was right
often enough (docs/design/cost-analysis.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.types import CodeText, CostRatio, Metric, Prediction, Unit

from rlm_lsp.budgets.rules import Rules
from rlm_lsp.history.comparison import GrowthRise, WaitChange
from rlm_lsp.rendering.finding_messages import endless_message, growth_message, regression_message

from .finding import DEFAULT_CRITERIA, OF_COMPARISONS, Criteria, Finding, RegressionRule

# What a function must cost at least for a regression to be a finding, in SI units: below that a line more or less, or a
# callee that the model can now see, changes the cost by a large ratio.
LEAST_COSTS: Mapping[Metric, float] = MappingProxyType({"latency": 1e-5, "memory": 2.0**15})


@dataclass(frozen=True, slots=True)
class RevisedCosts:
    """The changes of a unit's costs since a revision that are certain: those that are larger, and whether it is faster.

    ``new_costs`` are the current costs in SI units.
    """

    larger: tuple[CostRatio, ...]
    new_costs: Mapping[Metric, float]
    is_faster: bool

    @classmethod
    def of(
        cls,
        changes: Sequence[CostRatio],
        answers: tuple[Sequence[Prediction], Sequence[Prediction]],
        rule: RegressionRule,
    ) -> RevisedCosts:
        """Read the ratios of two texts; ``answers`` are the predictions for the earlier one and the current one."""
        larger = tuple(change for change in changes if change.has_grown(rule.ratio, rule.probability))
        old = {prediction.metric: prediction.median or 0.0 for prediction in reversed(answers[0])}
        is_faster = any(
            change.metric == "latency"
            and change.has_fallen(rule.ratio, rule.probability)
            and old.get("latency", 0.0) >= LEAST_COSTS["latency"]
            for change in changes
        )
        return cls(larger, _new_costs(larger, *answers), is_faster)


def grown(
    unit: Unit,
    rules: Rules,
    changes: Sequence[CostRatio],
    new_costs: Mapping[Metric, float] = MappingProxyType({}),
    rises: Sequence[GrowthRise] = (),
    criteria: Criteria = DEFAULT_CRITERIA,
    code: CodeText | None = None,
) -> list[Finding]:
    """One finding if costs of a unit have grown, or grow faster, since the criteria's revision, surely enough.

    A function whose new cost is small is left out: small costs change by large ratios. So is a rise to n log n or
    less, such as the first loop over an input. The message names the line of the ``code`` that makes a cost grow.
    """
    rule = criteria.regression
    is_function = unit.kind == "function"
    small = {metric for metric, cost in new_costs.items() if is_function and cost < LEAST_COSTS.get(metric, 0.0)}
    costs = [
        change
        for change in changes
        # A higher accuracy is not a cost.
        if change.metric not in ("accuracy", *rules.ignored, *small) and change.has_grown(rule.ratio, rule.probability)
    ]
    fast = [
        rise
        for rise in rises
        if rise.metric not in rules.ignored and rise.is_fast and rise.probability >= criteria.growth
    ]
    if not costs and not fast:
        return []
    if not costs:
        return [
            Finding(
                "growth",
                OF_COMPARISONS,
                growth_message(unit, fast, criteria.revision, code),
                unit.name,
                unit.qualname,
                fast[0].metric,
                f"{fast[0].metric} {fast[0].after.growth_class}",
                max(rise.probability for rise in fast),
                rise=fast[0],
            )
        ]
    first = costs[0]
    return [
        Finding(
            "regression",
            OF_COMPARISONS,
            regression_message(unit, costs, fast, criteria.revision, rule.ratio),
            unit.name,
            unit.qualname,
            first.metric,
            first.metric if first.device is None else f"{first.metric} on {first.device}",
            max(change.above(rule.ratio) for change in costs),
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


def new_endless(unit: Unit, rules: Rules, change: WaitChange, revision: str = "HEAD") -> list[Finding]:
    """A finding for a unit that may not end and did at the revision.

    Other waits that are new have none: of those that were read, too few were right. Hints and hovers show them.
    """
    if "latency" in rules.ignored or change.endless is None:
        return []
    message = endless_message(unit, change.endless, revision)
    return [Finding("wait", OF_COMPARISONS, message, unit.name, unit.qualname, "latency", "endless")]
