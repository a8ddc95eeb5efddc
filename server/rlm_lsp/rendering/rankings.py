"""A ranking of candidates -> lines of text: which to measure, and what the others are slower than."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_core.inference.ranking import CLOSE, Ranking

from .escaping import printable
from .finding_messages import percent


def ranking_lines(ranking: Ranking, names: Sequence[str]) -> list[str]:
    """``a.py::f`` or ``b.py: slower than a.py::f`` for each candidate, and how many of the first ones to measure.

    ``names`` are those of the candidates in the order given.
    """
    lines = []
    for candidate in ranking.candidates:
        name, faster = names[candidate.place], [names[place] for place in candidate.slower_than]
        lines.append(printable(f"{name}: slower than {', '.join(faster)}" if faster else name))
    if ranking.measure == len(lines):
        return [*lines, "cannot tell which is the fastest: measure all"]
    close = f"within {CLOSE:g} times of the fastest, with about {percent(ranking.confidence)} probability"
    decided = f"({ranking.compared} of {ranking.pairs} pairs could be distinguished)"
    which = "the first: it is" if ranking.measure == 1 else f"the first {ranking.measure}: one of them is"
    return [*lines, f"measure {which} {close} {decided}"]
