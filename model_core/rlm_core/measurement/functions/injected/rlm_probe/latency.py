"""The latency of calls in nanoseconds: wall time from entry to return, with the measuring's own time taken out.

What a callback does between two readings of the clock is summed up and subtracted from the calls around it. The time
outside the readings (the interpreter's way to the callback and back) is a constant that :mod:`.calibration` finds.

The clock is bound as a default of the callbacks: libraries that freeze time in tests replace it in every module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from threading import get_ident
from time import perf_counter_ns

from .call_examples import ExampleWriter
from .function_registry import UNSIZED, Call, Function, FunctionRegistry, GetFrame

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Costs:
    """Constants in nanoseconds.

    ``own`` is taken off once a call, and for what happens inside it: ``event`` for each begin or end of another taken
    call, ``inner`` for that of a recursive call, ``unwound`` for each exception that leaves some other function.
    """

    own: float = 0.0
    event: float = 0.0
    inner: float = 0.0
    unwound: float = 0.0

    def of(self, call: Call) -> float:
        """Return the overhead to subtract from a call's time."""
        _, events, inner, unwound = call
        return self.own + events * self.event + inner * self.inner + unwound * self.unwound

    def weigh(self, call: Call, least: float) -> bool:
        """Return whether the overhead is more than ``least`` and more than a quarter of the call's time."""
        costs = self.of(call)
        return costs > least and 4 * costs > call[0]

    def least(self, other: Costs) -> Costs:
        """Return the lesser of each cost."""
        return Costs(*map(min, astuple(self), astuple(other)))


class _Entry:
    __slots__ = ("events", "function", "inner", "sizes", "spent", "started", "unwound")

    spent: int
    started: int

    def __init__(self, function: Function) -> None:
        self.function = function
        self.sizes = UNSIZED
        self.events = self.inner = self.unwound = 0


class _Thread:
    """The open calls of a thread, with how deep each function is in itself, and what measuring has cost it."""

    __slots__ = ("events", "inner", "open", "period", "spent", "stack")

    def __init__(self, period: int) -> None:
        self.period = period
        self.spent = self.events = self.inner = 0
        self.open: dict[Function, int] = {}
        self.stack: list[_Entry] = []


class LatencyMeter:
    """Times calls into ``raw`` of their functions, of which the :class:`Costs` are still to be taken off.

    ``begin`` and ``end`` come in pairs on each thread, but for calls that began unwatched. ``examples`` receives the
    calls that are taken.
    """

    metric = "latency"

    def __init__(self, roster: FunctionRegistry, examples: ExampleWriter | None = None) -> None:
        self._roster, self._examples = roster, examples
        self._threads: dict[int, _Thread] = {}
        self.unwound = 0

    def begin(self, function: Function, frame_of: GetFrame | None = None, *, clock: Clock = perf_counter_ns) -> None:
        """A call of a function begins, or a generator goes on.

        ``frame_of(2)``, from here, is the frame of the call; None where its parameters may have changed already.
        """
        began = clock()
        ident = get_ident()
        thread = self._threads.get(ident)
        if thread is None or thread.period != self._roster.period:
            # What was open when the last test ended is given up: its end may not have been watched.
            thread = self._threads[ident] = _Thread(self._roster.period)
        depth = thread.open.get(function)
        if depth:
            thread.open[function] = depth + 1
            function.recursive = True
            thread.inner += 1
            return
        if function.taken >= self._roster.calls:
            return
        if not function.taken:
            self._roster.touched.append(function)
        function.taken += 1
        thread.open[function] = 1
        entry = _Entry(function)
        if frame_of is not None and function.has_inputs:
            try:
                entry.sizes = function.sizes_of(frame_of(2))
                if self._examples is not None:
                    self._examples.take(function, frame_of(2))
            except Exception:  # noqa: S110 - such as where the stack has no room left: the call goes on without
                pass
        thread.stack.append(entry)
        thread.events += 1
        entry.events, entry.inner, entry.unwound = thread.events, thread.inner, self.unwound
        now = clock()
        thread.spent += now - began
        entry.spent = thread.spent
        entry.started = now

    def end(self, function: Function, failed: bool = False, *, clock: Clock = perf_counter_ns) -> None:
        """A call ends, or a generator waits; ``failed`` with an exception, and then its time does not count."""
        ended = clock()
        thread = self._threads.get(get_ident())
        if thread is None or thread.period != self._roster.period:
            return
        depth = thread.open.get(function)
        if depth is None:
            return
        if depth > 1:
            thread.open[function] = depth - 1
            thread.inner += 1
            return
        entry = thread.stack.pop()
        while entry.function is not function:
            # Ends that caused no event, as when stacks are switched under us (greenlets).
            thread.open.pop(entry.function, None)
            entry = thread.stack.pop()
        del thread.open[function]
        if failed:
            function.exceptions += 1
        else:
            elapsed = ended - entry.started - (thread.spent - entry.spent)
            events, inner = thread.events - entry.events, thread.inner - entry.inner
            function.raw.append((elapsed, events, inner, self.unwound - entry.unwound))
            function.sizes.append(entry.sizes)
        thread.events += 1
        if function.taken >= self._roster.calls:
            self._roster.off(function)
        thread.spent += clock() - ended

    def ran_past(self, nanoseconds: int) -> None:
        """Measuring has cost the running thread this much besides begins and ends."""
        thread = self._threads.get(get_ident())
        if thread is not None:
            thread.spent += nanoseconds
