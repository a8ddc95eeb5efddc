"""Explains a prediction by the unit's statements: the text is predicted again without each of them in turn.

What the number does when a statement is gone is the model's view of it, not a measurement: statements share their
effects, and one that matters to the cost may not matter to the model. The effect of a compound statement is that of all
of it; the statements inside it have their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from rlm_core.boundary import guarded
from rlm_core.cost.analysis import work_facts
from rlm_core.source.statement_removal import RemovableStatements
from rlm_core.types import Abstention, CodeText, Prediction, Query

from .predictor import Predictor

MOST_STATEMENTS = 400
_SMALLEST = 1e-12

# What the model reads of a unit with another text; None where that is not the same unit any more.
Reader = Callable[[str], CodeText | None]
_Variant = tuple[int, int, str, CodeText]  # a statement's first and last line and its text, and the unit without it


@dataclass(frozen=True, slots=True)
class StatementEffect:
    """A statement of a unit's text and the prediction with it over the prediction without it.

    ``line`` and ``last_line`` are 0-based lines of the unit's text; ``text`` is the first of them.
    """

    line: int
    last_line: int
    text: str
    ratio: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The prediction, and the effects of the statements that were left out, in their order (none if it abstains).

    ``skipped`` is the number of statements beyond ``MOST_STATEMENTS``, the most deeply nested ones, which were not
    tried.
    """

    prediction: Prediction
    effects: tuple[StatementEffect, ...]
    skipped: int = 0

    @property
    def abstained(self) -> Abstention | None:
        """The reason why there is no prediction to explain."""
        return self.prediction.abstained


def explain(predictor: Predictor, code: CodeText, query: Query, read: Reader | None = None) -> Explanation:
    """Leave out each statement of a unit.

    Args:
        predictor: gives the prediction of the unit and of its variants.
        code: the unit.
        query: what is predicted.
        read: gives what the predictor reads of a variant. By default callees and sizes stay as they are.
    """
    reading = read or _reader(code)
    tried, skipped = guarded(
        "the explanation of a text", lambda: _variants(code, reading), lambda error: (list[_Variant](), 0)
    )
    # The whole unit is read in the same way, so that a difference comes from the statement, and not from other sizes.
    variants = [
        replace(variant, sizes=code.sizes) for variant in (reading(code.text) or code, *(other for *_, other in tried))
    ]
    whole, *rest = [answer for [answer] in predictor.predict(variants, [[query]] * len(variants))]
    if whole.median is None:
        return Explanation(whole, ())
    effects = []
    for (line, last_line, text, _), without in zip(tried, rest, strict=True):
        if without.median is None:
            continue
        smallest = max(whole.floor, _SMALLEST)
        ratio = max(whole.median, smallest) / max(without.median, smallest)
        effects.append(StatementEffect(line, last_line, text, ratio))
    return Explanation(whole, tuple(effects), skipped)


def _variants(code: CodeText, reading: Reader) -> tuple[list[_Variant], int]:
    """The text without each statement that can be left out, and the number of statements that were not tried."""
    removable = RemovableStatements(code.text, code.language)
    kept = sorted(removable.statements, key=lambda statement: statement.depth)[:MOST_STATEMENTS]
    kept.sort(key=lambda statement: (statement.start, -statement.end))
    tried = []
    for statement in kept:
        text = removable.without(statement)
        variant = reading(text) if text is not None else None
        if variant is not None:
            tried.append((statement.line, statement.last_line, removable.text_of(statement), variant))
    return tried, len(removable.statements) - len(kept)


def strongest(explanation: Explanation, count: int) -> list[StatementEffect]:
    """The statements whose absence moves the number most, the strongest first; equal ones in their order."""
    return sorted(explanation.effects, key=lambda effect: -abs(math.log(effect.ratio)))[:count]


def _reader(code: CodeText) -> Reader:
    def read(text: str) -> CodeText:
        has_facts = code.work is not None and code.language == "python"
        work = guarded("the analysis of a text", lambda: work_facts(text), lambda error: None) if has_facts else None
        return replace(code, text=text, work=work)

    return read
