"""The cost curve of one function: its inputs are made larger, and each size is called several times, on copies.

Times are of the processor, not of a clock on the wall: what is called cannot wait, since waiting is refused, and other
work on the machine must not be part of a curve.
"""

from __future__ import annotations

import functools
import gc
import math
import signal
import tracemalloc
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from statistics import median
from time import perf_counter_ns, process_time, thread_time_ns
from typing import Any

from .bench import MakeInputs, target_of
from .copies import clone, same
from .guard import EffectError, Guard
from .inputs import Arguments, Input, called_with, grown, inputs_of, size_at, sizes
from .text_growth import Way

FACTORS = (1, 3, 10, 30, 100, 300, 1000)
"""How many times as large as in the tests the inputs are, which are tiny there next to those of production."""
_FAR, _FAR_SECONDS = 100, 0.01
"""Larger factors than this are for functions that take less than so many seconds with it, in proportion."""
BENCH_SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)
_TRIAL = 3  # the factor at which it is found which inputs can grow
_MOST_WAYS = 4
_LEAST_SAMPLES, _MOST_SAMPLES = 3, 15
_SECONDS_A_SIZE = 0.02  # after which three samples are enough
_SHORTCUT = 0.6  # of the time without a further larger input: with it, the function does something else
_GROWING_SECONDS = 2.0
_WALL_TIMES = 15.0  # so many times a limit may pass on the wall; a call that waits takes no time of the processor
_READING = 50_000  # nanoseconds that one reading of the clock should last, far above the clock's own cost
_MEMORY_SECONDS = 0.1  # a slower call is not traced: tracing takes several times as long


class NoCurveError(Exception):
    """A function has no curve, for the reason given."""


class _OverdueError(BaseException):
    """A call has taken too long."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of the processor: of one call, and of all work on one function."""

    call: float = 0.5
    function: float = 3.0


@dataclass(frozen=True, slots=True)
class Point:
    """The cost at one size: median and least seconds of ``calls``, and peak bytes (-1: not traced)."""

    factor: int
    grown: tuple[str, ...]
    sizes: Mapping[str, float]
    seconds: float
    least: float
    calls: int
    peak: int = -1


@dataclass(slots=True)
class Curve:
    """The points of a function, those of all inputs together first, and why no larger one follows."""

    inputs: tuple[str, ...] = ()
    points: list[Point] = field(default_factory=list)
    ended: str = ""

    def to_json(self) -> dict[str, Any]:
        """The curve as JSON data."""
        return asdict(self)


