"""Samples of one process, written to a separate file: JSON Lines, one write per test, never rewritten.

A line is an array whose first item says what it is: ``start`` (a header), ``function`` (a place), ``test`` (one
begins), ``seen`` (one has ended: its samples and, by name, the sizes of the calls' inputs), ``disturbed`` (why times
must not count), ``uncollected`` (a file of tests that cannot be read, and why), ``end``. A process that dies loses the
test that it is in; where nothing can be written any more, measuring stops.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

from .function_registry import Function, Sizes

FORMAT = "rlm-spool-2"
FORMATS = (FORMAT, "rlm-spool-1")
"""Those that can be read; the first had no sizes."""


class RecordingWriter:
    """A file in ``folder``; ``failure`` says why nothing more is written.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, folder: Path, **header: object) -> None:
        self.path = folder / f"{os.getpid()}-{time.time_ns()}.jsonl"
        self.failure: str | None = None
        self._file: int | None = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        # Tests may put others in their place in every module, as pyfakefs does.
        self._write_bytes, self._close_file = os.write, os.close
        self._known: set[int] = set()
        self._write(["start", {"format": FORMAT, "pid": os.getpid(), **header}])

    def test(self, name: str) -> None:
        """A test begins."""
        self._write(["test", name])

    def disturbed(self, reason: str) -> None:
        """Times of this process must not count."""
        self._write(["disturbed", reason])

    def uncollected(self, file: str, reason: str) -> None:
        """A file of tests cannot be read."""
        self._write(["uncollected", file, reason])

    def seen(self, touched: list[Function]) -> None:
        """A test has ended that reached these functions."""
        lines: list[list[object]] = [
            ["function", one.number, one.module, one.qualname, one.file, one.line, one.kind]
            for one in touched
            if one.number not in self._known
        ]
        self._known.update(one.number for one in touched)
        lines.append(
            [
                "seen",
                [
                    [
                        one.number,
                        one.exceptions,
                        int(one.recursive),
                        int(one.threads),
                        one.samples.tolist(),
                        _columns(one.sizes),
                    ]
                    for one in touched
                ],
            ]
        )
        self._write(*lines)

    def end(self, **about: object) -> None:
        """The session has ended as it should."""
        self._write(["end", about])
        self.close()

    def close(self) -> None:
        """Write nothing any more, as in a forked child."""
        if self._file is not None:
            self._close_file(self._file)
            self._file = None

    def _write(self, *lines: list[object]) -> None:
        if self._file is None:
            return
        data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
        try:
            while data:
                data = data[self._write_bytes(self._file, data) :]
        except OSError as error:
            self.failure = f"{self.path}: cannot be written ({error.strerror})"
            self.close()


def _columns(calls: Sequence[Sizes]) -> dict[str, float | list[float | None]]:
    """The sizes of calls by name: a list with a value or None per call, one value where it is that of each."""
    columns: dict[str, float | list[float | None]] = {}
    for name in dict.fromkeys(name for sizes in calls for name in sizes):
        values = [sizes.get(name) for sizes in calls]
        first = values[0]
        columns[name] = first if first is not None and values.count(first) == len(values) else values
    return columns
