"""A predictor whose failures cost only the texts that cause them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from rlm_core.errors import ModelError
from rlm_core.inference.guarded import GuardedPredictor
from rlm_core.types import (
    Abstention,
    AbstentionCode,
    Basis,
    Callee,
    CodeText,
    CostRatio,
    Prediction,
    Query,
)

pytestmark = pytest.mark.usefixtures("lenient")
LATENCY, MEMORY = Query("latency"), Query("memory")
FAILED = Abstention(AbstentionCode.ANALYSIS_FAILED, {"error": "ValueError"})


class Fragile:
    """Predicts the number of callees; raises for callees ``bad``, for the text ``worst`` always."""

    model_id = "fragile"

    def __init__(self, *, compares: bool = True) -> None:
        self._compares = compares
        self.calls = 0

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return (LATENCY,)

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ()

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        return None

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        self.calls += 1
        for code in texts:
            if code.text == "unknown":
                raise ModelError("another model")
            if code.text == "worst" or Callee("bad") in code.callees:
                raise ValueError(code.text)
        return [
            [
                Prediction(code.basis, query.metric, None, {}, "", float(len(code.callees)), (), 0.0, False)
                for query in asked
            ]
            for code, asked in zip(texts, queries, strict=True)
        ]

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]] | None:
        if not self._compares:
            return None
        self.predict([code for pair in pairs for code in pair], [[]] * 2 * len(pairs))
        return [[CostRatio("call", query.metric, None, "", 1.0, ()) for query in asked] for asked in queries]


def code(text: str, *callees: str) -> CodeText:
    return CodeText(text, "python", "call", tuple(map(Callee, callees)))


GOOD, BAD, WORST = code("good", "one", "two"), code("bad", "bad"), code("worst", "one")


def test_each_text_gets_what_it_allows() -> None:
    asked = [[LATENCY], [LATENCY, MEMORY], [LATENCY, MEMORY], [MEMORY]]
    answers = GuardedPredictor(Fragile()).predict([GOOD, BAD, WORST, GOOD], asked)
    assert [[answer.metric for answer in line] for line in answers] == [[q.metric for q in line] for line in asked]
    assert [[answer.median for answer in line] for line in answers] == [[2.0], [0.0, 0.0], [None, None], [2.0]]
    assert [answer.abstained for answer in answers[2]] == [FAILED, FAILED]


def test_one_call_of_the_model_is_enough_where_nothing_fails() -> None:
    base = Fragile()
    assert GuardedPredictor(base).predict([GOOD] * 9, [[LATENCY]] * 9) == base.predict([GOOD] * 9, [[LATENCY]] * 9)
    assert base.calls == 2


def test_ratios_of_other_pairs_stay() -> None:
    pairs = [(GOOD, GOOD), (GOOD, BAD), (WORST, GOOD), (GOOD, replace(GOOD, text="better"))]
    ratios = GuardedPredictor(Fragile()).compare(pairs, [[LATENCY]] * 4)
    assert ratios is not None
    assert [(change.ratio, change.abstained) for [change] in ratios] == [
        (1.0, None),
        (1.0, None),
        (None, FAILED),
        (1.0, None),
    ]


@pytest.mark.parametrize("pairs", [[], [(GOOD, GOOD), (GOOD, BAD)]])
def test_a_model_that_cannot_compare_still_says_so(pairs: list[tuple[CodeText, CodeText]]) -> None:
    assert GuardedPredictor(Fragile(compares=False)).compare(pairs, [[LATENCY]] * len(pairs)) is None


def test_what_the_user_can_fix_passes() -> None:
    with pytest.raises(ModelError, match="another model"):
        GuardedPredictor(Fragile()).predict([GOOD, code("unknown")], [[LATENCY]] * 2)
