"""Values that stand for a model's answers in tests of what is done with them, and what tests make of texts."""

from __future__ import annotations

import re
from statistics import NormalDist

from rlm_core.types import LEVELS, Abstention, AbstentionCode

NO_NUMBER = Abstention(AbstentionCode.NO_NUMBER)
_TEN_PERCENT = NormalDist().inv_cdf(0.9)


def quantiles(median: float, factor: float = 2.0) -> tuple[float, ...]:
    """Log-normal quantiles at ``LEVELS`` whose 80 % band goes from ``median / factor`` to ``median * factor``."""
    return tuple(median * factor ** (NormalDist().inv_cdf(level) / _TEN_PERCENT) for level in LEVELS)


def unpadded(text: str) -> str:
    """A Markdown table, or a text with one, without the blanks and dashes that align its columns."""
    return re.sub(r"-{2,}", "-", re.sub(r" {2,}", " ", text))
