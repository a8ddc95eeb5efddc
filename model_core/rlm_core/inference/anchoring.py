"""Measured beats predicted: predictions of units that were measured, now or before their text changed.

Input: a predictor's answers and what was measured of each text (``CodeText.measured``). Output: where the text is
unchanged, what was measured; where it has changed, or what it calls has and that is seen to matter, the measurement
times the predicted ratio of the two costs as revisions confirm it (:mod:`.revisions`), with both spreads joined; else
the predictor's own answer. Spreads are joined in log10, each side by itself, as the square root of the sum of squares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

from rlm_core.types import (
    LEVELS,
    MEASURED_FLOORS,
    MEDIAN,
    Anchor,
    Band,
    CodeText,
    CostRatio,
    MeasuredCost,
    MeasuredPrediction,
    Metric,
    Prediction,
    Query,
)

from .predictor import PredictorWrapper
from .revisions import revised
from .work_mixture import known_wait, stated_floor

# The 10 % and 90 % quantiles of the calls are the ends of their 80 % band.
COVERAGE = 0.8
# What a median differs by, in standard deviations of log10, when the same tests are measured again: half of the
# latencies of networkx differed by more than 16 % between two runs. Allocations hardly differ.
REPEAT_SPREAD: Mapping[Metric, float] = {"latency": 0.068, "memory": 0.01, "accuracy": 0.01, "energy": 0.068}
# The standard error of a median over that of a mean.
_OF_MEDIAN = math.sqrt(math.pi / 2)
_SMALLEST: Mapping[Metric, float] = {"latency": 1e-12, "memory": 1.0, "accuracy": 1e-12, "energy": 1e-12}
# A cost of a function or program is measured once for all queries; others for each device and workload.
_ONE_ANSWER = frozenset({"call", "program"})
# Of a text that is the same: the ratio from which a change of what it calls counts.
_NOTICED = math.log10(1.25)
_NORMAL = NormalDist()
_TENTH = _NORMAL.inv_cdf(0.9)


class AnchoredPredictor(PredictorWrapper):
    """Another predictor whose answers give way to what was measured; texts without measurements pass through."""

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        answers = self.base.predict(texts, queries)
        # Of the earlier text of a text: the queries whose answers were measured on it.
        changed: dict[tuple[int, CodeText], list[int]] = {}
        for i, code in enumerate(texts):
            for j, answer in enumerate(answers[i]) if code.measured else ():
                anchor = anchor_of(code, answer)
                if anchor is None:
                    continue
                if anchor.before is None or anchor.before.text == code.text:
                    answers[i][j] = measured_prediction(answer, anchor.cost)
                if anchor.before is not None and anchor.before.text:
                    changed.setdefault((i, anchor.before), []).append(j)
        if changed:
            self._anchor(texts, queries, answers, changed)
        return answers

    def _anchor(
        self,
        texts: Sequence[CodeText],
        queries: Sequence[Sequence[Query]],
        answers: list[list[Prediction]],
        changed: Mapping[tuple[int, CodeText], Sequence[int]],
    ) -> None:
        """Replace the answers about changed texts, as far as the predictor can compare them."""
        # What was measured is a cost at the sizes of tests.
        pairs = [(before, replace(texts[i], sizes=())) for i, before in changed]
        ratios = self.base.compare(pairs, [[queries[i][j] for j in line] for (i, _), line in changed.items()])
        for ((i, before), line), of_pair in zip(changed.items(), ratios or (), strict=ratios is not None):
            for j, ratio in zip(line, of_pair, strict=True):
                answer, revision = answers[i][j], revised(ratio)
                anchor = anchor_of(texts[i], answer)
                if anchor is None or revision.ratio is None:
                    continue
                if isinstance(answer, MeasuredPrediction):  # of the same text
                    answer = answer.predicted
                    if abs(math.log10(revision.ratio)) < _NOTICED:
                        continue
                if answer.metric == "latency" and _waits_longer(before, texts[i], answer):
                    answers[i][j] = answer
                else:
                    answers[i][j] = anchored_prediction(texts[i], answer, anchor.cost, revision)

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        """The base's percentile; that of a measured value as if the model had predicted it."""
        if isinstance(prediction, MeasuredPrediction):
            if prediction.predicted.median is None:
                return None
            prediction = replace(prediction.predicted, median=prediction.median)
        return self.base.percentile(prediction, language)


def anchor_of(code: CodeText, answer: Prediction) -> Anchor | None:
    """Return the measurement of a text for the query of ``answer``, or None if there is none."""
    for anchor in code.measured:
        cost = anchor.cost
        if cost.metric != answer.metric:
            continue
        if code.basis in _ONE_ANSWER or (cost.device, dict(cost.workload)) == (answer.device, dict(answer.workload)):
            return anchor
    return None


