"""Functions whose cost is known by timing them from outside: what calibration watches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable


def empty() -> None:
    """Do nothing."""
    return


def caller() -> None:
    """Call another function four times."""
    empty()
    empty()
    empty()
    empty()


def recursive(depth: int) -> None:
    """Call itself ``depth`` times."""
    if depth:
        recursive(depth - 1)


def catcher(raiser: Callable[[], None]) -> None:
    """Catch an exception of another function eight times."""
    for _ in range(8):
        with contextlib.suppress(ValueError):
            raiser()


ALL: tuple[Callable[..., None], ...] = (empty, caller, recursive, catcher)
