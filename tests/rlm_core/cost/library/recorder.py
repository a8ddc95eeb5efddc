"""A ``Call`` that records what a rule asks for: seconds, bytes, waits, and calls of unknown cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm_core.cost.domain.quantities import ONE, ZERO, Quantity, constant, of_size
from rlm_core.cost.domain.values import NONE, UNKNOWN, Value
from rlm_core.types import WaitKind


def value_of(constant_: Any) -> Value:
    """A Python constant, list or tuple as the analysis sees it."""
    if constant_ is None:
        return NONE
    if isinstance(constant_, Value):
        return constant_
    if isinstance(constant_, (list, tuple)):
        kind = type(constant_).__name__
        members = tuple(value_of(item) for item in constant_)
        item = members[0] if members else UNKNOWN
        return Value(kind, size=constant(len(members)), item=item, payload=members)
    number = constant(float(constant_)) if isinstance(constant_, (bool, int, float)) else None
    return Value(type(constant_).__name__, constant_, number=number)


@dataclass
class Recorder:
    """Implements :class:`rlm_core.cost.domain.values.Call`."""

    args: Sequence[Value] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    receiver: Value | None = None
    seconds: Quantity = ZERO
    bytes: Quantity = ZERO
    waits: list[tuple[WaitKind, Quantity | None]] = field(default_factory=list)
    ends: bool = True
    misses: Quantity = ZERO
    applied: Quantity = ZERO

    def spend(self, seconds: Quantity | float) -> None:
        self.seconds = self.seconds + (seconds if isinstance(seconds, Quantity) else constant(seconds))

    def allocate(self, bytes_: Quantity | float) -> None:
        self.bytes = self.bytes + (bytes_ if isinstance(bytes_, Quantity) else constant(bytes_))

    def length(self, value: Value) -> Quantity:
        return value.size if value.size is not None else of_size(value.name or "?")

    def consume(self, value: Value) -> Quantity:
        return self.length(value)

    def apply(self, function: Value, times: Quantity, args: Sequence[Value]) -> Value:
        self.applied = self.applied + times
        return Value("float")

    def in_pool(self, function: Value, times: Quantity, args: Sequence[Value], workers: Quantity | None) -> Value:
        return self.apply(function, times, args)

    def start(self, function: Value, args: Sequence[Value]) -> None:
        self.apply(function, ONE, args)

    def wait(self, kind: WaitKind, seconds: Quantity | None = None) -> None:
        self.waits.append((kind, seconds))

    def endless(self) -> None:
        self.ends = False

    def unknown(self, times: Quantity = ONE) -> None:
        self.misses = self.misses + times


def recorded(*args: Any, receiver: Value | None = None, **keywords: Any) -> Recorder:
    """A call with these constants as arguments."""
    return Recorder([value_of(arg) for arg in args], {k: value_of(v) for k, v in keywords.items()}, receiver)
