"""Changes against HEAD over a real connection: marks behind hints, words in hovers, and nothing that waits for git."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rlm_lsp.findings.support import commit

from .clients import CLIENTS

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
CHEAP = "def work(n):\n    return n + 1\n"
DEAR = "def work(n):\n    return [sorted(range(n), key=lambda x: -x) for _ in range(n * n)]\n"
OTHER = "\n\ndef other(values):\n    return values[0]\n"
CALLER = "\n\ndef caller(n):\n    return work(n)\n"
# The texts fix the cost of these, so that its ratio is known.
FIXED = "def work():\n    return sorted(range(10))\n"
FIXED_DEAR = "def work():\n    return [sorted(range(100), key=lambda x: -x) for _ in range(100)]\n"


async def marked(session: Any, uri: str, line: int, mark: str | None) -> str:
    """The label of a line once it has a mark, or none of both; asks again after each refresh and now and then."""
    while True:
        labels = {hint.position.line: str(hint.label) for hint in await session.hints(uri)}
        found = re.search("[▲▼]", labels.get(line, ""))
        if line in labels and (found[0] if found else None) == mark:
            return labels[line]
        refresh = asyncio.ensure_future(session.refreshes.get())
        await asyncio.wait({refresh}, timeout=0.1)
        refresh.cancel()


async def against_head(session: Any, uri: str, line: int) -> str:
    """What a hover says about HEAD, once it is known."""
    while not (found := re.search(r"against HEAD: (.*)", await session.hover(uri, line))):
        await session.hints(uri)
    return found[1]


@pytest.mark.parametrize("editor", CLIENTS)
async def test_each_editor_is_notified_of_cost_increases_and_decreases(
    start: Start, tmp_path: Path, editor: str
) -> None:
    commit(tmp_path, {"a.py": FIXED + OTHER, "b.py": FIXED_DEAR})
    session = await start(editor=editor)
    uri = session.open(tmp_path / "a.py", FIXED_DEAR + OTHER)
    label = await marked(session, uri, 0, "▲")
    assert len(label) <= 25
    assert re.fullmatch(r".+ ▲ (>?[\d.]+)×( · .+)?", label)
    assert await marked(session, uri, 4, None)
    assert await marked(session, session.open(tmp_path / "b.py", FIXED), 0, "▼")
    ratios = r"against HEAD: .*latency (about|over) \S+× \(80 % band .+×\), peak memory (about|over)"
    assert re.search(ratios, await session.hover(uri, 0))
    assert not re.search(r"against HEAD: .*latency", await session.hover(uri, 4))


async def test_a_cost_that_grows_faster_is_marked_and_named(start: Start, tmp_path: Path) -> None:
    loop = "def total(values):\n    result = 0\n    for a in values:\n        result += a\n    return result\n"
    nested = loop.replace(
        "a in values:\n        result += a",
        "i in range(len(values)):\n        for j in range(i):\n            result += values[j]",
    )
    commit(tmp_path, {"a.py": loop})
    session = await start()
    uri = session.open(tmp_path / "a.py", nested)
    label = await marked(session, uri, 0, "▲")
    assert re.search(r" ▲ (>?[\d.]+×, )?n → n\^2", label)
    assert "growth of latency from n to n^2 in `values`" in await against_head(session, uri, 0)
    assert "- latency grows about as n^2 in `values`" in await session.hover(uri, 0)
    session.change(uri, loop)
    await marked(session, uri, 0, None)


async def test_a_mark_follows_the_edits(start: Start, tmp_path: Path) -> None:
    commit(tmp_path, {"a.py": CHEAP + OTHER})
    session = await start()
    uri = session.open(tmp_path / "a.py")
    await marked(session, uri, 0, None)
    session.change(uri, DEAR + OTHER + "\n\n" + CHEAP.replace("work", "new"))
    await marked(session, uri, 0, "▲")
    assert await against_head(session, uri, 8) == "new"
    session.change(uri, CHEAP + OTHER)
    await marked(session, uri, 0, None)
    assert await against_head(session, uri, 0) == "unchanged"


async def test_a_caller_changes_with_what_it_calls(start: Start, tmp_path: Path) -> None:
    commit(tmp_path, {"a.py": CHEAP + CALLER})
    session = await start(options={"changeRatio": 1, "changeConfidence": 0.5})
    uri = session.open(tmp_path / "a.py", DEAR + CALLER)
    await marked(session, uri, 4, "▲")


async def test_a_commit_makes_the_text_the_new_point_of_comparison(start: Start, tmp_path: Path) -> None:
    commit(tmp_path, {"a.py": CHEAP})
    session = await start()
    uri = session.open(tmp_path / "a.py", DEAR)
    await marked(session, uri, 0, "▲")
    commit(tmp_path, {"a.py": DEAR})
    await marked(session, uri, 0, None)
    assert await against_head(session, uri, 0) == "unchanged"


async def test_settings_switch_changes_off(start: Start, tmp_path: Path) -> None:
    commit(tmp_path, {"a.py": CHEAP, "b.py": CHEAP, "rlm-lsp.toml": "changes = false\n"})
    session = await start(options={"changes": False})
    uri = session.open(tmp_path / "a.py", DEAR)
    await session.labels(uri, 1)
    # What would have been found is found by the time that another document has been edited and predicted.
    other = session.open(tmp_path / "b.py", DEAR)
    await session.labels(other, 1)
    session.change(other, DEAR + OTHER)
    await session.labels(other, 2)
    await marked(session, uri, 0, None)
    assert "HEAD" not in await session.hover(uri, 0)


async def test_outside_a_repository_nothing_is_compared(start: Start, tmp_path: Path) -> None:
    session = await start()
    uri = session.open(tmp_path / "a.py", DEAR)
    await session.labels(uri, 1)
    assert "HEAD" not in await session.hover(uri, 0)
    assert session.client.messages == []


async def test_changes_of_a_file_come_by_size_and_neutral_ones_are_marked(start: Start, tmp_path: Path) -> None:
    text = FIXED + FIXED.replace("work", "worse") + OTHER + "\n\ndef steady(values):\n    return len(values)\n"
    commit(tmp_path, {"a.py": text})
    slower = "def work():\n    return [sorted(range(10)) for _ in range(10)]\n"
    now = (
        slower
        + FIXED_DEAR.replace("work", "worse")
        + OTHER.replace("values[0]", "values[1]")
        + text.partition(OTHER)[2]
    )
    session = await start()
    uri = session.open(tmp_path / "a.py", now + "\n\ndef added(n):\n    return n\n")
    answer = await session.client.protocol.send_request_async("rlm-lsp/changes", {"uri": uri})
    assert answer.compared
    assert [(change.qualname, change.state, change.neutral) for change in answer.changes] == [
        ("worse", "changed", False),
        ("work", "changed", False),
        ("added", "new", False),
        ("other", "changed", True),
    ]
    assert answer.changes[0].text in await against_head(session, uri, answer.changes[0].line)
    assert [change.line for change in answer.changes] == [2, 0, 14, 6]


async def test_a_file_outside_a_repository_is_not_compared(start: Start, tmp_path: Path) -> None:
    session = await start()
    uri = session.open(tmp_path / "a.py", CHEAP)
    answer = await session.client.protocol.send_request_async("rlm-lsp/changes", {"uri": uri})
    assert (answer.compared, answer.changes) == (False, [])
