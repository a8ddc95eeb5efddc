"""Threads: where they are joined, the caller waits for what they run."""

from __future__ import annotations

from rlm_core.cost.analysis import work_facts
from rlm_core.types import WaitKind


def test_joined_threads_are_waited_for() -> None:
    facts = work_facts(
        "def f():\n    threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(20)]\n"
        "    for t in threads:\n        t.start()\n    for t in threads:\n        t.join()\n"
    )
    assert facts is not None
    assert [(wait.kind, wait.seconds) for wait in facts.waits] == [(WaitKind.THREAD, None)]


def test_a_thread_that_is_not_joined_does_not_keep_its_caller() -> None:
    facts = work_facts("def f():\n    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n")
    assert facts is not None
    assert not facts.waits
