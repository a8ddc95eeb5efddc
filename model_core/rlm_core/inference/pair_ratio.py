"""The ratio of the costs of two texts, from the predictions for both and what the analysis knows of them.

Of functions the facts decide which text costs more (:mod:`.pair_direction`), and how often such directions were right,
and by how much the costs differed, gives the ratio its band. Where the facts decide nothing, the ratio is that of two
revisions of which nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace

import numpy as np

from rlm_core.types import MEDIAN, Abstention, AbstentionCode, CalibrationSource, CodeText, CostRatio, Prediction

from . import ngram_ridge
from .calibration import MIN_GROUPS, bands
from .card import StudentCard
from .cost_ratio import centred, cost_ratio, log_median, ratio_task, unchanged
from .head import callee_texts
from .pair_direction import Direction, differ_by_guards, direction
from .pair_facts import takes_the_same_memory, work_moved
from .residuals import Residuals
from .revisions import agreement, revised
from .work_mixture import FIXED, is_fixed

_TASK = "directions"
# A change is expected to be real by at least this much, and stated to be at most ``_MOST_CHANGE``, in log10.
_LEAST_CHANGE, _MOST_CHANGE = 0.05, 2.0
# Measured changes over likely ones, in log10 and in the direction that the facts state: of the functions of six
# repositories that an optimising agent rewrote, and of solutions of one problem at given sizes. A negative quantile is
# a wrong direction. `python -m tools.experiments.directions` measures them again.
_SMALL = Residuals(
    (-2.14, -1.91, -1.2, -0.53, -0.07, 0.13, 0.23, 0.33, 0.45, 0.67, 0.94, 1.14, 1.71, 2.94, 4.21, 6.2, 6.96), 6, 257
)
_SIZED = Residuals(
    (-1.51, -1.31, -0.96, -0.64, -0.13, 0.02, 0.17, 0.36, 0.53, 0.68, 0.88, 1.08, 1.38, 1.85, 2.21, 3.7, 4.13), 107, 241
)


def pair_ratio(
    card: StudentCard,
    texts: tuple[CodeText, CodeText],
    predictions: tuple[Prediction, Prediction],
    change: float,
    *,
    is_same: bool,
) -> CostRatio:
    """The ratio of one metric.

    Args:
        card: of the model that predicted.
        texts: before and after, with facts from one reading of both (:func:`.pair_facts.with_pair_facts`).
        predictions: of both.
        change: what the change role of the n-gram ridge says, log10.
        is_same: whether both texts read the same, see :func:`reading_of`.
    """
    before, after = predictions
    basis, metric = before.basis, before.metric
    task = ratio_task(basis, metric)
    if is_fixed(before) and is_fixed(after) and ratio_task(FIXED, metric) in card.changes:
        task = ratio_task(FIXED, metric)
    model = card.changes.get(task)
    if model is not None and (is_fixed(before) or is_fixed(after)):
        # What the text fixes is arithmetic: no pair of the calibration bounds it.
        model = replace(model, most=math.inf)
    reason = before.abstained or after.abstained
    if reason is None and (model is None or model.residuals.groups < MIN_GROUPS):
        reason = Abstention(AbstentionCode.RATIO_NOT_CALIBRATED, {"basis": basis, "metric": metric})
    if reason is not None or model is None or before.median is None or after.median is None:
        return CostRatio(basis, metric, after.device, card.model_id, None, (), (), reason)
    if is_same or (basis == "call" and differ_by_guards(*texts) and _callees(texts[0]) == _callees(texts[1])):
        return unchanged(basis, metric, after.device, card.model_id, model)
    moved = log_median(after.median, after.floor) - log_median(before.median, before.floor)
    work = texts[0].work, texts[1].work
    worked = work_moved(*work, metric) if basis == "call" else 0.0
    if metric == "memory" and basis == "call" and takes_the_same_memory(*work):
        # The text decides: what the model reads into other changes is not a change of the memory.
        return centred(cost_ratio(basis, metric, after.device, card.model_id, model, (0.0, 0.0, 0.0), task))
    ratio = cost_ratio(basis, metric, after.device, card.model_id, model, (moved, change, worked), task)
    if basis != "call" or None in work or (is_fixed(before) and is_fixed(after)):
        return ratio
    # Of pairs whose memory differs by the facts, 34 % differed the other way.
    found = direction(*texts) if metric == "latency" else None
    if found is None:
        return revised(replace(ratio, agreed=0.0, is_decided=False))
    return replace(directed(ratio, found), agreed=agreement(moved, found.likely))


def _callees(code: CodeText) -> list[list[str]]:
    return [sorted(texts) for texts in callee_texts(code)]


def scaled_change(change: Direction) -> float:
    """The expected size of a change in log10, of which measured changes are multiples."""
    return math.copysign(min(abs(change.likely), _MOST_CHANGE) + _LEAST_CHANGE, change.likely)


def directed(ratio: CostRatio, change: Direction) -> CostRatio:
    """A ratio of latencies whose direction the facts state, with the band of such changes."""
    residuals = _SIZED if change.sizes else _SMALL
    logs = np.sort(scaled_change(change) * np.asarray(residuals.quantiles))
    quantiles = tuple(float(10**log) for log in logs)
    source = CalibrationSource(f"{_TASK}/{ratio.basis}/{ratio.metric}")
    of_coverage = bands(quantiles, residuals.groups, residuals.rows, source)
    return replace(
        ratio,
        ratio=quantiles[MEDIAN],
        bands=of_coverage,
        quantiles=quantiles,
        sizes=change.sizes,
    )


def reading_of(code: CodeText, text_of: Callable[[str], str]) -> tuple[Hashable, ...]:
    """All that predictions for a unit depend on: canonical texts, and what the analysis knows of its cost.

    ``text_of`` gives the canonical form of a text in the unit's language.
    """
    levels = enumerate(callee_texts(code))
    callees = sorted((level, text_of(text)) for level, texts in levels for text in texts)
    sites = code.calls.sites if code.calls is not None else ()
    called = tuple(
        (
            tuple(sorted((text_of(function.text), repr(function.known)) for function in site.candidates)),
            site.loops,
            site.branches,
            site.times,
        )
        for site in sites
    )
    work = code.work
    if work is None:
        return code.language, code.basis, text_of(code.text), tuple(callees), called
    costs = [(work.of(metric).known, work.of(metric).typical) for metric in ngram_ridge.METRICS]
    waits = [(wait.kind, wait.seconds, wait.share) for wait in work.waits]
    rest = work.endless is None, work.unknown_calls, work.unknown_sizes
    return code.language, code.basis, text_of(code.text), tuple(callees), *costs, *waits, *rest, called
