"""Worker processes of one command: items in batches -> a result per item, in the order of the items.

A worker is a new interpreter that answers batches until its pipe is closed, so that none outlives this process. The
death of a worker costs the item that it worked on its answer: the other items of the batch are tried one by one.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from rlm_core import RlmError, boundary
from rlm_core.processes import exit_reason
from rlm_core.source.units import MAX_FILE_BYTES

from rlm_lsp.sources import SourceFile

# To start a process takes 1.6 s of one core, as much as to predict 40 KB of Python (60 functions), or to analyse and
# look up 160 KB of which all facts and predictions are on the disk.
_BYTES_PER_JOB = 128 * 1024
_BYTES_PER_BATCH, _BATCHES_PER_JOB = 64 * 1024, 8
_LEAST_BYTES = 256  # a small file takes time too
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
Note = Callable[[str], None]
# Makes what answers batches, in the process that answers them. Its argument prints a line, which may be of several
# processes: it is printed once.
Make = Callable[[Note], Callable[[Sequence[_Item]], Sequence[_Result]]]


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def batches_for(sources: Sequence[SourceFile], most: int) -> tuple[int, list[list[SourceFile]]]:
    """How many processes read files, at most ``most`` (0: as many as there are cores), and the files in batches."""
    sizes = [_size(source) for source in sources]
    jobs = min(most or usable_cores(), max(sum(sizes) // _BYTES_PER_JOB, 1))
    # All processes end at about the same time if the last batches are small.
    limit = min(_BYTES_PER_BATCH, sum(sizes) // (_BATCHES_PER_JOB * jobs)) if jobs > 1 else _BYTES_PER_BATCH
    batches: list[list[SourceFile]] = []
    left = 0
    for source, size in zip(sources, sizes, strict=True):
        if left <= 0:
            batches.append([])
            left = limit
        batches[-1].append(source)
        left -= max(size, _LEAST_BYTES)
    return jobs, batches


def _size(source: SourceFile) -> int:
    try:
        return min(source.path.stat().st_size, MAX_FILE_BYTES)
    except OSError:
        return 0


def results(
    make: Make[_Item, _Result],
    batches: Sequence[Sequence[_Item]],
    jobs: int,
    lost: Callable[[_Item, str], _Result],
    note: Note,
) -> Generator[_Result]:
    """The results of all items of ``batches``, in order, from at most ``jobs`` processes.

    Args:
        make: can be pickled, and so can what it is called with and what it gives.
        batches: the items.
        jobs: 1 for this process alone.
        lost: the result of an item whose process has died, and how.
        note: prints a line, see :data:`Make`.

    Raises:
        RlmError: a process cannot be started.
        Exception: whatever answering a batch raises.
    """
    if jobs < 2 or len(batches) < 2:
        answer = make(note)
        for batch in batches:
            yield from answer(batch)
        return
    pool = _Pool(make, batches, min(jobs, len(batches)), lost, note)
    try:
        yield from pool.run()
    finally:
        pool.kill()


@dataclass(slots=True)
class _Worker(Generic[_Item]):
    process: BaseProcess
    connection: Connection
    start: int = 0  # the place of its batch among all items
    batch: Sequence[_Item] = ()


@dataclass(slots=True)
class _Reply(Generic[_Result]):
    """The results of a batch, or why there are none, and the lines that it printed."""

    results: Sequence[_Result] = ()
    error: Exception | None = None
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Pool(Generic[_Item, _Result]):
    def __init__(
        self,
        make: Make[_Item, _Result],
        batches: Sequence[Sequence[_Item]],
        jobs: int,
        lost: Callable[[_Item, str], _Result],
        note: Note,
    ) -> None:
        self._make, self._jobs, self._lost, self._note = make, jobs, lost, note
        self._waiting: deque[tuple[int, Sequence[_Item]]] = deque()
        self._count = 0
        for batch in batches:
            self._waiting.append((self._count, batch))
            self._count += len(batch)
        self._workers: list[_Worker[_Item]] = []
        self._done: dict[int, _Result] = {}
        self._printed: set[str] = set()

    def run(self) -> Iterator[_Result]:
        following = 0
        while following < self._count:
            self._give_out()
            busy = {worker.connection: worker for worker in self._workers if worker.batch}
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                self._take(busy[connection])
            while following in self._done:
                yield self._done.pop(following)
                following += 1

    def kill(self) -> None:
        """End all workers at once: what they do is of no use any more."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()

    def _give_out(self) -> None:
        while self._waiting:
            worker = next((worker for worker in self._workers if not worker.batch), None)
            if worker is None:
                if len(self._workers) >= self._jobs:
                    return
                worker = _started(self._make)
                self._workers.append(worker)
            worker.start, worker.batch = self._waiting.popleft()
            with suppress(OSError):  # it has died, which reading shows
                worker.connection.send(worker.batch)

    def _take(self, worker: _Worker[_Item]) -> None:
        start, batch = worker.start, worker.batch
        worker.batch = ()
        try:
            reply = worker.connection.recv()
        except (EOFError, OSError):
            self._bury(worker, start, batch)
            return
        for text in reply.notes:
            self._print(text, self._note)
        for text in reply.failures:
            first, _, rest = text.partition("\n")
            # Each process logs a traceback once.
            self._print(text if rest not in self._printed else first, logging.getLogger(boundary.LOGGER).error)
            self._printed.add(rest)
        if reply.error is not None:
            raise reply.error
        self._done.update(enumerate(reply.results, start))

    def _print(self, text: str, show: Note) -> None:
        if text not in self._printed:
            self._printed.add(text)
            show(text)

    def _bury(self, worker: _Worker[_Item], start: int, batch: Sequence[_Item]) -> None:
        self._workers.remove(worker)
        worker.process.join()
        worker.connection.close()
        if len(batch) == 1:
            self._done[start] = self._lost(batch[0], exit_reason(worker.process.exitcode or 0))
        else:
            self._waiting.extendleft((start + place, (batch[place],)) for place in reversed(range(len(batch))))


def _started(make: Make[_Item, _Result]) -> _Worker[_Item]:
    ours, theirs = multiprocessing.Pipe()
    # What runs the tests, or whatever else started this process, may have threads: a fork would copy their locks.
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(make, theirs), daemon=True)
    try:
        with _without_interrupts():
            process.start()
    except OSError as error:
        raise RlmError(f"a process cannot be started ({error.strerror}); use --jobs 1") from None
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal. Those started here never see it: this one ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(make: Make[_Item, _Result], connection: Connection) -> None:
    """Answer batches until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where a mask cannot be inherited
    failures: list[str] = []
    notes: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: failures.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger(boundary.LOGGER).addHandler(handler)
    answer: Callable[[Sequence[_Item]], Sequence[_Result]] | None = None
    with suppress(EOFError, OSError):
        while True:
            batch = connection.recv()
            reply: _Reply[_Result]
            try:
                answer = answer or make(notes.append)
                reply = _Reply(answer(batch))
            except Exception as error:
                reply = _Reply(error=_portable(error))
            reply.failures, reply.notes = failures.copy(), notes.copy()
            failures.clear()
            notes.clear()
            connection.send(reply)


def _portable(error: Exception) -> Exception:
    """An exception that another process can read."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - just made here
    except Exception:
        return RuntimeError(boundary.location_of(error))
    return error