def measured_prediction(predicted: Prediction, cost: MeasuredCost) -> MeasuredPrediction:
    """The answer about a text that was measured as it is: what was measured."""
    floor = MEASURED_FLOORS[cost.metric]
    centre = max(cost.median, floor, _SMALLEST[cost.metric])
    width = repeat_spread(cost)
    quantiles = tuple(centre * 10 ** (_NORMAL.inv_cdf(level) * width) for level in LEVELS)
    band = Band(_above(cost.low, floor), max(cost.high, floor), COVERAGE)
    return _answer(predicted, cost, _above(cost.median, floor), (band,), quantiles, None)


def anchored_prediction(
    code: CodeText, predicted: Prediction, cost: MeasuredCost, ratio: CostRatio
) -> MeasuredPrediction:
    """The answer about a text that has changed since it was measured: ``cost`` times ``ratio``, which must be known.

    It is at least what the text allows, see :func:`rlm_core.inference.work_mixture.stated_floor`.
    """
    assert ratio.ratio is not None, "the texts were compared"
    metric, floor = cost.metric, MEASURED_FLOORS[cost.metric]
    centre = max(cost.median, floor, _SMALLEST[metric])
    down, up = spreads(cost)
    least = _least(code, metric)
    median = max(centre * ratio.ratio, least)

    def moved(distance: float, own: float) -> float:
        """``median`` away from itself by two distances in log10, of which the first has the sign."""
        joined = math.copysign(math.hypot(distance, own), distance)
        return max(median * 10 ** min(joined, 300.0), least)

    bands = []
    for band in ratio.bands:
        deviations = _NORMAL.inv_cdf((1 + band.coverage) / 2) / _TENTH
        low = moved(-_distance(band.low, ratio.ratio), down * deviations)
        high = moved(_distance(ratio.ratio, band.high), up * deviations)
        bands.append(replace(band, low=_above(low, floor), high=max(high, floor)))
    width = repeat_spread(cost)
    quantiles = tuple(
        max(moved(math.copysign(_distance(ratio.ratio, value), level - 0.5), width * _NORMAL.inv_cdf(level)), floor)
        if level != LEVELS[MEDIAN]
        else max(median, floor)
        for level, value in zip(LEVELS, ratio.quantiles, strict=True)
    )
    return _answer(predicted, cost, _above(median, floor), tuple(bands), quantiles, ratio)


def spreads(cost: MeasuredCost) -> tuple[float, float]:
    """Return the distances of the 10 % and 90 % quantiles of the calls from their median, in log10."""
    smallest = max(MEASURED_FLOORS[cost.metric], _SMALLEST[cost.metric])
    low, centre, high = (max(value, smallest) for value in (cost.low, cost.median, cost.high))
    return math.log10(centre / low), math.log10(high / centre)


def repeat_spread(cost: MeasuredCost) -> float:
    """The standard deviation of the log10 median over repeated measurements: from run to run, and by chance."""
    of_calls = sum(spreads(cost)) / 2 / _TENTH
    return math.hypot(REPEAT_SPREAD[cost.metric], _OF_MEDIAN * of_calls / math.sqrt(max(cost.calls, 1)))


def _answer(
    predicted: Prediction,
    cost: MeasuredCost,
    median: float,
    bands: tuple[Band, ...],
    quantiles: tuple[float, ...],
    ratio: CostRatio | None,
) -> MeasuredPrediction:
    return MeasuredPrediction(
        predicted.basis,
        predicted.metric,
        predicted.device,
        predicted.workload,
        predicted.model,
        median,
        bands,
        MEASURED_FLOORS[cost.metric],
        predicted.truncated,
        None,
        quantiles,
        predicted.growth,
        cost=cost,
        predicted=predicted,
        ratio=ratio,
    )


def _least(code: CodeText, metric: Metric) -> float:
    """Return the least cost that the text of a unit allows, including waits; 0 if nothing is known."""
    if code.work is None or code.basis not in _ONE_ANSWER:
        return 0.0
    return stated_floor(code.work, metric) + (known_wait(code.work)[0] if metric == "latency" else 0.0)


def _waits_longer(before: CodeText, code: CodeText, predicted: Prediction) -> bool:
    """Return whether most of a latency is an unmeasured wait, which adds to the measured time and does not scale it."""
    if code.work is None or predicted.median is None:
        return False
    earlier = known_wait(before.work)[1] if before.work is not None else 0.0
    return known_wait(code.work)[1] - earlier > predicted.median / 2


def _distance(low: float, high: float) -> float:
    """Return the distance of two ratios in log10."""
    if low <= 0 or math.isinf(high):
        return math.inf
    return abs(math.log10(high / low))


def _above(value: float, floor: float) -> float:
    """A value, or 0 for one that the measurement does not resolve."""
    return value if value > floor else 0.0
