"""Rules for ``math`` and ``random``."""

from __future__ import annotations

import math

from ..domain import object_sizes
from ..domain.quantities import ONE, ZERO, constant, exponential
from ..domain.values import UNKNOWN, Call, Value, number_of
from .rules import (
    INT,
    Rule,
    argument,
    container,
    exact_number,
    folded,
    integer,
    real,
)
from .unit_costs import primitive, seconds


def log(call: Call) -> Value:
    call.spend(primitive("math.log"))
    known = folded(call, math.log)
    if known is not None:
        return known
    value, base = number_of(argument(call, 0)), exact_number(argument(call, 1))
    factor = 1 / math.log2(base) if base is not None and base > 1 else math.log(2)
    return real(value.log().times(factor) if value is not None else None)


def power(call: Call) -> Value:
    call.spend(primitive("power.float"))
    known = folded(call, math.pow)
    if known is not None:
        return known
    value, exponent = number_of(argument(call, 0)), number_of(argument(call, 1))
    if value is None or exponent is None:
        return real()
    base, fixed_exponent = value.constant, exponent.exact
    if fixed_exponent is None:
        return real(exponential(base[1], exponent) if base is not None and base[1] > 1 else None)
    return real(value.power(fixed_exponent) if 0 <= fixed_exponent <= 8 else None)


def gcd(call: Call) -> Value:
    call.spend(constant(max(len(call.args) - 1, 1)).times(primitive("math.gcd")))
    limits = [value.number.constant for value in call.args if value.number is not None]
    most = min((abs(limit[2]) for limit in limits if limit is not None), default=math.inf)
    number = constant(1.0, most, most**0.3) if 1 <= most < math.inf else None
    held = ZERO if most <= object_sizes.MOST_SHARED else INT.bytes
    return folded(call, math.gcd) or Value("int", number=number, bytes=held)


# random.


def between(call: Call) -> Value:
    """``randint(a, b)`` and ``randrange``: any number between."""
    call.spend(primitive("random.randint"))
    bounds = [number_of(value) for value in call.args[:2]]
    if len(bounds) == 1:
        bounds.insert(0, constant(0.0))
    if len(bounds) == 2 and bounds[0] is not None and bounds[1] is not None:
        low, high = bounds[0].constant, bounds[1].constant
        if low is not None and high is not None:
            return integer(constant(low[0], max(high[2], low[0])))
        return integer((bounds[0] + bounds[1]).times(0.5))
    return INT


def drawn(cost: str, at: int) -> Rule:
    """``choices`` and ``sample``: a list of ``k`` items."""

    def rule(call: Call) -> Value:
        value, wanted = argument(call, 0), argument(call, at, "k")
        size = number_of(wanted) if wanted is not UNKNOWN else ONE
        size = size if size is not None else call.length(wanted)
        call.spend(seconds(cost, size))
        if value.kind in ("set", "iterator"):
            call.spend(seconds("builtins.list", call.length(value)))
        return container("list", size, value.item, fresh=value.kind == "range")

    return rule
