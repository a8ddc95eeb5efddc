"""The streams of stdio: headers between bytes that are no messages, and the end of the client's process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from io import BytesIO

import pytest
from rlm_lsp.lsp.stdio import MOST_BYTES, MessageInput, MessageOutput, watch_process

_GOOD = b"Content-Length: 2\r\n\r\n{}"


def _bodies(data: bytes) -> list[bytes]:
    """The bodies that are read as pygls does it."""
    stream, bodies = MessageInput(BytesIO(data)), []
    while header := stream.readline():
        assert stream.readline() == b"\r\n"
        bodies.append(stream.read(int(header.split(b":")[1])))
    return bodies


@pytest.mark.parametrize(
    "before",
    [
        b"Content-Length: abc\r\n\r\n{}",
        b"Content-Length: -2\r\n\r\n{}",
        b"Content-Length: 0\r\n\r\n{}",
        b"Content-Length: %d\r\n\r\n{}" % (MOST_BYTES + 1),
        b"Content-Length: %s\r\n\r\n{}" % (b"9" * 5_000),
        b"Content-Type: x\r\n\r\n{}",
        b"Content-Length: 7\r\n{}",
        b"Content-Length: 7\r\n{}Content-Type: x\r\n\r\n{}",
        b"\r\n\r\n",
        b"{}",
        b"\x00\xff",
    ],
)
def test_a_message_is_read_after_bytes_that_are_none(before: bytes) -> None:
    assert _bodies(before + _GOOD + _GOOD) == [b"{}", b"{}"]


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Type: x\r\ncontent-length:2\r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_headers_come_in_any_order_and_spelling(header: bytes) -> None:
    assert _bodies(header + b"[]" + _GOOD) == [b"[]", b"{}"]


def _forbidden(number: int) -> int:
    raise PermissionError(number)


@pytest.mark.parametrize("has_descriptors", [True, False])
def test_the_end_of_a_watched_process_is_noticed_also_before_it_is_waited_for(
    has_descriptors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_descriptors:
        monkeypatch.setattr(os, "pidfd_open", _forbidden, raising=False)
    ended = threading.Event()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        watch_process(process.pid, ended.set)
        assert not ended.is_set()
        assert process.stdin is not None
        process.stdin.close()
        assert ended.wait(20)


def test_a_process_that_does_not_run_here_is_not_watched() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    before = threading.active_count()
    watch_process(process.pid, lambda: os.abort())
    watch_process(2**40, lambda: os.abort())
    assert threading.active_count() == before


def test_messages_after_the_end_of_the_output_are_dropped() -> None:
    stream, gone = BytesIO(), []
    output = MessageOutput(stream, lambda: gone.append(True))
    output.write(b"first")
    output.flush()
    assert stream.getvalue() == b"first"
    output.close()
    output.write(b"second")
    output.flush()
    assert not gone


def test_an_output_without_a_reader_is_reported() -> None:
    class Broken(BytesIO):
        def write(self, data: object) -> int:
            raise BrokenPipeError

    gone: list[bool] = []
    MessageOutput(Broken(), lambda: gone.append(True)).write(b"x")
    assert gone == [True]


def test_another_error_of_an_output_is_raised() -> None:
    class Faulty(BytesIO):
        def write(self, data: object) -> int:
            raise ValueError("another")

    with pytest.raises(ValueError, match="another"):
        MessageOutput(Faulty(), lambda: None).write(b"x")
