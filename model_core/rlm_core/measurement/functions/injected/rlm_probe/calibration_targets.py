"""Functions whose cost is known by timing them from outside: what calibration watches.

They have parameters, as most functions do: taking the sizes of arguments makes the frame of a call into an object.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable


def empty(value: object) -> None:
    """Do nothing."""
    return


def caller(value: object) -> None:
    """Call another function four times."""
    empty(value)
    empty(value)
    empty(value)
    empty(value)


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
