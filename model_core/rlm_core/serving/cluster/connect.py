"""An address -> Ray, with this process as a driver of the cluster there.

Addresses are those of Ray: ``auto`` is the cluster that runs on this machine, ``HOST:PORT`` one that this machine is a
node of, and ``local`` makes one of this machine alone.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO, cast

from rlm_core.errors import RlmError

_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 30.0
_OBJECT_STORE = 128 << 20  # bytes; what goes between processes is small
# What Ray needs minutes to find out, and then tells on many lines, another process finds out within a limit.
_PROBE = """
import logging, sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.CRITICAL)
except Exception as error:
    sys.exit(str(error).splitlines()[0])
"""


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray itself, connected.

    Raises:
        RlmError: Ray is not installed, or no cluster answers at the address in time.
    """
    # Nothing is told to Ray's makers. It reads this when it is imported.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ModuleNotFoundError:
        raise RlmError("ray is not installed; run: pip install '.[ray]'") from None
    own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE}
    if address != "local":
        _probe(address)
        own = {}
    with contextlib.redirect_stdout(cast(TextIO, _Output(sys.stdout))):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL, **own)
        except Exception as error:
            raise RlmError(f"--ray {address}: {_first_line(error)}") from None
        try:
            yield ray
        finally:
            with contextlib.redirect_stdout(io.StringIO()):
                ray.shutdown()


class _Output:
    """Standard output for the thread that made it: what Ray's threads tell of lost nodes is no row of ours."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        """Write a text, or pass it over."""
        return self._stream.write(text) if threading.get_ident() == self._thread else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _probe(address: str) -> None:
    """See that a cluster answers at an address.

    Raises:
        RlmError: none does.
    """
    way_out = "name the address that `ray start --head` printed, or local"
    if address.startswith("ray://"):
        raise RlmError(f"--ray {address}: Ray Client is not used; run this on a node of the cluster with --ray auto")
    host, _, port = address.rpartition(":")
    if address != "auto":
        if not host or not port.isdigit():
            raise RlmError(f"--ray {address}: is not auto, local or HOST:PORT; {way_out}")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise RlmError(f"--ray {address}: cannot be reached ({error}); {way_out}") from None
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RlmError(f"--ray {address}: no Ray cluster answers within {_ANSWER_SECONDS:g} s; {way_out}") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise RlmError(f"--ray {address}: {reason} ({way_out})")


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
