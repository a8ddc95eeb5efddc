"""Runs a job in child processes and collects their rows. This side never imports user code.

A child announces what it begins, sends a row when that is done, and is ended when a case takes longer than its limit
or the child dies. What it had begun then gets a row that says so, and a new child goes on with the rest.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from rlm_core.folders import ScratchFolder
from rlm_core.processes import end_group, exit_reason

from .bench_rows import Row, RowFile, row_key

Event = dict[str, Any]
Report = Callable[[Row], None]
_TAIL = 4000
_END_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RunnerLimits:
    """Seconds that a child may take to start (imports included) and for one case; bytes of memory (0: no limit)."""

    start: float = 300.0
    case: float = 120.0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class RunnerJob:
    """The work of one child process.

    ``runner`` is a module of this package, ``about`` is part of every row, ``options`` are the runner's own, and
    ``environment`` is added to the child's.
    """

    runner: str
    about: Mapping[str, Any]
    options: Mapping[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class RowCounts:
    """Numbers of rows by status; ``known`` existed before."""

    made: dict[str, int] = field(default_factory=dict)
    known: int = 0


class RowCollector:
    """Takes the events of :func:`work_through`: appends rows, reports and counts them. ``done`` are keys with a row."""

    def __init__(self, rows: RowFile, report: Report, *, retry: bool = False) -> None:
        self._rows, self._report = rows, report
        self._before = frozenset(rows.done(retry=retry))
        self._known: set[str] = set()
        self.done, self.tally = set(self._before), RowCounts()

    def take(self, event: Event) -> None:
        """Take an event.

        Raises:
            DataError: a row could not be written.
        """
        if event["event"] == "known":
            self._known |= {event["key"]} & self._before
            self.tally.known = len(self._known)
            return
        row = event["row"]
        self._rows.add(row)
        self.done.add(row["key"])
        self.tally.made[row["status"]] = self.tally.made.get(row["status"], 0) + 1
        self._report(row)


def run_job(job: RunnerJob, keeper: RowCollector, limits: RunnerLimits) -> None:
    """Work through a job; ``keeper`` takes its rows as they are made.

    Raises:
        DataError: a row could not be written.
    """
    with closing(work_through(job, keeper.done, limits)) as events:
        for event in events:
            keeper.take(event)


def work_through(job: RunnerJob, done: Iterable[str], limits: RunnerLimits) -> Generator[Event, None, None]:
    """Work through a job in child processes, but for the keys that are ``done``.

    Yields ``{"event": "row", "row"}`` for each row as it is made, and ``{"event": "known", "key"}`` for what is done.
    """
    done = set(done)
    whole = row_key(job=dict(job.about), options=dict(job.options))

    def made(row: Row) -> Event:
        done.add(row["key"])
        date = datetime.now(UTC).isoformat(timespec="seconds")
        return {"event": "row", "row": {**job.about, **row, "date": date}}

    while True:
        with _Child(job, done, limits) as child:
            outcome = yield from child.follow(made)
        if outcome.finished:
            return
        if outcome.again:
            continue
        begun = outcome.begun
        yield made({**(begun or {"key": whole}), "status": outcome.status, "error": outcome.error})
        if begun is None:
            return


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The end of a child process: finished, asking for a successor, or interrupted."""

    finished: bool = False
    again: bool = False
    begun: Row | None = None
    status: str = ""
    error: str = ""


class _Child:
    """One child process and the events that it sends, one JSON object per line."""

    def __init__(self, job: RunnerJob, done: set[str], limits: RunnerLimits) -> None:
        self._limits = limits
        # What compilers leave behind goes with the child.
        self._folder = ScratchFolder()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        root = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__package__}.runner_process import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **job.environment, "PYTHONPATH": path, "TMPDIR": str(self._folder.path)},
            # Ctrl-C is for the parent, which ends the child; and what the child starts ends with it.
            start_new_session=True,
        )
        order = {"runner": job.runner, "options": dict(job.options), "memory": limits.memory}
        self._order = json.dumps({**order, "done": sorted(done)}).encode() + b"\n"
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()

    def __enter__(self) -> _Child:
        threading.Thread(target=self._listen, daemon=True).start()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(self._order)
            self._process.stdin.flush()
        except OSError:
            # It died at once; following it says why.
            pass
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            try:
                if stream is not None:
                    stream.close()
            except OSError:
                pass
        self._folder.close()

    def follow(self, made: Callable[[Row], Event]) -> Generator[Event, None, _Outcome]:
        """Read events until the child ends or has to be ended; rows, which ``made`` completes, are passed on."""
        begun: Row | None = None
        limit, since, what = self._limits.start, time.monotonic(), "starting"
        while True:
            try:
                event = self._events.get(timeout=max(0.0, since + limit - time.monotonic()))
            except queue.Empty:
                self._end()
                return _Outcome(begun=begun, status="timeout", error=f"no answer within {limit:g} s of {what}")
            since = time.monotonic()
            if event is None:
                return self._death(begun)
            match event["event"]:
                case "begin":
                    begun, limit, what = event["row"], self._limits.case, "its start"
                case "row":
                    row, begun = {**(begun or {}), **event["row"]}, None
                    yield made(row)
                case "pass":
                    begun = None
                case "known":
                    yield event
                case "again":
                    return _Outcome(again=True)
                case "end":
                    return _Outcome(finished=True)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if isinstance(event, dict) and "event" in event:
                    self._events.put(event)
        except (OSError, ValueError):
            # The pipe was closed under the reader: the child is being ended.
            pass
        self._events.put(None)

    def _death(self, begun: Row | None) -> _Outcome:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            code = 0
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _TAIL))
        errors = self._errors.read().decode("utf-8", "replace")
        # The kernel ends what asks for more memory than there is by SIGKILL.
        return _Outcome(begun=begun, status="crash", error=exit_reason(code, errors))

    def _end(self) -> None:
        end_group(self._process, _END_SECONDS)
