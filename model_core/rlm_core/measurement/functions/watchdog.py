"""Sees from the growth of recordings which measured process hangs: in a test for too long, or doing nothing at all."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_IDLE_TIMES = 4
_IDLE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Hung:
    """A process that does not go on, and the test that it is in; empty outside of tests."""

    pid: int | None
    test: str


@dataclass(slots=True)
class _Followed:
    pid: int
    offset: int = 0
    rest: bytes = b""
    last: bytes = b""
    grew: float = 0.0


class Watchdog:
    """Follows the recordings of one attempt; those in ``before`` are of earlier ones.

    A test may take ``limit`` seconds; between tests, all processes together may be silent four times as long, at least
    ten minutes, since imports and fixtures of whole sessions may take their time. A limit of 0 lets everything pass.
    """

    def __init__(self, folder: Path, before: Iterable[Path], limit: float) -> None:
        self._folder, self._limit = folder, limit
        self._before = frozenset(before)
        self._followed: dict[Path, _Followed] = {}
        self._grew = time.monotonic()

    def look(self) -> Hung | None:
        """A process that hangs, if any does; one whose test hangs comes first."""
        if not self._limit:
            return None
        now = time.monotonic()
        for path in self._folder.glob("*.jsonl"):
            if path not in self._before:
                self._follow(path, now)
        for path, one in self._followed.items():
            if one.last.startswith(b'["test"') and now - one.grew > self._limit:
                # It is told once.
                self._before |= {path}
                self._followed.pop(path)
                return Hung(one.pid, one.last[len(b'["test","') : -2].decode(errors="replace"))
        if now - self._grew > max(self._limit * _IDLE_TIMES, _IDLE_SECONDS):
            return Hung(None, "")
        return None

    def _follow(self, path: Path, now: float) -> None:
        one = self._followed.get(path)
        if one is None:
            pid = path.name.partition("-")[0]
            one = self._followed[path] = _Followed(int(pid) if pid.isdigit() else 0, grew=now)
        try:
            if path.stat().st_size == one.offset:
                return
            with path.open("rb") as file:
                file.seek(one.offset)
                data = file.read()
        except OSError:
            return
        one.offset += len(data)
        lines = (one.rest + data).split(b"\n")
        one.rest = lines.pop()
        if lines:
            one.last, one.grew, self._grew = lines[-1], now, now
