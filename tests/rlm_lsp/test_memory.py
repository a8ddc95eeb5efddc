"""Freed memory goes back to the system."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from rlm_lsp import memory

_BLOCK, _BLOCKS = 100_000, 1_000  # small enough for the heap, 95 MiB together


def resident() -> float:
    """What this process holds, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def test_freed_memory_is_given_back_where_the_allocator_can() -> None:
    if sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"):
        memory.release()
        return
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_size_t],
        [ctypes.c_void_p],
    )
    blocks = [libc.malloc(_BLOCK) for _ in range(_BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, _BLOCK)
    # A block at the end that is still in use keeps all before it.
    for block in blocks[:-1]:
        libc.free(block)
    kept = resident()
    memory.release()
    assert kept - resident() > 60
    libc.free(blocks[-1])
