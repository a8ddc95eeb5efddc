"""Finds the budgets that apply to predictions, and the queries that the budgets of a unit need.

One budget applies to a prediction: the one with the most qualifiers (device, sizes) that fits it, a comment above the
unit before the configuration, an earlier line of the configuration before a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import DEFAULT_SELECTION, QuerySelection, queries_for
from rlm_core.queries.devices import answers_for
from rlm_core.queries.function_sizes import input_names_of, is_size_of, replaced
from rlm_core.queries.size_comments import read_quantity
from rlm_core.types import (
    METRICS_OF_BASIS,
    CodeText,
    Metric,
    Prediction,
    Query,
    SizedPrediction,
    SizeValue,
    Span,
    Unit,
)

from .comments import UnitComments
from .syntax import Budget


@dataclass(frozen=True, slots=True)
class ActiveBudget:
    """A budget that applies to a unit, where it is written, and whether that is a configuration.

    ``path`` is None in the unit's own file; ``span`` is None where there is no text to point to.
    """

    budget: Budget
    span: Span | None = None
    path: Path | None = None
    configured: bool = True


@dataclass(frozen=True, slots=True)
class GlobBudgets:
    """The budgets that a source of the configuration sets for the files matching a glob."""

    glob: str
    budgets: tuple[ActiveBudget, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a unit: its budgets, in order of precedence, and the metrics that get no findings."""

    budgets: tuple[ActiveBudget, ...] = ()
    ignored: frozenset[Metric] = frozenset()


def rules_of(unit: Unit, comments: UnitComments, configured: Sequence[ActiveBudget] = ()) -> Rules:
    """The rules of a unit: the comments above it, then the configuration of its file."""
    metrics = [metric for metric in METRICS_OF_BASIS[unit.basis] if metric not in comments.ignored]
    budgets = [ActiveBudget(located.budget, located.span, configured=False) for located in comments.budgets]
    budgets += configured
    return Rules(tuple(active for active in budgets if active.budget.metric in metrics), comments.ignored)


def budget_queries(
    predictor: Predictor, code: CodeText, rules: Rules, selection: QuerySelection = DEFAULT_SELECTION
) -> tuple[Query, ...]:
    """The queries that check the budgets of a unit; none where it has no budget.

    A configured budget on a device that is unknown for this kind of unit is meant for the other units of its files.
    """
    metrics = tuple({active.budget.metric: None for active in rules.budgets})
    if not metrics:
        return ()
    unqualified = {active.budget.metric for active in rules.budgets if not _qualifiers(active.budget)}
    defaults = queries_for(predictor, code, replace(selection, metrics=metrics))
    queries = [query for query in defaults if query.metric in unqualified]
    known_devices = predictor.devices(code.basis)
    for active in rules.budgets:
        budget = active.budget
        unknown = budget.device is not None and not answers_for(code.basis, budget.device, known_devices)
        # Budgets of functions at sizes are asked about texts with these sizes, see `sized_texts`.
        at_sizes = code.basis == "call" and bool(budget.workload)
        if not _qualifiers(budget) or (active.configured and unknown) or at_sizes:
            continue
        for query in queries_for(
            predictor, code, QuerySelection((budget.metric,), (), dict(budget.workload), selection.judge)
        ):
            device = query.device if budget.metric == "accuracy" else budget.device or query.device
            qualified = Query(budget.metric, device, {**query.workload, **dict(budget.workload)})
            if qualified not in queries:
                queries.append(qualified)
    return tuple(queries)


def sized_texts(code: CodeText, rules: Rules) -> list[tuple[CodeText, tuple[Query, ...]]]:
    """The texts of a function at the sizes that its budgets name, and the queries about each.

    A size that a budget names takes precedence over the same one from another source. Budgets that name what is not an
    input of the function are left out: a configured one is meant for other functions of its files.
    """
    texts: dict[tuple[SizeValue, ...], dict[Metric, None]] = {}
    inputs = input_names_of(code.text, code.work, code.measured) if rules.budgets and code.basis == "call" else []
    for active in rules.budgets if inputs else ():
        named = sizes_of_budget(active.budget)
        if named and all(is_size_of(name, inputs) for name in named):
            sizes = replaced(code.sizes, list(named.values()), inputs)
            texts.setdefault(sizes, {})[active.budget.metric] = None
    return [
        (replace(code, sizes=sizes), tuple(Query(metric) for metric in metrics)) for sizes, metrics in texts.items()
    ]


def sizes_of_budget(budget: Budget) -> dict[str, SizeValue]:
    """The sizes of inputs that a budget names; empty where it names none, or what is not one."""
    try:
        return {name: SizeValue(name, read_quantity(value), "query", "a budget") for name, value in budget.workload}
    except ValueError:
        return {}


def budget_of(prediction: Prediction, rules: Rules) -> ActiveBudget | None:
    """The budget that applies to a prediction."""
    # Of equally qualified ones the first: ``max`` keeps it.
    fitting = (active for active in rules.budgets if _fits(active.budget, prediction))
    return max(fitting, key=lambda active: _qualifiers(active.budget), default=None)


def _qualifiers(budget: Budget) -> int:
    return (budget.device is not None) + len(budget.workload)


def _fits(budget: Budget, prediction: Prediction) -> bool:
    if budget.metric != prediction.metric or budget.device not in (None, prediction.device):
        return False
    if prediction.basis == "call" and budget.workload:
        at = prediction.at.sizes if isinstance(prediction, SizedPrediction) else ()
        named = {name: size.value for name, size in sizes_of_budget(budget).items()}
        return bool(named) and named.items() <= {size.name: size.value for size in at}.items()
    return all(prediction.workload.get(name) == value for name, value in budget.workload)
