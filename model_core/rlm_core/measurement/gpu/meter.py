"""Times calls: warm, caches flushed before each, median and quantiles in seconds.

On a GPU by CUDA events, each call behind an L2 flush on the same stream; on a CPU by the clock, behind a pass over a
buffer that is larger than its caches.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rlm_core.processes import find_program

_FLUSH = 256 * 2**20
_CPU_FLUSH = 64 * 2**20
# Measuring may take this many times what the calls themselves are given.
_PATIENCE = 10
_FIELDS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", "driver_version")


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call: median, and 10 %, 20 %, 80 % and 90 % quantile over ``runs`` calls."""

    median: float
    p10: float
    p20: float
    p80: float
    p90: float
    runs: int

    def row(self) -> dict[str, float | int]:
        """The fields of a row."""
        quantiles = {"p10": self.p10, "p20": self.p20, "p80": self.p80, "p90": self.p90}
        return {"latency": self.median, **quantiles, "runs": self.runs}


@dataclass(frozen=True, slots=True)
class Effort:
    """Durations of warm-up and measurement (seconds), and the least and most calls."""

    warm: float = 0.025
    measure: float = 0.1
    least: int = 10
    most: int = 2000


class Stopwatch(Protocol):
    """Times single calls on a device."""

    def time(self, call: Callable[[], object], count: int) -> list[float]:
        """Seconds of each of ``count`` calls, caches flushed before each."""
        ...


class CpuStopwatch:
    """Times calls on this processor."""

    def __init__(self, flush: int = _CPU_FLUSH) -> None:
        self._buffer, self._other = bytearray(flush // 2), bytearray(flush // 2)

    def time(self, call: Callable[[], object], count: int) -> list[float]:
        """Seconds of each call, after a pass over memory that leaves no input in a cache."""
        seconds = []
        for _ in range(count):
            self._buffer[:] = self._other
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        return seconds


class GpuStopwatch:
    """Times calls on the current GPU by events of its stream."""

    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        size = max(_FLUSH, 4 * int(getattr(properties, "L2_cache_size", 0)))
        self._buffer = torch.empty(size // 4, dtype=torch.int32, device="cuda")

    def time(self, call: Callable[[], object], count: int) -> list[float]:
        """Seconds of each call between two events, the L2 cache overwritten before the first."""
        cuda = self._torch.cuda
        starts = [cuda.Event(enable_timing=True) for _ in range(count)]
        ends = [cuda.Event(enable_timing=True) for _ in range(count)]
        for start, end in zip(starts, ends, strict=True):
            self._buffer.zero_()
            start.record()
            call()
            end.record()
        cuda.synchronize()
        return [start.elapsed_time(end) * 1e-3 for start, end in zip(starts, ends, strict=True)]


def measure(call: Callable[[], object], stopwatch: Stopwatch, effort: Effort) -> Timing:
    """Warm up, then time as many calls as fit into the effort."""
    call()
    start = time.perf_counter()
    estimate = max(statistics.median(stopwatch.time(call, 3)), 1e-7)
    # A flush can take longer than the call.
    whole = max((time.perf_counter() - start) / 3, estimate)
    warm = min(int(effort.warm / estimate), effort.most)
    if warm > 0:
        for _ in range(warm):
            call()
    count = max(effort.least, min(effort.most, int(effort.measure / estimate), int(_PATIENCE * effort.measure / whole)))
    return summary(stopwatch.time(call, count))


def summary(seconds: Sequence[float]) -> Timing:
    """Median and quantiles (linear between order statistics) of timed calls."""
    ordered = sorted(seconds)
    p10, p20, p80, p90 = (quantile(ordered, level) for level in (0.1, 0.2, 0.8, 0.9))
    return Timing(statistics.median(ordered), p10, p20, p80, p90, len(ordered))


def quantile(ordered: Sequence[float], level: float) -> float:
    """The quantile of sorted values at a level 0..1, linear between neighbours."""
    place = level * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def gpu_state() -> dict[str, str]:
    """Clocks, temperature, power and driver of the first visible GPU, from ``nvidia-smi``; empty without it."""
    program = find_program("nvidia-smi")
    if program is None:
        return {}
    command = [program, "-i", "0", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(_FIELDS, (value.strip() for value in text.split(",")), strict=False))


Result = TypeVar("Result")
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_of(call: Callable[[], Result]) -> tuple[int | None, Result]:
    """Bytes that the resident set grew by at its highest during a call, and the call's result.

    None where the system has no ``/proc`` that can be reset (Linux alone has it).
    """
    before = _reset()
    result = call()
    high = _read("VmHWM")
    return (max(0, high - before) if before is not None and high is not None else None), result


def _reset() -> int | None:
    """Set the high-water mark to what is resident now, and tell that."""
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return None
    return _read("VmRSS")


def _read(name: str) -> int | None:
    try:
        match = re.search(rf"^{name}:\s*(\d+) kB", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None
