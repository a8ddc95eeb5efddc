"""Finds what got worse in an edit by its text: a growth class that rises, a wait that is new or longer.

Input: predictions and facts of a unit before and after. Output: a :class:`GrowthRise` or a :class:`WaitChange`, or None
where nothing got worse. The editor's marks and ``rlm-lsp check`` both compare here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlm_core.types import Basis, CodeText, GrowthClass, GrowthEstimate, Metric, Prediction, Wait, WaitKind, WorkFacts

# Growth is known for these; kernels, modules and networks are asked about at fixed sizes.
GROWING: frozenset[Basis] = frozenset({"call", "program"})
# In order of growth; a product of two sizes grows as a square does. "other" is not comparable.
_RANKS: Mapping[GrowthClass, int] = {
    "1": 0,
    "log n": 1,
    "sqrt n": 2,
    "n": 3,
    "n log n": 4,
    "mn": 5,
    "n^2": 5,
    "n^3": 6,
    "2^n": 7,
}
# A wait is usual when at least this share of calls gets there: below it, most calls do not wait, such as the calls of a
# function that retries after an error.
LEAST_WAIT_SHARE = 0.2
# Two lengths of a wait that differ by less are the same to a reader: both are shown with two digits.
_LONGER = 1.25


@dataclass(frozen=True, slots=True)
class GrowthRise:
    """A cost that grows faster with its inputs than before."""

    metric: Metric
    before: GrowthEstimate
    after: GrowthEstimate

    @property
    def is_fast(self) -> bool:
        """True if the cost now grows faster than n log n."""
        return _RANKS.get(self.after.growth_class, 0) > _RANKS["n log n"]

    @property
    def probability(self) -> float:
        """The probability of the rise.

        The errors for two texts that differ by an edit are nearly the same, so it is that of the less certain side, not
        a product.
        """
        return min(self.before.probability, self.after.probability)


@dataclass(frozen=True, slots=True)
class WaitChange:
    """The waits that an edit adds to a unit.

    ``waits`` are of kinds that the earlier text has no wait of, the frequent ones first; ``endless`` is the 0-based
    line of the unit's text that may not end; ``seconds`` are the lengths of the known sleeps before and after, where
    they have become longer.
    """

    waits: tuple[Wait, ...] = ()
    endless: int | None = None
    seconds: tuple[float, float] | None = None

    @property
    def is_new(self) -> bool:
        """True if there is a new wait, and not only a longer one."""
        return bool(self.waits) or self.endless is not None or (self.seconds is not None and not self.seconds[0])


@dataclass(frozen=True, slots=True)
class WorkChange:
    """The changes of a unit's work that made it worse."""

    growth: tuple[GrowthRise, ...] = ()
    wait: WaitChange | None = None


UNCHANGED = WorkChange()


def usual_waits(work: WorkFacts | None, basis: Basis) -> list[Wait]:
    """The waits that enough calls reach to be worth a label.

    A judge does not make a program wait for its input, and a lock is usually free.
    """
    waits = work.waits if work is not None else ()
    return [
        wait
        for wait in waits
        if wait.share >= LEAST_WAIT_SHARE
        and not (basis == "program" and wait.kind is WaitKind.USER)
        and not (wait.kind is WaitKind.THREAD and wait.call.rpartition(".")[2] == "acquire")
    ]


def work_change(
    before: CodeText, after: CodeText, answers: tuple[Sequence[Prediction], Sequence[Prediction]]
) -> WorkChange:
    """Compare two texts of a unit, given the predictions for both, one per metric."""
    earlier = {prediction.metric: prediction for prediction in reversed(answers[0])}
    newer = {prediction.metric: prediction for prediction in reversed(answers[1])}
    pairs = [(earlier[metric], newer[metric]) for metric in newer if metric in earlier]
    rises = [rise for pair in pairs if (rise := growth_rise(*pair)) is not None]
    cost = newer["latency"].median if "latency" in newer else None
    return WorkChange(tuple(rises), wait_change(before.work, after.work, after.basis, cost or 0.0))


def growth_rise(before: Prediction, after: Prediction) -> GrowthRise | None:
    """The rise of a growth class; None where it does not rise or is not certain enough on both sides."""
    old, new = before.growth, after.growth
    if old is None or new is None or not (old.is_claim and new.is_claim) or after.basis not in GROWING:
        return None
    if _RANKS[new.growth_class] <= _RANKS[old.growth_class]:
        return None
    return GrowthRise(after.metric, old, new)


def wait_change(
    before: WorkFacts | None, after: WorkFacts | None, basis: Basis, cost: float = 0.0
) -> WaitChange | None:
    """Return the waits that an edit adds to a unit, or None if nothing is new.

    A sleep counts when it is at least a quarter of ``cost``, the predicted latency.
    """
    if before is None or after is None:
        return None
    known = {wait.kind for wait in before.waits}
    if any(wait.seconds is not None for wait in before.waits if wait.kind is WaitKind.TIME):
        known -= {WaitKind.TIME}
    usual = usual_waits(after, basis)
    unbounded = [wait for wait in usual if wait.kind is not WaitKind.TIME or wait.seconds is None]
    waits = {wait.kind: wait for wait in sorted(unbounded, key=lambda wait: wait.share)}
    new = sorted((wait for kind, wait in waits.items() if kind not in known), key=lambda wait: -wait.share)
    endless = after.endless if before.endless is None else None
    slept, sleeps = _slept(before), _slept(after)
    longer = sleeps > _LONGER * slept and sleeps - slept >= max(cost / 4, 1e-5)
    if not new and endless is None and not longer:
        return None
    return WaitChange(tuple(new), endless, (slept, sleeps) if longer else None)


def _slept(work: WorkFacts) -> float:
    return sum(wait.seconds.likely for wait in work.waits if wait.kind is WaitKind.TIME and wait.seconds is not None)
