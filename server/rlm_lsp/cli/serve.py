"""``rlm-lsp serve``: the language server over stdio or TCP."""

from __future__ import annotations

import logging
import sys

from rlm_core import RlmError

from rlm_lsp.lsp.server import create_server

_SWITCH_SECONDS = 0.0005


def serve(tcp: str | None) -> None:
    """Run the server until the client leaves; stdout carries nothing but the protocol.

    As the protocol says, the exit status is 1 where the client of stdio leaves without having asked for the end.

    Raises:
        RlmError: ``tcp`` is not HOST:PORT.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="rlm-lsp: %(levelname)s: %(message)s")
    address = _address(tcp) if tcp is not None else None
    server = create_server()
    # A thread that comes back from the encoder or a parser waits for the interpreter: less than the usual 5 ms.
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        if address is None:
            server.start_io()
        else:
            server.start_tcp(*address)
    except OSError as error:
        if address is None:
            raise
        raise RlmError(f"--tcp {tcp}: cannot listen ({error.strerror}); choose another port") from None
    finally:
        server.close()
    if address is None and not server.shut_down:
        sys.exit(1)


def _address(tcp: str) -> tuple[str, int]:
    host, _, port = tcp.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise RlmError(f"--tcp {tcp}: is not HOST:PORT; for example --tcp 127.0.0.1:2087")
    return host, int(port)
