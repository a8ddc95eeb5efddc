"""Two models as one: what the first was not trained for is answered by the second.

A published model knows programs, kernels and networks of its data sets, and nothing of functions; with the built-in
model behind it an editor shows both. Each prediction names the model that made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rlm_core.types import METRICS_OF_BASIS, AbstentionCode, Basis, CodeText, CostRatio, Prediction, Query

from .predictor import Predictor, PredictorWrapper

_UNTRAINED = frozenset(
    {AbstentionCode.TASK_NOT_TRAINED, AbstentionCode.DEVICE_NOT_TRAINED, AbstentionCode.SETTING_NOT_TRAINED}
)
_KNOWN_TASKS = 512


class FallbackPredictor(PredictorWrapper):
    """Asks ``base``, and ``other`` where the base was not trained for the query."""

    def __init__(self, base: Predictor, other: Predictor) -> None:
        super().__init__(base)
        self.other = other
        self._knows = lru_cache(_KNOWN_TASKS)(self._probe)

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """For each metric the default query of the model that answers it."""
        own = {query.metric: query for query in self.base.default_queries(basis, language)}
        others = {query.metric: query for query in self.other.default_queries(basis, language)}
        chosen = []
        for metric in METRICS_OF_BASIS[basis]:
            known = metric in own and (metric not in others or self._knows(basis, language, metric))
            query = own.get(metric) if known else others.get(metric)
            if query is not None:
                chosen.append(query)
        return tuple(chosen)

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        """The devices of both."""
        return tuple(dict.fromkeys([*self.base.devices(basis, language), *self.other.devices(basis, language)]))

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`.predictor.Predictor`."""
        found = self.base.predict(texts, queries)
        missing = [
            [index for index, answer in enumerate(line) if answer.abstained and answer.abstained.code in _UNTRAINED]
            for line in found
        ]
        rows = [row for row, own in enumerate(missing) if own]
        if not rows:
            return found
        asked = [[queries[row][index] for index in missing[row]] for row in rows]
        for row, answers in zip(rows, self.other.predict([texts[row] for row in rows], asked), strict=True):
            for index, answer in zip(missing[row], answers, strict=True):
                # Where neither knows it, the reason is the second's: it knows more.
                found[row][index] = answer
        return found

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]] | None:
        """The base's ratios where it compares texts, else the other's."""
        found = self.base.compare(pairs, queries)
        return self.other.compare(pairs, queries) if found is None else found

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        """The share by the model that made the prediction."""
        made_by = self.other if prediction.model == self.other.model_id else self.base
        return made_by.percentile(prediction, language)

    def _probe(self, basis: Basis, language: str, metric: str) -> bool:
        """Return whether the base model was trained for a metric, by one query about a text of one line."""
        query = next(query for query in self.base.default_queries(basis, language) if query.metric == metric)
        [[answer]] = self.base.predict([CodeText("0\n", language, basis)], [[query]])
        return answer.abstained is None or answer.abstained.code not in _UNTRAINED
