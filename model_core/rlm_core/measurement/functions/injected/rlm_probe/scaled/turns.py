"""Times the functions of a bench file, in turn with another process: ``python -m rlm_probe.scaled.turns FILE``.

Two such processes have the same code at two revisions. Each reads lines of JSON and answers each with one:
``["make", name, size]`` makes inputs and says whether a call waits; ``["round", waits]`` times a round of calls with
copies of them, and says the seconds of a call: on the wall if calls wait, else of the processor, which other work on
the machine does not change. The answers are ``["ok", value]`` or ``["error", reason]``. Standard output itself leads
nowhere from then on.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

from ..plain_data import NotPlainError
from .bench import MakeInputs, load_bench
from .copies import clone

_ROUND_SECONDS = 0.03
_MOST_CALLS, _MOST_COPIES = 100_000, 1_000
_TRIALS = 3


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    makers = load_bench(sys.argv[1])
    timer: _Timer | None = None
    for line in sys.stdin:
        what, *rest = json.loads(line)
        try:
            if what == "make":
                timer = None
                timer = _Timer(_maker(makers, rest[0]), rest[1])
                answer = ["ok", timer.waits]
            elif timer is None:
                answer = ["error", "no inputs"]
            else:
                answer = ["ok", timer.round(rest[0])]
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            answer = ["error", f"{type(error).__name__}: {error}"[:300]]
        print(json.dumps(answer), file=answers)


def _maker(makers: dict[str, MakeInputs | str], name: str) -> MakeInputs:
    maker = makers.get(name)
    if maker is None:
        raise LookupError(f"no function {name}")
    if isinstance(maker, str):
        raise RuntimeError(maker)
    return maker


class _Timer:
    """Times a function with inputs of a size, in rounds of as many calls as take about ``_ROUND_SECONDS``."""

    def __init__(self, maker: MakeInputs, size: int) -> None:
        self._maker, self._size = maker, size
        made = maker(size)
        if not isinstance(made, tuple) or not made or not callable(made[0]):
            raise TypeError("a bench function must return a function and its arguments")
        self._can_copy = True
        self._called: Callable[..., Any] = made[0]
        self._given: tuple[Any, ...] = made[1:]
        self._calls = 1
        # The first call pays for caches and imports.
        self._timed(1, perf_counter)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        seconds = min(self._timed(1, perf_counter) for _ in range(_TRIALS))
        # A process gives up the processor by itself when it waits.
        self.waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw > before
        self._calls = max(1, min(_MOST_CALLS, int(_ROUND_SECONDS / max(seconds, 1e-9))))
        if self._arguments() is not self._arguments():
            self._calls = min(self._calls, _MOST_COPIES)

    def round(self, waits: bool) -> float:
        """Return the mean seconds of a call in a round."""
        return self._timed(self._calls, perf_counter if waits else process_time)

    def _timed(self, calls: int, clock: Callable[[], float]) -> float:
        shared = self._arguments()
        if shared is self._arguments():
            # Arguments that no call can change.
            inputs = [shared] * calls
        else:
            inputs = [shared, *(self._arguments() for _ in range(calls - 1))]
        called = self._called
        gc.collect()
        gc.disable()
        try:
            began = clock()
            for arguments in inputs:
                called(*arguments)
            return (clock() - began) / calls
        finally:
            gc.enable()

    def _arguments(self) -> tuple[Any, ...]:
        """Copies of the arguments, or new ones where they are not plain data; the same object if none can change."""
        if self._can_copy:
            try:
                copies = tuple(clone(one) for one in self._given)
            except NotPlainError:
                self._can_copy = False
            else:
                is_same = all(copy is one for copy, one in zip(copies, self._given, strict=True))
                return self._given if is_same else copies
        return self._maker(self._size)[1:]


if __name__ == "__main__":
    main()
