"""The file of benchmark results: JSON Lines, one row per measurement, appended as it is made and never rewritten.

A row has a ``key`` that names what was measured (source, case, configuration, device), so that a run that was stopped
goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError

Row = dict[str, Any]


def row_key(**parts: object) -> str:
    """A short name for what a row measures: the same parts give the same key in every run."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]


def digest(data: bytes) -> str:
    """The SHA-256 of a source text, which says whether a row still is about it."""
    return hashlib.sha256(data).hexdigest()


class RowFile:
    """Appends rows to a file; one process at a time.

    Attributes:
        rows: how many rows the file holds.
        problems: one message for each line of the file that is not a row; such a line is left as it is.

    Raises:
        DataError: the file cannot be written, or another process writes to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.problems: list[str] = []
        self._status: dict[str, str] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror}); name another file with --out") from None
        try:
            _lock(self._file, path)
            self._read()
        except BaseException:
            os.close(self._file)
            raise

    def done(self, *, retry: bool = False) -> set[str]:
        """The keys that have a row; with ``retry`` only those whose measurement succeeded."""
        return {key for key, status in self._status.items() if not retry or status == "ok"}

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row and see it to the disk.

        Raises:
            DataError: the disk is full or the file cannot be written; the rows before are kept.
        """
        line = (json.dumps(row, sort_keys=True, default=str) + "\n").encode("utf-8", "replace")
        before = os.fstat(self._file).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            _sync(self._file)
        except OSError as error:
            _truncate(self._file, before)
            raise DataError(
                f"{self.path}: a row could not be written ({error.strerror}); the {self.rows} rows before it are kept;"
                " make room and run the same command again"
            ) from None
        self.rows += 1
        self._status[str(row["key"])] = str(row.get("status", "ok"))

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read(self) -> None:
        with open(self._file, "rb", closefd=False) as file:
            data = file.read() if file.seekable() and os.path.isfile(self.path) else b""  # noqa: PTH113
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            row = _parsed(line)
            if row is None:
                self.problems.append(f"{self.path}:{number}: not a row of measurements; the line is left alone")
                continue
            self.rows += 1
            self._status[row["key"]] = str(row.get("status", "ok"))
        if data and not data.endswith(b"\n"):
            # A run that was cut off left half a line: the next row begins a new one.
            os.write(self._file, b"\n")


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file; lines that are not rows are skipped; of rows with one key the last counts.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a file that rlm-lsp bench wrote") from None
    last = {row["key"]: row for line in data.split(b"\n") if (row := _parsed(line)) is not None}
    yield from last.values()


def _parsed(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and isinstance(row.get("key"), str) else None


def _lock(file: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: whoever starts two runs on one file gets their rows mixed, not broken.
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(f"{path}: another run writes to it; wait for it, or name another file with --out") from None
    except OSError:
        # Some network file systems know no locks.
        return


def _sync(file: int) -> None:
    try:
        os.fsync(file)
    except OSError as error:
        # A pipe or a device cannot be synced and need not be.
        if error.errno not in (22, 95):
            raise


def _truncate(file: int, size: int) -> None:
    try:
        os.ftruncate(file, size)
    except OSError:
        return
