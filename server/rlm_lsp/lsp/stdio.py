"""The streams of a client over stdio, and the ends of a session without a message.

Input: bytes from the client, which may be malformed. Output: complete messages for pygls, which gives up a connection
after one header that it cannot read.
"""

from __future__ import annotations

import os
import re
import select
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

MOST_BYTES = 2**28  # of one message; a header with a larger length is malformed
_LENGTH = re.compile(rb"content-length:[ \t]*([0-9]{1,10})[ \t]*\r?\n\Z", re.IGNORECASE)
_OTHER_HEADER = re.compile(rb"[A-Za-z][A-Za-z-]*:")
_WATCH_SECONDS = 1.0
_GRACE_SECONDS = 3.0  # after the end of the input; a step of the model or a parser may take longer


class MessageInput:
    """Reads headers as they should be, whatever the client has sent between them.

    A header counts wherever a line ends with it: what comes before is the rest of a message with a wrong length. Before
    an empty line the last length counts. So one message with a bad header costs no more than the next one.
    """

    def __init__(self, stream: BinaryIO, on_end: Callable[[], None] = lambda: None) -> None:
        self._stream, self._on_end = stream, on_end
        self._ends_header = False

    def readline(self) -> bytes:
        """The length of the next message as a header, then the empty line; empty at the end of the input."""
        if self._ends_header:
            self._ends_header = False
            return b"\r\n"
        length = 0
        while line := self._stream.readline():
            if (found := _LENGTH.search(line)) is not None:
                length = int(found[1])
            elif 0 < length <= MOST_BYTES and not line.strip():
                self._ends_header = True
                return b"Content-Length: %d\r\n" % length
            elif _OTHER_HEADER.match(line) is None:
                length = 0
        self._on_end()
        return b""

    def read(self, count: int) -> bytes:
        """The body of a message."""
        return self._stream.read(count)


class MessageOutput:
    """Writes messages; ``on_gone`` is called when the client no longer reads them.

    Messages after the end of the output are dropped: work that is under way then still reports what it does.
    """

    def __init__(self, stream: BinaryIO, on_gone: Callable[[], None]) -> None:
        self._stream, self._on_gone = stream, on_gone

    def write(self, data: bytes) -> None:
        """Write a message."""
        self._try(lambda: self._stream.write(data))

    def flush(self) -> None:
        """Send what was written."""
        self._try(self._stream.flush)

    def _try(self, action: Callable[[], object]) -> None:
        try:
            action()
        except (BrokenPipeError, ConnectionError):
            self._on_gone()
        except ValueError:
            if not self._stream.closed:
                raise

    def close(self) -> None:
        """End the output."""
        self._stream.close()


def streams(on_gone: Callable[[], None]) -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for messages; pygls calls no other methods of them than these classes have."""
    reader = MessageInput(sys.stdin.buffer, partial(end_soon, on_gone))
    writer = MessageOutput(sys.stdout.buffer, on_gone)
    if sys.platform != "win32":  # where a write fails instead
        threading.Thread(target=_watch_output, args=(on_gone,), name="rlm-output", daemon=True).start()
    return cast("BinaryIO", reader), cast("BinaryIO", writer)


def end_soon(on_gone: Callable[[], None]) -> None:
    """Call ``on_gone`` in seconds if this process has not ended by itself: its threads may be busy."""
    timer = threading.Timer(_GRACE_SECONDS, on_gone)
    timer.daemon = True
    timer.start()


def _watch_output(on_gone: Callable[[], None]) -> None:
    """Call ``on_gone`` when standard output has lost its reader, also while there is nothing to write."""
    output = select.poll()
    output.register(1, 0)  # the two below are always reported
    while True:
        events = [event for _, event in output.poll()]
        if any(event & (select.POLLERR | select.POLLHUP) for event in events):
            on_gone()
        if any(event & select.POLLNVAL for event in events):
            return  # closed by ourselves


def watch_process(number: int, on_gone: Callable[[], None]) -> None:
    """Call ``on_gone``, on a thread, when a process ends that runs now.

    A number without a process is that of a client on another machine or in another container.
    """
    if not _runs(number):
        return
    wait = _waiter(number)

    def watch() -> None:
        wait()
        on_gone()

    threading.Thread(target=watch, name="rlm-client", daemon=True).start()


def _waiter(number: int) -> Callable[[], None]:
    """A function that returns when a process has ended."""
    if sys.platform == "linux":
        try:
            return partial(_wait_readable, os.pidfd_open(number))
        except OSError:
            pass  # not in this kernel, or forbidden by a sandbox

    def poll() -> None:
        while _runs(number):
            time.sleep(_WATCH_SECONDS)

    return poll


def _wait_readable(descriptor: int) -> None:
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    ready.poll()
    os.close(descriptor)


def _runs(number: int) -> bool:
    if sys.platform == "win32":
        return _runs_on_windows(number)
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    try:
        # One that has ended and that its parent has not asked about yet.
        return Path(f"/proc/{number}/stat").read_bytes().rpartition(b")")[2].split()[:1] != [b"Z"]
    except OSError:
        return True


def _runs_on_windows(number: int) -> bool:
    import ctypes

    # SYNCHRONIZE; the process has ended if waiting for it succeeds at once.
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    handle = kernel.OpenProcess(0x100000, False, number)
    if not handle:
        return False
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) != 0)
    finally:
        kernel.CloseHandle(handle)
