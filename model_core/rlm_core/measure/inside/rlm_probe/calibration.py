"""What measuring a call costs beyond what the meters see themselves, found on functions whose time is known.

The least of several short rounds counts, since other load only ever slows a round down. A calibration whose rounds
differ too much is made again, and after three such it is given back as disturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Protocol

from . import subject
from .latency import Costs, LatencyMeter
from .memory import MemoryMeter
from .roster import Function, Roster, Scope

ROUNDS, CALLS, DEPTH = 9, 60, 30
DISTURBED = 1.6  # the median round over the least
_ATTEMPTS = 3
_MANY = 1 << 60


class Watcher(Protocol):
    """What tells a meter when calls begin and end."""

    def find(self) -> None:
        """Look for functions in scope from now on."""

    def subjects(self) -> Sequence[tuple[Function, Callable[..., None]]]:
        """The functions of :mod:`.subject`, watched."""

    def stop(self) -> None:
        """Watch nothing any more."""


Make = Callable[[Scope, Roster, LatencyMeter | MemoryMeter], Watcher]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The costs; ``steady`` unless the machine was too restless to find them."""

    costs: Costs
    steady: bool


def calibrate(make: Make) -> Calibration:
    """The costs of a way to watch, for the latency meter."""
    found = []
    for _ in range(_ATTEMPTS):
        found.append(_attempt(make))
        if found[-1][0] <= DISTURBED:
            break
    disturbance, costs = min(found, key=lambda one: one[0])
    return Calibration(costs, disturbance <= DISTURBED)


def calibrate_memory(make: Make) -> int:
    """The bytes that the memory meter sees in a function that does nothing; allocations are traced from here on."""
    roster = Roster(_MANY)
    meter = MemoryMeter(roster)
    watcher = make(Scope(()), roster, meter)
    meter.start()
    try:
        function, empty = watcher.subjects()[0]
        for _ in range(CALLS):
            empty()
        return round(median(function.samples[CALLS // 2 :]))
    finally:
        watcher.stop()


def _attempt(make: Make) -> tuple[float, Costs]:
    calls = [(), (), (DEPTH,), (_raise,)]
    plain = [_plain(function, *given) for function, given in zip(subject.ALL, calls, strict=True)]
    roster = Roster(_MANY)
    watcher = make(Scope(()), roster, LatencyMeter(roster, Costs()))
    try:
        seen = [
            _watched(function, call, *given) for (function, call), given in zip(watcher.subjects(), calls, strict=True)
        ]
    finally:
        watcher.stop()
    beyond = [with_watch - without for (with_watch, _), (without, _) in zip(seen, plain, strict=True)]
    own = max(beyond[0], 0.0)
    event, inner, unwound = (
        max(more - own, 0.0) / events for more, events in zip(beyond[1:], (8, 2 * DEPTH, 8), strict=True)
    )
    # The first two carry nearly all corrections.
    disturbance = max(ratio for _, ratio in (*plain[:2], *seen[:2]))
    return disturbance, Costs(own, event, inner, unwound)


def _plain(function: Callable[..., None], *given: object) -> tuple[float, float]:
    """The nanoseconds of a call, timed from outside, and the median round over the least."""
    rounds = []
    for _ in range(ROUNDS + 1):
        started = perf_counter_ns()
        for _ in range(CALLS):
            pass
        between = perf_counter_ns()
        for _ in range(CALLS):
            function(*given)
        rounds.append((perf_counter_ns() - between - (between - started)) / CALLS)
    return _least(rounds)


def _watched(function: Function, call: Callable[..., None], *given: object) -> tuple[float, float]:
    """The nanoseconds that the meter sees in a call, nothing subtracted, and the median round over the least."""
    rounds = []
    for _ in range(ROUNDS + 1):
        del function.samples[:]
        for _ in range(CALLS):
            call(*given)
        rounds.append(median(function.samples))
    return _least(rounds)


def _least(rounds: list[float]) -> tuple[float, float]:
    warm = rounds[1:]  # the first warms up
    least = max(min(warm), 1.0)
    return least, median(warm) / least


def _raise() -> None:
    raise ValueError
