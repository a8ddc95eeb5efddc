"""Profiles of cProfile (``pstats`` files) -> the mean latency of each function, without the cost of profiling.

A profile has, for each function, the number of calls, the cumulative time of the outermost ones, and its callers. The
profiler takes time for each call, which is in the time of every caller. Only functions are kept in which that is a
small part, whatever they led to: those that compute by themselves, call C code that takes long, or wait. Before Python
3.12 all Python code runs up to three times as long while it is profiled, so these profiles are refused.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.measurement.known import python_of

from .marshal_data import MarshalError, plain_data
from .timings import FunctionTiming, ToolResult, is_of_project

# Seconds that cProfile adds to a call: median and most over 14 workloads of the standard library, with CPython 3.13 on
# a 2.6 GHz AMD EPYC.
_PER_CALL, _MOST_PER_CALL = 200e-9, 340e-9
# Where the profiler may have more of the time, what is left says little: it makes small functions look 2 to 5 times as
# expensive, those that call many functions included.
_MOST_SHARE = 0.3

_FIRST_MINOR = 12
_VERSION = re.compile(r"[/\\][Pp]ython3\.?(\d+)[/\\]")
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
    minor = _minor_version(counts, root)
    if minor < _FIRST_MINOR:
        made = f"made with Python 3.{minor}" if minor else "does not show which Python made it"
        raise DataError(
            f"{path}: {made}; import profiles of Python 3.{_FIRST_MINOR} or later, since older ones slow down all code"
        )
    called = _called(counts)
    left_out: Counter[str] = Counter()
    timings = []
    for function, count in counts.items():
        file, line, name = function
        place = (root / file).resolve()
        if line < 1 or "<" in (file[:1], name[:1]) or not is_of_project(place, root):
            continue
        mean = count.cumulative / count.outermost
        most = _MOST_SHARE * count.cumulative / _MOST_PER_CALL
        calls = _calls_within(function, counts, called, most) / count.outermost
        if calls * count.outermost > most:
            left_out[_HIDDEN] += 1
            continue
        is_recursive = count.calls > count.outermost
        low, middle = mean - _MOST_PER_CALL * calls, mean - _PER_CALL * calls
        # Of the calls that are counted, others may have led to most.
        timings.append(FunctionTiming(place, name, line, middle, low, mean, count.outermost, is_recursive=is_recursive))
    return ToolResult("cProfile", tuple(timings), measured_at, "", f"cpython-3.{minor}", dict(left_out))


class _Counts:
    """Of a function: its outermost calls, all calls, their cumulative seconds, and its callers."""

    __slots__ = ("callers", "calls", "cumulative", "outermost")

    def __init__(self, value: Any) -> None:
        outermost, calls, own, cumulative, callers = value
        self.outermost, self.calls, self.cumulative = int(outermost), int(calls), float(cumulative)
        self.callers = [_function(caller) for caller in callers]
        if not 0 < self.outermost <= self.calls or not math.isfinite(self.cumulative) or not float(own) >= 0:
            raise ValueError("counts and times must be positive")


def _minor_version(counts: dict[_Function, _Counts], root: Path) -> int:
    """Return the minor version of the Python 3 that made a profile, by its standard library or the project's Python.

    0 where neither is known.
    """
    found = Counter(int(match[1]) for file, *_ in counts if (match := _VERSION.search(file)) is not None)
    if found:
        return found.most_common(1)[0][0]
    version = (python_of(root / "__init__.py") or "").rpartition(".")[2]
    return int(version) if version.isdigit() else 0


def _function(key: Any) -> _Function:
    file, line, name = key
    if not (isinstance(file, str) and isinstance(line, int) and isinstance(name, str)):
        raise ValueError("functions must be places and names")
    return file, line, name


def _called(counts: dict[_Function, _Counts]) -> dict[_Function, list[_Function]]:
    """Return the functions that each function calls."""
    called: defaultdict[_Function, list[_Function]] = defaultdict(list)
    for callee, count in counts.items():
        for caller in count.callers:
            called[caller].append(callee)
    return called


def _calls_within(
    function: _Function, counts: dict[_Function, _Counts], called: dict[_Function, list[_Function]], most: float
) -> float:
    """Return how many profiled calls the time of a function has at most: all calls of what it may lead to.

    A profile says who called whom, but not what a call led to, so calls on behalf of other functions count as well.
    Beyond ``most`` it is not followed further.
    """
    seen, waiting, calls = {function}, [function], 0.0
    while waiting and calls <= most:
        one = waiting.pop()
        calls += counts[one].calls if one in counts else 0
        for callee in called.get(one, ()):
            if callee not in seen:
                seen.add(callee)
                waiting.append(callee)
    return calls
