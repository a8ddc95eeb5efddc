"""Rules for what waits: sleeps, timeouts, threads, pools, queues and other programs.

What a thread or a pool runs is paid for where it is joined. A wait of at most a timeout is likely to take all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlm_core.types import WaitKind

from ..domain.quantities import Quantity, constant
from ..domain.values import NONE, UNKNOWN, Call, Value, literal
from .rules import Rule, argument, receiver
from .unit_costs import primitive

_CALL_SECONDS = 1e-6
_PROCESS_SECONDS = 1e-3  # fork and exec of a small program from a process of usual size
_PROCESS_BYTES = 6e4
_TIMER_SECONDS = 1e-5  # of an event loop, with the switch to another task
_LATE_SECONDS = 6e-5  # after which the system wakes a thread up
_POOL_SECONDS = 2e-5  # to hand over a task
_POOL_BYTES = 2e4
_THREAD = "threading.Thread"
_THREAD_BYTES = constant(2700.0)  # with the events and the frame that it has while it runs
_RESULTS = {
    "int": Value("int"), "str": Value("str"), "bytes": Value("bytes"), "bool": Value("bool"), "none": NONE,
    "tuple": Value("tuple", size=constant(2)), "unknown": UNKNOWN,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """The payload of a thread: the function that it runs, and with what."""

    function: Value
    args: Sequence[Value]


def _seconds_of(value: Value) -> Quantity | None:
    """The seconds that an argument says, None where the text does not fix them."""
    if value.number is not None:
        return value.number
    # A number without a quantity is not finite.
    return constant(max(value.constant, 0.0)) if value.known and isinstance(value.constant, float) else None


def _time_limit(value: Value) -> Quantity | None:
    """A wait of at most the seconds that a timeout says, likely all of them."""
    seconds = _seconds_of(value)
    fixed = seconds.constant if seconds is not None else None
    if fixed is None or fixed[1] < 0:
        return None
    return constant(0.0, fixed[2], fixed[1])


def _says_no(value: Value) -> bool:
    """An argument that is known to be false or 0: do not wait."""
    return value.known and value.constant is not None and not value.constant


def _is_given(value: Value) -> bool:
    """An argument that is neither left out nor None."""
    return value is not UNKNOWN and not (value.known and value.constant is None)


def sleep(call: Call) -> Value:
    seconds = _seconds_of(argument(call, 0, "secs", "seconds", "delay"))
    call.spend(_TIMER_SECONDS)
    if seconds is None or seconds.terms:
        call.wait(WaitKind.TIME, seconds)
    return NONE


def blocking_sleep(call: Call) -> Value:
    """The system wakes a thread up a little late."""
    call.spend(_LATE_SECONDS)
    return sleep(call)


def event_wait(call: Call) -> Value:
    """A wait for an event with a timeout is the usual interruptible sleep, so the likely time is the whole timeout."""
    call.spend(_CALL_SECONDS)
    timeout = argument(call, 0, "timeout")
    bound = _time_limit(timeout) if _is_given(timeout) else None
    if not _says_no(timeout):
        call.wait(WaitKind.THREAD if bound is None else WaitKind.TIME, bound)
    return Value("bool")


def timed_condition(call: Call) -> Value:
    call.spend(_CALL_SECONDS)
    timeout = argument(call, 1, "timeout")
    call.wait(WaitKind.THREAD, _time_limit(timeout) if _is_given(timeout) else None)
    return Value("bool")


def timed(position: int, result: str = "", kind: str = "thread", flag: str = "block") -> Rule:
    """A wait with an optional timeout at a position; a timeout of 0 or the flag ``False`` means not to wait."""
    returned = _RESULTS[result or ("none" if position == 0 else "unknown")]
    waits_for = WaitKind(kind)

    def rule(call: Call) -> Value:
        call.spend(_CALL_SECONDS)
        timeout = argument(call, position, "timeout")
        blocks = argument(call, 0, flag) if position else call.keywords.get(flag, UNKNOWN)
        if _says_no(blocks) or _says_no(timeout):
            return returned
        bound = _time_limit(timeout) if _is_given(timeout) else None
        call.wait(waits_for, bound)
        return returned

    return rule


def first_argument(call: Call) -> Value:
    """A wait for an awaitable, whose result is that of the call."""
    call.spend(2 * _CALL_SECONDS)
    call.wait(WaitKind.THREAD)
    return argument(call, 0, "fut", "fs")


def select(position: int, divisor: float = 1.0) -> Rule:
    """A wait for files, of at most the timeout (``poll`` has milliseconds)."""

    def rule(call: Call) -> Value:
        call.spend(2 * _CALL_SECONDS)
        timeout = argument(call, position, "timeout")
        if _says_no(timeout):
            return UNKNOWN
        bound = _time_limit(timeout) if _is_given(timeout) else None
        if bound is None:
            call.wait(WaitKind.NETWORK)
        else:
            call.wait(WaitKind.TIME, bound.times(1 / divisor))
        return UNKNOWN

    return rule


def queue_put(call: Call) -> Value:
    """Only a queue with a largest size blocks; its constructor leaves that size in the value."""
    call.spend(_CALL_SECONDS)
    queue = call.receiver
    bounded = queue is not None and queue.payload == "bounded"
    if bounded and not _says_no(argument(call, 1, "block")):
        call.wait(WaitKind.THREAD)
    return NONE


def queue(name: str) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(2 * _CALL_SECONDS)
        size = argument(call, 0, "maxsize")
        return Value("object", name=name, payload="bounded" if _is_given(size) and not _says_no(size) else None)

    return rule


def thread(call: Call) -> Value:
    call.spend(primitive("threading.Thread"))
    function, passed = argument(call, 1, "target"), argument(call, 3, "args")
    if function.kind == "unknown":
        return Value("object", name=_THREAD, bytes=_THREAD_BYTES)
    if passed.known and isinstance(passed.constant, tuple):
        parts = [literal(part) for part in passed.constant]
    else:
        listed = passed.payload if isinstance(passed.payload, tuple) else ()
        parts = [part for part in listed if isinstance(part, Value)]
    return Value("object", name=_THREAD, bytes=_THREAD_BYTES, payload=Target(function, parts))


def join_thread(call: Call) -> Value:
    """Threads run concurrently: a function that joins several waits as long as the slowest one runs."""
    thread = receiver(call)
    call.spend(primitive("call.method"))
    if isinstance(thread.payload, Target):
        call.start(thread.payload.function, thread.payload.args)
    elif argument(call, 0, "timeout") is UNKNOWN:
        call.wait(WaitKind.THREAD)
    return NONE


def executor(name: str, seconds: float) -> Rule:
    """A pool; its ``number`` is that of its workers where the text says it."""

    def rule(call: Call) -> Value:
        call.spend(seconds)
        call.allocate(_POOL_BYTES)
        return Value("object", name=name, number=argument(call, 0, "max_workers").number)

    return rule


def executor_map(kind: str) -> Rule:
    """The processor time of the function is counted here: threads share one interpreter lock."""

    def rule(call: Call) -> Value:
        function, items = argument(call, 0, "fn", "func"), argument(call, 1, "iterable")
        times = call.consume(items)
        call.spend(times.times(_POOL_SECONDS))
        workers = call.receiver.number if call.receiver is not None else None
        result = call.in_pool(function, times, [items.item or UNKNOWN], workers)
        call.wait(WaitKind(kind))
        return Value("iterator", size=times, item=result)

    return rule


def submit(call: Call) -> Value:
    """A thread runs the function; leaving the pool waits for it."""
    call.spend(_POOL_SECONDS)
    call.start(argument(call, 0, "fn"), call.args[1:])
    return Value("object", name="concurrent.futures.Future")


def _program(value: Value) -> tuple[str, ...]:
    """The words of a command that the text fixes."""
    command = value.constant
    if isinstance(command, str):
        return tuple(command.split())
    if isinstance(command, tuple | list) and all(isinstance(word, str) for word in command):
        return tuple(command)
    return ()


def _process_seconds(call: Call) -> Quantity | None:
    """The seconds of a command that only sleeps; the run time of other programs is not in the text."""
    words = _program(argument(call, 0, "args", "cmd", "command"))
    if len(words) == 2 and words[0].rpartition("/")[2] == "sleep":
        try:
            return constant(min(max(float(words[1]), 0.0), 1e9))
        except ValueError:
            return None
    return None


def process(result: str) -> Rule:
    """A call that runs another program, with the kind or the type of its result."""
    returned = _RESULTS.get(result) or Value("object", name=result)

    def rule(call: Call) -> Value:
        call.spend(_PROCESS_SECONDS)
        call.allocate(_PROCESS_BYTES)
        call.wait(WaitKind.PROCESS, _process_seconds(call))
        return returned

    return rule


def wait_for_child(call: Call) -> Value:
    """``os.waitpid``: with ``WNOHANG`` it only asks."""
    call.spend(_CALL_SECONDS)
    if not any(value.name.endswith("WNOHANG") for value in (*call.args, *call.keywords.values())):
        call.wait(WaitKind.PROCESS)
    return Value("tuple", size=constant(2))


def popen(call: Call) -> Value:
    call.spend(_PROCESS_SECONDS)
    return Value("object", name="subprocess.Popen", payload=_process_seconds(call))


def popen_wait(result: str) -> Rule:
    """A wait for a program that runs."""

    def rule(call: Call) -> Value:
        call.spend(_CALL_SECONDS)
        known = call.receiver.payload if call.receiver is not None else None
        call.wait(WaitKind.PROCESS, known if isinstance(known, Quantity) else None)
        return _RESULTS[result]

    return rule
