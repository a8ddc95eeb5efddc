"""Terminal output: one-line errors, one-line notes and a progress bar on stderr; lines and aligned tables on stdout.

Everything printed here may name files, code and models of strangers, so it is made printable.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rlm_core import boundary

from .escaping import printable

PROGRAM = "rlm-lsp"


def report_error(error: Exception | str) -> None:
    """Print a one-line error that the user can fix."""
    _print(f"{PROGRAM}: error: {_one_line(error)}")


def note(text: str) -> None:
    """Print a one-line message that is not an error."""
    _print(f"{PROGRAM}: {_one_line(text)}")


@dataclass(slots=True)
class ErrorCounter:
    """Reports errors and counts them."""

    count: int = 0

    def report(self, error: Exception | str) -> None:
        """Print one error, see :func:`report_error`."""
        self.count += 1
        report_error(error)


class _FailureHandler(logging.Handler):
    """Prints the lines of each record as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        first, *rest = record.getMessage().splitlines()
        note(first)
        for text in rest:
            _print(printable(text))


@contextmanager
def failures() -> Iterator[None]:
    """Print what fails at the boundary around units, see :mod:`rlm_core.boundary`, for the duration of the block."""
    log, handler = logging.getLogger(boundary.LOGGER), _FailureHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _print(text: str) -> None:
    if "tqdm" in sys.modules:
        # Clears a visible progress bar before printing, and redraws it below the line.
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)
    else:
        print(text, file=sys.stderr)


def _one_line(text: Exception | str) -> str:
    return printable(" ".join(str(text).split()))


class Progress(Protocol):
    """Reports how far a command has come."""

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` steps are complete."""
        ...


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A progress bar on stderr for the duration of the block, if stderr is a terminal.

    No bar is shown when stdout is a terminal too: the printed rows show the progress, and would break the bar.
    """
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda done, total: None
        return
    from tqdm import tqdm

    with tqdm(desc=title, file=sys.stderr, leave=False, dynamic_ncols=True) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield show


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where needed: ``1 file``, ``1,024 files``."""
    return f"{number:,} {noun}{'' if number == 1 or noun == 'information' else 's'}"


def line(text: str) -> None:
    """Print one line on stdout, at once: the next one may take minutes."""
    print(printable(text), flush=True)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows on stdout in aligned columns; all rows have the same number of cells."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
