"""Calls of library functions: their rules work them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rlm_core.types import Growth, WaitKind

from .. import library
from ..domain.context import Context
from ..domain.dispatch import call_value
from ..domain.quantities import ZERO, Quantity, constant, larger
from ..domain.values import UNKNOWN, Value


@dataclass(slots=True)
class RuleCall:
    """A call as a rule of the library sees it; implements :class:`rlm_core.cost.domain.values.Call`."""

    context: Context
    name: str
    args: Sequence[Value]
    keywords: Mapping[str, Value]
    receiver: Value | None = None
    held: Quantity = field(default=ZERO)

    def spend(self, amount: Quantity | float) -> None:
        """Add computing time."""
        self.context.meter.spend(amount)

    def allocate(self, bytes_: Quantity | float) -> None:
        """Add memory that only the call needs."""
        self.held = self.held + (bytes_ if isinstance(bytes_, Quantity) else constant(bytes_))
        self.context.largest_block = larger(self.context.largest_block, self.held)
        self.context.meter.hold(self.context.frame.held + self.held)

    def length(self, value: Value) -> Quantity:
        """The number of items of a value."""
        return self.context.length(value)

    def consume(self, value: Value) -> Quantity:
        """The number of items that iterating yields; what producing them takes is paid for."""
        return self.context.consume(value)

    def searched(self, count: Quantity) -> Quantity:
        """The number of items that a search for one of ``count`` sees."""
        return self.context.searched(count)

    def apply(self, function: Value, times: Quantity, args: Sequence[Value]) -> Value:
        """The result of calling ``function``, ``times`` times."""
        with self.context.region() as body:
            result = call_value(self.context, function, list(args), {})
        self.context.meter.add(body, times)
        return result

    def wait(self, kind: WaitKind, seconds: Quantity | None = None) -> None:
        """The call waits."""
        limit = _timeout(self.keywords.get("timeout", UNKNOWN))
        self.context.meter.wait(kind, self.context.frame.line, self.name, seconds, limit=limit)

    def endless(self) -> None:
        """The call may not end."""
        if not self.context.is_caught:
            self.context.meter.run_on(self.context.frame.line)

    def unknown(self, times: Quantity) -> None:
        """Something of unknown cost runs."""
        self.context.meter.miss(f"{self.name}()", times)

    def note_worst_case(self, pattern: str, seconds: Quantity, growth: Growth) -> None:
        """Matching a pattern may take this long for some text."""
        self.context.meter.worst_case(self.context.frame.line, pattern, seconds, growth)


def _timeout(value: Value) -> float | None:
    """The seconds that an argument says, or all parts of it together; None where the text does not fix them."""
    given = value.constant if value.known else None
    parts = given if isinstance(given, tuple) else (given,)
    if parts and all(isinstance(part, (int, float)) and not isinstance(part, bool) and part > 0 for part in parts):
        return float(sum(parts))
    return None


def apply_rule(
    context: Context,
    rule: library.Rule,
    name: str,
    args: Sequence[Value],
    keywords: Mapping[str, Value],
    receiver: Value | None,
) -> Value:
    """Let a rule of the library work out a call."""
    context.step(3)
    call = RuleCall(context, name, args, keywords, receiver)
    try:
        result = rule(call)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        # A rule that an odd argument breaks knows nothing of the call.
        if context.strict:
            raise
        context.meter.miss(f"{name}()")
        return UNKNOWN
    if result.kind == "array" and result.payload is None:
        context.meter.spend(library.new_pages(result.bytes, "numpy.page"))
    if call.held.terms:
        context.meter.hold(context.frame.held + call.held + result.bytes)
    return result
