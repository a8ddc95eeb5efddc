"""The peak memory of calls in bytes above the level at entry, as tracemalloc sees it; the peaks of nested calls count.

Only calls on the main thread are taken, since the traced level is that of the whole process; where other threads were
alive meanwhile, the function is marked. Memory that C code takes past Python's allocators is invisible.
"""

from __future__ import annotations

import threading
import tracemalloc
from threading import get_ident
from tracemalloc import get_traced_memory, reset_peak

from .function_registry import Function, FunctionRegistry


class _Entry:
    __slots__ = ("base", "function", "own", "peak")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.base = self.own = self.peak = 0


class MemoryMeter:
    """Follows peaks; ``begin`` and ``end`` come in pairs, except for calls that began before watching did."""

    metric = "memory"

    def __init__(self, roster: FunctionRegistry, constant: int = 0) -> None:
        self._roster = roster
        self._constant = constant
        self._main: int | None = None  # until it is started, no thread is the one
        self._period = roster.period
        self._open: dict[Function, int] = {}
        self._stack: list[_Entry] = []
        self._own = 0  # bytes that measuring itself holds
        self.unwound = 0

    def start(self) -> None:
        """Trace allocations from now on, each with a single frame; more would cost and tell nothing here."""
        if not tracemalloc.is_tracing():
            tracemalloc.start(1)
        self._main = threading.main_thread().ident

    def begin(self, function: Function) -> None:
        """A call of a function begins, or a generator goes on."""
        if get_ident() != self._main:
            return
        if self._period != self._roster.period:
            self._period = self._roster.period
            self._open.clear()
            self._stack.clear()
        depth = self._open.get(function)
        if depth:
            self._open[function] = depth + 1
            function.recursive = True
            return
        if function.taken >= self._roster.calls:
            return
        before, peak = get_traced_memory()
        if self._stack and self._stack[-1].peak < peak:
            self._stack[-1].peak = peak
        if not function.taken:
            self._roster.touched.append(function)
        function.taken += 1
        self._open[function] = 1
        entry = _Entry(function)
        self._stack.append(entry)
        now = get_traced_memory()[0]
        self._own += now - before
        entry.own, entry.base, entry.peak = self._own, now, now
        reset_peak()

    def end(self, function: Function, failed: bool = False) -> None:
        """A call ends, or a generator waits; ``failed`` with an exception, and then its peak does not count."""
        now, peak = get_traced_memory()
        depth = self._open.get(function)
        if depth is None or get_ident() != self._main or self._period != self._roster.period:
            return
        if depth > 1:
            self._open[function] = depth - 1
            return
        entry = self._stack.pop()
        while entry.function is not function:
            self._open.pop(entry.function, None)
            peak = max(peak, entry.peak)
            entry = self._stack.pop()
        del self._open[function]
        peak = max(peak, entry.peak)
        if failed:
            function.exceptions += 1
        else:
            grown = self._own - entry.own
            function.samples.append(max(peak - entry.base - grown - self._constant, 0))
            if threading.active_count() > 1:
                function.threads = True
        if self._stack and self._stack[-1].peak < peak:
            self._stack[-1].peak = peak
        if function.taken >= self._roster.calls:
            self._roster.off(function)
        self._own += get_traced_memory()[0] - now
        reset_peak()

    def ran_past(self, nanoseconds: int) -> None:
        """Time does not matter here."""
