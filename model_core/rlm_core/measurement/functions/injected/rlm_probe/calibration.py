"""Calibrates the overhead of measuring a call, beyond what the meters see, on functions whose time is known.

The least of several short rounds counts, since other load only ever slows a round down, and the functions take turns in
each round. The pace of a processor changes, above all where two share a core, so costs are found again while tests run:
for a call of whose time they are much, right after its test. A call that they would make less than nothing ran at
another pace than they did, and takes the lesser of these costs and those before.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from statistics import StatisticsError, median
from time import perf_counter_ns
from types import CodeType
from typing import Protocol

from . import calibration_targets as subject
from .function_registry import Function, FunctionRegistry, Scope
from .latency import Clock, Costs, LatencyMeter
from .memory import MemoryMeter

CALLS, DEPTH = 20, 30
DISTURBED = 1.6  # the median round over the least
_FIRST, _AGAIN = 100, 5  # rounds of a millisecond, at the start and after tests
_ATTEMPTS = 3
_INTERVAL = 250_000_000  # nanoseconds after which costs are found again
_HEAVY = 5_000  # nanoseconds of costs from which they may be much of a call's time
_MANY = 1 << 60


class Watcher(Protocol):
    """Notifies a meter when calls begin and end."""

    def find(self) -> None:
        """Look for functions in scope from now on."""

    def subjects(self) -> Sequence[tuple[Function, Callable[..., None]]]:
        """The functions of :mod:`.subject`, watched."""

    def compiled(self, source: bytes, module: str, path: str) -> CodeType:
        """Compile a file that is run and not imported, so that its functions are watched."""

    def stop(self) -> None:
        """Watch nothing any more."""


Make = Callable[[Scope, FunctionRegistry, LatencyMeter | MemoryMeter], Watcher]


class Calibrator:
    """Knows what a watcher of latencies costs; ``steady`` unless the machine was too restless to tell at the start."""

    def __init__(self, watcher: Watcher, *, clock: Clock = perf_counter_ns) -> None:
        self._clock = clock
        plain = runpy.run_path(str(subject.__file__))
        watched = watcher.subjects()
        for function, _ in watched:
            function.taken = -_MANY  # no limit of calls, and no test has touched them
        given: list[tuple[object, ...]] = [(0,), (0,), (DEPTH,), (_raise,)]
        names = [one.__name__ for one in subject.ALL]
        self._subjects = [
            (plain[name], call, function, arguments)
            for name, (function, call), arguments in zip(names, watched, given, strict=True)
        ]
        self._rounds(1)  # warms up
        found = []
        for _ in range(_ATTEMPTS):
            found.append(self._find(_FIRST))
            if found[-1][0] <= DISTURBED:
                break
        disturbance, self.costs = min(found, key=lambda one: one[0])
        self.steady = disturbance <= DISTURBED
        self._found_at = clock()

    def settle(self, touched: Iterable[Function]) -> None:
        """A test has ended: take the costs off the calls of the functions that it reached."""
        calls = [(function, call) for function in touched for call in function.raw]
        before = self.costs
        if self._clock() - self._found_at > _INTERVAL or any(self.costs.weigh(call, _HEAVY) for _, call in calls):
            with suppress(StatisticsError):  # nothing is seen in a forked child, or where a test took the events away
                self.costs = self._find(_AGAIN)[1]
            self._found_at = self._clock()
        least = before.least(self.costs)
        for function, call in calls:
            net = call[0] - self.costs.of(call)
            function.samples.append(round(net if net >= 0 else call[0] - least.of(call)))
        for function in touched:
            function.raw.clear()

    def _find(self, rounds: int) -> tuple[float, Costs]:
        """How restless the machine was, and the costs."""
        loops, *times = self._rounds(rounds)
        # The least of each, not of their difference: a round in which only the empty loop was slow would win.
        least = [min(one) for one in times]
        disturbance = max(median(one) / max(low, 1.0) for one, low in zip(times, least, strict=True))
        beyond = [seen - (plain - min(loops)) for plain, seen in zip(least[::2], least[1::2], strict=True)]
        own = max(beyond[0], 0.0)
        each = zip(beyond[1:], (8, 2 * DEPTH, 8), strict=True)
        return disturbance, Costs(own, *(max(more - own, 0.0) / events for more, events in each))

    def _rounds(self, count: int) -> list[list[float]]:
        """The nanoseconds of a turn of an empty loop in each round, then those of a call.

        Of each function first of a loop that calls it, timed from outside, then as the meter sees a call.
        """
        loops: list[float] = []
        times: list[list[float]] = [[] for _ in range(2 * len(self._subjects))]
        for _ in range(count):
            loops.append(self._loop())
            for number, (plain, call, function, given) in enumerate(self._subjects):
                times[2 * number].append(self._calls(plain, given))
                function.forget()
                for _ in range(CALLS):
                    call(*given)
                times[2 * number + 1].append(median(elapsed for elapsed, *_ in function.raw))
        return [loops, *times]

    def _loop(self) -> float:
        clock = self._clock
        started = clock()
        for _ in range(CALLS):
            pass
        return (clock() - started) / CALLS

    def _calls(self, function: Callable[..., None], given: tuple[object, ...]) -> float:
        clock = self._clock
        started = clock()
        for _ in range(CALLS):
            function(*given)
        return (clock() - started) / CALLS


def calibrate_memory(make: Make) -> int:
    """The bytes that the memory meter sees in a function that does nothing; allocations are traced from here on."""
    roster = FunctionRegistry(_MANY)
    meter = MemoryMeter(roster)
    watcher = make(Scope(()), roster, meter)
    meter.start()
    try:
        function, empty = watcher.subjects()[0]
        for _ in range(3 * CALLS):
            empty(0)
        return round(median(function.samples[CALLS:]))
    finally:
        watcher.stop()


def _raise() -> None:
    raise ValueError
