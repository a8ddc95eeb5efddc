"""What a call that waits costs: the rules that the tables of waiting functions are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rlm_core.types import WaitKind

from ..domain.quantities import Quantity, constant
from ..domain.values import NONE, UNKNOWN, Call, Value
from .rules import Attribute, Rule, argument

CALL_SECONDS = 1e-6
# fork and exec of a small program from a process of usual size.
PROCESS_SECONDS = 1e-3
# Processor time of a request without the network: measured with urllib over the loopback interface.
_REQUEST_SECONDS = 3e-4

WaitingType = tuple[str, str, float, Mapping[str, Rule]]
"""A type, the other names of what makes it, the seconds that making it takes, and its methods; ``*`` is any method."""

TEXT = Value("str")
BYTES = Value("bytes")
NUMBER = Value("int")


def instance(name: str) -> Value:
    """An object of a library type."""
    return Value("object", name=name)


def seconds_of(value: Value) -> Quantity | None:
    """The seconds that an argument says, None where the text does not fix them."""
    if value.number is not None:
        return value.number
    # A number without a quantity is not finite.
    return constant(max(value.constant, 0.0)) if value.known and isinstance(value.constant, float) else None


def time_limit(value: Value) -> Quantity | None:
    """A wait of at most the seconds that a timeout says, likely all of them."""
    seconds = seconds_of(value)
    fixed = seconds.constant if seconds is not None else None
    if fixed is None or fixed[1] < 0:
        return None
    return constant(0.0, fixed[2], fixed[1])


def says_no(value: Value) -> bool:
    """An argument that is known to be false or 0: do not wait."""
    return value.known and value.constant is not None and not value.constant


def is_given(value: Value) -> bool:
    """An argument that is neither left out nor None."""
    return value is not UNKNOWN and not (value.known and value.constant is None)


def waits(kind: WaitKind, result: Value = UNKNOWN, seconds: float = CALL_SECONDS) -> Rule:
    """A call that waits until something happens, with its processor time."""

    def rule(call: Call) -> Value:
        call.spend(seconds)
        call.wait(kind)
        return result

    return rule


def costs(seconds: float, result: Value = UNKNOWN) -> Rule:
    """A call that does not wait."""

    def rule(call: Call) -> Value:
        call.spend(seconds)
        return result

    return rule


def timed(position: int, result: Value, kind: WaitKind = WaitKind.THREAD, flag: str = "block") -> Rule:
    """A wait with an optional timeout at a position; a timeout of 0 or the flag ``False`` means not to wait."""

    def rule(call: Call) -> Value:
        call.spend(CALL_SECONDS)
        timeout = argument(call, position, "timeout")
        blocks = argument(call, 0, flag) if position else call.keywords.get(flag, UNKNOWN)
        if says_no(blocks) or says_no(timeout):
            return result
        bound = time_limit(timeout) if is_given(timeout) else None
        call.wait(kind, bound)
        return result

    return rule


def serves(kind: WaitKind) -> Rule:
    """A server's loop, which does not end by itself."""

    def rule(call: Call) -> Value:
        call.spend(CALL_SECONDS)
        call.wait(kind)
        call.endless()
        return NONE

    return rule


def first_argument(call: Call) -> Value:
    """A wait for an awaitable, whose result is that of the call."""
    call.spend(2 * CALL_SECONDS)
    call.wait(WaitKind.THREAD)
    return argument(call, 0, "fut", "fs")


def request(result: Value = UNKNOWN) -> Rule:
    """A request to another machine."""
    return waits(WaitKind.NETWORK, result, _REQUEST_SECONDS)


def table(kind: WaitKind, methods: str, result: Value = UNKNOWN) -> dict[str, Rule]:
    """Methods, separated by spaces, that wait for one thing and return one value."""
    rule = request(result) if kind is WaitKind.NETWORK else waits(kind, result)
    return dict.fromkeys(methods.split(), rule)


def always(value: Value) -> Attribute:
    """An attribute that has this value on each object."""
    return lambda receiver: value


REQUEST = request()
THREAD_WAIT = waits(WaitKind.THREAD)


def constructors(types: Iterable[WaitingType]) -> dict[str, Rule]:
    """The functions and classes that make objects of these types."""
    return {
        constructor: costs(seconds, instance(name))
        for name, others, seconds, _ in types
        if seconds
        for constructor in (name, *others.split())
    }


def methods_of(types: Iterable[WaitingType]) -> dict[tuple[str, str], Rule]:
    """The rules of the types' methods."""
    return {(name, method): rule for name, _, _, methods in types for method, rule in methods.items()}
