"""Memory that was freed but not given back: glibc keeps what texts of many lengths leave behind, hundreds of MiB."""

from __future__ import annotations

import ctypes
import sys


def release() -> None:
    """Give freed memory back to the system where the allocator can be asked to (glibc); costs some milliseconds."""
    if sys.platform == "linux":
        # Other C libraries on Linux have no such function.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
