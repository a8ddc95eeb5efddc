"""The server's messages to people: an error inside pops up once, and is in the log always."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pygls.exceptions import FeatureNotificationError, JsonRpcInternalError, JsonRpcInvalidParams
from rlm_lsp.lsp.server import Server, create_server

pytestmark = pytest.mark.timeout(30)


class Wire:
    """Keeps what is written to the client."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []

    def write(self, data: bytes) -> None:
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        self.messages.append((message["method"], message["params"]["message"]))

    def close(self) -> None:
        self.messages.clear()


@pytest.fixture
def server() -> Iterator[Server]:
    made = create_server()
    yield made
    made.close()


@pytest.fixture
def wire(server: Server) -> Wire:
    made = Wire()
    server.protocol.set_writer(made)
    return made


def told(wire: Wire, method: str) -> list[str]:
    return [text for name, text in wire.messages if name == method]


def test_an_error_inside_pops_up_once_and_is_logged_always(server: Server, wire: Wire) -> None:
    server.log_error(ValueError("one"))
    server.log_error(ValueError("two"))
    server.report_server_error(JsonRpcInternalError("three"), FeatureNotificationError)
    [popped] = told(wire, "window/showMessage")
    assert "ValueError('one')" in popped
    assert len(told(wire, "window/logMessage")) == 3
    assert all(word in server.log_tail.text() for word in ("one", "two", "three"))


def test_what_the_client_got_wrong_does_not_pop_up(server: Server, wire: Wire) -> None:
    server.report_server_error(JsonRpcInvalidParams("no position"), FeatureNotificationError)
    assert told(wire, "window/showMessage") == []
    assert len(told(wire, "window/logMessage")) == 1


def test_a_line_is_logged_once(server: Server, wire: Wire) -> None:
    server.log_once("no git")
    server.log_once("no git")
    assert told(wire, "window/logMessage") == ["no git"]
