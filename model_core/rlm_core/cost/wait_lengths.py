"""Lengths of waits that settings give: facts and seconds per kind of wait -> facts whose waits have these lengths.

A unit waits as often as its text says. A timeout in the text bounds each wait. What is slept stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlm_core.types import CostTerm, LoopWait, Wait, WaitKind, WorkFacts

from .at_sizes import evaluated, likely_wait, names_of

WaitLengths = Mapping[WaitKind, float]
"""Seconds of one wait by kind."""


def with_wait_lengths(work: WorkFacts, lengths: WaitLengths) -> WorkFacts:
    """Return the facts of a unit whose waits of some kinds take ``lengths`` seconds each.

    Waits in loops that are known by their names only get a length too.
    """
    if not lengths:
        return work
    listed = {(wait.line, wait.kind) for wait in work.waits}
    by_name = [_of_loop(wait) for wait in work.loop_waits if (wait.line, wait.kind) not in listed]
    waits = [*work.waits, *(wait for wait in by_name if wait.kind in lengths)]
    return replace(work, waits=tuple(_with_length(wait, lengths.get(wait.kind)) for wait in waits))


def _of_loop(wait: LoopWait) -> Wait:
    return Wait(wait.kind, wait.line, wait.call, counts=wait.counts, limit=wait.limit)


def _with_length(wait: Wait, length: float | None) -> Wait:
    if length is None or wait.kind is WaitKind.TIME:
        return wait
    each = length if wait.limit is None else min(length, wait.limit)
    terms = _times(wait.counts, each)
    sizes = names_of(terms)
    # As for sleeps: the least is for no item, the likely and the most for one.
    least, once = evaluated(terms, {}), evaluated(terms, dict.fromkeys(sizes, 1.0))
    seconds = likely_wait((least.least, once.likely, once.most), wait.share, on_error=wait.on_error)
    return replace(wait, seconds=seconds, per=tuple(sizes), terms=terms if sizes else (), each=each)


def _times(counts: Sequence[CostTerm], each: float) -> tuple[CostTerm, ...]:
    return tuple(CostTerm(term.least * each, term.likely * each, term.most * each, term.factors) for term in counts)
