"""Measures modules whose text fixes their cost: requests on stdin, results on stdout, one JSON object per line.

It runs under the interpreter that is measured, with the limits of the parent package's worker. Latency is CPU time of
the thread, so that other processes disturb it less; arrays are computed by one thread. A cache that the module fills
is emptied before each call, since the first call is the one that costs.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import itertools
import json
import resource
import signal
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

CALL_LIMIT = 2.0  # CPU seconds of a call
TRACED_LIMIT = 8.0  # the same while memory is traced, which costs time
MEMORY_LIMIT = 3 << 30  # bytes of address space
BATCH = 0.0005  # seconds that the calls of one repeat take together
ROUNDS = 3


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _stop(signum: int, frame: object) -> None:
    raise TimeoutError("call limit")


class Call:
    """A function or method of a module with its arguments, and the caches to empty before each call."""

    def __init__(self, variant: dict[str, Any]) -> None:
        module = type(sys)("generated")
        sys.modules["generated"] = module  # dataclasses look their module up
        namespace = module.__dict__
        exec(compile(variant["module"], "<generated>", "exec"), namespace)  # noqa: S102 - our own generated code
        arguments = ast.literal_eval(variant["arguments"])
        if variant["owner"]:
            target = getattr(namespace[variant["owner"]](), variant["name"])
        else:
            target = namespace[variant["name"]]
        self.call: Callable[[], Any] = lambda: target(*arguments)
        self.caches = [value for value in namespace.values() if hasattr(value, "cache_clear")]

    def clear(self) -> None:
        """Empty the caches."""
        for cache in self.caches:
            cache.cache_clear()

    def once(self) -> float:
        """CPU seconds of one call."""
        self.clear()
        start = time.thread_time_ns()
        with _time_limit(CALL_LIMIT):
            start = time.thread_time_ns()
            result = self.call()
            seconds = (time.thread_time_ns() - start) * 1e-9
        del result
        return seconds

    def repeated(self, loops: int) -> float:
        """CPU seconds of a call, on average over ``loops`` calls in a row."""
        call = self.call
        start = time.thread_time_ns()
        for _ in itertools.repeat(None, loops):
            call()
        return (time.thread_time_ns() - start) / loops * 1e-9

    def peak(self) -> int:
        """Peak bytes above the level at entry."""
        call = self.call
        gc.collect()
        tracemalloc.start()
        try:
            # The limit is set first: what it allocates is not the call's.
            with _time_limit(TRACED_LIMIT):
                self.clear()
                level = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                result = call()
                peak = tracemalloc.get_traced_memory()[1]
            del result
        finally:
            tracemalloc.stop()
        return max(peak - level, 0)


def _rounds(seconds: float) -> int:
    """How often a call is measured after the first time, by how long that took."""
    return ROUNDS if seconds < 0.005 else 2 if seconds < 0.05 else 1 if seconds < 0.2 else 0


def measure(request: dict[str, Any]) -> list[dict[str, Any]]:
    """A result for each variant of a request: ``error``, or latency (seconds, the least) and memory (bytes).

    The rounds of all variants take turns, so that a change of the machine's load meets them alike.
    """
    # What is alive already is left out of the collections that the calls set off.
    gc.collect()
    gc.freeze()
    calls: list[Call | None] = []
    timings: list[list[float]] = []
    results: list[dict[str, Any]] = []
    for variant in request["variants"]:
        try:
            call = Call(variant)
            first = call.once()
            # The first of short calls meets cold caches.
            timings.append([first if first > 0.002 else call.once()])
            results.append({})
            calls.append(call)
        except (Exception, RecursionError) as error:
            results.append({"error": type(error).__name__})
            calls.append(None)
            timings.append([])
    empty = Call({"module": "def empty():\n    pass\n", "arguments": "[]", "owner": "", "name": "empty"})
    overhead = min(empty.repeated(2000) for _ in range(2))
    firsts = [found[0] if found else 0.0 for found in timings]
    for at in range(ROUNDS):
        for timed, found, first in zip(calls, timings, firsts, strict=True):
            if timed is None or at >= _rounds(first):
                continue
            if timed.caches or first > BATCH:
                found.append(timed.once())
            else:
                found.append(max(timed.repeated(max(1, min(5000, int(BATCH / max(first, 1e-7))))) - overhead, 0.0))
    for timed, found, result in zip(calls, timings, results, strict=True):
        if timed is None:
            continue
        try:
            # The first traced call may fill what the interpreter keeps.
            result["memory"] = min(timed.peak() for _ in range(2 if found[0] < 0.002 else 1))
        except (Exception, RecursionError) as error:
            result["error"] = f"{type(error).__name__} while memory was traced"
        ordered = sorted(found[1:] or found)
        result["latency"] = min(found)
        result["p10"], result["p90"] = ordered[0], ordered[-1]
    return results


def main() -> None:
    """Answer requests until stdin ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    signal.signal(signal.SIGPROF, _stop)
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
