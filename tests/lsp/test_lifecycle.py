"""Start, end and failure of the server over real connections."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import rlm_core
from lsprotocol import types

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
SERVE = (sys.executable, "-m", "rlm_lsp", "serve")


async def test_the_server_ends_cleanly_when_stdin_ends() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*SERVE, stdin=pipe, stdout=pipe, stderr=pipe)
    out, err = await process.communicate(b"")
    # Without `shutdown` the protocol wants 1.
    assert (process.returncode, out, err) == (1, b"", b"")


async def test_the_server_ends_cleanly_in_the_middle_of_its_work(start: Start, examples: Path) -> None:
    session = await start()
    uri = session.open(examples / "functions.py")
    await session.hints(uri)
    process = session.client._server
    assert process.stdin is not None
    process.stdin.close()
    assert await process.wait() == 1
    # The session is over: there is nothing to shut down.
    session.client.error = EOFError()


async def test_shutdown_and_exit_end_the_server(start: Start) -> None:
    session = await start()
    await session.client.shutdown_session()
    assert session.client._server.returncode == 0
    session.client.error = EOFError()


@pytest.mark.parametrize("kind", ["missing", "corrupt"])
async def test_a_bad_model_is_one_message_and_the_server_goes_on(
    start: Start, examples: Path, tmp_path: Path, kind: str
) -> None:
    model = tmp_path / "model"
    if kind == "corrupt":
        shutil.copytree(Path(rlm_core.__file__).parent / "builtin", model)
        largest = max(model.iterdir(), key=lambda path: path.stat().st_size)
        largest.write_bytes(largest.read_bytes()[:1000])
    session = await start(refresh=False, options={"model": str(model)})
    uri = session.open(examples / "functions.py")
    assert await session.hints(uri) == []
    assert await session.hover(uri, 13) is None
    [message] = session.client.messages
    assert message.type == types.MessageType.Error
    assert str(model) in message.message
    assert "\n" not in message.message


async def test_unknown_settings_are_logged_once_by_name(start: Start, examples: Path) -> None:
    session = await start(refresh=False, options={"colour": "red", "threads": 1})
    await session.hints(session.open(examples / "solution.go", language="go"))
    assert [message.message for message in session.client.log_messages if "colour" in message.message] == [
        "initializationOptions: unknown setting `colour`; see docs/settings.md for all settings"
    ]
    assert session.client.messages == []


async def test_errors_inside_are_logged_and_do_not_pop_up(start: Start, examples: Path) -> None:
    session = await start(refresh=False)
    body = b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":1}}'
    session.client._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    hints = await session.hints(session.open(examples / "functions.py"))
    assert hints
    assert session.client.messages == []
    assert any(message.type == types.MessageType.Error for message in session.client.log_messages)


async def test_the_server_listens_on_tcp() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(*SERVE, "--tcp", f"127.0.0.1:{port}")
    writer = None
    while writer is None and process.returncode is None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.wait({asyncio.ensure_future(process.wait())}, timeout=0.1)
    assert writer is not None
    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
    writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    answer = await reader.readuntil(b"inlayHintProvider")
    assert answer.startswith(b"Content-Length: ")
    writer.close()
    assert await process.wait() == 0
