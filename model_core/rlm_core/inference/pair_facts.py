"""The facts of two texts of one unit: what one of them shows counts for both, and how much their work differs."""

from __future__ import annotations

from dataclasses import replace

from rlm_core.types import CodeText, WorkFacts

from .work_mixture import LEAST_WORK, facts_of, log_work


def with_pair_facts(before: CodeText, after: CodeText) -> tuple[CodeText, CodeText]:
    """Two texts of a function with their facts: what one of them shows of a parameter's type counts for the other.

    Where only one shows a type, both are analysed again with their callees alone, so that both know the same.
    """
    first, second = facts_of(before), facts_of(after)
    if first is not None and second is not None:
        shown, also_shown = dict(first.types), dict(second.types)
        is_clear = not (first.opaque or second.opaque or first.unknown_calls or second.unknown_calls)
        if not is_clear and shown.keys() != also_shown.keys():
            types = shown | also_shown
            again = [facts_of(replace(code, work=None), types) for code in (before, after)]
            if None not in again:
                first, second = again
    return replace(before, work=first), replace(after, work=second)


def work_moved(before: WorkFacts | None, after: WorkFacts | None, metric: str) -> float:
    """Log10 of the work of a text over that of another, waits of known length included; 0 where there are no facts."""
    if before is None or after is None:
        return 0.0
    return log_work(after, metric) - log_work(before, metric)


def takes_the_same_memory(before: WorkFacts | None, after: WorkFacts | None) -> bool:
    """Return whether two texts show all their memory, and the amounts differ by at most the smallest object."""
    if before is None or after is None or not (before.nodes and after.nodes):
        return False
    if before.unknown_calls or after.unknown_calls or before.memory.growth != after.memory.growth:
        return False
    first, second = ((cost.known.likely, cost.typical, cost.large) for cost in (before.memory, after.memory))
    return all(abs(a - b) <= LEAST_WORK["memory"] for a, b in zip(first, second, strict=True))
