"""Costs of functions at known sizes: another predictor whose answers hold for the sizes that a text comes with.

Input: a predictor's answers and the sizes of each text (``CodeText.sizes``). Output: where a curve through measurements
covers the sizes, its value; where the text fixes everything but the sizes, what the predictor says about the text with
these sizes in it, with the band of texts that fix their cost, which reaches further down where a loop may end early;
where calls stay unknown, a number from functions that were measured at several sizes, if it can be stated, and a lower
bound that names the calls. Otherwise the predictor's own answer, which is for inputs like those of tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rlm_core.cost.at_sizes import calls_at, depends_on_nothing, unknown_waits
from rlm_core.cost.input_uses import USES, input_uses
from rlm_core.queries.function_sizes import (
    analysis_sizes,
    found_size,
    inputs_of,
    is_size_of,
    pair_at,
    text_at,
    used_sizes,
)
from rlm_core.types import (
    MEDIAN,
    Band,
    CodeText,
    CostAtSizes,
    CostRatio,
    MeasuredPrediction,
    Prediction,
    Query,
    SizedPrediction,
    SizeValue,
    WorkFacts,
    small_answer,
)

from .calibration import bands
from .cost_curve import curve_at, curve_of
from .crossing import crossing
from .predictor import Predictor, PredictorWrapper
from .sized_cost import SizedCostHead
from .work_mixture import facts_of, is_fixed, known_wait, stated_floor

_MOST_CALLS = 4  # named in a bound
# How far the band of a loop that may end early reaches from the cost of all iterations to the least one, in logarithms.
# Of 397 measured answers 9 % are below, and 21 % without it: `python -m tools.experiments.sized_exam`.
_SHARE_OF_LEAST = 0.5
# Half of the width of an 80 % band, in decades, that each decade of the cost above the one for small inputs adds in
# quadrature, up to the hundredfold that was measured. From 3,900 answers about 806 functions: without it, bands cover
# 85 % at the sizes of tests and 70 % at 100 times these. By folds of packages it is .30 to .36.
_WIDENING, _MOST_DECADES = 0.34, 2.0
_MAY_END_EARLY = USES.index("loops_that_may_end_early")


class SizedPredictor(PredictorWrapper):
    """Another predictor whose answers about functions hold for known sizes; texts without sizes pass through.

    ``head`` predicts costs at sizes that the text does not fix.
    """

    def __init__(self, base: Predictor, head: SizedCostHead | None = None) -> None:
        super().__init__(base)
        self._head = head or SizedCostHead()

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        texts = [_with_facts(code) for code in texts]
        answers = self.base.predict(texts, queries)
        open_answers: list[tuple[int, CodeText, list[int]]] = []
        for i, code in enumerate(texts):
            if not code.sizes or code.basis != "call":
                continue
            left = []
            for j, answer in enumerate(answers[i]):
                on_curve = _on_curve(answer, code.sizes)
                if on_curve is not None:
                    answers[i][j] = on_curve
                elif not _holds(answer, code.sizes):
                    left.append(j)
            if left and code.work is not None and (at_sizes := text_at(code, code.sizes)) is not None:
                open_answers.append((i, at_sizes, left))
        if open_answers:
            sized = self.base.predict(
                [code for _, code, _ in open_answers], [[queries[i][j] for j in left] for i, _, left in open_answers]
            )
            for (i, code, left), line in zip(open_answers, sized, strict=True):
                for j, answer in zip(left, line, strict=True):
                    answers[i][j] = self._at_sizes(answers[i][j], answer, code, texts[i])
        return answers

    def _at_sizes(self, small: Prediction, answer: Prediction, at_sizes: CodeText, code: CodeText) -> Prediction:
        """The answer at sizes: a number if the text fixes the rest or others show it, else a bound or ``small``."""
        work = at_sizes.work
        assert work is not None, "only texts with facts are asked about"
        used, median = used_sizes(code), answer.median
        if depends_on_nothing(work, small.metric) and is_fixed(answer) and median is not None:
            if small.metric == "latency":
                least = work.latency.known.least + known_wait(work)[0]
                answer = _down_to(answer, least) if may_end_early(code) else _widened(answer, small)
            at = CostAtSizes("arithmetic", used)
            return sized(answer, small, at, median, answer.bands, answer.quantiles)
        if small.metric != "latency" or work.endless is not None or small.median is None:
            return small
        bound = _bound(small, work, code, used)
        if small.source == "predicted" and not unknown_waits(work):
            cost = self._head.cost(code, at_sizes, small, bound.least)
            if cost is not None:
                at = CostAtSizes("predicted", used, least=bound.least, calls=bound.calls)
                return sized(small, small, at, cost.median, (cost.band,), cost.quantiles)
        if not (bound.least or bound.calls):
            return small
        return sized(small, small, bound, small.median, small.bands, small.quantiles)

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]] | None:
        """The base's ratios, at the sizes of the second text where both texts fix everything but these."""
        sized = [pair_at(before, after) for before, after in pairs]
        asked = [at or pair for at, pair in zip(sized, pairs, strict=True)]
        ratios = self.base.compare(asked, queries)
        if ratios is None:
            return None
        return [
            [_with_sizes(ratio, before, after, is_sized=at is not None) for ratio in line]
            for line, at, (before, after) in zip(ratios, sized, pairs, strict=True)
        ]

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        """The base's percentile of the cost for small inputs, which the training values are of."""
        return self.base.percentile(small_answer(prediction), language)


