"""Signals to stop, noted while code that others wrote runs in child processes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stops() -> Iterator[list[int]]:
    """The signals to stop that have come: Ctrl-C, and being told to end, at which what was started must end too.

    They are noted rather than raised, since an exception between any two steps of the standard library would leave its
    locks as they are. A signal that this process was started to ignore stays ignored.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def take(number: int, frame: FrameType | None) -> None:
        came.append(number)

    names = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {
        number: handler for number in names if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    for number in before:
        signal.signal(number, take)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
