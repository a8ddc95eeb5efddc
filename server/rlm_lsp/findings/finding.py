"""Defines a finding, the record that the editor underlines and ``rlm-lsp check`` reports, and its severity.

Every number comes from the model: a finding gives the probability that a unit exceeds its budget, or that its cost has
grown. The severity of an exceeded budget follows from that probability. Waits are read from the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection
from rlm_core.types import CostRatio, MeasuredPrediction, Metric, Prediction, Span, WorkFacts, small_answer

from rlm_lsp.history.comparison import GrowthRise
from rlm_lsp.settings.model import Severity

Code = Literal[
    "over-budget", "malformed-budget", "regression", "growth", "wait", "wait-in-loop", "blocking-sleep", "row-by-row"
]
CODES: tuple[Code, ...] = get_args(Code)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # from the lowest
DOCS = "docs/ci.md"
# Regressions, faster growth and loops that may not end: the probabilities behind them are not calibrated on
# changes of real code, so they fail no build unless the user asks for it. Neither do waits in loops: some are meant.
OF_COMPARISONS: Severity = "information"


@dataclass(frozen=True, slots=True)
class Confidence:
    """The lowest probability of a finding, and of each severity; 1 means never."""

    least: float = 0.8
    information: float = 0.5
    warning: float = 0.9
    error: float = 0.975

    def severity(self, probability: float) -> Severity | None:
        """Return the severity of a finding of this probability; None if it is not reported. NaN is not a finding."""
        if not probability >= self.least:
            return None
        reached = (severity for severity in reversed(SEVERITIES) if probability >= getattr(self, severity) < 1)
        return next(reached, None)


@dataclass(frozen=True, slots=True)
class RegressionRule:
    """A unit has regressed when its cost is over ``ratio`` times what it was with at least this probability."""

    ratio: float = 1.5
    probability: float = 0.9


DEFAULT_CONFIDENCE, DEFAULT_REGRESSION = Confidence(), RegressionRule()


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
class RelatedLocation:
    """Another location that explains a finding; ``path`` is None in the finding's own file."""

    message: str
    span: Span
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a file: code, severity, message and location (a unit's name, or the malformed text).

    ``budget`` is the normalized text of the budget, or what identifies the finding among those of its unit (the metric
    and device of a regression, the metric and class of a growth, the kinds of waits, the loop of a wait).
    ``prediction``, ``change`` or ``rise`` is the model's answer behind the finding; ``work`` are the facts of the unit,
    whose text begins in the 0-based line ``first_line``.
    """

    code: Code
    severity: Severity
    message: str
    span: Span
    qualname: str = ""
    metric: Metric | None = None
    budget: str = ""
    probability: float | None = None
    related: tuple[RelatedLocation, ...] = ()
    prediction: Prediction | None = None
    change: CostRatio | None = None
    rise: GrowthRise | None = None
    work: WorkFacts | None = None
    first_line: int = 0

    @property
    def budget_text(self) -> str | None:
        """The text of the budget; None for a finding that is not about one."""
        about_budget = self.code in ("over-budget", "malformed-budget") or (self.code == "wait" and "<" in self.budget)
        return self.budget if about_budget else None


def rests_on_committed(prediction: Prediction | None) -> bool:
    """Return whether a number is based on a committed measurement, which anyone who may change files can write."""
    small = small_answer(prediction) if prediction is not None else None
    return isinstance(small, MeasuredPrediction) and small.cost.committed


def docs_link(code: Code) -> str:
    """The section of the documentation about a code, relative to the project."""
    return f"{DOCS}#{code}"
