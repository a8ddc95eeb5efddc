"""A server without a client: what it writes is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from rlm_lsp.lsp.server import Server, create_server
from rlm_lsp.lsp.session import Session


class Wire:
    """Keeps what is written to the client."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []

    def write(self, data: bytes) -> None:
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        self.messages.append((message["method"], message["params"]["message"]))

    def close(self) -> None:
        self.messages.clear()

    def texts(self, method: str) -> list[str]:
        return [text for name, text in self.messages if name == method]


@pytest.fixture
def server() -> Iterator[Server]:
    server = create_server()
    yield server
    server.close()


@pytest.fixture
def session(server: Server) -> Session:
    return server.session


@pytest.fixture
def wire(server: Server) -> Wire:
    wire = Wire()
    server.protocol.set_writer(wire)
    return wire
