"""The connections of a model server: none may wait for ever for the head of a request, and none keeps others out.

uvicorn times only the pause between two requests. A client that opens many connections and sends a part of a head on
each would hold all that there may be, without a token.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .access import network_of

MOST_CONNECTIONS = 1000
HEAD_SECONDS = 10.0
# Connections without a whole head, also those between two requests; of those above it the oldest is closed.
MOST_WAITING, MOST_WAITING_OF_CLIENT = 500, 250
# Half for one network: the other half is there for everybody else.
MOST_OF_CLIENT = MOST_CONNECTIONS // 2


class TimedConnection(H11Protocol):
    """A connection that is closed when the head of a request takes longer than :data:`HEAD_SECONDS`."""

    _waiting: dict[TimedConnection, str] = {}  # with the client's network, the oldest first  # noqa: RUF012
    _of_clients: dict[str, int] = {}  # noqa: RUF012
    _timer: asyncio.TimerHandle | None = None
    _address: str | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._address = network_of(self.client[0]) if self.client else ""
        count = self._of_clients[self._address] = self._of_clients.get(self._address, 0) + 1
        if count > MOST_OF_CLIENT and not self._close_oldest(self._address):
            self.transport.abort()
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        if self._address is not None:
            left = self._of_clients[self._address] - 1
            if left:
                self._of_clients[self._address] = left
            else:
                del self._of_clients[self._address]
            self._address = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Stop waiting when the head is whole."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._timer is None:
            self._wait()

    def on_response_complete(self) -> None:
        """Let the connection rest until its next head."""
        super().on_response_complete()
        if self._address is not None and (self.cycle is None or self.cycle.response_complete):
            # Until its next head begins, the connection may rest for the time of keep-alive.
            self._waiting[self] = self._address

    def _wait(self) -> None:
        assert self._address is not None
        self._waiting.pop(self, None)
        self._waiting[self] = self._address
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)
        if list(self._waiting.values()).count(self._address) > MOST_WAITING_OF_CLIENT:
            self._close_oldest(self._address)
        elif len(self._waiting) > MOST_WAITING:
            self._close_oldest(None)

    def _stop_waiting(self) -> None:
        self._waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_oldest(self, address: str | None) -> bool:
        """Close the connection that has waited longest, of a client or of all; whether there was one."""
        oldest = next((one for one, host in self._waiting.items() if address in (None, host)), None)
        if oldest is None:
            return False
        oldest._stop_waiting()
        oldest.transport.abort()
        return True
