"""Terminal output on stderr: one-line errors, one-line notes and a progress bar. Standard output is left to results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PROGRAM = "rlm-lsp"


def report_error(error: Exception | str) -> None:
    """Print a one-line error that the user can fix."""
    _print(f"{PROGRAM}: error: {_one_line(error)}")


def note(text: str) -> None:
    """Print a one-line message that is not an error."""
    _print(f"{PROGRAM}: {_one_line(text)}")


def _print(line: str) -> None:
    if "tqdm" in sys.modules:
        # Clears a visible progress bar before printing, and redraws it below the line.
        from tqdm import tqdm

        tqdm.write(line, file=sys.stderr)
    else:
        print(line, file=sys.stderr)


def _one_line(text: Exception | str) -> str:
    return " ".join(str(text).split())


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
