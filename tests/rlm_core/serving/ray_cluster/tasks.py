"""What the nodes do in the tests."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from rlm_core import DataError


def square(order: tuple[int, str]) -> tuple[int, int]:
    """A square, and the process that made it; of the first two each waits until the other is worked on."""
    number, folder = order
    Path(folder, f"{number}").touch()
    if number < 2:
        wait_for(Path(folder, f"{1 - number}"))
    return number * number, os.getpid()


def square_unless_bad(number: int) -> int:
    """A square; 2 is bad input and 3 has no square at all."""
    if number == 2:
        raise DataError("2 is bad input")
    return number * number // (number != 3)


def die_once(order: tuple[int, str]) -> int:
    """Double a number; the process that is first to double 3 dies of it."""
    number, folder = order
    mark = Path(folder, "died")
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * 2


def die(number: int) -> int:
    """The end."""
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def count(order: tuple[int, frozenset[int], str]) -> Iterator[tuple[int, int]]:
    """Count to five by what is not counted yet, each into a file; wait after the third for the file ``go``."""
    number, counted, folder = order
    for step in range(5):
        if step in counted:
            continue
        with Path(folder, f"{number}-{step}").open("a") as file:
            file.write("x")
        yield number, step
        if step == 2:
            wait_for(Path(folder, "go"))


def wait(folder: str) -> None:
    """Say that the work has begun, and wait; say so when it is ended."""
    Path(folder, f"begun.{os.getpid()}").touch()
    try:
        wait_for(Path(folder, "never"))
    except KeyboardInterrupt:
        Path(folder, f"ended.{os.getpid()}").touch()
        raise


def wait_for(path: Path) -> None:
    """Return when there is such a file; a minute at most."""
    end = time.monotonic() + 60
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)


def node_of(number: int) -> str:
    """The id of the node that works on an item."""
    import ray

    return str(ray.get_runtime_context().get_node_id())
