"""Explaining a prediction: every statement is left out once, and its effect is what the number then does."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.explain import MOST_STATEMENTS, explain, strongest
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.types import Basis, CodeText, Prediction, Query, WorkFacts

from tests.fakes import NO_NUMBER

QUERY = Query("latency")
FLOOR = 1e-6


class Counting(WithoutComparison):
    """Predicts one microsecond for each ``cheap`` in a text times ten for each ``dear``; abstains from ``nothing``."""

    model_id = "counting"

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return (QUERY,)

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ()

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return [[self._one(code, query) for query in asked] for code, asked in zip(texts, queries, strict=True)]

    def _one(self, code: CodeText, query: Query) -> Prediction:
        value = 1e-6 * code.text.count("cheap") * 10 ** code.text.count("dear")
        if "nothing" in code.text:
            return Prediction(code.basis, query.metric, None, {}, self.model_id, None, (), FLOOR, False, NO_NUMBER)
        median = value if value > FLOOR else 0.0
        return Prediction(code.basis, query.metric, None, {}, self.model_id, median, (), FLOOR, False)


def of(text: str) -> CodeText:
    return CodeText(text, "python", "call")


def test_the_effect_of_a_statement_is_the_number_with_it_over_the_one_without() -> None:
    text = 'def f():\n\t"""Doc: dear."""\n\t# dear\n\tx = cheap + cheap, cheap, cheap\n\n\tdear()\n\tg()\n'
    found = explain(Counting(), of(text.replace("Doc: dear", "Doc").replace("# dear", "#")), QUERY)
    assert [(effect.line, effect.text) for effect in found.effects] == [
        (3, "x = cheap + cheap, cheap, cheap"),
        (5, "dear()"),
        (6, "g()"),
    ]
    assert [effect.ratio for effect in found.effects] == pytest.approx([40, 10, 1])
    assert [effect.line for effect in strongest(found, 2)] == [3, 5]


def test_a_compound_statement_goes_as_a_whole_and_its_statements_alone() -> None:
    text = "def f():\n\tcheap()\n\tfor x in dear:\n\t\tif x:\n\t\t\tdear()\n\t\tg()\n"
    found = explain(Counting(), of(text), QUERY)
    assert [(effect.line, effect.last_line) for effect in found.effects] == [(1, 1), (2, 5), (3, 4), (4, 4), (5, 5)]
    assert [effect.ratio for effect in found.effects] == pytest.approx([100, 100, 10, 10, 1])


def test_a_number_below_the_floor_counts_as_the_floor() -> None:
    [effect] = explain(Counting(), of("def f():\n\tcheap, cheap"), QUERY).effects
    assert effect.ratio == pytest.approx(2)


def test_without_a_prediction_there_is_a_reason() -> None:
    found = explain(Counting(), of("def nothing():\n\tcheap"), QUERY)
    assert (found.effects, found.abstained) == ((), NO_NUMBER)


def test_a_statement_whose_absence_cannot_be_predicted_is_left_out() -> None:
    class Picky(Counting):
        def _one(self, code: CodeText, query: Query) -> Prediction:
            return super()._one(of(code.text if "keep" in code.text else "nothing"), query)

    found = explain(Picky(), of("def f():\n\tkeep(cheap)\n\tcheap()"), QUERY)
    assert [effect.line for effect in found.effects] == [2]


def test_a_variant_that_is_another_unit_is_not_tried() -> None:
    code = of("def f():\n\tcheap()\n\tg()\n")
    found = explain(Counting(), code, QUERY, lambda text: of(text) if "g" in text else None)
    assert [effect.line for effect in found.effects] == [1]


def test_variants_have_their_own_work_facts() -> None:
    known: list[WorkFacts | None] = []

    class Recording(Counting):
        def _one(self, code: CodeText, query: Query) -> Prediction:
            known.append(code.work)
            return super()._one(code, query)

    text = "def f():\n    for i in range(10**6):\n        cheap(i)\n    return 1\n"
    explain(Recording(), CodeText(text, "python", "call", work=WorkFacts()), QUERY)
    whole, loop, *_ = [facts.latency.known.likely for facts in known if facts is not None]
    assert whole > 1e3 * loop


def test_long_units_are_tried_up_to_a_limit() -> None:
    found = explain(Counting(), of("def f():\n\tif x:\n\t\tcheap()\n" + "\tcheap()\n" * (MOST_STATEMENTS + 7)), QUERY)
    assert (len(found.effects), found.skipped) == (MOST_STATEMENTS, 9)
    assert 2 not in [effect.line for effect in found.effects]


@given(st.lists(st.sampled_from(["\tcheap()", "\tdear()", "", "\t# cheap", "\tx"]), max_size=12))
def test_every_statement_is_tried_once(lines: list[str]) -> None:
    found = explain(Counting(), of("\n".join(["def f():", *lines, "\tcheap()"])), QUERY)
    expected = [n for n, line in enumerate([*lines, "\tcheap()"], 1) if line.strip() and "#" not in line]
    assert [effect.line for effect in found.effects] == expected
    assert all(math.isfinite(effect.ratio) and effect.ratio >= 1 for effect in found.effects)
