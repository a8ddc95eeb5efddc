"""Sentences about waits in loops."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import LoopWait, WaitKind, WorkFacts
from rlm_lsp.rendering.loop_wait_words import hover_lines, loop_wait_message

[_UNIT] = [
    analysed.unit for analysed in Analyser().analyse(ParsedSource(b"def load(users): pass\n", "python"), Path("a.py"))
]


def _facts(*waits: LoopWait) -> WorkFacts:
    return WorkFacts(loop_waits=waits)


def test_the_hover_has_a_line_for_each_kind_and_loop() -> None:
    facts = _facts(
        LoopWait(WaitKind.DATABASE, 2, "user.save", "users"),
        LoopWait(WaitKind.DATABASE, 4, "user.delete", "users"),
        LoopWait(WaitKind.NETWORK, 7, "requests.get", "urls"),
    )
    assert hover_lines(_UNIT, facts) == [
        "waits: database × `users` (lines 3 and 5): `bulk_create` or `bulk_update` does it for all at once",
        "waits: network × `urls` (line 8): a `ThreadPoolExecutor` does it for several items at the same time",
    ]
    assert hover_lines(_UNIT, None) == hover_lines(_UNIT, WorkFacts()) == []


@pytest.mark.parametrize(
    ("wait", "cure"),
    [
        (LoopWait(WaitKind.NETWORK, 0, "session.get", "urls", True), "asyncio.gather waits for all"),
        (LoopWait(WaitKind.NETWORK, 0, "requests.get", "urls"), "ThreadPoolExecutor"),
        (LoopWait(WaitKind.PROCESS, 0, "subprocess.run", "files"), "ThreadPoolExecutor"),
        (LoopWait(WaitKind.DATABASE, 0, "session.commit", "rows"), "one commit after the loop"),
        (LoopWait(WaitKind.DATABASE, 0, "Order.objects.get", "rows"), "in_bulk, or one query before the loop"),
        (LoopWait(WaitKind.DATABASE, 0, "user.orders.all", "users"), "prefetch_related or selectinload"),
        (LoopWait(WaitKind.DATABASE, 0, "Order.objects.create", "rows"), "bulk_create does it"),
        (LoopWait(WaitKind.DATABASE, 0, "cursor.execute", "rows"), "executemany"),
        (LoopWait(WaitKind.DATABASE, 0, "session.execute", "rows"), "one statement for all items"),
        (LoopWait(WaitKind.DATABASE, 0, "self.books.insert_one", "rows"), "insert_many"),
        (
            LoopWait(WaitKind.DATABASE, 0, "order.customer", "orders", loaded_by="select_related"),
            "select_related reads",
        ),
        (LoopWait(WaitKind.DATABASE, 0, "self.redis.get", "keys"), "mget or a pipeline"),
    ],
)
def test_a_finding_names_the_usual_cure(wait: LoopWait, cure: str) -> None:
    assert cure in loop_wait_message(_UNIT, [wait])


def test_a_finding_without_a_known_cure_ends_with_the_call() -> None:
    message = loop_wait_message(_UNIT, [LoopWait(WaitKind.DATABASE, 0, "plan.refresh_from_db", "plans")])
    assert message == "load waits for a database for each item of plans (line 1, plan.refresh_from_db)"
