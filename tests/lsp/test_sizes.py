"""Sizes over a real connection: hints and hovers hold for what comments and settings give, and follow an edit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.fakes import unpadded
from tests.sized_functions import NAMES

from .recording import recording
from .test_diagnostics import client

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
PAIRS = """\
def pairs(items: list[int]) -> int:
    found = 0
    for a in items:
        for b in items:
            if a == b:
                found += 1
    return found
"""
SEND = """\
def send(orders: list[str]) -> None:
    for order in orders:
        fetch(order)
"""


async def test_the_hint_holds_for_the_sizes_of_a_comment_and_follows_it(start: Start, tmp_path: Path) -> None:
    session = await start(options={"hintsShown": "all"})
    uri = session.open(tmp_path / "a.py", f"# rlm: sizes items=10k\n{PAIRS}")
    [first] = (await session.labels(uri, 1)).values()
    assert first.endswith(" at items 10k")
    session.change(uri, f"# rlm: sizes items=20k\n{PAIRS}")
    labels = {first}
    while labels == {first}:
        labels = set((await session.labels(uri, 1)).values())
    assert labels.pop().endswith(" at items 20k")


async def test_the_hint_of_a_bound_names_the_calls(start: Start, tmp_path: Path) -> None:
    session = await start(options={"hintsShown": "all"})
    uri = session.open(tmp_path / "a.py", f"# rlm: sizes orders=10k\n{SEND}")
    [label] = (await session.labels(uri, 1)).values()
    assert label.startswith("≥")
    assert label.endswith(" + 10k × fetch()")


async def test_a_number_at_sizes_that_the_text_does_not_fix_is_called_predicted(start: Start, tmp_path: Path) -> None:
    session = await start(options={"hintsShown": "all"})
    uri = session.open(tmp_path / "a.py", f"# rlm: sizes orders=100\n{NAMES}")
    [label] = (await session.labels(uri, 1)).values()
    assert label.endswith(" at orders 100")
    assert not label.startswith("≥")
    text = unpadded(await session.hover(uri, 1, 6))
    assert "one call, latency at orders=100 and peak memory for small inputs, like those of tests" in text
    assert "the latency at these sizes is predicted from other functions that were measured at several sizes" in text
    assert "latency for small inputs, like those of tests: " in text
    assert "latency grows about as" in text


async def test_the_hover_says_what_is_known_at_several_sizes(start: Start, tmp_path: Path) -> None:
    session = await start()
    uri = session.open(tmp_path / "a.py", f"# rlm: sizes items=10k\n{PAIRS}")
    text = unpadded(await session.hover(uri, 1, 6))
    assert "one call at items=10k" in text
    assert "About 80 % of calls at these sizes" in text
    assert "sizes: items=10k from a comment (line 1)" in text
    assert "latency for small inputs, like those of tests: " in text
    assert "| items | latency | peak memory |" in text
    assert [line.split(" | ")[0] for line in text.splitlines() if line.startswith(("| 10 ", "| 1k ", "| 100k "))] == [
        "| 10",
        "| 1k",
        "| 100k",
    ]


async def test_a_function_without_sizes_is_shown_as_before_with_a_table(start: Start, tmp_path: Path) -> None:
    session = await start(markup="plaintext")
    uri = session.open(tmp_path / "a.py", f"{PAIRS}\n\n{SEND}")
    text = await session.hover(uri, 0, 6)
    assert "one call, as tests would call it" in text
    assert "at items=1k: latency " in text
    assert "at orders=" not in await session.hover(uri, 9, 6)


async def test_the_settings_of_the_workspace_give_sizes(start: Start, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rlm-lsp.sizes]\n"*.py" = { items = "5k" }\n')
    path = tmp_path / "a.py"
    path.write_text(PAIRS)
    session = await start(folder=tmp_path, options={"hintsShown": "all"})
    [label] = (await session.labels(session.open(path), 1)).values()
    assert label.endswith(" at items 5k")


async def test_a_call_in_an_open_file_gives_the_size(start: Start, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    pairs, run = tmp_path / "pairs.py", tmp_path / "run.py"
    pairs.write_text(PAIRS)
    run.write_text("from pairs import pairs\n\npairs(list(range(300)))\n")
    session = await start(folder=tmp_path, options={"hintsShown": "all"})
    uri = session.open(pairs)
    await hint_ends_with(session, uri, " at items 300")
    assert "sizes: items=300 from a call (module run)" in unpadded(await session.hover(uri, 0, 6))
    session.open(run, "from pairs import pairs\n\npairs(list(range(4_000)))\n")
    await hint_ends_with(session, uri, " at items 4k")


async def hint_ends_with(session: Any, uri: str, end: str) -> None:
    """Ask for the only hint of a document again after each refresh, until it ends with this text."""
    while not next(iter((await session.labels(uri, 1)).values())).endswith(end):
        await session.refreshes.get()


async def test_a_budget_at_a_size_is_underlined(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", f"# rlm: latency < 50 ms at items=10k\n{PAIRS}")
        [found] = (await session.pull(uri)).items
        assert found.severity is types.DiagnosticSeverity.Error
        assert "latency of pairs at items=10k is predicted to exceed its budget of 50 ms" in found.message
        session.change(uri, f"# rlm: latency < 50 ms at items=100\n{PAIRS}")
        assert not (await session.pull(uri)).items


@pytest.mark.parametrize("comment", ["items", "items=many", "items=1 items=2"])
async def test_a_mistake_in_a_comment_about_sizes_is_underlined(tmp_path: Path, comment: str) -> None:
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", f"# rlm: sizes {comment}\n{PAIRS}")
        [found] = (await session.pull(uri)).items
        assert found.range.start.line == 0
        assert found.message
