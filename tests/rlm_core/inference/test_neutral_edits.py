"""Edits that cannot change a cost, given to the model that ships: its predictions stay as they are."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from functools import cache

import pytest
import rlm_core
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText, CostRatio, Query

from tests.rlm_core.neutral_edits import (
    STANDARD_LIBRARY,
    annotated,
    commented,
    early,
    formatted,
    hoisted,
    renamed,
    with_format,
)

COUNT = 100
QUERIES = [Query("latency"), Query("memory")]


def units_of(text: str) -> list[AnalysedUnit]:
    return Analyser().analyse(ParsedSource(text.encode(), "python"))


@cache
def functions() -> list[str]:
    """Functions of the standard library whose names can be changed; those without a body are not units."""
    chosen = [text for text in STANDARD_LIBRARY if renamed(text) is not None and units_of(text)]
    return chosen[:: len(STANDARD_LIBRARY) // (2 * COUNT)]


@cache
def unparsed() -> list[str]:
    return [ast.unparse(ast.parse(text)) for text in functions()]


EDITS: dict[str, Callable[[], tuple[list[str], list[str]]]] = {
    "names": lambda: (unparsed(), [renamed(text) or "" for text in functions()]),
    "comments": lambda: (functions(), [commented(text) for text in functions()]),
    "layout": lambda: (functions(), formatted(functions(), "--line-length=50")),
    "order": lambda: (functions(), [f"def unrelated(x):\n    return x\n\n{text}" for text in functions()]),
}


def code_of(text: str) -> CodeText:
    return units_of(text)[-1].code


@pytest.mark.parametrize("kind", EDITS)
def test_edits_that_cannot_change_a_cost_change_no_prediction(kind: str) -> None:
    predictor = rlm_core.load()
    before, after = ([code_of(text) for text in texts] for texts in EDITS[kind]())
    assert len(before) >= COUNT
    answers = (predictor.predict(codes, [QUERIES] * len(codes)) for codes in (before, after))
    ratios = [
        max(second.median, second.floor) / max(first.median, first.floor)
        for firsts, seconds in zip(*answers, strict=True)
        for first, second in zip(firsts, seconds, strict=True)
        if first.median is not None and second.median is not None
    ]
    assert len(ratios) >= COUNT
    within = sum(abs(math.log(ratio)) <= math.log(1.05) for ratio in ratios) / len(ratios)
    assert within >= 0.98


def test_a_type_hint_is_evidence_for_both_texts_that_are_compared() -> None:
    """A hint says what a text costs, so it changes a prediction; it does not change the cost."""
    pairs = [(code_of(text), code_of(annotated(text))) for text in unparsed()]
    ratios = [change.ratio for line in rlm_core.load().compare(pairs, [QUERIES] * len(pairs)) or () for change in line]
    known = [ratio for ratio in ratios if ratio is not None]
    assert len(known) >= COUNT
    assert sum(abs(math.log(ratio)) <= math.log(1.05) for ratio in known) / len(known) >= 0.98


def compared(spelling: Callable[[str], str | None]) -> list[CostRatio]:
    """The ratios of the latencies of functions of the standard library and of their other spellings."""
    others = [(text, other) for text in STANDARD_LIBRARY if units_of(text) and (other := spelling(text)) is not None]
    pairs = [(code_of(ast.unparse(ast.parse(text))), code_of(other)) for text, other in others[:COUNT]]
    return [line[0] for line in rlm_core.load().compare(pairs, [[Query("latency")]] * len(pairs)) or ()]


@pytest.mark.parametrize(
    ("spelling", "count", "told"), [(hoisted, 80, 0), (early, 20, 0), (with_format, 15, 1), (renamed, 100, 0)]
)
def test_of_two_spellings_none_is_said_to_be_slower(
    spelling: Callable[[str], str | None], count: int, told: int
) -> None:
    """``str.format`` costs more than an f-string, as far as measured costs of both are known: of one function."""
    ratios = compared(spelling)
    assert len(ratios) >= count
    assert sum(ratio.direction is not None for ratio in ratios) <= told
    assert not any(ratio.has_grown(1.5, 0.9) or ratio.has_fallen(1.5, 0.9) for ratio in ratios)
    # A function without inputs that calls something unknown has no cost, and no ratio.
    known = [ratio.ratio for ratio in ratios if ratio.ratio is not None]
    within = [abs(math.log(ratio)) <= math.log(1.1) for ratio in known]
    assert sum(within) >= len(within) - told
