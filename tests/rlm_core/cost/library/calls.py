"""A :class:`Call` for tests that keeps what a rule spends, allocates and applies, and calls rules by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm_core.cost import library
from rlm_core.cost.domain.quantities import ONE, ZERO, Quantity, constant, mixed, of_size
from rlm_core.cost.domain.values import UNKNOWN, Value
from rlm_core.cost.library.rules import literal
from rlm_core.types import Growth, WaitKind


@dataclass
class RecordingCall:
    """Implements the protocol; ``applied`` has the number of calls of each function that was applied."""

    args: Sequence[Value] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    receiver: Value | None = None
    name: str = ""
    spent: Quantity = ZERO
    allocated: Quantity = ZERO
    applied: list[Quantity] = field(default_factory=list)
    waits: list[tuple[WaitKind, Quantity | None]] = field(default_factory=list)
    runs_on: bool = False
    missed: Quantity = ZERO
    worst_cases: dict[str, Growth] = field(default_factory=dict)

    def spend(self, seconds: Quantity | float) -> None:
        self.spent = self.spent + (seconds if isinstance(seconds, Quantity) else constant(seconds))

    def allocate(self, bytes_: Quantity | float) -> None:
        self.allocated = self.allocated + (bytes_ if isinstance(bytes_, Quantity) else constant(bytes_))

    def length(self, value: Value) -> Quantity:
        return value.size if value.size is not None else of_size(value.name or "?")

    def searched(self, count: Quantity) -> Quantity:
        return mixed([(0.5, ONE), (0.5, count)])

    def consume(self, value: Value) -> Quantity:
        size = self.length(value)
        if library.is_endless(size):
            self.endless()
            return ONE
        self.spend(value.step * size)
        return size

    def apply(self, function: Value, times: Quantity, args: Sequence[Value]) -> Value:
        self.applied.append(times)
        rule = library.rule_for(function.name)
        if rule is None:
            return UNKNOWN
        inner = RecordingCall(args)
        result = rule(inner)
        self.spend(inner.spent * times)
        return result

    def in_pool(self, function: Value, times: Quantity, args: Sequence[Value], workers: Quantity | None) -> Value:
        return self.apply(function, times, args)

    def start(self, function: Value, args: Sequence[Value]) -> None:
        self.apply(function, ONE, args)

    def note_worst_case(self, pattern: str, seconds: Quantity, growth: Growth) -> None:
        self.worst_cases[pattern] = growth

    def wait(self, kind: WaitKind, seconds: Quantity | None = None) -> None:
        self.waits.append((kind, seconds))

    def endless(self) -> None:
        self.runs_on = True

    def unknown(self, times: Quantity) -> None:
        self.missed = self.missed + times

    @property
    def seconds(self) -> float:
        """The likely seconds, sizes that are not known at 10."""
        return self.spent.evaluate(lambda name: 10.0)[1]


def value_of(argument: object) -> Value:
    """Return a value as it is, a list as one of known members, and anything else as a literal."""
    if isinstance(argument, Value):
        return argument
    if isinstance(argument, list):
        members = tuple(map(value_of, argument))
        return sized("list", len(members), members[0] if members else UNKNOWN, payload=members)
    return literal(argument)


def sized(kind: str, size: float, item: Value = UNKNOWN, **fields: object) -> Value:
    """A container of a known size whose items are not known."""
    return Value(kind, size=constant(size), item=item, **fields)  # type: ignore[arg-type]


def recorded(*arguments: object, receiver: Value | None = None, **keywords: object) -> RecordingCall:
    """Return a call with these arguments."""
    given = {key: value_of(part) for key, part in keywords.items()}
    return RecordingCall([value_of(part) for part in arguments], given, receiver)


def run(name: str, *arguments: object, **keywords: Any) -> tuple[Value, RecordingCall]:
    """The result of the function with that dotted name, and what it spent."""
    rule = library.rule_for(name)
    assert rule is not None, name
    call = recorded(*arguments, receiver=None, **keywords)
    return rule(call), call


def run_method(receiver: object, name: str, *arguments: object, **keywords: Any) -> tuple[Value, RecordingCall]:
    """The result of a method, and what it spent."""
    owner = value_of(receiver)
    rule = library.method_rule(owner.name if owner.kind == "object" else owner.kind, name)
    assert rule is not None, name
    call = recorded(*arguments, receiver=owner, **keywords)
    return rule(call), call


def exact(quantity: Quantity | None) -> float | None:
    """The value of a quantity that is fixed."""
    return None if quantity is None else quantity.exact
