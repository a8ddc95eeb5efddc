"""Predictions and budgets -> findings: what the editor underlines and ``rlm-lsp check`` reports.

Every number comes from the model: a finding says with what probability a unit is over its budget, or has become dearer
than it was, and is as severe as that is sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from rlm_core.types import Metric, Prediction, Span, Unit

from rlm_lsp.budgets import Budget, Malformed, Rules, bound, budget_of
from rlm_lsp.budgets import render as budget_text
from rlm_lsp.rendering import values as render

if TYPE_CHECKING:
    # It takes numpy, which the server's start must not.
    from rlm_core.inference.cost_ratio import Change

Code = Literal["over-budget", "malformed-budget", "regression"]
Severity = Literal["information", "warning", "error"]
CODES: tuple[Code, ...] = get_args(Code)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # from the mildest
DOCS = "docs/ci.md"


@dataclass(frozen=True, slots=True)
class Confidence:
    """The probabilities from which a finding is told at all and from which it has each severity; 1 for never."""

    least: float = 0.8
    information: float = 0.5
    warning: float = 0.9
    error: float = 0.975

    def severity(self, probability: float) -> Severity | None:
        """How severe a finding of this probability is; None where it is not to be told. NaN is no finding."""
        if not probability >= self.least:
            return None
        reached = (severity for severity in reversed(SEVERITIES) if probability >= getattr(self, severity) < 1)
        return next(reached, None)


@dataclass(frozen=True, slots=True)
class RegressionRule:
    """A unit has regressed when its cost is over ``ratio`` times what it was with at least this probability."""

    ratio: float = 1.25
    probability: float = 0.8


DEFAULT_CONFIDENCE, DEFAULT_REGRESSION = Confidence(), RegressionRule()


@dataclass(frozen=True, slots=True)
class Related:
    """A place that belongs to a finding; ``path`` is None in the finding's own file."""

    message: str
    span: Span
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to tell about a file: what, how sure, where (a unit's name, or the malformed text).

    ``budget`` is what the finding is measured by, in a spelling that does not change with layout; ``prediction`` and
    ``change`` hold the model's answer behind it.
    """

    code: Code
    severity: Severity
    message: str
    span: Span
    qualname: str = ""
    metric: Metric | None = None
    budget: str = ""
    probability: float | None = None
    related: tuple[Related, ...] = ()
    prediction: Prediction | None = None
    change: Change | None = None


def docs_link(code: Code) -> str:
    """Where the documentation tells what a code means, relative to the project."""
    return f"{DOCS}#{code}"


def over_budget(
    unit: Unit, rules: Rules, predictions: Sequence[Prediction], confidence: Confidence = DEFAULT_CONFIDENCE
) -> list[Finding]:
    """A finding for each prediction of a unit that is over the budget which holds for it, surely enough."""
    found = []
    for prediction in predictions:
        held = budget_of(prediction, rules)
        if held is None:
            continue
        above = prediction.above(held.budget.value)
        probability = 1 - above if prediction.metric == "accuracy" else above
        severity = confidence.severity(probability)
        if severity is None:
            continue
        message = _over(unit, held.budget, prediction, probability)
        said = f"the budget: {budget_text([held.budget])}"
        places = (Related(said, held.span, held.path),) if held.span is not None else ()
        found.append(
            Finding(
                "over-budget",
                severity,
                message,
                unit.name,
                unit.qualname,
                prediction.metric,
                budget_text([held.budget]),
                probability,
                places,
                prediction,
            )
        )
    return found


def regressions(
    unit: Unit,
    rules: Rules,
    changes: Sequence[Change],
    since: str = "HEAD",
    rule: RegressionRule = DEFAULT_REGRESSION,
    confidence: Confidence = DEFAULT_CONFIDENCE,
) -> list[Finding]:
    """A finding for each cost of a unit that has grown since a revision; ``changes`` go from it to the text now."""
    found = []
    for change in changes:
        probability = change.above(rule.ratio)
        severity = replace(confidence, least=rule.probability).severity(probability)
        # A higher accuracy is no cost.
        if change.metric == "accuracy" or change.metric in rules.ignored or severity is None:
            continue
        found.append(
            Finding(
                "regression",
                severity,
                _grown(unit, change, since, rule.ratio, probability),
                unit.name,
                unit.qualname,
                change.metric,
                change.metric if change.device is None else f"{change.metric} on {change.device}",
                probability,
                change=change,
            )
        )
    return found


def malformed(entries: Sequence[Malformed]) -> list[Finding]:
    """A finding for each text that cannot be read as a budget: what it was to hold is not checked."""
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


def _over(unit: Unit, budget: Budget, prediction: Prediction, probability: float) -> str:
    direction = "under" if prediction.metric == "accuracy" else "over"
    said = f"{_told(unit, prediction)} is {direction} its budget of {bound(budget)}"
    said += f" with {percent(probability)} probability"
    band = prediction.band
    if band is None:
        return said
    shown = render.band(prediction.metric, band, prediction.floor)
    return f"{said}: predicted {shown} ({band.coverage * 100:.0f} % band, median {render.median(prediction)})"


def _grown(unit: Unit, change: Change, since: str, ratio: float, probability: float) -> str:
    where = f" on {change.device}" if change.device and change.basis in ("kernel", "module", "network") else ""
    said = f"{render.METRIC_WORDS[change.metric]} of {_name(unit)}{where} has grown since {since}"
    if change.ratio is not None and change.bands:
        band = change.bands[0]
        said += f", about {render.number(change.ratio)} times"
        said += f" ({band.coverage * 100:.0f} % band {render.ratio_band(band)})"
    return f"{said}: over {ratio:g} times with {percent(probability)} probability"


def _told(unit: Unit, prediction: Prediction) -> str:
    """``latency of `f` ``, with device and workload where a unit may be asked about several."""
    said = f"{render.METRIC_WORDS[prediction.metric]} of {_name(unit)}"
    if prediction.basis in ("kernel", "module", "network"):
        details = [f"{name} {value}" for name, value in sorted(prediction.workload.items())]
        said += f" on {prediction.device}" if prediction.device else ""
        said += f" ({', '.join(details)})" if details else ""
    return said


def _name(unit: Unit) -> str:
    return "this file" if unit.qualname == "<file>" else f"`{unit.qualname}`"


def percent(probability: float) -> str:
    """A probability as people read it: never 100 %."""
    return "over 99 %" if probability > 0.99 else f"{probability * 100:.0f} %"
