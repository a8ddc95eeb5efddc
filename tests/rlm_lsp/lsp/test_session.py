"""The session: the queries for several folders, hooks, background work, and messages to the user."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.workspace import TextDocument, Workspace
from rlm_core.inference.query_selection import QuerySelection
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_lsp.lsp import urgent_lines
from rlm_lsp.lsp.server import Server
from rlm_lsp.lsp.session import MAX_LOG_LINES, Hook, LogTail, Session, selection_of
from rlm_lsp.settings.files import SettingsStore
from rlm_lsp.settings.model import Settings

from .conftest import Wire

pytestmark = pytest.mark.timeout(30)


def folders(tmp_path: Path, **files: str) -> SettingsStore:
    for name, text in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "rlm-lsp.toml").write_text(text)
    return SettingsStore(None, [tmp_path / name for name in files], {}, tmp_path / "none.toml")


def test_the_selection_covers_what_any_folder_shows(tmp_path: Path) -> None:
    assert selection_of(SettingsStore(None, (), {}, tmp_path / "none.toml")) == QuerySelection(Settings().metrics, ())
    store = folders(tmp_path, one='devices = ["a100"]\n', two='devices = ["l40s", "a100"]\nmetrics = ["latency"]\n')
    selection = selection_of(store)
    assert set(selection.metrics or ()) == {"latency", "memory", "accuracy", "energy"}
    # None: files outside of the folders show the model's own device.
    assert set(selection.devices) == {None, "a100", "l40s"}


def test_a_hook_calls_its_callbacks_in_the_order_of_registration() -> None:
    calls: list[tuple[str, str]] = []
    hook = Hook[[str]]()
    hook.fire("no callback")
    hook(lambda uri: calls.append(("first", uri)))
    hook(lambda uri: calls.append(("second", uri)))
    hook.fire("file:///a.py")
    assert calls == [("first", "file:///a.py"), ("second", "file:///a.py")]


@pytest.mark.asyncio
async def test_background_work_replaces_what_runs_under_its_name(session: Session) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    async def end() -> None:
        ended.set()

    session.spawn("one", wait())
    await started.wait()
    first = session._tasks["one"]
    session.spawn("one", end())
    await ended.wait()
    await asyncio.wait({first})
    assert first.cancelled()


@pytest.mark.asyncio
@pytest.mark.usefixtures("lenient")
async def test_background_work_that_fails_is_logged(session: Session, wire: Wire) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    session.spawn("one", fail())
    await asyncio.wait({session._tasks["one"]})
    await asyncio.sleep(0)
    assert ["test_session.py:" in text for text in wire.texts("window/logMessage")] == [True]


def test_a_line_is_logged_once(session: Session, wire: Wire) -> None:
    session.log_once("no git")
    session.log_once("no git")
    assert wire.texts("window/logMessage") == ["no git"]


def test_the_newest_lines_are_kept() -> None:
    tail = LogTail()
    for number in range(MAX_LOG_LINES + 5):
        tail.add("info", f"line {number}")
    lines = tail.text().splitlines()
    assert len(lines) == MAX_LOG_LINES
    assert lines[0].endswith("info: line 5")
    assert lines[-1].endswith(f"info: line {MAX_LOG_LINES + 4}")


def test_errors_of_the_program_are_kept_with_their_traceback() -> None:
    tail = LogTail()
    log = logging.Logger("one")
    log.addHandler(tail)
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("internal error")
    log.info("not kept")
    assert "error: internal error" in tail.text()
    assert "ValueError: broken" in tail.text()
    assert "not kept" not in tail.text()


@pytest.mark.asyncio
async def test_the_rest_of_a_document_is_analysed_although_no_model_can_be_loaded(
    session: Session, server: Server, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urgent_lines, "_PAUSE_SECONDS", 3600.0)
    server.protocol._workspace = Workspace(None)
    server.protocol.client_capabilities = types.ClientCapabilities()
    session.settings_read.set()
    uri = "untitled:a"
    session.opened(TextDocument(uri, "def f(a):\n    return a\n\n\n" * 1000, 1, "python"))
    part = await session.analysis(uri, provisional=True, lines=range(10))
    assert part is not None
    assert not part.settled
    whole = asyncio.ensure_future(session.analysis(uri))
    assert await session.load_model(Settings(model="none"))
    found = await whole
    assert found is not None
    assert len(found.units) == 1000
    session.end()


@pytest.mark.asyncio
async def test_what_waits_for_an_idle_document_waits_for_the_analysis_that_its_hints_come_from(
    session: Session, server: Server, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, analyse = threading.Event(), Analyser.analyse

    def gated(*arguments: Any, **options: Any) -> list[AnalysedUnit]:
        assert gate.wait(20)
        return analyse(*arguments, **options)

    monkeypatch.setattr(Analyser, "analyse", gated)
    server.protocol._workspace = Workspace(None)
    server.protocol.client_capabilities = types.ClientCapabilities()
    session.settings_read.set()
    session.opened(TextDocument("untitled:a", "def f(a):\n    return a\n", 1, "python"))
    hints = asyncio.ensure_future(session.analysis("untitled:a", provisional=True))
    await asyncio.sleep(0)
    idle = asyncio.ensure_future(session.idle("untitled:a"))
    done, _ = await asyncio.wait({idle}, timeout=0.05)
    assert not done
    gate.set()
    await idle
    assert hints.done()
    session.end()
