"""Measures generated functions in a separate process: requests on stdin, results on stdout, one JSON object per line.

It needs only the standard library and runs under the interpreter that is measured, with limits on memory and on the
time of a call. It runs what it is sent: :mod:`.measuring` sends nothing but what :mod:`.generator` wrote.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import hashlib
import itertools
import json
import resource
import signal
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

CALL_LIMIT = 1.5  # seconds a call
MEMORY_LIMIT = 2 << 30  # bytes of address space
BATCH = 0.0006  # seconds that the calls of one repeat take together
ROUNDS, REPEATS = 4, 3
SLOW = 0.01  # seconds; a slower call is repeated less


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _stop(signum: int, frame: object) -> None:
    raise TimeoutError("call limit")


def prepare(variant: dict[str, Any], fields: int, arguments: str) -> Callable[[], Any]:
    """The call that is measured: the function, or a bound method, with its arguments."""
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(variant["module"], "<generated>", "exec"), namespace)  # noqa: S102 - our own generated code
    values = ast.literal_eval(arguments)
    if variant["owner"]:
        target = getattr(namespace[variant["owner"]](*values[:fields]), variant["name"])
        rest = values[fields:]
    else:
        target, rest = namespace[variant["name"]], values
    return lambda: target(*rest)


def _check(call: Callable[[], Any]) -> dict[str, Any]:
    """One call: its duration in seconds and a digest of what it returned; a second call must return the same."""
    digests = []
    for _ in range(2):
        start = time.perf_counter()
        with _time_limit(CALL_LIMIT):
            result = call()
        seconds = time.perf_counter() - start
        digests.append(hashlib.sha1(repr(result).encode(), usedforsecurity=False).hexdigest())
        if seconds > SLOW * 5:
            break
    if len(set(digests)) > 1:
        raise ValueError("changes its arguments")
    return {"seconds": seconds, "result": digests[0]}


def _repeats(call: Callable[[], Any], seconds: float) -> list[float]:
    """Seconds a call, for each repeat of one round."""
    loops = max(1, min(20_000, int(BATCH / max(seconds, 1e-8))))
    repeats = REPEATS if seconds < SLOW else 1
    found = []
    clock = time.perf_counter_ns
    for _ in range(repeats):
        start = clock()
        for _ in itertools.repeat(None, loops):
            call()
        found.append((clock() - start) / loops * 1e-9)
    return found


def _memory(call: Callable[[], Any], seconds: float) -> int:
    """Peak bytes above the level at entry, the median of three calls (of one if it is slow)."""
    found = []
    tracemalloc.start()
    try:
        for _ in range(3 if seconds < SLOW else 1):
            gc.collect()
            level = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            with _time_limit(CALL_LIMIT * 4):
                result = call()
            found.append(tracemalloc.get_traced_memory()[1] - level)
            del result
    finally:
        tracemalloc.stop()
    return int(statistics.median(found))


def measure(request: dict[str, Any]) -> list[dict[str, Any]]:
    """A result for each variant of a request: ``error``, or latency (seconds) and memory (bytes).

    The rounds of all variants take turns, so that a change of the machine's load meets them alike.
    """
    # What is alive already is left out of the collections that the calls set off.
    gc.collect()
    gc.freeze()
    calls: list[Callable[[], Any] | None] = []
    results: list[dict[str, Any]] = []
    for variant in request["variants"]:
        try:
            call = prepare(variant, request["fields"], request["arguments"])
            results.append(_check(call))
            calls.append(call)
        except (Exception, RecursionError) as error:
            results.append({"error": type(error).__name__})
            calls.append(None)
    overhead = min(_repeats(lambda: None, 1e-8))
    rounds: list[list[list[float]]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for found, timed, result in zip(rounds, calls, results, strict=True):
            if timed is not None and not (result["seconds"] > SLOW * 5 and len(found) > 1):
                found.append(_repeats(timed, result["seconds"]))
    for found, measured, result in zip(rounds, calls, results, strict=True):
        if measured is None:
            continue
        ordered = sorted(itertools.chain.from_iterable(found))
        result["latency"] = max(min(statistics.median(repeats) for repeats in found) - overhead, 0.0)
        result["p10"], result["p90"] = ordered[len(ordered) // 10], ordered[(len(ordered) * 9) // 10]
        try:
            result["memory"] = _memory(measured, result.pop("seconds"))
        except (Exception, RecursionError) as error:
            result["error"] = f"{type(error).__name__} while memory was traced"
    return results


def main() -> None:
    """Answer requests until stdin ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    signal.signal(signal.SIGALRM, _stop)
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
