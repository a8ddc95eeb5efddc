"""The peak memory of calls in bytes above the level at entry, as tracemalloc sees it; the peaks of nested calls count.

What measuring itself holds is subtracted, as much as it was when the peak was reached: it changes only when a call
begins or ends.
Only calls on the main thread are taken, since the traced level is that of the whole process; where other threads were
alive meanwhile, the function is marked. Memory that C code takes past Python's allocators is invisible.
"""

from __future__ import annotations

import sys
import threading
import tracemalloc
from sys import getsizeof
from threading import get_ident
from tracemalloc import get_traced_memory, reset_peak

from .function_registry import UNSIZED, Function, FunctionRegistry, GetFrame

_COPY = getsizeof({}) if sys.version_info < (3, 13) else 0
"""Bytes of the copy of its variables that a frame keeps once it was asked for them, without its entries."""


class _Entry:
    """An open call: bytes that the program held at entry and at most, and bytes of the call's frame as an object."""

    __slots__ = ("base", "frame", "function", "peak", "sizes")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.sizes = UNSIZED
        self.base = self.peak = self.frame = 0


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
        self._leaving = 0  # of them, the frame of the call that has ended last, which the interpreter then drops
        self.unwound = 0

    def start(self) -> None:
        """Trace allocations from now on, each with a single frame; more would cost and tell nothing here."""
        if not tracemalloc.is_tracing():
            tracemalloc.start(1)
        self._main = threading.main_thread().ident

    def begin(self, function: Function, frame_of: GetFrame | None = None) -> None:
        """A call of a function begins, or a generator goes on; ``frame_of`` is as in the meter of latencies."""
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
        before, peak = self._read()
        if self._stack and self._stack[-1].peak < peak:
            self._stack[-1].peak = peak
        if not function.taken:
            self._roster.touched.append(function)
        function.taken += 1
        self._open[function] = 1
        entry = _Entry(function)
        self._stack.append(entry)
        if frame_of is not None and function.has_inputs:
            try:
                frame = frame_of(2)
                if function.kind == "function":
                    entry.frame = getsizeof(frame) + _COPY
                entry.sizes = function.sizes_of(frame)
            except Exception:  # noqa: S110 - such as where the stack has no room left: the call goes on without
                pass
        now = get_traced_memory()[0]
        self._own += now - before
        entry.base = entry.peak = now - self._own
        reset_peak()

    def end(self, function: Function, failed: bool = False) -> None:
        """A call ends, or a generator waits; ``failed`` with an exception, and then its peak does not count."""
        if get_ident() != self._main or self._period != self._roster.period:
            return
        depth = self._open.get(function)
        if depth is None:
            return
        if depth > 1:
            self._open[function] = depth - 1
            return
        now, peak = self._read()
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
            function.samples.append(max(peak - entry.base - self._constant, 0))
            function.sizes.append(entry.sizes)
            if threading.active_count() > 1:
                function.threads = True
        if self._stack and self._stack[-1].peak < peak:
            self._stack[-1].peak = peak
        if function.taken >= self._roster.calls:
            self._roster.off(function)
        self._leaving = entry.frame
        self._own += get_traced_memory()[0] - now
        reset_peak()

    def _read(self) -> tuple[int, int]:
        """The bytes that are traced now, and the most since the last reading that the program held."""
        now, peak = get_traced_memory()
        held = peak - self._own
        self._own -= self._leaving
        self._leaving = 0
        return now, max(held, now - self._own)

    def ran_past(self, nanoseconds: int) -> None:
        """Time does not matter here."""
