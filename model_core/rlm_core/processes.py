"""Child processes: which program is started, and how what is started is stopped, ended and reported.

Every process that runs other people's code, or reads other people's files, leads its own process group, so that
whatever it started ends with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

_LINE_CHARACTERS = 200


def find_program(name: str) -> str | None:
    """The path of a program in the absolute folders of PATH; a name with a folder is that very file.

    Never one of the working folder, which may be a workspace: Windows looks there first, as does a PATH with ``.``.
    """
    if os.name == "nt" and not name.lower().endswith(".exe"):
        name += ".exe"
    if Path(name).name != name:
        return shutil.which(name)
    paths = (Path(folder, name) for folder in os.get_exec_path() if Path(folder).is_absolute())
    return next((found for path in paths if (found := shutil.which(str(path))) is not None), None)


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Collects the signals that ask this process to stop (Ctrl-C, termination, hang-up) instead of raising.

    An exception between any two steps of the standard library would leave its locks held. A signal that this process
    was started to ignore stays ignored. Outside the main thread nothing is collected.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def collect(number: int, frame: FrameType | None) -> None:
        received.append(number)

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handlers = {
        number: handler for number in numbers if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    for number in handlers:
        signal.signal(number, collect)
    try:
        yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def end_group(process: subprocess.Popen[Any], seconds: float | None = None) -> None:
    """Kill a process and all processes of its group, then wait for it.

    Args:
        process: started as the leader of a process group.
        seconds: how long to wait; a process that a driver holds longer is left behind. None waits until it has ended.
    """
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def exit_reason(code: int, errors: str = "") -> str:
    """Describe how a process ended: ``ended by SIGKILL``, ``exit status 1: last line of errors``."""
    how = f"ended by {signal_name(-code)}" if code < 0 else f"exit status {code}"
    return how + last_line(errors)


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; the number where the system has no name for it."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def last_line(text: str) -> str:
    """The last line that is not blank, after a colon; empty without one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1][:_LINE_CHARACTERS]}" if lines else ""
