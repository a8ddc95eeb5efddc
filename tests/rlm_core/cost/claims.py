"""Strong claims: that a cost is exponential, and that a unit may not end. Each is made only where the text shows it."""

from __future__ import annotations

from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import WorkFacts


def facts_of(text: str) -> dict[str, WorkFacts]:
    """The facts of the functions of a file, by qualified name."""
    units = Analyser().analyse(ParsedSource(text.encode(), "python"))
    return {unit.unit.qualname: unit.code.work for unit in units if unit.code.work is not None}


def exponential(text: str) -> set[str]:
    """The functions whose latency is said to grow exponentially."""
    return {name for name, facts in facts_of(text).items() if any(term.base > 1 for term in facts.latency.growth)}


def endless(text: str) -> set[str]:
    """The functions that are said not to end."""
    return {name for name, facts in facts_of(text).items() if facts.endless is not None}
