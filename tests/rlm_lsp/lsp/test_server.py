"""The wiring of the server: which errors of pygls pop up, and what it keeps of messages."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import FeatureNotificationError, JsonRpcException, JsonRpcInternalError, JsonRpcInvalidParams
from rlm_lsp.lsp.server import Protocol, Server

from .conftest import Wire

pytestmark = pytest.mark.timeout(30)
_START = {"line": 0, "character": 0}


@pytest.mark.usefixtures("lenient")
def test_errors_inside_pop_up_once_and_each_kind_is_logged_once_without_its_text(server: Server, wire: Wire) -> None:
    for number in range(3):
        server.session.log_error(ValueError(f"code {number}"))
        try:
            raise KeyError(f"code {number}")
        except KeyError:
            server.report_server_error(JsonRpcInternalError("code"), FeatureNotificationError)
    [popped] = wire.texts("window/showMessage")
    assert popped.startswith("rlm-lsp: internal error: ValueError. See the log")
    first, second = wire.texts("window/logMessage")
    assert first == "background work failed: ValueError"
    assert re.match(r"a notification failed: KeyError in [\w/]*test_server.py:\d+ \(test_errors_", second)
    log = server.session.log_tail.text()
    assert log.count("ValueError") == log.count("KeyError") == 1
    assert "code" not in log


class _BrokenError(Exception):
    """An error with a text that must not leave the process."""


async def _hover(client: _Client, number: int) -> Any:
    client.send("textDocument/hover", {"textDocument": {"uri": "untitled:a"}, "position": _START}, id=number)
    await client.answer(number)
    return client.errors[-1]


@pytest.mark.asyncio
@pytest.mark.usefixtures("lenient")
async def test_a_request_that_fails_gets_no_traceback_and_is_logged_once(server: Server) -> None:
    async def fail(params: types.HoverParams) -> None:
        raise _BrokenError("def secret(): pass")

    server.protocol.fm.features[types.TEXT_DOCUMENT_HOVER] = fail
    client = _Client(server)
    await _edit(client, 1)
    errors = [await _hover(client, 100 + number) for number in range(10)]
    assert errors == [{"code": -32603, "message": "internal error (_BrokenError); see the log"}] * 10
    assert len(client.popped) == 1
    assert len(client.logged) == 1
    assert "test_server.py:" in client.logged[0]
    assert "secret" not in str([errors, client.popped, client.logged, server.session.log_tail.text()])
    assert len(server.session.log_tail.text().encode()) < 1_000


def test_what_the_client_got_wrong_does_not_pop_up(server: Server, wire: Wire) -> None:
    server.report_server_error(JsonRpcInvalidParams("no position"), FeatureNotificationError)
    assert wire.texts("window/showMessage") == []
    assert len(wire.texts("window/logMessage")) == 1


class _Client:
    """Sends messages to a server in this process, and keeps the ids of those that were answered."""

    def __init__(self, server: Server) -> None:
        assert isinstance(server.protocol, Protocol)
        self._protocol, self.answered = server.protocol, list[Any]()
        self.errors: list[Any] = []
        self.popped: list[Any] = []
        self.logged: list[str] = []
        self._protocol.set_writer(self)

    def write(self, data: bytes) -> None:
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        if "method" not in message:
            self.answered.append(message["id"])
            self.errors += [message["error"]] if "error" in message else []
        elif message["method"] == "window/showMessage":
            self.popped.append(message)
        elif message["method"] == "window/logMessage":
            self.logged.append(message["params"]["message"])

    def close(self) -> None:
        pass

    def send(self, method: str, params: Mapping[str, Any], **more: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        self._protocol.handle_message(message)

    def error(self, message: object) -> tuple[Any, int] | None:
        """The id and the code of the error that a message is answered with at once."""
        before = len(self.errors)
        self._protocol.handle_message(message)
        return (self.answered[-1], self.errors[-1]["code"]) if len(self.errors) > before else None

    async def answer(self, number: int) -> None:
        while number not in self.answered:
            await asyncio.sleep(0)


async def _edit(client: _Client, count: int) -> None:
    client.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1)
    await client.answer(1)
    document = {"uri": "untitled:a", "languageId": "plaintext", "version": 0, "text": "0"}
    client.send("textDocument/didOpen", {"textDocument": document})
    for version in range(1, count):
        document = {"uri": "untitled:a", "version": version}
        client.send("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": str(version)}]})
        place = {"textDocument": {"uri": "untitled:a"}, "position": {"line": 0, "character": 0}}
        client.send("textDocument/hover", place, id=version + 1)
    client.send("workspace/executeCommand", {"command": "rlm-lsp.clearCache"}, id=count + 1)
    await client.answer(count + 1)
    await asyncio.sleep(0)


def test_nothing_is_kept_of_messages_that_were_handled(server: Server) -> None:
    client = _Client(server)
    asyncio.run(asyncio.wait_for(_edit(client, 1_000), 20))
    assert len(client.answered) == 1_001
    assert server.workspace.get_text_document("untitled:a").source == "999"
    # The last messages are dropped when the next one arrives.
    assert len(server.protocol._request_futures) <= 2
    assert server.protocol._result_types == {}


async def _shut_down_while_busy(client: _Client, count: int, release: threading.Event) -> None:
    client.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1)
    await client.answer(1)
    for number in range(count):
        client.send("test/wait", {}, id=f"wait {number}")
    client.send("shutdown", {}, id=2)
    try:
        await client.answer(2)
    finally:
        release.set()


def test_shutdown_is_answered_while_requests_wait_for_a_thread(server: Server) -> None:
    client, release = _Client(server), threading.Event()

    @server.feature("test/wait")
    @server.thread()
    def wait(_: Any) -> None:
        release.wait()

    asyncio.run(asyncio.wait_for(_shut_down_while_busy(client, 100, release), 20))
    assert [error for error in client.errors if "iteration" in error["message"]] == []
    assert 2 in client.answered


def _request(method: object, params: object, number: object = 7) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (_request("textDocument/hover", {"textDocument": 1}), (7, -32602)),
        (_request("textDocument/hover", []), (7, -32602)),
        (_request("textDocument/didClose", {"textDocument": {"uri": "untitled:a"}}), (7, -32601)),
        ({"jsonrpc": "2.0", "id": 7, "method": "no/method"}, (7, -32601)),
        (_request(1, {}), (7, -32600)),
        (_request("textDocument/hover", {}, [1]), (None, -32600)),
        (_request("textDocument/hover", {}, None), (None, -32600)),
        ({"id": 7, "method": "textDocument/hover"}, (7, -32600)),
        ([], (None, -32600)),
        (_request("initialize", {"processId": None, "rootUri": None, "capabilities": {}}), (7, -32600)),
        ({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": 1}}, None),
        ({"jsonrpc": "2.0", "id": 7, "result": {}}, None),
    ],
)
def test_a_message_that_cannot_be_handled_is_answered_with_an_error(
    server: Server, message: object, answer: tuple[Any, int] | None
) -> None:
    client = _Client(server)
    client.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1)
    assert client.error(message) == answer


def test_requests_before_initialize_and_after_shutdown_are_refused(server: Server) -> None:
    client, status = _Client(server), _request("rlm-lsp/status", {})
    assert client.error(status) == (7, -32002)
    client.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1)
    client.send("shutdown", {}, id=2)
    assert client.error(status) == (7, -32600)


@pytest.mark.parametrize("error", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), RecursionError(), ValueError("x")])
def test_what_is_not_json_is_answered_with_a_parse_error_and_does_not_pop_up(server: Server, error: Exception) -> None:
    client = _Client(server)
    server.report_server_error(error, JsonRpcException)
    assert client.answered == [None]
    assert [entry["code"] for entry in client.errors] == [-32700]
    assert client.popped == []
