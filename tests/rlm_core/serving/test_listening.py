"""The listening socket: where it is, that answers leave at once, and what is said when it cannot be had."""

from __future__ import annotations

import asyncio
import socket

import pytest
from rlm_core import RlmError
from rlm_core.serving.listening import listen

pytestmark = pytest.mark.timeout(60)


@pytest.mark.asyncio
async def test_answers_are_not_held_back_until_they_fill_a_packet() -> None:
    found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        found.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listener = listen("127.0.0.1", 0)
    async with await asyncio.start_server(connected, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        assert await found
        writer.close()


def test_a_port_that_is_taken_is_named() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RlmError) as caught:
            listen("127.0.0.1", port)
    assert str(caught.value) == (
        f"--host 127.0.0.1 --port {port}: cannot listen (Address already in use); choose others"
    )