class CurveMeasurer:
    """Measures functions one after the other."""

    def __init__(self, guard: Guard, limits: Limits, packages: frozenset[str]) -> None:
        self._guard, self._limits = guard, limits
        self._deadline = 0.0
        self._caches: list[Any] = []
        self._packages = packages
        self._own_bytes = 0
        nothing: Any = _nothing
        signal.signal(signal.SIGPROF, _overdue)
        signal.signal(signal.SIGALRM, _overdue)
        self._turn, self._clocks = _cost_of_a_turn(), _cost_of_the_clocks()
        self._own_bytes = min(self._peak(nothing, {}) for _ in range(3))

    def find_caches(self) -> None:
        """Find the caches of the packages' functions, which are emptied before each call."""
        self._caches = [
            one
            for one in gc.get_objects()
            if type(one) is functools._lru_cache_wrapper
            and str(getattr(one, "__module__", "")).partition(".")[0] in self._packages
        ]

    def measure(self, function: types.FunctionType, examples: list[Arguments]) -> Curve:
        """Measure a function on the first of its examples that can be called and grows.

        Raises:
            NoCurveError: there is none.
        """
        self._deadline = process_time() + self._limits.function
        reasons = []
        for arguments in examples:
            try:
                return self._curve(function, arguments)
            except NoCurveError as error:
                reasons.append(str(error))
            if process_time() > self._deadline:
                break
        raise NoCurveError(reasons[0] if reasons else "no example")

    def measure_bench(self, make_inputs: MakeInputs) -> tuple[types.FunctionType, Curve]:
        """Measure a function with the inputs that a function of the bench file makes.

        Raises:
            NoCurveError: it makes none, or they cannot be called.
        """
        self._deadline = process_time() + self._limits.function
        curve = Curve()
        function: types.FunctionType | None = None
        for number in BENCH_SIZES:
            last = curve.points[-2:]
            if last and self._is_too_long(last, number):
                curve.ended = "time"
                break
            try:
                function, arguments = target_of(self._in_time(partial(make_inputs, number)))
                point = self._point(function, arguments, number, {})
            except (NoCurveError, TypeError) as error:
                curve.ended = str(error)
                break
            curve.points.append(replace(point, sizes=point.sizes or {"n": number}))
        if function is None or len(curve.points) < 2:
            raise NoCurveError(curve.ended or "too slow")
        return function, curve

    def _curve(self, function: types.FunctionType, arguments: Arguments) -> Curve:
        first = self._call(function, clone(arguments))
        before = _state_of(function)
        self._call(function, clone(arguments))
        if _state_of(function) != before:
            raise NoCurveError("changes global state")
        ways = self._inputs_that_grow(function, arguments, type(first))
        curve = Curve(inputs=tuple(one.name for one in ways))
        curve.ended = self._grow(function, arguments, ways, FACTORS, curve)
        if len(curve.points) < 2:
            raise NoCurveError(curve.ended)
        if len(ways) > 1:
            most = min(10, curve.points[-1].factor)
            for one, way in list(ways.items())[:3]:
                self._grow(function, arguments, {one: way}, (most,), curve)
        return curve

    def _inputs_that_grow(self, function: types.FunctionType, arguments: Arguments, result: type) -> dict[Input, Way]:
        """The inputs whose growth the function accepts, and how they grow: those that it accepts together."""
        possible = inputs_of(function, arguments, _MOST_WAYS)
        if not possible:
            raise NoCurveError("no input that can grow")
        reason = "no larger input is accepted"
        chosen: dict[Input, Way] = {}
        before = 0.0
        for one in possible:
            for way in one.ways:
                if process_time() > self._deadline:
                    break
                try:
                    made = self._grown(arguments, {**chosen, one: way}, _TRIAL)
                    if size_at(made, one) < 1.5 * one.size:
                        continue
                    self._call(function, clone(made))
                    elapsed, kind = self._trial(function, made)
                except NoCurveError as error:
                    reason = str(error)
                    continue
                if kind is not result:
                    reason = "a larger input gives a result of another type"
                elif elapsed < _SHORTCUT * before:
                    reason = "a larger input takes a shorter way"
                else:
                    chosen[one], before = way, elapsed
                    break
        if not chosen:
            raise NoCurveError(reason)
        return chosen

    def _trial(self, function: types.FunctionType, arguments: Arguments) -> tuple[float, type]:
        """The seconds of a call, and the type of its result."""
        positional, named = called_with(function, arguments)
        with _Watched(self._guard, self._limits.call * 2):
            began = thread_time_ns()
            result = function(*positional, **named)
            return (thread_time_ns() - began) / 1e9, type(result)

    def _grown(self, arguments: Arguments, ways: Mapping[Input, Way], factor: int) -> Arguments:
        """Larger arguments.

        Raises:
            NoCurveError: there are none, or they take too long to make.
        """
        larger: Arguments = self._in_time(partial(grown, arguments, ways, factor))
        return larger

    def _in_time(self, make: Callable[[], Any]) -> Any:
        """Return the value that is made; None if that fails or takes too long."""
        try:
            signal.setitimer(signal.ITIMER_PROF, _GROWING_SECONDS, 1.0)
            try:
                return make()
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
        except (Exception, _OverdueError) as error:
            raise NoCurveError(f"cannot grow: {type(error).__name__.lstrip('_')}") from None

    def _grow(
        self,
        function: types.FunctionType,
        arguments: Arguments,
        ways: Mapping[Input, Way],
        factors: tuple[int, ...],
        curve: Curve,
    ) -> str:
        """Add points to the curve and return why no more follow."""
        for factor in factors:
            last = curve.points[-2:] if len(factors) > 1 else []
            if last and (_is_far(last[-1], factor) or self._is_too_long(last, factor)):
                return "time"
            try:
                curve.points.append(self._point(function, self._grown(arguments, ways, factor), factor, ways))
            except NoCurveError as error:
                return str(error)
            if process_time() > self._deadline:
                return "time"
        return ""

    def _is_too_long(self, last: list[Point], factor: int) -> bool:
        """Return whether the next point would exceed a limit, if the curve goes on as it did."""
        end = last[-1]
        exponent = 1.0
        if len(last) > 1 and last[0].seconds > 0 and end.seconds > 0:
            exponent = math.log(end.seconds / last[0].seconds) / math.log(end.factor / last[0].factor)
        seconds: float = end.seconds * (factor / end.factor) ** max(exponent, 1.0)
        return seconds > self._limits.call or process_time() + 4 * seconds > self._deadline

    def _point(
        self, function: types.FunctionType, arguments: Arguments, factor: int, ways: Mapping[Input, Way]
    ) -> Point:
        positional, named = called_with(function, clone(arguments))
        used = {"arguments": (positional, named)}
        caches = [one.cache_info() for one in self._caches]
        elapsed = self._timed(function, positional, named, 1)
        is_kept = same(used["arguments"], called_with(function, arguments))
        clears = [one for one, info in zip(self._caches, caches, strict=True) if one.cache_info() != info]
        batch = 1
        if is_kept and not clears:
            # The first call found nothing in the processor's caches.
            elapsed = min(elapsed, self._timed(function, positional, named, 1))
            batch = max(1, min(1000, round(_READING / max(elapsed * 1e9, 50))))
        samples: list[float] = []
        spent = elapsed
        while len(samples) < _MOST_SAMPLES and (len(samples) < _LEAST_SAMPLES or spent < _SECONDS_A_SIZE):
            if not is_kept:
                positional, named = called_with(function, clone(arguments))
            for cache in clears:
                cache.cache_clear()
            samples.append(self._timed(function, positional, named, batch))
            spent += samples[-1] * batch
            if process_time() > self._deadline and len(samples) >= _LEAST_SAMPLES:
                break
        seconds = median(samples)
        peak = -1
        if seconds < _MEMORY_SECONDS:
            for cache in clears:
                cache.cache_clear()
            peak = self._peak(function, arguments)
        return Point(
            factor,
            tuple(one.name for one in ways),
            sizes(function, arguments, ways),
            seconds,
            min(samples),
            len(samples) * batch,
            peak,
        )

    def _peak(self, function: types.FunctionType, arguments: Arguments) -> int:
        positional, named = called_with(function, clone(arguments))
        tracemalloc.start(1)
        try:
            with _Watched(self._guard, self._limits.call * 8):
                base = tracemalloc.get_traced_memory()[0]
                result = function(*positional, **named)
                peak = tracemalloc.get_traced_memory()[1]
            del result
            return max(peak - base - self._own_bytes, 0)
        finally:
            tracemalloc.stop()

    def _call(self, function: types.FunctionType, arguments: Arguments) -> Any:
        """Call once, untimed, and return the result."""
        positional, named = called_with(function, arguments)
        with _Watched(self._guard, self._limits.call * 2):
            return function(*positional, **named)

    def _timed(
        self, function: types.FunctionType, positional: tuple[Any, ...], named: dict[str, Any], batch: int
    ) -> float:
        """The seconds of a call; those of many in turn, if they are short."""
        calls = range(batch)
        with _Watched(self._guard, self._limits.call * 2):
            if batch == 1:
                began, began_here = thread_time_ns(), perf_counter_ns()
                result = function(*positional, **named)
                ended_here, ended = perf_counter_ns(), thread_time_ns()
                del result
            else:
                began, began_here = thread_time_ns(), perf_counter_ns()
                for _ in calls:
                    function(*positional, **named)
                ended_here, ended = perf_counter_ns(), thread_time_ns()
        # The clock of the processor leaves out other work, but is slow to read; that on the wall is exact if none came.
        elapsed = min(ended - began - self._clocks[0], ended_here - began_here - self._clocks[1])
        return max(elapsed / batch / 1e9 - self._turn, 0.0)


