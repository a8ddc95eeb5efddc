"""Folders nested more deeply than Python recurses: what a hostile archive or a program that was measured leaves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlm_core.folders import remove_tree

DEPTH, _FRAMES = 300, 200


@contextmanager
def nested_folders(parent: Path, name: str = "d", depth: int = DEPTH) -> Iterator[Path]:
    """The innermost of folders that are nested in ``parent``; all are removed at the end, which pytest cannot do.

    Meanwhile Python recurses less deeply than 300 folders: to make and remove 1,100 takes seconds on some file systems.
    """
    current, limit = os.open(parent, os.O_RDONLY), sys.getrecursionlimit()
    try:
        for _ in range(depth):
            os.mkdir(name, dir_fd=current)
            inner = os.open(name, os.O_RDONLY, dir_fd=current)
            os.close(current)
            current = inner
        sys.setrecursionlimit(_frames() + _FRAMES)
        yield parent.joinpath(*[name] * depth)
    finally:
        sys.setrecursionlimit(limit)
        os.close(current)
        remove_tree(parent / name)


def _frames() -> int:
    frame, count = sys._getframe(), 0
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count
