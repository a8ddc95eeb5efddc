"""Connections that never send the head of a request: they end, and keep nobody out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from rlm_core.serving import connections, wire

from .support import HTTP, LengthPredictor, serving

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def server() -> Iterator[str]:
    with serving(LengthPredictor()) as url:
        yield url


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60)


def ended(connection: socket.socket) -> bool:
    """Whether the server closes a connection, without an answer, within a minute."""
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("start", [b"", b"P", b"POST / HTTP/1.1\r\nHost: x\r\n"])
def test_a_head_that_does_not_end_is_not_waited_for(server: str, start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    with connect(server) as waits:
        waits.sendall(start)
        assert ended(waits)


def test_a_second_head_is_timed_like_the_first(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    with connect(server) as waits:
        waits.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        while b'"queued":0}' not in received:
            received += waits.recv(1000)
        waits.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
        assert ended(waits)


def test_a_thousand_connections_with_a_request_line_each_block_no_client(server: str) -> None:
    with ExitStack() as opened:
        for _ in range(1_000):
            waits = opened.enter_context(connect(server))
            waits.sendall(b"POST /v3/predict HTTP/1.1\r\n")
        for _ in range(3):
            response = HTTP.request("GET", server + wire.HEALTH, timeout=10)
            assert response.status == 200
