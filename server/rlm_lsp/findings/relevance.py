"""Selects the units that get a hint by default: the few whose cost a developer would want to know about.

Input: what is known about a unit. Output: why it matters, or None. All units keep their hover.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Literal, TypeVar

from rlm_core.types import CodeText, GrowthClass, Prediction, SizedPrediction

from rlm_lsp.budgets.rules import Rules, budget_of
from rlm_lsp.rendering.labels import wait_text
from rlm_lsp.settings.model import Settings

Relevance = Literal["kind", "measured", "changed", "waits", "budget", "cost", "growth"]
T = TypeVar("T")
# A budget is near where the 80 % band reaches it.
NEAR_BUDGET = 0.1
# Faster than n log n in one input. A product of two, such as the number of texts and their length, is linear in each.
FAST_GROWTH: frozenset[GrowthClass] = frozenset({"n^2", "n^3", "2^n"})
# In proportion to an input or faster.
GROWING: frozenset[GrowthClass] = FAST_GROWTH | {"n", "n log n", "mn"}
WITHOUT_RULES = Rules()


def relevance(
    code: CodeText,
    predictions: Sequence[Prediction],
    settings: Settings,
    rules: Rules = WITHOUT_RULES,
    *,
    changed: bool = False,
) -> Relevance | None:
    """Return why a unit gets a hint; None if it gets none by default.

    Programs, kernels, modules and networks always do: they are few, and their cost is what they are written for. A
    function does if it was measured, is marked as ``changed`` since git's ``HEAD``, waits, is over or near its budget,
    costs at least what the settings say, or grows faster than n log n.
    """
    if code.basis != "call":
        return "kind"
    if any(prediction.source != "predicted" for prediction in predictions):
        return "measured"
    if changed:
        return "changed"
    if any(wait_text(prediction, code.work) for prediction in predictions):
        return "waits"
    if any(_is_near_budget(prediction, rules) for prediction in predictions):
        return "budget"
    if any(_is_expensive(prediction, settings) for prediction in predictions):
        return "cost"
    if grows_fast(predictions, settings):
        return "growth"
    return None


def grows_fast(predictions: Sequence[Prediction], settings: Settings) -> bool:
    """Return whether a cost is said to grow faster than n log n."""
    return any(_grows(prediction, settings, FAST_GROWTH) for prediction in predictions)


def _is_near_budget(prediction: Prediction, rules: Rules) -> bool:
    active = budget_of(prediction, rules) if rules.budgets else None
    return active is not None and prediction.above(active.budget.value) >= NEAR_BUDGET


def _is_expensive(prediction: Prediction, settings: Settings) -> bool:
    least = {"latency": settings.hints_min_latency, "memory": settings.hints_min_memory}.get(prediction.metric)
    if least is None or prediction.median is None:
        return False
    bound = prediction.at.least if isinstance(prediction, SizedPrediction) else 0.0
    return max(prediction.median, bound) >= least


def _grows(prediction: Prediction, settings: Settings, classes: Set[GrowthClass]) -> bool:
    growth = prediction.growth
    return (
        growth is not None
        and growth.is_claim
        and growth.probability >= settings.growth_confidence
        and growth.growth_class in classes
    )


def growing_most(functions: Iterable[tuple[T, Sequence[Prediction]]], settings: Settings) -> T | None:
    """The function for which a file has a hint that would have none: of those that grow, the most expensive.

    Its latency is said to grow in proportion to an input or faster.
    """
    growing = [
        (prediction.median or 0.0, function)
        for function, predictions in functions
        for prediction in predictions
        if prediction.metric == "latency" and _grows(prediction, settings, GROWING)
    ]
    return max(growing, key=lambda entry: entry[0])[1] if growing else None
