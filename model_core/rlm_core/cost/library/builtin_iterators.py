"""Rules for builtin functions that make iterators, such as ``range`` and ``zip``, or use them up, such as ``sum``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..domain import object_sizes
from ..domain.quantities import ONE, ZERO, Quantity, ceiling, constant, larger
from ..domain.records import replace
from ..domain.values import UNKNOWN, Call, Value, number_of
from .rules import (
    Rule,
    applied,
    argument,
    bare,
    container,
    exact_number,
    fewest,
    flow,
    folded,
    integer,
    is_endless,
    lazy,
    literal,
    pair,
    real,
)
from .unit_costs import each, primitive, seconds


def range_rule(call: Call) -> Value:
    call.spend(primitive("builtins.range"))
    if not 1 <= len(call.args) <= 3:
        return Value("range")
    parts = list(call.args)
    start, stop = (literal(0), parts[0]) if len(parts) == 1 else (parts[0], parts[1])
    step = parts[2] if len(parts) == 3 else literal(1)
    exact = [exact_number(part) for part in (start, stop, step)]
    a, b, c = exact
    count = max(ceiling((b - a) / c), 0.0) if a is not None and b is not None and c else math.inf
    if a is not None and b is not None and c is not None and count < math.inf:
        middle, last = a + c * max(count - 1, 0) / 2, a + c * max(count - 1, 0)
        item = Value("int", number=constant(middle), bytes=_int_bytes(a, last))
        return Value("range", size=constant(count), item=item, payload=(a, c, count), step=_range_step(item))
    low, high = number_of(start), number_of(stop)
    if low is None and start.kind not in ("int", "unknown"):
        return Value("range")
    if high is None:
        size = call.length(stop) if stop.kind == "unknown" else None
        return Value("range", size=size, item=integer())
    low = low if low is not None else ZERO
    pace, paces = abs(c) if c else 1.0, number_of(step)
    if c is None and paces is not None and paces.constant is not None:
        pace = max(abs(paces.constant[1]), 1.0)
    elif c is None and paces is not None and paces.names & high.names:
        # `range(d, n, d)` for each d up to n: n log n together.
        return Value("range", size=high.log(), item=integer(), step=constant(primitive("loop.range")))
    size = _not_negative((low - high if c is not None and c < 0 else high - low).times(1 / pace))
    if c is None and pace == 1.0:
        size = size * constant(0.0, 1.0, 0.1)  # the step is mostly the size of the parts that a loop works on
    number = (low + high).times(0.5)
    item = Value("int", number=number, bytes=constant(0.0, 32.0, 28.0))
    return Value("range", size=size, item=item, step=constant(primitive("loop.range")))


def _range_step(item: Value) -> Quantity:
    """Seconds of making one number: small ones exist already."""
    return item.bytes.times(min(primitive("loop.range") / 28, 1.0))


def _not_negative(size: Quantity) -> Quantity:
    limits = size.constant
    if limits is None:
        return size
    low, likely, high = (max(value, 0.0) for value in limits)
    return constant(low, high, likely)


def _int_bytes(first: float, last: float) -> Quantity:
    """Bytes of an int between two numbers, on average: small ones are shared."""
    low, high = min(first, last), max(first, last)
    count = high - low + 1
    shared = max(min(high, 256.0) - max(low, -5.0) + 1, 0.0)
    width = object_sizes.scalar("int", round(min(max(abs(low), abs(high), 257.0), 1e30)))
    return constant(width * (1 - min(shared / count, 1.0)))


def zip_rule(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    if not call.args:
        return lazy(ZERO, None)
    count = flow(call, call.args[0])
    for value in call.args[1:]:
        count = fewest(count, flow(call, value))
    # The tuple is reused where the loop unpacks it.
    return lazy(count, pair(*(value.item or UNKNOWN for value in call.args)), each("builtins.zip"))


def enumerate_rule(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    value = argument(call, 0, "iterable")
    count = flow(call, value)
    number = Value("int", number=None if is_endless(count) else count.times(0.5), bytes=constant(28))
    return lazy(count, pair(number, value.item or UNKNOWN), each("builtins.enumerate"))


def reversed_rule(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    value = argument(call, 0)
    if value.kind == "range":
        bounds = value.payload
        if isinstance(bounds, tuple):
            start, step, count = bounds
            return replace(value, payload=(start + step * max(count - 1, 0), -step, count))
        return value
    return lazy(call.length(value), value.item)


def iter_rule(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    value = argument(call, 0)
    if len(call.args) > 1:
        call.unknown(ONE)
        return lazy(call.length(UNKNOWN), UNKNOWN)
    return value if value.kind == "iterator" else lazy(call.length(value), value.item)


def next_rule(call: Call) -> Value:
    call.spend(primitive("call.builtin"))
    value = argument(call, 0)
    call.spend(value.step)
    return bare(value.item)


def sum_rule(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    item = value.item or UNKNOWN
    start = argument(call, 1, "start")
    if item.kind in ("list", "tuple") or start.kind in ("list", "tuple"):
        # Every addition copies what is there.
        length = call.length(item)
        call.spend(seconds("concat.list", (count * count * length).times(0.5)))
        return container("list", count * length, item.item)
    is_float = item.kind == "float"
    call.spend(seconds("builtins.sum.float" if is_float else "builtins.sum", count))
    bounds = value.payload
    if value.kind == "range" and isinstance(bounds, tuple) and bounds[2] < 2**40:
        start, step, length = (round(part) for part in bounds)
        return literal(start * length + step * length * (length - 1) // 2)
    exact = folded(call, sum)
    if exact is not None:
        return exact
    number = item.number * count if item.number is not None else None
    return real(number) if is_float else integer(number) if item.kind in ("int", "bool") else Value(number=number)


def extreme(name: str) -> Rule:
    """``min`` and ``max``."""
    is_least = name == "builtins.min"
    function: Callable[..., Any] = min if is_least else max

    def rule(call: Call) -> Value:
        key = call.keywords.get("key")
        if len(call.args) == 1:
            value = call.args[0]
            count = call.consume(value)
            if key is not None and key.kind != "none":
                applied(call, key, count, bare(value.item))
            known = folded(call, function)
            name = "builtins.min.text" if value.item is not None and value.item.kind == "str" else "builtins.min"
            call.spend(seconds(name, count))
            if known is not None:
                return known
            return bare(value.item) if value.item is not None else UNKNOWN
        call.spend(seconds("builtins.min.two", constant(len(call.args))))
        if key is not None and key.kind != "none":
            applied(call, key, constant(len(call.args)), *call.args[:1])
        known = folded(call, function)
        if known is not None or not call.args:
            return known or UNKNOWN
        numbers = [number_of(value) for value in call.args]
        kinds = {value.kind for value in call.args}
        kind = kinds.pop() if len(kinds) == 1 else "float" if "float" in kinds else "unknown"
        result = numbers[0]
        for number in numbers[1:]:
            if result is None or number is None:
                return Value(kind)
            result = fewest(result, number) if is_least else _most(result, number)
        return Value(kind, number=result)

    return rule


def _most(left: Quantity, right: Quantity) -> Quantity:
    a, b = left.constant, right.constant
    if a is not None and b is not None:
        return constant(max(a[0], b[0]), max(a[2], b[2]), max(a[1], b[1]))
    return larger(left, right)
