"""Predictions behind the boundary of :mod:`rlm_core.boundary`: a text whose prediction fails costs no other text.

It is predicted again from its text alone, without facts, callees and measurements; if that fails too, the answers are
abstentions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rlm_core.boundary import each, guarded
from rlm_core.errors import TooComplexError
from rlm_core.source.units import MAX_UNIT_CHARACTERS
from rlm_core.types import Abstention, AbstentionCode, Basis, CodeText, CostRatio, Prediction, Query

from .predictor import PredictorWrapper

_LIMITED: frozenset[Basis] = frozenset(("call", "kernel", "module"))
_Asked = tuple[CodeText, Sequence[Query]]
_AskedPair = tuple[tuple[CodeText, CodeText], Sequence[Query]]


class GuardedPredictor(PredictorWrapper):
    """Another predictor, whose failures cost only the texts that cause them."""

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        asked = list(zip(texts, queries, strict=True))
        return each("the prediction of a text", asked, self._predict, self._predict_text_alone)

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]] | None:
        """The base's ratios; see :class:`rlm_core.inference.predictor.Predictor`."""
        if not pairs:
            return self.base.compare(pairs, queries)
        asked = list(zip(pairs, queries, strict=True))
        lines = each("the comparison of two texts", asked, self._compare, self._compare_texts_alone)
        ratios = [line for line in lines if line is not None]
        return ratios if len(ratios) == len(lines) else None

    def _predict(self, asked: Sequence[_Asked]) -> list[list[Prediction]]:
        _refuse_long(code for code, _ in asked)
        return self.base.predict([code for code, _ in asked], [queries for _, queries in asked])

    def _predict_text_alone(self, asked: _Asked, error: Exception) -> list[Prediction]:
        code, queries = asked
        return guarded(
            "the prediction of a text alone",
            lambda: self._predict([(text_alone(code), queries)])[0],
            lambda error: [Prediction.missing(code, query, self.model_id, failed(error)) for query in queries],
        )

    def _compare(self, asked: Sequence[_AskedPair]) -> Sequence[list[CostRatio] | None]:
        _refuse_long(code for pair, _ in asked for code in pair)
        found = self.base.compare([pair for pair, _ in asked], [queries for _, queries in asked])
        return found if found is not None else [None] * len(asked)

    def _compare_texts_alone(self, asked: _AskedPair, error: Exception) -> list[CostRatio] | None:
        (before, after), queries = asked

        def missing(error: Exception) -> list[CostRatio]:
            return [
                CostRatio(after.basis, query.metric, query.device, self.model_id, None, (), (), failed(error))
                for query in queries
            ]

        pair = text_alone(before), text_alone(after)
        return guarded("the comparison of two texts alone", lambda: self._compare([(pair, queries)])[0], missing)


def _refuse_long(texts: Iterable[CodeText]) -> None:
    """Refuse units that take too long to read. Programs and networks have other limits.

    Raises:
        TooComplexError: there is one.
    """
    if any(len(code.text) > MAX_UNIT_CHARACTERS and code.basis in _LIMITED for code in texts):
        raise TooComplexError(f"too complex to analyse: more than {MAX_UNIT_CHARACTERS} characters")


def text_alone(code: CodeText) -> CodeText:
    """A text without what analysis and measurements say about it."""
    return replace(code, callees=(), work=None, measured=(), calls=None)


def failed(error: Exception) -> Abstention:
    """Return the abstention of a query that failed with an error."""
    if isinstance(error, TooComplexError):
        return Abstention(AbstentionCode.TOO_COMPLEX)
    return Abstention(AbstentionCode.ANALYSIS_FAILED, {"error": type(error).__name__})


def without_answer(prediction: Prediction, error: Exception) -> Prediction:
    """An abstention in place of a prediction that cannot be shown."""
    return Prediction(
        prediction.basis,
        prediction.metric,
        prediction.device,
        prediction.workload,
        prediction.model,
        None,
        (),
        0.0,
        False,
        failed(error),
    )
