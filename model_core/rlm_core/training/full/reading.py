"""What the full model reads about a unit: its canonical text, marked with the language, then what it calls."""

from __future__ import annotations

from collections.abc import Sequence

from .encoders import marked


def reading(text: str, language: str, callees: Sequence[str], most: int) -> str:
    """The text that the encoder gets.

    Args:
        text: canonical text of the unit.
        language: of both.
        callees: canonical texts of what the unit calls, the nearest first.
        most: how many of them are read.
    """
    return marked("\n".join([text, *callees[:most]]), language)
