"""Processes of one command: results in order, lines printed once, and deaths that cost one item."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from rlm_core import RlmError, boundary
from rlm_lsp.cli.workers import Note, batches_for, results, usable_cores
from rlm_lsp.sources import SourceFile

NUMBERS = [[0, 1, 2], [3], [4, 5], [6, 7, 8, 9]]


class BrokenError(Exception):
    """An exception that cannot be read by another process."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


def squares(note: Note) -> Callable[[Sequence[int]], list[tuple[int, int]]]:
    note("ready")
    return lambda batch: [(number * number, os.getpid()) for number in batch]


def deadly(note: Note) -> Callable[[Sequence[int]], list[int]]:
    def answer(batch: Sequence[int]) -> list[int]:
        if 4 in batch and hasattr(signal, "SIGKILL"):
            os.kill(os.getpid(), signal.SIGKILL)
        return list(batch)

    return answer


def refusing(note: Note) -> Callable[[Sequence[int]], list[int]]:
    raise RlmError("there is no model")


def failing(note: Note) -> Callable[[Sequence[int]], list[int]]:
    def answer(batch: Sequence[int]) -> list[int]:
        raise BrokenError("one", "two")

    return answer


def logging_failures(note: Note) -> Callable[[Sequence[int]], list[int]]:
    def answer(batch: Sequence[int]) -> list[int]:
        for number in batch:
            logging.getLogger(boundary.LOGGER).error("%s", f"number {number} failed: here\n  the traceback")
        return list(batch)

    return answer


def endless(note: Note) -> Callable[[Sequence[int]], list[int]]:
    def answer(batch: Sequence[int]) -> list[int]:
        if batch == [3]:
            return list(batch)
        signal.pause()
        return []

    return answer


def lost(number: int, reason: str) -> tuple[int, str]:
    return number, reason


def test_results_come_in_order_from_several_processes_or_from_this_one() -> None:
    notes: list[str] = []
    found = list(results(squares, NUMBERS, 3, lost, notes.append))
    assert [square for square, _ in found] == [number * number for number in range(10)]
    processes = {process for _, process in found}
    assert len(processes) > 1
    assert os.getpid() not in processes
    # Each process says it.
    assert notes == ["ready"]
    assert {process for _, process in results(squares, NUMBERS, 1, lost, notes.append)} == {os.getpid()}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
def test_a_process_that_dies_costs_the_item_that_killed_it() -> None:
    found = list(results(deadly, NUMBERS, 2, lost, print))
    assert found == [0, 1, 2, 3, (4, "ended by SIGKILL"), 5, 6, 7, 8, 9]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_for_the_user_arrives_as_it_is(jobs: int) -> None:
    with pytest.raises(RlmError, match="there is no model"):
        list(results(refusing, NUMBERS, jobs, lost, print))


def test_a_failure_that_cannot_be_sent_is_named() -> None:
    with pytest.raises(RuntimeError, match="BrokenError in "):
        list(results(failing, NUMBERS, 2, lost, print))


def test_failures_are_logged_here_and_a_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    assert list(results(logging_failures, NUMBERS, 2, lost, print)) == list(range(10))
    first_lines = {record.getMessage().partition("\n")[0] for record in caplog.records}
    assert first_lines == {f"number {number} failed: here" for number in range(10)}
    assert sum("the traceback" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.skipif(not hasattr(signal, "pause"), reason="signals of POSIX")
def test_all_processes_end_with_their_user() -> None:
    before = set(multiprocessing.active_children())
    with closing(results(endless, [[3], [4], [5], [6]], 2, lost, print)) as found:
        assert next(found) == 3
        started = set(multiprocessing.active_children()) - before
        assert started
    assert not any(process.is_alive() for process in started)


def test_little_work_takes_one_process_and_batches_keep_the_order(tmp_path: Path) -> None:
    sources = [SourceFile(tmp_path / f"{number}.py") for number in range(40)]
    for source in sources[:-1]:  # the last one is missing
        source.path.write_text("x = 1\n" * 2000)
    jobs, batches = batches_for(sources[:5], 4)
    assert (jobs, len(batches)) == (1, 1)
    jobs, batches = batches_for(sources, 3)
    assert jobs == 3
    assert len(batches) > 2 * jobs
    assert [source for batch in batches for source in batch] == sources
    assert batches_for(sources, 0)[0] == min(usable_cores(), 3)
    assert batches_for([], 4) == (1, [])


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals of POSIX")
@pytest.mark.parametrize("command", ["predict", "check"])
def test_an_interrupt_ends_all_processes_at_once(tmp_path: Path, command: str) -> None:
    text = "".join(f"def f{number}(xs):\n    return sorted(xs)[: {number}]\n\n\n" for number in range(100))
    for number in range(60):
        (tmp_path / f"{number:02}.py").write_text(f"# rlm: latency < 1 ns\n{text}")
    program = [sys.executable, "-m", "rlm_lsp"]
    options = ["--format", "jsonl"] if command == "predict" else []
    with subprocess.Popen(
        [*program, command, "--jobs", "2", *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        # Every process has this end of the pipe, so its end is that of all.
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")
