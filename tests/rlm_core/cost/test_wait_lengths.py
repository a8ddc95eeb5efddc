"""Lengths of waits that settings give."""

from __future__ import annotations

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.at_sizes import facts_at, unknown_waits
from rlm_core.cost.wait_lengths import with_wait_lengths
from rlm_core.types import Amount, WaitKind, WorkFacts

_LENGTHS = {WaitKind.DATABASE: 0.001, WaitKind.NETWORK: 0.05}


def _facts(body: str, parameters: str = "session, user, users, url, key") -> WorkFacts:
    facts = work_facts(f"def f({parameters}):\n" + "".join(f"    {line}\n" for line in body.splitlines()))
    assert facts is not None
    return with_wait_lengths(facts, _LENGTHS)


def _seconds(facts: WorkFacts) -> list[Amount | None]:
    return [wait.seconds for wait in facts.waits]


def test_a_wait_takes_as_long_as_the_settings_say() -> None:
    facts = _facts("session.refresh(user)")
    assert _seconds(facts) == [Amount(0.001, 0.001, 0.001)]
    assert facts.waits[0].each == 0.001
    assert facts.waits[0].is_known
    assert not unknown_waits(facts)


def test_repeated_waits_add_up() -> None:
    [wait] = _facts("for _ in range(12):\n    session.refresh(user)").waits
    assert wait.seconds is not None
    assert wait.seconds.likely == pytest.approx(0.012)
    [first, second] = _facts("session.refresh(user)\nsession.commit()").waits
    assert first.seconds == second.seconds


def test_a_loop_over_an_input_waits_for_each_item_and_at_its_size_for_all() -> None:
    facts = _facts("for user in users:\n    session.refresh(user)")
    [wait] = facts.waits
    assert wait.per == ("users",)
    assert wait.seconds == Amount(0.0, 0.001, 0.001)
    assert unknown_waits(facts)
    sized = facts_at(facts, {"users": 200.0})
    assert _seconds(sized) == [Amount(0.2, 0.2, 0.2)]
    assert not unknown_waits(sized)


def test_a_wait_in_a_loop_that_is_known_by_its_name_has_a_length_too() -> None:
    [wait] = _facts("for user in users:\n    user.save()").waits
    assert (wait.kind, wait.per) == (WaitKind.DATABASE, ("users",))


@pytest.mark.parametrize(
    ("timeout", "seconds"), [("0.01", 0.01), ("5", 0.05), ("(0.01, 0.02)", 0.03), ("None", 0.05), ("key", 0.05)]
)
def test_a_timeout_in_the_text_bounds_a_wait(timeout: str, seconds: float) -> None:
    [wait] = _facts(f"import requests\nreturn requests.get(url, timeout={timeout})").waits
    assert wait.seconds is not None
    assert wait.seconds.likely == pytest.approx(seconds)


def test_the_timeout_of_a_queue_is_the_limit_of_its_wait() -> None:
    facts = work_facts("def f():\n    import queue\n    items = queue.Queue()\n    return items.get(timeout=0.002)\n")
    assert facts is not None
    [wait] = with_wait_lengths(facts, {WaitKind.THREAD: 1.0}).waits
    assert (wait.each, wait.limit) == (0.002, 0.002)


def test_requests_at_the_same_time_take_as_long_as_one() -> None:
    facts = work_facts(
        "async def f(a, b):\n    import asyncio\n    import httpx\n    client = httpx.AsyncClient()\n"
        "    await asyncio.gather(client.get(a), client.get(b))\n"
    )
    assert facts is not None
    waits = [wait for wait in with_wait_lengths(facts, _LENGTHS).waits if wait.kind is WaitKind.NETWORK]
    assert [wait.seconds.likely for wait in waits if wait.seconds is not None] == [pytest.approx(0.05)]


def test_a_branch_waits_in_some_calls_only() -> None:
    [wait] = _facts("if key:\n    session.refresh(user)").waits
    assert wait.seconds is not None
    assert wait.seconds.least == 0.0
    assert wait.seconds.most == pytest.approx(0.001)


def test_kinds_without_a_length_and_sleeps_stay_as_they_are() -> None:
    facts = work_facts("def f(x):\n    import time, subprocess\n    time.sleep(1)\n    subprocess.run(x)\n")
    assert facts is not None
    assert with_wait_lengths(facts, _LENGTHS) == facts
    assert with_wait_lengths(facts, {}) is facts
