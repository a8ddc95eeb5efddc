"""Manners of the protocol over a real connection: edits of ranges, cancellation, progress, errors inside."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from .recording import recording
from .test_overview import plain

pytestmark = pytest.mark.timeout(60)

EVERYWHERE = types.Range(types.Position(0, 0), types.Position(100_000, 0))
TEXT = "x = '😀\x0c\u2028'; y = 1\r\ndef f(n):\r\n    return [n] * n\r\n"


def client(encoding: str = "utf-16", *, progress: bool = False, refresh: bool = False) -> types.ClientCapabilities:
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind(encoding)]),
        window=types.WindowClientCapabilities(work_done_progress=progress),
        workspace=types.WorkspaceClientCapabilities(
            inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=refresh)
        ),
        text_document=types.TextDocumentClientCapabilities(diagnostic=types.DiagnosticClientCapabilities()),
    )


def edit(line: int, start: int, end: int, text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(
        types.Range(types.Position(line, start), types.Position(line, end)), text
    )


@pytest.mark.asyncio
@pytest.mark.parametrize(("encoding", "width"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)])
async def test_edits_of_ranges_are_taken_over_below_strange_lines(tmp_path: Path, encoding: str, width: int) -> None:
    async with recording(client(encoding), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", TEXT)
        # After the emoji, and two edits in one message, the second below the first.
        after = 5 + width
        session.change(uri, edit(0, after, after, "\r\n"), edit(2, 4, 5, "g"))
        rows = await session.command("rlm-lsp.predictFile", uri)
        assert {(row["qualname"], row["line"]) for row in rows} == {("g", 3)}
        session.change(uri, edit(0, after, after, "é😀"), edit(3, 4, 18, "return sorted([n] * n)"))
        copied = (await session.command("rlm-lsp.explain", uri, {"line": 2, "character": 0}))["lines"]
        assert [(line["line"], line["text"]) for line in copied] == [(3, "return sorted([n] * n)")]


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["é", "😀", "\n", "\r\n", "\x0c"])), max_size=8))
@settings(max_examples=5)
def test_random_edits_leave_the_server_with_the_clients_text(edits: list[tuple[int, str]]) -> None:
    async def run() -> None:
        async with recording(client()) as session:
            uri = session.open(Path(__file__).with_name("random.py"), "")
            text = ""
            for number, (where, piece) in enumerate(edits):
                lines = text.replace("\r\n", "\n").split("\n")
                line = where % len(lines)
                comment = f"# {piece} {number}\n"
                at = types.Position(line, 0)
                session.change(uri, types.TextDocumentContentChangePartial(types.Range(at, at), comment))
                text = _inserted(text, line, comment)
            end = types.Position(len(text.replace("\r\n", "\n").split("\n")) - 1, 0)
            session.change(uri, types.TextDocumentContentChangePartial(types.Range(end, end), "def f(n): return n\n"))
            rows = await session.command("rlm-lsp.predictFile", uri)
            assert {row["line"] for row in rows} == {end.line + 1}

    asyncio.run(run())


@pytest.mark.asyncio
async def test_requests_that_wait_for_the_model_can_be_cancelled(tmp_path: Path) -> None:
    text = "".join(f"def f{number}(n):\n    return [n * {number}] * n\n" for number in range(200))
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", text)
        document = types.TextDocumentIdentifier(uri)
        requests: list[tuple[str, Any]] = [
            (types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintParams(document, EVERYWHERE)),
            (types.TEXT_DOCUMENT_HOVER, types.HoverParams(document, types.Position(0, 0))),
            (types.TEXT_DOCUMENT_DIAGNOSTIC, types.DocumentDiagnosticParams(document)),
        ]
        futures = [session.client.protocol.send_request(method, params, msg_id=method) for method, params in requests]
        for method, _ in requests:
            session.client.cancel_request(types.CancelParams(method))
        for future in futures:
            with pytest.raises(JsonRpcRequestCancelled):
                await asyncio.wrap_future(future)
        # The server is there for the next one.
        assert await session.client.text_document_hover_async(types.HoverParams(document, types.Position(2, 0)))


@pytest.mark.asyncio
async def test_an_edit_ends_requests_about_the_text_before_it(tmp_path: Path) -> None:
    text = "".join(f"def f{number}(n):\n    return [n * {number}] * n\n" for number in range(1_000))
    async with recording(client(refresh=True), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", text)
        other = session.open(tmp_path / "other.py", "def g(n):\n    return n\n")
        document = types.TextDocumentIdentifier(uri)
        requests: list[tuple[str, Any]] = [
            (types.TEXT_DOCUMENT_INLAY_HINT, types.InlayHintParams(document, EVERYWHERE)),
            (types.TEXT_DOCUMENT_HOVER, types.HoverParams(document, types.Position(0, 0))),
            (types.TEXT_DOCUMENT_DIAGNOSTIC, types.DocumentDiagnosticParams(document)),
        ]
        ended = [session.client.protocol.send_request(method, params) for method, params in requests]
        about_other = types.InlayHintParams(types.TextDocumentIdentifier(other), EVERYWHERE)
        untouched = session.client.protocol.send_request(types.TEXT_DOCUMENT_INLAY_HINT, about_other)
        session.change(uri, types.TextDocumentContentChangePartial(EVERYWHERE, "def f(n):\n    return n\n"))
        newer = session.client.protocol.send_request(*requests[0])
        answered: list[object] = []
        for future in (*ended, newer):
            future.add_done_callback(answered.append)
        errors = []
        for future in ended:
            with pytest.raises(JsonRpcException) as raised:
                await asyncio.wrap_future(future)
            errors.append(raised.value)
        modified, cancelled = types.LSPErrorCodes.ContentModified, types.LSPErrorCodes.ServerCancelled
        assert [error.code for error in errors] == [modified, modified, cancelled]
        assert plain(errors[2].data) == {"retriggerRequest": True}
        # The errors come before the answer about the new text, and requests about other documents are answered.
        assert await asyncio.wrap_future(newer) is not None
        assert answered[-1] is newer
        assert await asyncio.wrap_future(untouched) is not None


@pytest.mark.asyncio
async def test_loading_and_a_large_file_show_their_progress(tmp_path: Path) -> None:
    text = "".join(f"def f{number}(n):\n    return [n * {number}] * n\n" for number in range(120))
    async with recording(client(progress=True, refresh=True), tmp_path) as session:
        uri = session.open(tmp_path / "large.py", text)
        hints = types.InlayHintParams(types.TextDocumentIdentifier(uri), EVERYWHERE)
        while len(await session.client.text_document_inlay_hint_async(hints) or []) < 120:
            await session.wait(types.WORKSPACE_INLAY_HINT_REFRESH)
        titles = [p.value["title"] for p in session.sent(types.PROGRESS) if p.value["kind"] == "begin"]
        assert titles == ["rlm-lsp: loading the model", "rlm-lsp: large.py"]
        large = session.sent(types.PROGRESS)[-1].token
        await session.wait(types.PROGRESS, lambda params: params.token == large and params.value["kind"] == "end")
        shares = [p.value["percentage"] for p in session.sent(types.PROGRESS) if p.value["kind"] == "report"]
        assert shares == sorted(shares)
        assert 0 < shares[-1] < 100


@pytest.mark.asyncio
async def test_a_client_without_progress_is_shown_none(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        await session.command("rlm-lsp.predictFile", session.open(tmp_path / "a.py", TEXT))
        assert session.sent(types.PROGRESS) == session.sent(types.WINDOW_WORK_DONE_PROGRESS_CREATE) == []


def _inserted(text: str, line: int, new: str) -> str:
    at = 0
    for _ in range(line):
        at = text.index("\n", at) + 1
    return text[:at] + new + text[at:]
