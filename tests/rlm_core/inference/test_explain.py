"""Explaining a prediction: every line is left out once, and its effect is what the number then does."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.explain import MOST_LINES, explain, strongest
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.types import Basis, CodeText, Prediction, Query

from tests.fakes import NO_NUMBER

QUERY = Query("latency")
FLOOR = 1e-6


class Counting(WithoutComparison):
    """Predicts one microsecond for each ``!`` in a text times ten for each ``*``; abstains from empty ones."""

    model_id = "counting"

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return (QUERY,)

    def devices(self, basis: Basis) -> tuple[str, ...]:
        return ()

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return [[self._one(code, query) for query in asked] for code, asked in zip(texts, queries, strict=True)]

    def _one(self, code: CodeText, query: Query) -> Prediction:
        value = 1e-6 * code.text.count("!") * 10 ** code.text.count("*")
        if "nothing" in code.text:
            return Prediction(code.basis, query.metric, None, {}, self.model_id, None, (), FLOOR, False, NO_NUMBER)
        median = value if value > FLOOR else 0.0
        return Prediction(code.basis, query.metric, None, {}, self.model_id, median, (), FLOOR, False)


def of(text: str) -> CodeText:
    return CodeText(text, "python", "call")


def test_the_effect_of_a_line_is_the_number_with_it_over_the_one_without() -> None:
    found = explain(Counting(), of("def f():\n\t!!!!\n\n\t*\n\tx\n"), QUERY)
    assert [(effect.line, effect.text) for effect in found.effects] == [(1, "\t!!!!"), (3, "\t*"), (4, "\tx")]
    assert [effect.ratio for effect in found.effects] == pytest.approx([40, 10, 1])
    assert [effect.line for effect in strongest(found, 2)] == [1, 3]


def test_a_number_below_the_floor_counts_as_the_floor() -> None:
    [effect] = explain(Counting(), of("def f():\n\t!!"), QUERY).effects
    assert effect.ratio == pytest.approx(2)


def test_without_a_prediction_there_is_a_reason() -> None:
    found = explain(Counting(), of("def nothing():\n\t!"), QUERY)
    assert (found.effects, found.abstained) == ((), NO_NUMBER)


def test_a_line_whose_absence_cannot_be_predicted_is_left_out() -> None:
    class Picky(Counting):
        def _one(self, code: CodeText, query: Query) -> Prediction:
            return super()._one(of(code.text if "keep" in code.text else "nothing"), query)

    found = explain(Picky(), of("def f():\n\tkeep !!\n\t!!"), QUERY)
    assert [effect.line for effect in found.effects] == [2]


def test_long_units_are_tried_up_to_a_limit() -> None:
    found = explain(Counting(), of("def f():\n" + "\t!\n" * (MOST_LINES + 7)), QUERY)
    assert (len(found.effects), found.skipped) == (MOST_LINES, 7)


@given(st.lists(st.sampled_from(["\t!", "\t*", "", "\tx"]), max_size=12))
def test_every_line_with_text_is_tried_once(lines: list[str]) -> None:
    found = explain(Counting(), of("\n".join(["def f():", *lines])), QUERY)
    assert [effect.line for effect in found.effects] == [n for n, line in enumerate(lines, 1) if line.strip()]
    assert all(math.isfinite(effect.ratio) and effect.ratio >= 1 for effect in found.effects)