def _is_far(end: Point, factor: int) -> bool:
    """Return whether a factor is only for faster functions than one with this last point."""
    return factor > _FAR and end.seconds > _FAR_SECONDS * end.factor / _FAR


class _Watched:
    """Within it effects are refused, and what takes too long is interrupted; what goes wrong is a NoCurveError."""

    def __init__(self, guard: Guard, seconds: float) -> None:
        self._guard, self._seconds = guard, seconds

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, self._seconds, 1.0)
        signal.setitimer(signal.ITIMER_REAL, _WALL_TIMES * self._seconds, 1.0)
        self._guard.arm()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._guard.disarm()
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            with suppress(_OverdueError):
                signal.setitimer(timer, 0)
        if self._guard.refused:
            raise NoCurveError(f"has effects: {self._guard.refused}") from None
        if isinstance(error, _OverdueError):
            raise NoCurveError("time") from None
        if isinstance(error, EffectError):
            raise NoCurveError(f"has effects: {error}") from None
        if error is not None:
            raise NoCurveError(f"raises {type(error).__name__}") from None


def _nothing() -> None:
    """Do nothing."""


def _cost_of_a_turn() -> float:
    """The seconds that a turn of an empty loop takes."""
    times = []
    for _ in range(200):
        began = thread_time_ns()
        for _ in range(100):
            pass
        times.append(thread_time_ns() - began)
    return min(times) / 100 / 1e9


def _cost_of_the_clocks() -> tuple[int, int]:
    """The nanoseconds between the readings of each clock around nothing."""
    processor, wall = [], []
    for _ in range(1000):
        began, began_here = thread_time_ns(), perf_counter_ns()
        ended_here, ended = perf_counter_ns(), thread_time_ns()
        processor.append(ended - began)
        wall.append(ended_here - began_here)
    return min(processor), min(wall)


def _overdue(number: int, frame: object) -> None:
    raise _OverdueError


def _state_of(function: types.FunctionType) -> dict[str, tuple[int, int]]:
    """The global names of a function's module: what they are bound to, and how many items that holds."""
    return {
        name: (id(value), len(value) if type(value) in (list, dict, set) else 0)
        for name, value in function.__globals__.items()
    }
