"""The first-run notices over a real connection: with a user's first hint or without one, once, and never in CI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of a new user who is a person."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("CI")
    return tmp_path


async def notices(session: Any, examples: Path) -> list[str]:
    """What pops up by the time that hints are there and the server has gone on to another request."""
    uri = session.open(examples / "functions.py")
    await session.labels(uri, 16)
    # The marker is looked for on a thread; a hover of a kernel takes longer.
    await session.hover(session.open(examples / "kernel.py"), 7)
    return [message.message for message in session.client.messages if message.type == types.MessageType.Info]


async def test_the_first_hint_of_a_user_comes_with_a_word_on_what_it_means(
    start: Start, examples: Path, home: Path
) -> None:
    session = await start()
    uri = session.open(examples / "functions.py")
    await session.labels(uri, 16)
    if not session.client.messages:
        await session.client.wait_for_notification(types.WINDOW_SHOW_MESSAGE)
    [message] = session.client.messages
    assert message.type == types.MessageType.Info
    assert "a prediction, not a measurement" in message.message
    assert "inputs like those in a project's tests" in message.message
    # A toast shows no more at once.
    assert len(message.message) < 160
    assert "\n" not in message.message
    assert await session.labels(uri, 16)
    assert len(session.client.messages) == 1
    assert await notices(await start(), examples) == []


CHEAP = "def double(n):\n    return n * 2\n\n\ndef half(n):\n    return n / 2\n"


async def test_where_nothing_is_expensive_a_new_user_is_shown_that_it_works(
    start: Start, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text(CHEAP)
    session = await start(options={"hintsShown": "relevant"})
    uri = session.open(tmp_path / "a.py")
    await session.hover(uri, 0)
    while not session.client.messages:
        assert await session.hints(uri) == []
        await session.hover(uri, 0)
    [message] = session.client.messages
    assert message.type == types.MessageType.Info
    assert message.message.startswith("rlm-lsp is ready. Nothing expensive here")
    again = await start(options={"hintsShown": "relevant"})
    for _ in range(3):
        assert await again.hints(again.open(tmp_path / "a.py")) == []
        await again.hover(uri, 0)
    assert again.client.messages == []


@pytest.mark.parametrize(
    ("variables", "options"),
    [({"CI": "true"}, {}), ({"RLM_LSP_NOTICE": "0"}, {}), ({}, {"notice": False})],
)
async def test_no_notice_is_shown_in_ci_or_against_the_settings(
    start: Start,
    examples: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    options: dict[str, Any],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert await notices(await start(options=options), examples) == []
    assert not (home / "rlm-lsp").exists()
