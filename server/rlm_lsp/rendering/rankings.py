"""A ranking of candidates -> lines of text: the chance of each to be the fastest, and how many to measure."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_core.inference.ranking import Ranking

from .escaping import printable
from .finding_messages import percent


def ranking_lines(ranking: Ranking, names: Sequence[str]) -> list[str]:
    """``62 %  a.py::f`` for each candidate, and ``measure the first 2: ...``; ``names`` are in the order given."""
    rows = [(percent(candidate.chance), names[candidate.place]) for candidate in ranking.candidates]
    width = max(len(chance) for chance, _ in rows)
    lines = [f"{chance:>{width}}  {printable(name)}" for chance, name in rows]
    if not ranking.compared:
        return [*lines, "cannot tell which is faster: measure all"]
    which = "all" if ranking.measure == len(rows) else f"the first {ranking.measure}"
    if ranking.measure == 1:
        which = "the first"
    inside = f"the fastest is among them with at least {percent(ranking.confidence)} probability"
    decided = f"{ranking.compared} of {ranking.pairs} pairs could be distinguished"
    return [*lines, f"measure {which}: {inside} ({decided})"]
