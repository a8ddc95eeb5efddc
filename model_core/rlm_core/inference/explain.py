"""Which lines of a unit its prediction rests on: the text is predicted again without each line in turn.

What the number does when a line is gone is the model's view of that line, not a measurement of it: lines share their
effects, and a line that matters to the cost may not matter to the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rlm_core.types import Abstention, CodeText, Query

from .predictor import Predictor

MOST_LINES = 400
_SMALLEST = 1e-12


@dataclass(frozen=True, slots=True)
class LineEffect:
    """A line of a unit's text, 0-based, and the prediction with it over the prediction without it."""

    line: int
    text: str
    ratio: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The effects of the lines that were left out, in their order, or why there is no prediction to explain.

    ``skipped`` is the number of lines beyond the first ``MOST_LINES``, which were not tried.
    """

    effects: tuple[LineEffect, ...]
    skipped: int = 0
    abstained: Abstention | None = None


def explain(predictor: Predictor, code: CodeText, query: Query) -> Explanation:
    """Leave out each line of a unit that is not blank, except the first, which names it."""
    lines = code.text.splitlines(keepends=True)
    tried = [number for number, line in enumerate(lines) if number and line.strip()]
    kept = tried[:MOST_LINES]
    variants = [code, *(replace(code, text="".join([*lines[:n], *lines[n + 1 :]])) for n in kept)]
    answers = [answer for [answer] in predictor.predict(variants, [[query]] * len(variants))]
    whole, rest = answers[0], answers[1:]
    if whole.median is None:
        return Explanation((), abstained=whole.abstained)
    effects = []
    for number, without in zip(kept, rest, strict=True):
        if without.median is None:
            continue
        smallest = max(whole.floor, _SMALLEST)
        ratio = max(whole.median, smallest) / max(without.median, smallest)
        effects.append(LineEffect(number, lines[number].rstrip("\r\n"), ratio))
    return Explanation(tuple(effects), len(tried) - len(kept))


def strongest(explanation: Explanation, count: int) -> list[LineEffect]:
    """The lines whose absence moves the number most, the strongest first; equal ones in their order."""
    return sorted(explanation.effects, key=lambda effect: -abs(math.log(effect.ratio)))[:count]
