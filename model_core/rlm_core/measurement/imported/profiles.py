"""Profiles of cProfile (``pstats`` files) -> the mean latency of each function, without the cost of profiling.

A profile has, for each function, the number of calls, the cumulative time of the outermost ones, and its callers. The
profiler takes time for each call, which is in the time of every caller: the calls below a function are estimated from
the call graph and their cost is subtracted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError

from .marshal_data import MarshalError, plain_data
from .timings import FunctionTiming, ToolResult, is_of_project

# Seconds that cProfile adds to a call: 110 to 200 ns with CPython 3.11 to 3.13 on a 2.6 GHz AMD EPYC, and other
# processors are up to twice as fast or slow.
_PER_CALL, _LEAST_PER_CALL, _MOST_PER_CALL = 140e-9, 70e-9, 280e-9
# Where the profiler has more of the time, what is left says little.
_MOST_SHARE = 0.3
_ROUNDS = 200  # until the number of calls below a function is settled
_SETTLED = 1e-3

_HIDDEN = "profiling took too much of the time of the function"

_Function = tuple[str, int, str]


def is_profile(content: bytes) -> bool:
    """Return whether a file's content may be a profile: a dict in marshal format, with places as keys."""
    return content[:1] in (b"{", b"\xfb") and bytes(code & 0x7F for code in content[1:2]) in (b"(", b")", b"0")


def read_profile(path: Path, content: bytes, root: Path, measured_at: float) -> ToolResult:
    """Read the ``content`` of the file ``path``, written at ``measured_at``: the functions in files below ``root``.

    Raises:
        DataError: it is not a profile.
    """
    try:
        found = plain_data(content)
        counts = {_function(key): _Counts(value) for key, value in found.items()}
    except (MarshalError, AttributeError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: not a profile of cProfile ({error}); write one with python -m cProfile -o FILE"
        ) from None
    below = _calls_below(counts)
    left_out: Counter[str] = Counter()
    timings = []
    for function, count in counts.items():
        file, line, name = function
        place = (root / file).resolve()
        if line < 1 or "<" in (file[:1], name[:1]) or not is_of_project(place, root):
            continue
        mean = count.cumulative / count.outermost
        watched = (1 + below[function]) * count.calls / count.outermost
        if _PER_CALL * watched > _MOST_SHARE * mean:
            left_out[_HIDDEN] += 1
            continue
        low, middle, high = (max(0.0, mean - each * watched) for each in (_MOST_PER_CALL, _PER_CALL, _LEAST_PER_CALL))
        is_recursive = count.calls > count.outermost
        timings.append(FunctionTiming(place, name, line, middle, low, high, count.outermost, is_recursive=is_recursive))
    return ToolResult("cProfile", tuple(timings), measured_at, left_out=dict(left_out))


class _Counts:
    """Of a function: its outermost calls, all calls, their cumulative seconds, and the calls by each caller."""

    __slots__ = ("callers", "calls", "cumulative", "outermost")

    def __init__(self, value: Any) -> None:
        outermost, calls, own, cumulative, callers = value
        self.outermost, self.calls, self.cumulative = int(outermost), int(calls), float(cumulative)
        self.callers = {_function(caller): int(_calls_of(edge)) for caller, edge in callers.items()}
        if not 0 < self.outermost <= self.calls or not math.isfinite(self.cumulative) or not float(own) >= 0:
            raise ValueError("counts and times must be positive")


def _calls_of(edge: Any) -> int:
    """Return the calls of a caller; old profiles have a number, others numbers and times."""
    return int(edge[1] if isinstance(edge, tuple) else edge)


def _function(key: Any) -> _Function:
    file, line, name = key
    if not (isinstance(file, str) and isinstance(line, int) and isinstance(name, str)):
        raise ValueError("functions must be places and names")
    return file, line, name


def _calls_below(counts: dict[_Function, _Counts]) -> dict[_Function, float]:
    """Return the mean number of calls that a call of each function leads to, its own not included.

    A profile says who called whom, but not what a call led to for a certain caller, so each call of a function counts
    as its mean call. Recursion is followed until it changes nothing, or for ``_ROUNDS`` steps.
    """
    calls: defaultdict[_Function, list[tuple[_Function, float]]] = defaultdict(list)
    for callee, count in counts.items():
        for caller, number in count.callers.items():
            if caller in counts and caller != callee:
                calls[caller].append((callee, number / counts[caller].calls))
    total = float(sum(count.calls for count in counts.values()))
    below = dict.fromkeys(counts, 0.0)
    for _ in range(_ROUNDS):
        change = 0.0
        for caller, callees in calls.items():
            found = min(total, sum(number * (1 + below[callee]) for callee, number in callees))
            change = max(change, abs(found - below[caller]) / (1 + found))
            below[caller] = found
        if change < _SETTLED:
            break
    return below
