"""Threads: what they run is paid for where they are joined."""

from __future__ import annotations

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.types import WaitKind

WORK = "    def work(n):\n        time.sleep(0.2)\n"


@pytest.mark.parametrize(
    "body",
    [
        "    t = threading.Thread(target=time.sleep, args=(0.2,))\n    t.start()\n    t.join()\n",
        "    threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(20)]\n"
        "    for t in threads:\n        t.start()\n    for t in threads:\n        t.join()\n",
        WORK + "    threads = []\n    for i in range(5):\n        t = threading.Thread(target=work, args=(i,))\n"
        "        t.start()\n        threads.append(t)\n    for t in threads:\n        t.join()\n",
    ],
)
def test_joined_threads_wait_at_the_same_time(body: str) -> None:
    facts = work_facts(f"def f():\n{body}")
    assert facts is not None
    [wait] = facts.waits
    assert wait.kind is WaitKind.TIME
    assert wait.seconds is not None
    assert wait.seconds.likely == pytest.approx(0.2)


def test_a_thread_that_is_not_joined_does_not_keep_its_caller() -> None:
    facts = work_facts("def f():\n    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n")
    assert facts is not None
    assert not facts.waits


def test_what_joined_threads_compute_adds_up() -> None:
    text = (
        "def f():\n    def work():\n        return sum(range(100_000))\n"
        "    threads = [threading.Thread(target=work) for _ in range({count})]\n"
        "    for t in threads:\n        t.start()\n    for t in threads:\n        t.join()\n"
    )
    one, ten = (work_facts(text.format(count=count)) for count in (1, 10))
    assert one is not None
    assert ten is not None
    assert 9 < ten.latency.known.likely / one.latency.known.likely < 11
