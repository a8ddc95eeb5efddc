"""The costs around units, for the callee-cost correction: of what they call, and of measured functions next to them.

Predictions joined with work facts go in, with what each unit calls; corrected predictions come out. Estimates are made
once per text and metric and kept. Several threads may call :meth:`CalleeCosts.corrected` at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice

from cachetools import LRUCache

from rlm_core.types import CalledFunction, Calls, CodeText, MeasuredFunctions, Prediction, WorkFacts

from . import propagation
from .calibration import Calibration
from .encoder import Encodings
from .ngram_ridge import Bag
from .similar_texts import SimilarTexts, most_similar

_CACHED_ESTIMATES = 2 * 4_096  # of called functions and metrics: of as many texts as encodings are kept
_CACHED_RESIDUALS = 1_024  # of files and classes
_CACHED_SETS = 8  # of measured functions, about 2 MB each
_CACHED_BAGS = 2_048  # about 4 KB each
_COMPARED = 3 * propagation.MOST_SIMILAR  # of each set: not all have every metric
_FUNCTIONS = "call/python"


class CalleeCosts:
    """Corrects predictions by the costs around their units.

    ``predict_alone`` predicts one metric of functions from their own texts.
    """

    def __init__(
        self,
        model: propagation.Propagation,
        calibration: Calibration,
        encodings: Encodings,
        predict_alone: Callable[[Sequence[str], str], Sequence[Prediction]],
    ) -> None:
        self._model, self._calibration = model, calibration
        self._encodings, self._predict_alone = encodings, predict_alone
        self._estimates: LRUCache[tuple[str, str], propagation.CostEstimate | None] = LRUCache(_CACHED_ESTIMATES)
        self._residuals: LRUCache[Hashable, propagation.Residuals] = LRUCache(_CACHED_RESIDUALS)
        self._similar_texts: LRUCache[MeasuredFunctions, SimilarTexts] = LRUCache(_CACHED_SETS)
        self._bags: LRUCache[str, Bag | None] = LRUCache(_CACHED_BAGS)
        self._lock = threading.Lock()

    def corrected(
        self, codes: Sequence[CodeText], predictions: Sequence[Prediction], works: Sequence[WorkFacts | None]
    ) -> list[Prediction]:
        """The predictions with the costs of what their units call; ``codes`` and ``works`` are of the same units."""
        chosen = [
            code.calls if propagation.is_open(prediction, work) else None
            for code, prediction, work in zip(codes, predictions, works, strict=True)
        ]
        called: dict[str, set[CalledFunction]] = {}
        for prediction, calls in zip(predictions, chosen, strict=True):
            for site in calls.sites if calls is not None else ():
                called.setdefault(prediction.metric, set()).update(site.candidates)
        costs = {metric: self._costs_of(functions, metric) for metric, functions in called.items()}
        similar = self._similar(codes, predictions, chosen)
        return [
            prediction
            if calls is None
            else propagation.with_calls(
                prediction,
                work,
                calls,
                costs.get(prediction.metric, {}),
                (
                    self._residuals_of(calls.of_file, prediction.metric, propagation.SHRINK_FILE),
                    self._residuals_of(calls.of_class, prediction.metric, propagation.SHRINK_CLASS),
                    nearest,
                ),
                self._model,
                self._calibration,
            )
            for prediction, work, calls, nearest in zip(predictions, works, chosen, similar, strict=True)
        ]

    def _similar(
        self, codes: Sequence[CodeText], predictions: Sequence[Prediction], chosen: Sequence[Calls | None]
    ) -> list[propagation.Similar]:
        """The residuals of the measured functions of the package that are most similar to each unit."""
        compared: dict[tuple[str, Calls], list[tuple[float, CalledFunction]]] = {}
        nearest: list[list[tuple[float, CalledFunction]]] = []
        texts: dict[str, set[str]] = {}
        for code, prediction, calls in zip(codes, predictions, chosen, strict=True):
            if calls is None or not (calls.of_file.functions or calls.of_package.functions):
                nearest.append([])
                continue
            key = code.text, calls
            if key not in compared:
                compared[key] = self._compared(code.text, (calls.of_file, calls.of_package))
            metric = prediction.metric
            known = ((at, one) for at, one in compared[key] if any(cost.metric == metric for cost in one.known))
            nearest.append(list(islice(known, propagation.MOST_SIMILAR)))
            texts.setdefault(metric, set()).update(one.text for _, one in nearest[-1])
        estimates = {metric: self._estimates_of(sorted(asked), metric) for metric, asked in texts.items()}
        return [
            propagation.similar_of(functions, prediction.metric, estimates.get(prediction.metric, {}))
            for prediction, functions in zip(predictions, nearest, strict=True)
        ]

    def _compared(self, text: str, measured: Sequence[MeasuredFunctions]) -> list[tuple[float, CalledFunction]]:
        """Measured functions other than a text itself, with their similarity to it, the most similar first."""
        bag = self._bag_of(text)
        if bag is None:
            return []
        found: list[tuple[float, CalledFunction]] = []
        for some in measured:
            at = self._texts_of(some).similarities(bag)
            found += [
                (float(at[place]), some.functions[place])
                for place in most_similar(at, _COMPARED)
                if some.functions[place].text != text
            ]
        return sorted(found, key=lambda entry: (-entry[0], entry[1].text))

    def _bag_of(self, text: str) -> Bag | None:
        with self._lock:
            known = self._bags.get(text)
        if known is None:
            known = self._encodings.bag(text, _FUNCTIONS)
            with self._lock:
                self._bags[text] = known
        return known

    def _texts_of(self, measured: MeasuredFunctions) -> SimilarTexts:
        with self._lock:
            known = self._similar_texts.get(measured)
        if known is None:
            bags = [self._bag_of(function.text) for function in measured.functions]
            known = SimilarTexts([bag for bag in bags if bag is not None])
            with self._lock:
                self._similar_texts[measured] = known
        return known

    def _residuals_of(self, measured: MeasuredFunctions, metric: str, shrink: float) -> propagation.Residuals:
        """Return the residuals of measured functions; cached, since the units of a file share them."""
        if not measured.functions:
            return propagation.Residuals()
        key = measured, metric, shrink
        with self._lock:
            known = self._residuals.get(key)
        if known is None:
            estimates = self._estimates_of([function.text for function in measured.functions], metric)
            known = propagation.residuals(measured, metric, estimates, shrink)
            with self._lock:
                self._residuals[key] = known
        return known

    def _costs_of(
        self, functions: Iterable[CalledFunction], metric: str
    ) -> dict[CalledFunction, propagation.CostEstimate]:
        """Return the costs of called functions, measured or else predicted from their text; some have none."""
        known = {function: propagation.known_estimate(function, metric) for function in functions}
        predicted = self._estimates_of([function.text for function, cost in known.items() if cost is None], metric)
        costs = {function: cost or predicted.get(function.text) for function, cost in known.items()}
        return {function: cost for function, cost in costs.items() if cost is not None}

    def _estimates_of(self, texts: Sequence[str], metric: str) -> dict[str, propagation.CostEstimate | None]:
        """Return the costs of functions predicted from their own text alone; None where there is no prediction."""
        with self._lock:
            known = {text: self._estimates[text, metric] for text in texts if (text, metric) in self._estimates}
        return known | self._estimate(list(dict.fromkeys(text for text in texts if text not in known)), metric)

    def _estimate(self, texts: Sequence[str], metric: str) -> dict[str, propagation.CostEstimate | None]:
        if not texts:
            return {}
        found = {
            text: propagation.estimate_of(prediction.quantiles, metric) if prediction.quantiles else None
            for text, prediction in zip(texts, self._predict_alone(texts, metric), strict=True)
        }
        with self._lock:
            self._estimates.update({(text, metric): estimate for text, estimate in found.items()})
        return found