def _with_facts(code: CodeText) -> CodeText:
    """A function with sizes, with the facts of its text if it comes without them."""
    if not code.sizes or code.work is not None:
        return code
    return replace(code, work=facts_of(code))


def _with_sizes(ratio: CostRatio, before: CodeText, after: CodeText, *, is_sized: bool) -> CostRatio:
    """A ratio with the sizes that it is for, and the size at which it turns."""
    if after.basis != "call" or ratio.ratio is None:
        return ratio
    return replace(
        ratio, sizes=after.sizes if is_sized else ratio.sizes, crossing=crossing(before, after, ratio.metric)
    )


def _holds(answer: Prediction, sizes: Sequence[SizeValue]) -> bool:
    """Return whether an answer is for these sizes already: it was measured at them."""
    if not isinstance(answer, MeasuredPrediction):
        return False
    spreads = dict(answer.cost.sizes)
    given = [size for size in sizes if size.source not in ("recorded", "calls")]
    recorded = [(size.value, found_size(size.name, spreads, of_values=True)) for size in given]
    return all(found is not None and found[1].least <= value <= found[1].most for value, found in recorded)


def _on_curve(answer: Prediction, sizes: Sequence[SizeValue]) -> SizedPrediction | None:
    """The answer on the curve through the measurements of the same text; None where none covers the sizes.

    The other sizes are those at which it was measured: a curve is a function of one.
    """
    if not isinstance(answer, MeasuredPrediction) or answer.ratio is not None:
        return None
    if all(size.source == "recorded" for size in sizes):
        return None
    curve = curve_of(answer.cost, answer.growth)
    given = next((size for size in sizes if curve is not None and is_size_of(curve.size, [size.name])), None)
    value = curve_at(curve, given.value) if curve is not None and given is not None else None
    others = [size for size in sizes if size is not given]
    if value is None or given is None or not _holds(answer, others):
        return None
    at = CostAtSizes("curve", (given,), value.beyond)
    return sized(answer, answer, at, value.median, (value.band,), value.quantiles)


def _bound(small: Prediction, work: WorkFacts, code: CodeText, used: tuple[SizeValue, ...]) -> CostAtSizes:
    """The least cost at sizes and the calls on top of it; neither where the number for small inputs says as much."""
    least = stated_floor(work, "latency") + known_wait(work)[0]
    calls = tuple(calls_at(code.work, analysis_sizes(code, code.sizes))) if code.work is not None else ()
    is_asked = any(size.source not in ("recorded", "calls") for size in used)
    if least <= (small.median or 0.0) and not (calls and is_asked):
        return CostAtSizes("bound", used)
    return CostAtSizes("bound", used, least=least, calls=calls[:_MOST_CALLS])


def may_end_early(code: CodeText) -> bool:
    """Return whether a loop over an input that the cost depends on has a ``return``, ``break`` or ``raise`` inside."""
    uses = input_uses(code.text)
    return any(uses.features(name)[_MAY_END_EARLY] for name in inputs_of(code.text, code.work).values())


def _down_to(answer: Prediction, least: float) -> Prediction:
    """An answer whose quantiles below the median reach towards the least cost, as far as the band does."""
    least, median, band = max(least, answer.floor), answer.median, answer.band
    if median is None or band is None or not least < band.low < median:
        return answer
    stretch = 1 + _SHARE_OF_LEAST * math.log(band.low / least) / math.log(median / band.low)
    lower = (max(median * (value / median) ** stretch, least) for value in answer.quantiles[:MEDIAN])
    quantiles = (*(value if value > answer.floor else 0.0 for value in lower), *answer.quantiles[MEDIAN:])
    return replace(answer, quantiles=quantiles, bands=bands(quantiles, band.groups, band.rows, band.source))


def _widened(answer: Prediction, small: Prediction) -> Prediction:
    """An answer whose band is the wider the more it is above the one for small inputs."""
    median, before, band = answer.median, max(small.median or 0.0, small.floor), answer.band
    if median is None or band is None or not 0 < before < median or not answer.floor < band.low < median < band.high:
        return answer
    added = _WIDENING * min(math.log10(median / before), _MOST_DECADES)
    halves = math.log10(median / band.low), math.log10(band.high / median)
    below, above = (math.hypot(half, added) / half for half in halves)
    quantiles = tuple(
        median * (value / median) ** (below if place < MEDIAN else above)
        for place, value in enumerate(answer.quantiles)
    )
    quantiles = tuple(value if value > answer.floor else 0.0 for value in quantiles)
    return replace(answer, quantiles=quantiles, bands=bands(quantiles, band.groups, band.rows, band.source))


def sized(
    answer: Prediction,
    small: Prediction,
    at: CostAtSizes,
    median: float,
    of_coverage: tuple[Band, ...],
    quantiles: tuple[float, ...],
) -> SizedPrediction:
    """An answer at sizes, with the rest of ``answer``."""
    return SizedPrediction(
        answer.basis,
        answer.metric,
        answer.device,
        answer.workload,
        answer.model,
        median,
        of_coverage,
        answer.floor,
        answer.truncated,
        None,
        quantiles,
        small.growth,
        at=at,
        small=small,
    )
