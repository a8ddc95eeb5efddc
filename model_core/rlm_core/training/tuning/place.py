"""A directory that appears under its name only when it is complete: whatever interrupts leaves no half model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rlm_core.errors import DataError
from rlm_core.models import summary


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A directory to write a model into, and the place that it takes."""

    directory: Path
    out: Path

    def commit(self) -> str:
        """Give the complete model its place; its id."""
        model_id = summary(self.directory).model_id
        if self.out.is_dir():
            self.out.rmdir()  # it was empty when we began
        self.directory.rename(self.out)
        return model_id


def check_free(out: Path) -> None:
    """Refuse a place that holds something.

    Raises:
        DataError: it does.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: already exists; give another --name or --out, or remove it")


@contextmanager
def unfinished(out: Path) -> Iterator[Unfinished]:
    """An empty directory beside ``out``; unless it is committed, nothing is left of it, however the block ends.

    Raises:
        DataError: it cannot be written.
    """
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        yield Unfinished(partial, out)
    except OSError as error:
        where = error.filename or out
        raise DataError(f"{where}: cannot be written ({error.strerror}); choose another --out") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
