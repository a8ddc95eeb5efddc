"""Rules for what waits: sleeps and timeouts. Where only a stop ends a wait early, it takes all of its timeout."""

from __future__ import annotations

import re

from rlm_core.types import WaitKind

from ..domain.quantities import Quantity, constant
from ..domain.values import NONE, UNKNOWN, Call, Value
from .rules import Rule, argument

_CALL_SECONDS = 1e-6
_TIMER_SECONDS = 1e-5  # of an event loop, with the switch to another task
_LATE_SECONDS = 6e-5  # after which the system wakes a thread up
_STOP = re.compile(r"stop|exit|quit|shutdown|shut_down|cancel|clos|terminat|kill|abort|interrupt")
_RESULTS = {"int": Value("int"), "bool": Value("bool"), "none": NONE, "unknown": UNKNOWN}


def _seconds_of(value: Value) -> Quantity | None:
    """The seconds that an argument says, None where the text does not fix them."""
    if value.number is not None:
        return value.number
    # A number without a quantity is not finite.
    return constant(max(value.constant, 0.0)) if value.known and isinstance(value.constant, float) else None


def _time_limit(value: Value) -> Quantity | None:
    """A wait of at most the seconds that a timeout says; a sleep is likely to take all of them."""
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


def timed(position: int, result: str = "", kind: str = "thread", flag: str = "", limited: str = "") -> Rule:
    """A wait with an optional timeout at a position; a timeout of 0 or the flag ``False`` means not to wait.

    ``limited`` is the kind of a wait with a timeout, where that is another and what is waited for is named after a
    stop, as in ``stopping.wait(5)``: that is a sleep which takes the whole timeout unless the program ends. Any other
    wait ends when the result is there, usually long before.
    """
    returned = _RESULTS[result or ("none" if position == 0 else "unknown")]
    waits_for, limited_to = WaitKind(kind), WaitKind(limited or kind)

    def rule(call: Call) -> Value:
        call.spend(_CALL_SECONDS)
        timeout = argument(call, position, "timeout")
        blocks = argument(call, 0 if position else -1, flag) if flag else UNKNOWN
        if _says_no(blocks) or _says_no(timeout):
            return returned
        bound = _time_limit(timeout) if _is_given(timeout) else None
        awaited = call.name.rpartition(".")[0].lower()  # empty for an event that nothing else can set
        sleeps = bound is not None and (not awaited or _STOP.search(awaited))
        call.wait(limited_to if sleeps else waits_for, bound)
        return returned

    return rule


def first_argument(call: Call) -> Value:
    """A wait for an awaitable, whose result is that of the call."""
    call.spend(2 * _CALL_SECONDS)
    call.wait(WaitKind.THREAD)
    return argument(call, 0, "fut", "fs")


def wait_for_child(call: Call) -> Value:
    """``os.waitpid``: with ``WNOHANG`` it only asks."""
    call.spend(_CALL_SECONDS)
    if not any(value.name.endswith("WNOHANG") for value in (*call.args, *call.keywords.values())):
        call.wait(WaitKind.PROCESS)
    return Value("tuple", size=constant(2))
