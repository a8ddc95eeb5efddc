"""Waits of what runs at the same time."""

from __future__ import annotations

from rlm_core.cost.domain.meter import ALWAYS, PendingWait
from rlm_core.cost.domain.quantities import constant
from rlm_core.cost.evaluate import concurrency
from rlm_core.types import WaitKind


def wait(seconds: float | None, kind: WaitKind = WaitKind.TIME, *, background: bool = False) -> PendingWait:
    """A wait at a line of its own."""
    span = constant(seconds) if seconds is not None else None
    return PendingWait(kind, int(seconds or 0), "wait", span, ALWAYS, background)


def test_the_longest_wait_of_each_kind_is_kept() -> None:
    waits = [wait(1), wait(None, WaitKind.NETWORK), wait(3), wait(2)]
    assert concurrency.longest(waits) == [wait(3), wait(None, WaitKind.NETWORK)]
    assert concurrency.longest([]) == []


def test_a_function_ends_when_its_longest_task_has_ended() -> None:
    tasks = concurrency.in_background([wait(1), wait(4)])
    assert tasks == [wait(4, background=True)]
    assert concurrency.ended([wait(1), *tasks, wait(2, background=True)]) == [wait(1), wait(4)]
    [own, task] = concurrency.ended([*tasks, wait(3)])
    assert own == wait(3)
    assert task.seconds is not None
    assert task.seconds.exact == 1
    assert concurrency.ended([wait(1), wait(2)]) == [wait(1), wait(2)]
