"""Messages of findings and of invalid settings: a budget exceeded, a cost predicted to grow.

Input: the unit and the model's answer. Output: one sentence of plain text; the editor and all formats of ``rlm-lsp
check`` show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlm_core.types import CodeText, CostOrigin, CostRatio, MeasuredPrediction, Prediction, SizedPrediction, Unit

from rlm_lsp.budgets.syntax import Budget, bound
from rlm_lsp.history.comparison import GrowthRise, WaitChange
from rlm_lsp.settings.files import OF_CLIENT
from rlm_lsp.settings.resolve import SettingsProblem

from . import labels, size_words, work_words
from .console import counted
from .escaping import message
from .growth_words import CURES, from_lines, growth_form

# A comment on a pull request; the first line is not shown.
COMMENT_HEAD = "<!-- rlm-lsp -->\n### Predicted costs\n\n"
COMMENT_FOOT = "The costs are predicted from the text by rlm-lsp; nothing was run."
NO_FINDINGS = "No findings."
_ON_DEVICES = frozenset({"kernel", "module", "network"})
_PLACES = {OF_CLIENT: "the editor's settings", "environment": "the environment"}


def committed_note(count: int) -> str:
    """Return the note about how many budgets were judged by measurements that came with the project."""
    return f"{counted(count, 'budget')} judged by committed measurements"


def over_budget_message(unit: Unit, budget: Budget, prediction: Prediction, probability: float) -> str:
    """``latency of f is predicted to exceed its budget of 1 ms (97 % probability): 2–8 ms (80 % band, ...)``."""
    verb = "fall below" if prediction.metric == "accuracy" else "exceed"
    cost = cost_of(unit, labels.METRIC_WORDS[prediction.metric])
    if prediction.basis in _ON_DEVICES:
        cost += f" on {prediction.device}" if prediction.device else ""
        cost += f" ({labels.workload(prediction.workload)})" if prediction.workload else ""
    if isinstance(prediction, SizedPrediction):
        cost += f" at {size_words.sizes(prediction.at.sizes)}"
        if prediction.at.kind == "bound" and prediction.at.least > budget.value:
            least = size_words.bound(prediction.metric, prediction.at)
            return f"{cost} exceeds its budget of {bound(budget)} ({percent(probability)} probability): {least}"
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


def regression_message(
    unit: Unit, changes: Sequence[CostRatio], rises: Sequence[GrowthRise], revision: str, ratio: float
) -> str:
    """``latency of f is predicted to grow about 4× since HEAD (92 % probability of at least 1.5×)``.

    ``changes`` are the costs that have grown; further ones and faster growth follow.
    """
    parts: list[str] = []
    for change in changes:
        device = f" on {change.device}" if change.device and change.basis in _ON_DEVICES else ""
        metric = f"{labels.METRIC_WORDS[change.metric]}{device}"
        by = labels.about(change.ratio) if change.ratio is not None else ""
        # The setting as it was written: `1.25×` is not `1.2×`.
        why = f" ({percent(change.above(ratio))} probability of at least {ratio:g}×)"
        if parts:
            parts.append(f"its {metric} {by}{why}")
        else:
            at = f" {size_words.ratio_sizes(change)}" if change.sizes else ""
            parts.append(f"{cost_of(unit, metric)} is predicted to grow {by}{at} since {revision}{why}")
    parts += [f"its {_growth(rise)}{_instead(rise)} ({_sure(rise)})" for rise in rises]
    return "; ".join(parts)


def growth_message(unit: Unit, rises: Sequence[GrowthRise], revision: str, code: CodeText | None = None) -> str:
    """``latency of f is predicted to grow as n^2 in values since HEAD, instead of n (85 % probability)``.

    With the ``code`` of the unit, the line that makes it grow follows.
    """
    first, *others = rises
    metric = labels.METRIC_WORDS[first.metric]
    text = f"{_growth(first).removeprefix(metric)} since {revision}{_instead(first).replace(' instead', ', instead')}"
    place = (
        work_words.plain(from_lines(unit, code, first.after)) if code is not None and first.metric == "latency" else ""
    )
    parts = [f"{cost_of(unit, metric)}{text} ({_sure(first)}){place}"]
    parts += [f"its {_growth(rise)}{_instead(rise)} ({_sure(rise)})" for rise in others]
    return "; ".join(parts)


def row_by_row_message(unit: Unit, place: CostOrigin) -> str:
    """``much of the latency of f is from line 14, for _, row in df.iterrows(): itertuples ... for each row``."""
    line = work_words.file_line(unit, place.place.line)
    text = f"much of the {cost_of(unit, 'latency')} is from line {line}, {work_words.code(place.place.text)}"
    return work_words.plain(f"{text}: {CURES[place.cure]}" if place.cure is not None else text)


def _growth(rise: GrowthRise) -> str:
    form = work_words.plain(growth_form(rise.after))
    return f"{labels.METRIC_WORDS[rise.metric]} is predicted to grow as {form}"


def _instead(rise: GrowthRise) -> str:
    """`` instead of n``; empty where the earlier growth is not certain enough to be stated."""
    return f" instead of {rise.before.growth_class}" if rise.before.is_claim else ""


def _sure(rise: GrowthRise) -> str:
    return f"{percent(rise.probability)} probability"


def cost_of(unit: Unit, cost: str) -> str:
    """``latency of f``."""
    return f"{cost} of {_name(unit)}"


def endless_message(unit: Unit, line: int, revision: str) -> str:
    """``f now may not end (line 12), unlike at HEAD``; the 0-based line is one of the unit's text."""
    changes = work_words.plain(" and ".join(work_words.wait_changes(unit, WaitChange(endless=line))))
    return f"{_name(unit)} {changes}, unlike at {revision}"


def computing_only_message(unit: Unit, budget: Budget, missing: str) -> str:
    """``the budget of f, 1 ms, covers computing only: it does not include the wait for the network (line 12)``."""
    text = f"the budget of {_name(unit)}, {bound(budget)}, covers computing only: it does not include {missing}"
    return work_words.plain(text)


def percent(probability: float) -> str:
    """A probability as people read it: never 0 or 100 %."""
    if not 0.01 <= probability <= 0.99:
        return "over 99 %" if probability > 0.5 else "under 1 %"
    return f"{probability * 100:.0f} %"


def _name(unit: Unit) -> str:
    return "this file" if unit.qualname == "<file>" else unit.qualname


def invalid_settings(problems: Sequence[SettingsProblem]) -> str:
    """Describe invalid settings and the consequence: the first of the ``problems``, and how many there are."""
    first = problems[0]
    place = _PLACES.get(first.place, Path(first.place).name)
    text = message(first.text.replace("`", '"'))
    text += "" if text.endswith(("?", ".")) else "."
    if len(problems) == 1:
        return f"rlm-lsp ignores a setting that is not valid, in {place}: {text}"
    return f"rlm-lsp ignores {len(problems)} settings that are not valid. The first, in {place}: {text}"
