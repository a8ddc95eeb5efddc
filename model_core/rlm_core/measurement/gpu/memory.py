"""Peak resident memory of a call in this process, where the system can tell it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_of(call: Callable[[], Result]) -> tuple[int | None, Result]:
    """Bytes that the resident set grew by at its highest during a call, and the call's result.

    None where the system has no ``/proc`` that can be reset (Linux alone has it).
    """
    before = _reset()
    result = call()
    high = _read("VmHWM")
    return (max(0, high - before) if before is not None and high is not None else None), result


def _reset() -> int | None:
    """Set the high-water mark to what is resident now, and tell that."""
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return None
    return _read("VmRSS")


def _read(name: str) -> int | None:
    try:
        match = re.search(rf"^{name}:\s*(\d+) kB", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None
