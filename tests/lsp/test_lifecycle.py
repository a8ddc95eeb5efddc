"""Start, end and failure of the server over real connections."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import rlm_core
from lsprotocol import types

from tests.bench.lsp_stdio import COMMAND, Client

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
SERVE = (sys.executable, "-m", "rlm_lsp", "serve")


@pytest.fixture(scope="module")
def command() -> tuple[str, ...]:
    """The command that users run: how it starts and ends is tested here."""
    return COMMAND


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


async def _serving(process_id: int | None = None) -> asyncio.subprocess.Process:
    """A server that has answered ``initialize``."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*SERVE, stdin=pipe, stdout=pipe, stderr=pipe)
    params: dict[str, Any] = {"processId": process_id, "rootUri": None, "capabilities": {}}
    _send(process, {"id": 1, "method": "initialize", "params": params})
    assert process.stdout is not None
    await process.stdout.readuntil(b"inlayHintProvider")
    return process


def _send(process: asyncio.subprocess.Process, message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    assert process.stdin is not None
    process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


async def test_the_server_ends_when_the_process_of_its_client_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as client:
        process = await _serving(client.pid)
        client.kill()
        assert await asyncio.wait_for(process.wait(), 5) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
async def test_an_interrupt_ends_the_server_at_once() -> None:
    process = await _serving(os.getpid())
    process.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(process.wait(), 5) == 130


async def test_the_server_ends_without_a_traceback_when_no_client_reads_its_answers() -> None:
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *SERVE, stdin=asyncio.subprocess.PIPE, stdout=writing, stderr=asyncio.subprocess.PIPE
    )
    os.close(writing)
    os.close(reading)
    _send(
        process, {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}}
    )
    assert await asyncio.wait_for(process.wait(), 20) == 1
    assert process.stderr is not None
    assert b"Traceback" not in await process.stderr.read()


@pytest.mark.parametrize("messages", range(3))
async def test_the_server_ends_without_a_traceback_while_it_loads(messages: int) -> None:
    process = await _serving()
    if messages:
        _send(process, {"method": "initialized", "params": {}})
    for number in range(messages - 1):
        item = {
            "uri": "untitled:a",
            "languageId": "python",
            "version": number,
            "text": "def f(n):\n    return n\n" * 500,
        }
        _send(process, {"method": "textDocument/didOpen", "params": {"textDocument": item}})
        place = {"textDocument": {"uri": "untitled:a"}, "position": {"line": 0, "character": 0}}
        _send(process, {"id": 2, "method": "textDocument/hover", "params": place})
    _, errors = await asyncio.wait_for(process.communicate(b""), 20)
    assert (process.returncode, errors) == (1, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")
@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("end", ["eof", "sigint", "client", "stdout"])
async def test_the_server_ends_within_five_seconds_of_its_client(end: str, is_busy: bool) -> None:
    pipe = asyncio.subprocess.PIPE
    editor = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=pipe)
    server = await asyncio.create_subprocess_exec(*COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, limit=2**26)
    client = Client(server)
    await client.request("initialize", {"processId": editor.pid, "capabilities": {}, "rootUri": None})
    client.notify("initialized", {})
    text = (
        "".join(
            f"def f{number}(items):\n    return sorted(g{number}(items) for _ in range({number}))\n"
            for number in range(5_000)
        )
        if is_busy
        else "def f():\n    pass\n"
    )
    client.open("file:///work.py", text)
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 20_000, "character": 0}}
    hints = asyncio.create_task(
        client.request("textDocument/inlayHint", {"textDocument": {"uri": "file:///work.py"}, "range": place})
    )
    if not is_busy:
        await hints
    else:
        # An answer after the document's means that the loop has begun its analysis.
        await client.request("workspace/executeCommand", {"command": "rlm-lsp.showLog", "arguments": []})
    began = time.monotonic()
    if end == "eof":
        assert server.stdin is not None
        server.stdin.close()
    elif end == "sigint":
        server.send_signal(signal.SIGINT)
    elif end == "client":
        editor.kill()
    else:
        client._reader.cancel()
        server._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
    await asyncio.wait_for(server.wait(), 30)
    assert time.monotonic() - began < 5
    assert server.returncode == (128 + signal.SIGINT if end == "sigint" else 1)
    assert server.stderr is not None
    assert await server.stderr.read() == b""
    hints.cancel()
    await asyncio.gather(hints, return_exceptions=True)
    client._reader.cancel()
    if editor.returncode is None:
        editor.kill()
    await editor.wait()


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
    [message] = session.client.messages
    assert 'unknown setting "colour"' in message.message


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
