"""Rules for ``threading.Thread``: what a thread runs is paid for where it is joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlm_core.types import WaitKind

from ..domain.quantities import constant
from ..domain.values import NONE, UNKNOWN, Call, Value, literal
from .rules import BOOL, Rule, argument, fixed, receiver
from .unit_costs import primitive

THREAD = "threading.Thread"
_THREAD_BYTES = constant(2700.0)  # with the events and the frame that it has while it runs


@dataclass(frozen=True, slots=True)
class Target:
    """The payload of a thread: the function that it runs, and with what."""

    function: Value
    args: Sequence[Value]


def _thread(call: Call) -> Value:
    call.spend(primitive("threading.Thread"))
    function, passed = argument(call, 1, "target"), argument(call, 3, "args")
    if function.kind == "unknown":
        return Value("object", name=THREAD, bytes=_THREAD_BYTES)
    if passed.known and isinstance(passed.constant, tuple):
        parts = [literal(part) for part in passed.constant]
    else:
        listed = passed.payload if isinstance(passed.payload, tuple) else ()
        parts = [part for part in listed if isinstance(part, Value)]
    return Value("object", name=THREAD, bytes=_THREAD_BYTES, payload=Target(function, parts))


def _join(call: Call) -> Value:
    """Threads run concurrently: a function that joins several waits as long as the slowest one runs."""
    thread = receiver(call)
    call.spend(primitive("call.method"))
    if isinstance(thread.payload, Target):
        call.start(thread.payload.function, thread.payload.args)
    elif argument(call, 0, "timeout") is UNKNOWN:
        call.wait(WaitKind.THREAD)
    return NONE


FUNCTIONS: dict[str, Rule] = {THREAD: _thread}
METHODS: dict[tuple[str, str], Rule] = {
    (THREAD, "start"): fixed("threading.Thread.start", NONE),
    (THREAD, "is_alive"): fixed("call.method", BOOL),
    (THREAD, "join"): _join,
}
