"""The socket that a model server listens on."""

from __future__ import annotations

import os
import socket

from rlm_core.errors import RlmError


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on a host's port; port 0 takes any that is free.

    Raises:
        RlmError: the address cannot be had.
    """
    # asyncio switches Nagle's algorithm off only where the protocol is named; with it each answer takes 40 ms more.
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            # A restart must not wait until the connections of the last run are forgotten.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise RlmError(f"--host {host} --port {port}: cannot listen ({error.strerror}); choose others") from None
    return listener
