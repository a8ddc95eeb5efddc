"""The functions of a bench file at a git revision and in the working tree, timed in turn: ratios with their intervals.

A process for each of the two keeps its modules and inputs, and their rounds alternate, so that other work on the
machine slows down both. The tree of the revision is a copy in a scratch folder; the bench file is that of the working
tree.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import median
from typing import Any, Literal

from rlm_core.errors import DataError
from rlm_core.folders import ScratchFolder
from rlm_core.git import run as run_git
from rlm_core.processes import end_group

from .run import INSIDE, Note
from .scaling import bench_names

LEAST_CHANGE = 1.1
"""Two processes with the same code differ by up to this factor, however well their rounds agree: by their layout."""
CONFIDENCE = 0.9
_STARTING_SECONDS, _ANSWER_SECONDS = 120.0, 60.0
Direction = Literal["slower", "faster", "unchanged", "unknown"]


@dataclass(frozen=True, slots=True)
class RevisionTiming:
    """Seconds of a call at the revision (``base``) and in the working tree (``head``), medians over rounds.

    ``ratio`` is the median of head / base over neighbouring rounds, ``low`` and ``high`` its interval at
    :data:`CONFIDENCE`. Seconds are of the processor, or on the wall if calls wait (``waits``).
    """

    name: str
    size: int
    base: float
    head: float
    ratio: float
    low: float
    high: float
    rounds: int
    waits: bool

    @property
    def direction(self) -> Direction:
        """The change that the whole interval shows; "unknown" where a part of it shows another."""
        if self.low > LEAST_CHANGE:
            return "slower"
        if self.high < 1 / LEAST_CHANGE:
            return "faster"
        return "unchanged" if max(self.high, 1 / self.low) <= LEAST_CHANGE else "unknown"


def compare_revisions(
    folder: Path,
    repository: Path,
    commit: str,
    bench: Path,
    sizes: Sequence[int],
    rounds: int,
    python: str,
    note: Note,
    names: Sequence[str] = (),
) -> Iterator[RevisionTiming]:
    """Time the functions of a bench file in the project ``folder`` of a ``repository`` and at a ``commit`` of it.

    ``names`` are the functions that are timed, by default all; each gets inputs of all ``sizes`` and ``rounds`` rounds.
    ``note`` receives a line about what cannot be called.

    Raises:
        DataError: the bench file or the commit cannot be read, or a process cannot be started.
    """
    if os.name != "posix":
        raise DataError("revisions are measured on Linux and macOS only")
    known = bench_names(bench)
    if unknown := [name for name in names if name not in known]:
        raise DataError(f"{bench}: has no function {unknown[0]}; it has {', '.join(known) or 'none'}")
    with ScratchFolder() as scratch:
        _export(repository, commit, scratch / "base.tar", scratch / "base")
        base_folder = scratch / "base" / folder.relative_to(repository)
        before, now = f"at {commit[:12]}", "in the working tree"
        with _turns(base_folder, bench, python, before) as base, _turns(folder, bench, python, now) as head:
            for name in names or known:
                for size in sizes:
                    try:
                        waits = [one.make(name, size) for one in (base, head)]
                        timing = _timed(name, size, base, head, rounds, waits=any(waits))
                    except _CallError as error:
                        note(f"{name}({size:,}): {error}")
                        break
                    yield timing


def _timed(name: str, size: int, base: _Turns, head: _Turns, rounds: int, *, waits: bool) -> RevisionTiming:
    """Let both take turns: base, head, head, base."""
    times: dict[_Turns, list[float]] = {base: [], head: []}
    for number in range(rounds):
        for one in (base, head) if number % 2 == 0 else (head, base):
            times[one].append(one.round(waits))
    ratios = sorted(after / before for before, after in zip(times[base], times[head], strict=True))
    low, high = median_interval(ratios)
    return RevisionTiming(
        name, size, median(times[base]), median(times[head]), median(ratios), low, high, rounds, waits
    )


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median of ordered values at :data:`CONFIDENCE`, whatever their distribution.

    By the binomial distribution of the number of values below the median; all of them where they are too few.
    """
    count = len(ordered)
    outside, left_out = 0.0, 0
    while 2 * (outside + comb(count, left_out) / 2**count) <= 1 - CONFIDENCE:
        outside += comb(count, left_out) / 2**count
        left_out += 1
    # The interval from the k-th smallest to the k-th largest misses the median if fewer than k are on a side.
    place = max(left_out - 1, 0)
    return ordered[place], ordered[count - 1 - place]


def _export(repository: Path, commit: str, archive: Path, target: Path) -> None:
    run_git(repository, ["archive", "--format=tar", f"--output={archive}", commit])
    try:
        with tarfile.open(archive) as file:
            file.extractall(target, filter="data")
    except (OSError, tarfile.TarError) as error:
        raise DataError(f"{repository}: the tree of {commit} cannot be written ({error})") from None
    archive.unlink()


class _CallError(DataError):
    """A function cannot be called."""


class _Turns:
    """A process that times functions when it is asked to."""

    def __init__(self, process: subprocess.Popen[bytes], what: str) -> None:
        self._process, self._what, self._rest = process, what, b""
        self._is_started = False

    def make(self, name: str, size: int) -> bool:
        """Make inputs for a function; returns whether a call waits.

        Raises:
            DataError: the function fails (a ``_CallError``), or does not end.
        """
        return bool(self._ask("make", name, size))

    def round(self, waits: bool) -> float:
        """Return the mean seconds of a call in a round.

        Raises:
            DataError: see :meth:`make`.
        """
        return max(float(self._ask("round", waits)), 1e-12)

    def _ask(self, *request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise DataError(f"the process {self._what} has ended") from None
        deadline = time.monotonic() + (_ANSWER_SECONDS if self._is_started else _STARTING_SECONDS)
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._process.stdout.fileno(), 1 << 16) if ready else b""
            if not data:
                raise DataError(f"the process {self._what} {'has ended' if ready else 'does not end a call'}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        self._is_started = True
        what, value = json.loads(line)
        if what == "error":
            raise _CallError(f"{self._what}: {value}")
        return value


@contextmanager
def _turns(folder: Path, bench: Path, python: str, what: str) -> Iterator[_Turns]:
    """A process with the modules of a tree."""
    paths = [str(INSIDE), str(folder), str(folder / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
    command = [python, "-P", "-m", "rlm_probe.scaled.turns", str(bench)]
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise DataError(f"{python}: cannot be started in {folder} ({error})") from None
    try:
        yield _Turns(process, what)
    finally:
        end_group(process)
