"""What the commands share on the terminal: one-line errors, one-line notes and a progress bar on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

PROGRAM = "rlm-lsp"


def report_error(error: Exception | str) -> None:
    """Print one line about something a user can mend."""
    _print(f"{PROGRAM}: error: {_one_line(error)}")


def note(text: str) -> None:
    """Print one line that is not an error."""
    _print(f"{PROGRAM}: {_one_line(text)}")


def _print(line: str) -> None:
    if "tqdm" in sys.modules:
        # A bar that is on the screen makes room for the line.
        from tqdm import tqdm

        tqdm.write(line, file=sys.stderr)
    else:
        print(line, file=sys.stderr)


def _one_line(text: Exception | str) -> str:
    return " ".join(str(text).split())


class Progress(Protocol):
    """Tells how far a command has come."""

    def __call__(self, done: int, total: int) -> None:
        """``done`` of ``total`` steps are behind us."""
        ...


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A progress bar on stderr while the block runs; silent where stderr is no terminal.

    It is silent too where stdout is a terminal: the rows themselves then show the progress, and would break the bar.
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
