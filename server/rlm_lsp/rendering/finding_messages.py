"""The messages of findings: a prediction that exceeds a budget, a cost that is predicted to grow, a new wait.

Input: the unit and the model's answer. Output: one sentence; the editor and all formats of ``rlm-lsp check`` show it.
"""

from __future__ import annotations

from rlm_core.types import CostRatio, MeasuredPrediction, Prediction, Unit

from rlm_lsp.budgets.syntax import Budget, bound
from rlm_lsp.history.work_changes import GrowthRise, WaitChange

from . import labels, work_words

_ON_DEVICES = frozenset({"kernel", "module", "network"})


def over_budget_message(unit: Unit, budget: Budget, prediction: Prediction, probability: float) -> str:
    """``latency of `f` is predicted to exceed its budget of 1 ms (97 % probability): 2–8 ms (80 % band, ...)``."""
    verb = "fall below" if prediction.metric == "accuracy" else "exceed"
    cost = f"{labels.METRIC_WORDS[prediction.metric]} of {_name(unit)}"
    if prediction.basis in _ON_DEVICES:
        cost += f" on {prediction.device}" if prediction.device else ""
        cost += f" ({labels.workload(prediction.workload)})" if prediction.workload else ""
    if isinstance(prediction, MeasuredPrediction) and prediction.ratio is None:
        shown = labels.marked_spread(prediction).removeprefix(labels.source_mark(prediction)).lstrip()
        probable = f"{percent(probability)} probability if measured again"
        on = f"on {prediction.cost.device}, {prediction.cost.date}"
        return f"{cost} exceeds its budget of {bound(budget)} ({probable}): measured {shown} {on}"
    message = f"{cost} is predicted to {verb} its budget of {bound(budget)} ({percent(probability)} probability)"
    band = prediction.band
    if band is None:
        return message
    shown = labels.band(prediction.metric, band, prediction.floor)
    message = f"{message}: {shown} ({band.coverage * 100:.0f} % band, median {labels.median(prediction)})"
    if isinstance(prediction, MeasuredPrediction) and prediction.ratio is not None and prediction.ratio.ratio:
        before, ratio = labels.measured(prediction.cost), labels.times(prediction.ratio.ratio)
        message += f", from {before} measured on {prediction.cost.date} times {ratio}"
    return message


def regression_message(unit: Unit, change: CostRatio, revision: str, ratio: float, probability: float) -> str:
    """``latency of `f` is predicted to grow about 4× since HEAD (80 % band 3–5×): more than 1.25× with ...``."""
    cost = f"{labels.METRIC_WORDS[change.metric]} of {_name(unit)}"
    cost += f" on {change.device}" if change.device and change.basis in _ON_DEVICES else ""
    about = details = ""
    if change.ratio is not None and change.bands:
        band = change.bands[0]
        about = f" about {labels.number(change.ratio)}×"
        details = f" ({band.coverage * 100:.0f} % band {labels.ratio_band(band)})"
    chance = f"more than {ratio:g}× with {percent(probability)} probability"
    return f"{cost} is predicted to grow{about} since {revision}{details}: {chance}"


def growth_message(unit: Unit, rise: GrowthRise, revision: str) -> str:
    """``growth of latency of `f` is predicted to rise from n to n^2 in `values` since HEAD (72 % probability)``."""
    cost = f"growth of {labels.METRIC_WORDS[rise.metric]} of {_name(unit)}"
    after = work_words.growth_form(rise.after.growth_class, rise.after.sizes)
    probable = f" ({percent(rise.probability)} probability)"
    return f"{cost} is predicted to rise from {rise.before.growth_class} to {after} since {revision}{probable}"


def wait_message(unit: Unit, change: WaitChange, revision: str) -> str:
    """```f` now waits for the network (line 12), unlike at HEAD``."""
    return f"{_name(unit)} {' and '.join(work_words.wait_changes(unit, change))}, unlike at {revision}"


def computing_only_message(unit: Unit, budget: Budget, missing: str) -> str:
    """``the budget of `f`, 1 ms, covers computing only: it does not include the wait for the network (line 12)``."""
    return f"the budget of {_name(unit)}, {bound(budget)}, covers computing only: it does not include {missing}"


def percent(probability: float) -> str:
    """A probability as people read it: never 100 %."""
    return "over 99 %" if probability > 0.99 else f"{probability * 100:.0f} %"


def _name(unit: Unit) -> str:
    return "this file" if unit.qualname == "<file>" else f"`{unit.qualname}`"
