"""Mutation fuzzing of the cost analysis: no exception escapes, no input takes over 2 CPU seconds or over 400 MB.

``python -m tests.reliability.fuzz_analysis --inputs 200000 --seed 1 --workers 2 --state FILE``. An input depends on the
seed and its number alone (and on the interpreter and the installed packages): ``--first 4711 --inputs 1`` repeats one.
With ``--state`` the blocks that are done are written to a file, and a run that is started again goes on behind them.

Each worker is a process with limits: one that an input keeps busy is killed by the system and replaced.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import math
import os
import random
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from rlm_core.boundary import STRICT
from rlm_core.cost.domain.context import Context
from rlm_core.errors import SourceError
from rlm_core.inference.growth import read_text
from rlm_core.inference.growth_facts import fact_estimate, fact_features
from rlm_core.inference.growth_features import growth_features
from rlm_core.inference.work_mixture import features, known_wait, log_work, stated_floor
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import LEVELS, Amount, WorkFacts

from .code_mutations import mutated

SLOW_SECONDS = 2.0  # of processor time
MOST_BYTES = 400e6  # above what a worker starts with
KILLED_SECONDS = 20.0  # of processor time, after which the system ends a worker
_MORE_ADDRESSES = 2 << 30  # than a worker starts with
_FILE_INPUTS = 25  # inputs in a row whose functions come from one file
_BLOCK = 500
_SHOWN_FAILURES = 20
_METRICS = ("latency", "memory")


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong with an input: an exception with its place, the seconds that it took, or its memory."""

    number: int
    kind: str
    details: str = ""


