"""Waits of what runs at the same time: coroutines, tasks, and pools of threads or processes; and timeouts.

Computing times are not treated here: threads and coroutines share one interpreter, so theirs add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlm_core.types import WaitKind

from .domain.meter import PendingWait
from .domain.quantities import Quantity, Range, ceiling, constant


def longest(waits: Sequence[PendingWait]) -> list[PendingWait]:
    """The longest wait of each kind, which takes as long as all of them do."""
    kept: dict[WaitKind, PendingWait] = {}
    for wait in waits:
        other = kept.get(wait.kind)
        if other is None or _likely(wait) > _likely(other):
            kept[wait.kind] = wait
    return sorted(kept.values(), key=_likely, reverse=True)


def in_background(waits: Sequence[PendingWait]) -> list[PendingWait]:
    """The waits of a task that is started and goes on while others start."""
    return [replace(wait, background=True) for wait in longest(waits)]


def ended(waits: Sequence[PendingWait]) -> list[PendingWait]:
    """The waits of a function in which tasks were started: it ends when the longest of them has ended.

    ``waits`` is in the order of the text: what the function itself waits after the first task began is part of that.
    """
    first = next((place for place, wait in enumerate(waits) if wait.background), None)
    if first is None:
        return list(waits)
    own = [wait for wait in waits if not wait.background]
    meanwhile = [_range(wait) for wait in waits[first:] if not wait.background]
    least, usual, most = (sum(values) for values in zip((0.0, 0.0, 0.0), *meanwhile, strict=True))
    tasks = []
    for wait in longest([wait for wait in waits if wait.background]):
        if wait.seconds is not None and most > 0:
            low, likely, high = _range(wait)
            span = max(low - most, 0.0), max(likely - usual, 0.0), max(high - least, 0.0)
            wait = replace(wait, seconds=constant(span[0], span[2], span[1]))
        tasks.append(replace(wait, background=False))
    return [*own, *tasks]


def in_rounds(waits: Sequence[PendingWait], calls: Quantity, workers: Quantity | None) -> list[PendingWait]:
    """The waits of ``calls`` that a pool of ``workers`` runs; all at the same time where a number is not known."""
    kept = longest(waits)
    count, at_once = calls.exact, workers.exact if workers is not None else None
    if count is None or not at_once or at_once < 1 or count <= at_once:
        return kept
    rounds = constant(ceiling(count / at_once))
    return [wait if wait.seconds is None else replace(wait, seconds=wait.seconds * rounds) for wait in kept]


def within(waits: Sequence[PendingWait], timeout: Quantity | None) -> list[PendingWait]:
    """The waits of what is given up after ``timeout`` seconds, where the text fixes that number."""
    limit = timeout.exact if timeout is not None else None
    if limit is None:
        return list(waits)
    found = []
    for wait in waits:
        span = wait.seconds.constant if wait.seconds is not None else None
        if span is not None and span[2] > limit:
            low, likely, high = (min(value, limit) for value in span)
            wait = replace(wait, seconds=constant(low, high, likely))
        found.append(wait)
    return found


def _range(wait: PendingWait) -> Range:
    """The least, likely and most seconds, with sizes of 1; zeros where they are not known."""
    return wait.seconds.evaluate(lambda name: 1.0) if wait.seconds is not None else (0.0, 0.0, 0.0)


def _likely(wait: PendingWait) -> float:
    return _range(wait)[1]
