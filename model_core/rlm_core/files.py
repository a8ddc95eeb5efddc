"""Files, written whole or not at all, and JSON Lines, read with the place of each mistake.

Every writer of the project goes through :func:`atomic_write`, every reader of JSON Lines through
:func:`read_json_lines`. Nothing here knows what the files mean.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import DataError


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path next to ``path`` to write to; it replaces ``path`` when the block ends without an exception.

    Readers see the old file or the new one, never a part of one. After an exception the old file is untouched and
    nothing is left behind.

    Raises:
        OSError: the file cannot be written or replaced.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """The values of a ``.jsonl`` or ``.jsonl.gz`` file, each with ``path:line`` for messages; blank lines are skipped.

    Raises:
        DataError: the file cannot be read, or a line is not JSON.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            yield from parse_json_lines(lines, str(path))
    except (OSError, UnicodeDecodeError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataError(f"{path}: cannot be read ({reason})") from None


def parse_json_lines(lines: Iterable[str], name: str) -> Iterator[tuple[str, Any]]:
    """The values of lines of JSON, each with ``name:line`` for messages; blank lines are skipped.

    Raises:
        DataError: a line is not JSON.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise DataError(f"{where}: not JSON ({reason}); fix or remove the line") from None
        yield where, value