@dataclass(slots=True)
class Report:
    """The result of some inputs; seconds of processor time, and bytes above the start of a worker."""

    inputs: int = 0
    units: int = 0
    slowest: float = 0.0
    seconds: float = 0.0
    memory: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Count the inputs of another report too."""
        self.inputs += other.inputs
        self.units += other.units
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)
        self.memory = max(self.memory, other.memory)
        self.failures += other.failures


def make(seed: int, number: int) -> str:
    """The text of an input."""
    return mutated(random.Random(f"{seed}/{number}"), random.Random(f"{seed}/file {number // _FILE_INPUTS}"))


def read(text: str) -> int:
    """Analyse the text of a file as the product does, with all that is computed of its facts; return its units."""
    try:
        units = Analyser().analyse(ParsedSource(text.encode("utf-8", "surrogatepass"), "python"))
    except SourceError:
        return 0
    for unit in units:
        _read_facts(unit)
    return len(units)


def _read_facts(unit: AnalysedUnit) -> None:
    code = unit.code
    growth_features(read_text(code.text, code.language, code.basis), code.language)
    if code.work is None:
        return
    check_facts(code.work)
    logs = np.linspace(-9.0, 0.0, len(LEVELS))
    assert np.isfinite(fact_features(code.work)).all(), "features of growth are finite"
    for metric in _METRICS:
        fact_estimate(code, metric)
        numbers = [*features(code.work, metric, logs), log_work(code.work, metric)]
        assert np.isfinite(numbers).all(), "features of work are finite"
        assert not math.isnan(stated_floor(code.work, metric)), "a floor is a number"
    assert not any(map(math.isnan, known_wait(code.work))), "a wait is a number"


def check_facts(facts: WorkFacts) -> None:
    """No amount is NaN or negative, and the least is not above the most."""
    for metric in _METRICS:
        cost = facts.of(metric)
        _check_amount(cost.known)
        assert cost.typical >= 0, f"typical {metric}"
        assert cost.large >= 0, f"large {metric}"
        assert all(cause.amount > 0 for cause in cost.causes), f"causes of {metric}"
        assert not any(math.isnan(part) for entry in cost.growth for part in (entry.degree, entry.logs, entry.base))
    for wait in facts.waits:
        assert 0 <= wait.share <= 1, "the share of a wait"
        if wait.seconds is not None:
            _check_amount(wait.seconds)
    assert facts.unknown_calls >= 0, "unknown calls"


def _check_amount(amount: Amount) -> None:
    assert 0 <= amount.least <= amount.most, f"{amount}"
    assert amount.likely >= 0, f"{amount}"


def measured(text: str, start_bytes: float) -> tuple[str, str, float, int]:
    """Read a text: the kind of failure and its details, both empty without one, the seconds, and the units."""
    started = time.process_time()
    kind, details, units = "", "", 0
    try:
        units = read(text)
    except BaseException as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} ({Path(frame.filename).name}:{frame.lineno})"
        details = f"{str(error)[:200]}"
    seconds = time.process_time() - started
    if not kind and seconds > SLOW_SECONDS:
        kind, details = "slow", f"{seconds:.1f} CPU s"
    if not kind and _peak_bytes() - start_bytes > MOST_BYTES:
        kind, details = "memory", f"{(_peak_bytes() - start_bytes) / 1e6:.0f} MB"
    return kind, details, seconds, units


def _peak_bytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _limit() -> None:
    """Let the system end this process where an input keeps it busy or takes all memory."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + _MORE_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _in_child(work: Callable[[Callable[[object], None]], None]) -> tuple[int, int]:
    """Run work in a child process; it gets a function that sends a JSON value. Return its id and what to read from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        os.close(reading)
        _limit()
        # An error must not pass for a unit without facts, nor one in a rule of the library for an unknown call.
        os.environ[STRICT], Context.strict = "1", True
        with os.fdopen(writing, "w", buffering=1) as pipe:
            work(lambda value: print(json.dumps(value), file=pipe))
        status = 0
    finally:
        os._exit(status)


def _read_inputs(seed: int, numbers: Sequence[int], send: Callable[[object], None]) -> None:
    """Read inputs in a child: before each one its number is sent, and then its result."""
    start = _peak_bytes()
    for number in numbers:
        send(number)
        signal.setitimer(signal.ITIMER_PROF, KILLED_SECONDS)
        kind, details, seconds, units = measured(make(seed, number), start)
        send([kind, details, seconds, units, _peak_bytes() - start])
        if kind == "memory":
            return  # the peak stays: the rest is for another process


class _Worker:
    """A child process that reads a block of inputs; it is replaced where an input ends it."""

    def __init__(self, seed: int, block: Sequence[int]) -> None:
        self._seed, self._left = seed, list(block)
        self.first = block[0]
        self.report = Report()
        self._begin()

    def _begin(self) -> None:
        self._buffer = b""
        self._current: int | None = None
        left = list(self._left)
        self.child, self.reading = _in_child(lambda send: _read_inputs(self._seed, left, send))

    def receive(self) -> bool:
        """Take what the child has sent; False when the block is done."""
        data = os.read(self.reading, 1 << 16)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))
        if data:
            return True
        os.close(self.reading)
        _, status = os.waitpid(self.child, 0)
        if self._current is not None:
            name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
            self.report.inputs += 1
            self.report.slowest = max(self.report.slowest, KILLED_SECONDS)
            self.report.failures.append(Failure(self._current, "killed", name))
            self._left = self._left[self._left.index(self._current) + 1 :]
        if not self._left:
            return False
        self._begin()
        return True

    def _take(self, value: object) -> None:
        if isinstance(value, int):
            self._current = value
            return
        assert isinstance(value, list)
        kind, details, seconds, units, memory = value
        number, self._current = self._current, None
        assert number is not None
        self._left = self._left[self._left.index(number) + 1 :]
        failures = [Failure(number, kind, details)] if kind else []
        self.report.add(Report(1, units, seconds, seconds, memory, failures))


def run(
    seed: int, blocks: Iterator[Sequence[int]], workers: int, on_block: Callable[[int, Report], None] | None = None
) -> Report:
    """Read blocks of inputs with some processes at a time; ``on_block`` gets the first number and result of each."""
    total = Report()
    running = [_Worker(seed, block) for block in itertools.islice(blocks, workers)]
    while running:
        ready, _, _ = select.select([worker.reading for worker in running], [], [])
        for worker in [worker for worker in running if worker.reading in ready]:
            if worker.receive():
                continue
            total.add(worker.report)
            if on_block is not None:
                on_block(worker.first, worker.report)
            running.remove(worker)
            running += [_Worker(seed, block) for block in itertools.islice(blocks, 1)]
    total.failures.sort(key=lambda failure: failure.number)
    return total


def outcome(text: str) -> str:
    """The kind of failure of a text, read in a process of its own; empty for none."""

    def work(send: Callable[[object], None]) -> None:
        start = _peak_bytes()
        signal.setitimer(signal.ITIMER_PROF, SLOW_SECONDS * 2)
        send(measured(text, start)[0])

    child, reading = _in_child(work)
    with os.fdopen(reading, "rb") as pipe:
        sent = pipe.read()
    os.waitpid(child, 0)
    return str(json.loads(sent)) if sent else "slow"


def minimised(text: str, kind: str, seconds: float) -> str:
    """The text without all lines that the failure does not need, as far as that is found in time."""
    wanted = "slow" if kind == "killed" else kind
    lines = text.split("\n")
    until = time.monotonic() + seconds
    size = max(len(lines) // 2, 1)
    while True:
        shorter = False
        place = 0
        while place < len(lines) and time.monotonic() < until:
            kept = [*lines[:place], *lines[place + size :]]
            if _parses("\n".join(kept)) and outcome("\n".join(kept)) == wanted:
                lines, shorter = kept, True
            else:
                place += size
        if time.monotonic() >= until or (size == 1 and not shorter):
            return "\n".join(lines)
        size = max(size // 2, 1) if not shorter or size > 1 else 1


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _done(state: Path | None, seed: int) -> dict[int, Report]:
    """The blocks of a seed that earlier runs have read, by their first number."""
    if state is None or not state.exists():
        return {}
    entries = [json.loads(line) for line in state.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return {
        entry["first"]: Report(**{**entry["report"], "failures": [Failure(**f) for f in entry["report"]["failures"]]})
        for entry in entries
        if entry["seed"] == seed
    }


def main(show: Callable[[str], None] = print) -> None:
    """Print the figures, and each kind of failure with its smallest text; the exit status is 1 if an input failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--state", type=Path, help="file of the blocks that are done")
    parser.add_argument("--minimise", type=float, default=60.0, metavar="SECONDS", help="for each kind of failure")
    parser.add_argument("--print", action="store_true", help="print the inputs and do not read them")
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.inputs)
    if arguments.print:
        for number in numbers:
            show(make(arguments.seed, number))
        return
    blocks = [numbers[place : place + _BLOCK] for place in range(0, len(numbers), _BLOCK)]
    done = _done(arguments.state, arguments.seed)
    total = Report()
    for block in blocks:
        if block[0] in done:
            total.add(done[block[0]])

    def on_block(first: int, report: Report) -> None:
        if arguments.state is not None:
            with arguments.state.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"seed": arguments.seed, "first": first, "report": asdict(report)}) + "\n")
        failed = ", ".join(f"{failure.number} {failure.kind}" for failure in report.failures)
        show(f"{first}: slowest {report.slowest:.2f} s, {report.memory / 1e6:.0f} MB; failed: {failed or 'none'}")

    total.add(run(arguments.seed, (b for b in blocks if b[0] not in done), arguments.workers, on_block))
    kinds: dict[str, list[Failure]] = {}
    for failure in total.failures:
        kinds.setdefault(failure.kind, []).append(failure)
    for kind, failures in list(kinds.items())[:_SHOWN_FAILURES]:
        first = failures[0]
        show(
            f"\n--seed {arguments.seed} --first {first.number} --inputs 1: {kind}: {first.details}"
            f" ({len(failures)} inputs)"
        )
        if arguments.minimise:
            show(minimised(make(arguments.seed, first.number), kind, arguments.minimise))
    slow = sum(failure.kind in ("slow", "killed") for failure in total.failures)
    large = sum(failure.kind == "memory" for failure in total.failures)
    show(
        f"\n{total.inputs:,} inputs, {total.units:,} units, {total.seconds:,.0f} CPU s;"
        f" {len(total.failures) - slow - large} exceptions, {slow} over {SLOW_SECONDS:.0f} CPU s (slowest"
        f" {total.slowest:.2f}), {large} over {MOST_BYTES / 1e6:.0f} MB (most {total.memory / 1e6:.0f})"
    )
    raise SystemExit(bool(total.failures))


if __name__ == "__main__":
    main()
