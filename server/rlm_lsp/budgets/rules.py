"""Which budget holds for which prediction, and what must be asked to know.

A prediction is held against one budget: the narrowest that fits it (device and workload count), a comment above the
unit before the configuration, an earlier line of the configuration before a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection, queries_for
from rlm_core.queries.devices import answers_for
from rlm_core.types import METRICS_OF_BASIS, CodeText, Metric, Prediction, Query, Span, Unit

from .comments import UnitComments
from .syntax import Budget


@dataclass(frozen=True, slots=True)
class Held:
    """A budget of a unit, whether the configuration says it, and where it stands.

    ``path`` is None in the unit's own file, ``span`` where there is no place to show.
    """

    budget: Budget
    span: Span | None = None
    path: Path | None = None
    configured: bool = True


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for a unit: budgets, those that count more first, and the metrics without findings."""

    held: tuple[Held, ...] = ()
    ignored: frozenset[Metric] = frozenset()


def rules_of(unit: Unit, comments: UnitComments, configured: Sequence[Held] = ()) -> Rules:
    """The rules of a unit: its comments, and what is configured for its file, those that count more first."""
    metrics = [metric for metric in METRICS_OF_BASIS[unit.basis] if metric not in comments.ignored]
    held = [Held(placed.budget, placed.span, configured=False) for placed in comments.budgets]
    held += configured
    return Rules(tuple(entry for entry in held if entry.budget.metric in metrics), comments.ignored)


def budget_queries(
    predictor: Predictor, code: CodeText, rules: Rules, asked: QuerySelection = DEFAULT_SELECTION
) -> tuple[Query, ...]:
    """What must be asked about a unit to hold it against its budgets; nothing where it has none.

    A configured budget on a device that is unknown for this kind of unit is meant for the other units of its files.
    """
    metrics = tuple({held.budget.metric: None for held in rules.held})
    if not metrics:
        return ()
    plain = {held.budget.metric for held in rules.held if not _narrow(held.budget)}
    found = [query for query in queries_for(predictor, code, replace(asked, metrics=metrics)) if query.metric in plain]
    known = predictor.devices(code.basis)
    for held in rules.held:
        budget = held.budget
        unknown = budget.device is not None and not answers_for(code.basis, budget.device, known)
        if not _narrow(budget) or (held.configured and unknown):
            continue
        for query in queries_for(predictor, code, QuerySelection((budget.metric,), (), dict(budget.workload))):
            device = query.device if budget.metric == "accuracy" else budget.device or query.device
            narrowed = Query(budget.metric, device, {**query.workload, **dict(budget.workload)})
            if narrowed not in found:
                found.append(narrowed)
    return tuple(found)


def budget_of(prediction: Prediction, rules: Rules) -> Held | None:
    """The budget that a prediction is held against."""
    # Of equally narrow ones the first: ``max`` keeps it.
    fitting = (held for held in rules.held if _fits(held.budget, prediction))
    return max(fitting, key=lambda held: _narrow(held.budget), default=None)


def _narrow(budget: Budget) -> int:
    return (budget.device is not None) + len(budget.workload)


def _fits(budget: Budget, prediction: Prediction) -> bool:
    return (
        budget.metric == prediction.metric
        and budget.device in (None, prediction.device)
        and all(prediction.workload.get(name) == value for name, value in budget.workload)
    )
