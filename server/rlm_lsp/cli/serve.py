"""``rlm-lsp serve``: the language server over stdio or TCP."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from functools import partial

import click
from lsprotocol import types
from rlm_core import RlmError

from rlm_lsp.lsp.server import create_server
from rlm_lsp.lsp.stdio import end_soon, streams

from . import options

_SWITCH_SECONDS = 0.0005
_GC_THRESHOLDS = (50_000, 20, 20)


@click.command()
@click.option("--stdio", is_flag=True, help="Communicate over stdin and stdout (the default).")
@click.option("--tcp", metavar="HOST:PORT", help="Listen for one client on this address instead.")
@options.cpu_scale
def command(stdio: bool, tcp: str | None) -> None:
    """Run the language server until the client disconnects.

    On stdout, only the protocol is written. As the protocol demands, the exit status is 1 if a client of stdio leaves
    without a shutdown request. The server also ends when the process that the client names as its own has ended.
    """
    if stdio and tcp is not None:
        raise RlmError("serve: give either --stdio or --tcp")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="rlm-lsp: %(levelname)s: %(message)s")
    # pygls warns of each request that a client cancels too late, and prints a traceback for each message that it cannot
    # read and each that fails, with the exception's text; the server logs and answers them.
    for name in ("pygls.protocol.json_rpc", "pygls.server"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    address = _address(tcp) if tcp is not None else None
    server = create_server(on_gone=partial(_leave, 1))
    # asyncio would wait for the thread that reads stdin, until the next message.
    signal.signal(signal.SIGINT, lambda *_: _leave(128 + signal.SIGINT))
    server.feature(types.EXIT)(lambda params: end_soon(partial(_leave, int(not server.shut_down))))
    # A thread that returns from the encoder or a parser waits this long for the interpreter; the default is 5 ms.
    sys.setswitchinterval(_SWITCH_SECONDS)
    # Analyses make many short-lived objects. With the default thresholds every few edits cause a pass over all that
    # the server remembers, which takes longer than a prediction. What is imported by now is never garbage.
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        if address is None:
            server.start_io(*streams(partial(_leave, 1)))
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


def _leave(status: int) -> None:
    """End at once, on any thread: there is nothing to save, and threads may be busy or wait for input."""
    os._exit(status)


def _address(tcp: str) -> tuple[str, int]:
    host, _, port = tcp.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise RlmError(f"--tcp {tcp}: is not HOST:PORT; for example --tcp 127.0.0.1:2087")
    return host, int(port)
