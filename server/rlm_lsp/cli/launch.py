"""The processes of a command that several may run together: they act as one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rlm_core import DataError

if TYPE_CHECKING:
    from rlm_core.training.distributed import Processes


@contextmanager
def launched(accelerate: bool) -> Iterator[Processes]:
    """The processes; all but the main one are silent, and end with status 0 when that one tells what went wrong.

    Raises:
        RlmError: as :func:`rlm_core.training.distributed.processes`.
        ModuleNotFoundError: an extra is not installed.
    """
    from rlm_core.training.distributed import ReportedElsewhereError, processes

    try:
        with processes(accelerate) as found:
            yield found
    except ReportedElsewhereError:
        raise click.exceptions.Exit(0) from None


def check_full(accelerate: bool, full: bool, what: str) -> None:
    """Refuse what one process does in minutes.

    Raises:
        DataError: ``--accelerate`` was given for a student.
    """
    if accelerate and not full:
        raise DataError(f"--accelerate: {what} is a student, which one process fits in minutes; it is for full models")
