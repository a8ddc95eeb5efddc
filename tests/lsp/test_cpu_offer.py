"""The offer to score the CPU over a real connection: once per machine, and one click makes times those of this machine.

The machine is that of ``idle/sitecustomize.py``.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from rlm_core.inference.adaptation import cpu_score
from rlm_lsp.lsp.features.cpu_offer import NEVER, NOT_NOW, SCORE, may_offer
from rlm_lsp.lsp.features.notice import MARKER

from .conftest import Session, Start

pytestmark = pytest.mark.timeout(90)
FIXED = "def fill():\n    total = 0\n    for i in range(3_000_000):\n        total += i * i\n    return total\n"
OPEN = "def run(plan):\n    for step in plan:\n        step.apply(plan.state)\n    return plan.finish()\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of a user who is a person and has seen the first notice."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parent / "idle"), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CI")
    (tmp_path / "state" / "rlm-lsp").mkdir(parents=True)
    (tmp_path / "state" / "rlm-lsp" / MARKER).touch()
    return tmp_path


def answer(
    session: Session, title: str | None, after: asyncio.Event | None = None
) -> list[types.ShowMessageRequestParams]:
    """Have a client answer every question with a button (None: close it), ``after`` an event; return the questions."""
    asked: list[types.ShowMessageRequestParams] = []

    async def on_request(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        asked.append(params)
        if after is not None:
            await after.wait()
        return types.MessageActionItem(title) if title is not None else None

    session.client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(on_request)
    return asked


async def label_of(session: Session, folder: Path, text: str) -> str:
    """The label of the function of a new file."""
    path = folder / "code.py"
    path.write_text(text)
    uri = session.open(path)
    [label] = (await session.labels(uri, 1)).values()
    # What follows from a hint runs by the time that another request is answered.
    await session.hover(uri, 1)
    return label


@pytest.mark.asyncio
async def test_a_click_scores_the_cpu_and_halves_the_times_where_it_is_twice_as_fast(start: Start, home: Path) -> None:
    session = await start(editor="vscode")
    clicked = asyncio.Event()
    asked = answer(session, SCORE, after=clicked)
    await label_of(session, home, FIXED)
    uri = (home / "code.py").as_uri()
    before = await median(session, uri)
    clicked.set()
    while not session.client.messages:
        await session.client.wait_for_notification(types.WINDOW_SHOW_MESSAGE)
    [request] = asked
    assert [action.title for action in request.actions or ()] == [SCORE, NOT_NOW, NEVER]
    assert len(request.message) < 160
    assert session.client.messages[-1].message == "rlm-lsp: Predicted times of functions are now multiplied by 0.5."
    score = cpu_score.read(home / "cache" / "rlm-lsp" / cpu_score.FILE)
    assert score is not None
    assert score.overall == pytest.approx(2)
    assert await median(session, uri) == pytest.approx(before / 2)
    again = await start(editor="vscode")
    asked = answer(again, SCORE)
    await label_of(again, home, FIXED)
    assert asked == []


async def median(session: Session, uri: str) -> float:
    """The predicted latency of the one function of a file, in seconds."""
    asked = types.ExecuteCommandParams("rlm-lsp.predictFile", [uri])
    rows: Any = await session.client.workspace_execute_command_async(asked)
    [value] = [row["median"] for row in rows if row["metric"] == "latency"]
    return float(value)


@pytest.mark.parametrize("title", [NOT_NOW, NEVER, None])
@pytest.mark.asyncio
async def test_an_answer_of_no_ends_the_question(start: Start, home: Path, title: str | None) -> None:
    session = await start(editor="vscode")
    asked = answer(session, title)
    await label_of(session, home, FIXED)
    while not asked:
        await session.hover((home / "code.py").as_uri(), 1)
    again = await start(editor="vscode")
    assert answer(again, title) == []
    await label_of(again, home, FIXED)
    assert len(asked) == 1
    assert not (home / "cache" / "rlm-lsp" / cpu_score.FILE).exists()


@pytest.mark.asyncio
async def test_a_text_that_does_not_fix_its_cost_is_no_occasion(start: Start, home: Path) -> None:
    session = await start(editor="vscode")
    asked = answer(session, SCORE)
    await label_of(session, home, OPEN)
    assert asked == []


def test_new_users_and_users_of_busy_or_scored_machines_get_no_offer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_score, "load_problem", lambda: None)
    monkeypatch.setattr(cpu_score, "stored", lambda: None)
    marker = tmp_path / MARKER
    assert not may_offer(tmp_path, 0.0)
    marker.touch()
    started = marker.stat().st_mtime + 1
    assert not may_offer(tmp_path, started - 10)
    for name, value in (("load_problem", "load 9.0 on 2 cores"), ("enabled", False), ("stored", "a score")):
        with monkeypatch.context() as changed:
            changed.setattr(cpu_score, name, lambda value=value: value)
            assert not may_offer(tmp_path, started)
    (tmp_path / "cpu-offer-never").touch()
    assert not may_offer(tmp_path, started)
    (tmp_path / "cpu-offer-never").unlink()
    assert may_offer(tmp_path, started)
    assert not may_offer(tmp_path, started)
    monkeypatch.setattr(cpu_score, "cpu_name", lambda: "another CPU")
    assert may_offer(tmp_path, started)
