"""Rules for ``itertools``, ``functools``, ``operator`` and ``contextlib``."""

from __future__ import annotations

import math

from ..domain.folding import Choice, ways_to_choose
from ..domain.quantities import ONE, ZERO, Quantity, constant, exponential
from ..domain.records import replace
from ..domain.values import STARRED, UNKNOWN, Call, Value, number_of
from .rules import (
    ENDLESS,
    Rule,
    applied,
    argument,
    bare,
    container,
    exact_number,
    fewest,
    flow,
    integer,
    is_endless,
    lazy,
    makes_items,
    pair,
    passed,
    share_of,
)
from .unit_costs import each, primitive, seconds

_MOST_FACTORS = 12
_TYPICAL_ITEMS = 3.0  # of an iterable of unknown size


def _adaptor(call: Call) -> None:
    call.spend(primitive("builtins.map"))


def counting(call: Call) -> Value:
    _adaptor(call)
    return lazy(ENDLESS, integer(), primitive("loop.range"))


def repeat(call: Call) -> Value:
    _adaptor(call)
    times = argument(call, 1, "times")
    size = ENDLESS if times is UNKNOWN else number_of(times) or call.length(times)
    return lazy(size, bare(argument(call, 0)), each("itertools.chain"))


def cycle(call: Call) -> Value:
    _adaptor(call)
    value = argument(call, 0)
    flow(call, value)
    return lazy(ENDLESS, bare(value.item), each("itertools.chain"))


def chain(call: Call) -> Value:
    _adaptor(call)
    size = ZERO
    for value in call.args:
        count = flow(call, value)
        if is_endless(count):
            size = ENDLESS
            break
        size = size + count
    return lazy(size, passed(call.args[0]) if call.args else None, each("itertools.chain"))


def from_iterable(call: Call) -> Value:
    _adaptor(call)
    value = argument(call, 0)
    inner = value.item or UNKNOWN
    size = flow(call, value) * call.length(inner)
    return lazy(size, inner.item, each("itertools.chain"))


def islice(call: Call) -> Value:
    _adaptor(call)
    value = argument(call, 0)
    whole = call.length(value)
    bounds = [number_of(bound) for bound in call.args[1:3]]
    if len(bounds) == 2 and call.args[2].kind == "none":
        part = whole - (bounds[0] or ZERO)
        reached = whole
    else:
        stop = bounds[-1] if bounds and bounds[-1] is not None else whole
        start = bounds[0] if len(bounds) == 2 and bounds[0] is not None else ZERO
        reached = fewest(whole, stop)
        part = reached - start
    step = exact_number(argument(call, 3))
    if step is not None and step > 1:
        part = part.times(1 / step)
    # What the sliced iterator computes for the items up to the end of the slice.
    total = getattr(value.payload, "total", None)
    if isinstance(total, Quantity) and value.kind == "iterator" and not is_endless(whole):
        call.spend(total * share_of(reached, whole))
    elif value.step.terms and not is_endless(reached):
        call.spend(value.step * reached)
    return lazy(part, passed(value), each("itertools.chain"))


def take_while(call: Call) -> Value:
    _adaptor(call)
    function, value = argument(call, 0), argument(call, 1)
    count = call.length(value)
    if is_endless(count):
        # It ends where the function says so.
        applied(call, function, ONE, bare(value.item))
        return lazy(call.length(UNKNOWN), bare(value.item), each("itertools.chain"))
    count = flow(call, value)
    applied(call, function, count, bare(value.item))
    return lazy(count * constant(0.0, 1.0, 0.5), bare(value.item), each("itertools.chain"))


def _pool(call: Call, value: Value) -> None:
    """Keep all items of an iterable in a tuple during the call."""
    count = call.length(value)
    if not is_endless(count):
        call.allocate(container("tuple", count, value.item, fresh=makes_items(value)).bytes)


def product(call: Call) -> Value:
    _adaptor(call)
    size = ONE
    for value in call.args[:_MOST_FACTORS]:
        count = call.consume(value)
        if value.payload is STARRED:
            # The factors are the dimensions of an array, or the parts of a pattern: few. There is no telling how many
            # items they have together.
            count = call.length(UNKNOWN)
        size = size * count
        _pool(call, value)
    repeat = argument(call, 99, "repeat")
    times = number_of(repeat)
    if repeat is not UNKNOWN:
        fixed_times = times.exact if times is not None else None
        if fixed_times is not None:
            size = size.power(max(fixed_times, 0.0))
        elif times is not None:
            base = size.constant
            size = exponential(base[1] if base is not None else _TYPICAL_ITEMS, times)
    parts = [value.item or UNKNOWN for value in call.args[:_MOST_FACTORS]]
    width = len(parts) * (times.exact or 1.0 if times is not None else 1.0)
    item = (
        pair(*parts)
        if repeat is UNKNOWN
        else Value("tuple", size=constant(width), item=parts[0] if parts else None, bytes=constant(40 + 8 * width))
    )
    return lazy(size, item, each("itertools.product"))


def chosen(kind: Choice) -> Rule:
    """``permutations`` and ``combinations``: their number, by the formulas of combinatorics."""

    def rule(call: Call) -> Value:
        _adaptor(call)
        value, wanted = argument(call, 0), argument(call, 1, "r")
        count = call.consume(value)
        _pool(call, value)
        chosen = exact_number(wanted)
        whole = count.exact
        item = Value("tuple", item=bare(value.item))
        if whole is not None and (chosen is not None or _is_whole(wanted)):
            width = whole if chosen is None else chosen
            size = constant(ways_to_choose(kind, whole, width))
        elif chosen is not None:
            width = chosen
            size = count.power(chosen)
            if kind != "permutations" and 0 <= chosen <= 100:
                size = size.times(1 / math.factorial(round(chosen)))
        elif _is_whole(wanted) or (wanted.number is not None and set(wanted.number.names) & set(count.names)):
            # n! of an unknown n, or the sum of all choices: the analysis knows exponentials only, of which this one is
            # larger for n above 5.
            width = 4.0
            size = exponential(2.0, count)
        else:
            # How many are chosen is another input, mostly a small number.
            width = 2.0
            size = count.power(width)
        item = replace(item, size=constant(width), bytes=constant(40 + 8 * width))
        return lazy(size, item, each("itertools.permutations" if kind == "permutations" else "itertools.combinations"))

    return rule


def _is_whole(wanted: Value) -> bool:
    return wanted is UNKNOWN or wanted.kind == "none"


def accumulate(call: Call) -> Value:
    _adaptor(call)
    value, function = argument(call, 0), argument(call, 1, "func")
    count = flow(call, value)
    item = bare(value.item)
    if function is not UNKNOWN and function.kind != "none":
        item = applied(call, function, count, item, item)
        return lazy(count, item, each("itertools.chain"))
    return lazy(count, replace(item, constant=UNKNOWN.constant, number=None), each("itertools.accumulate"))


def starmap(call: Call) -> Value:
    _adaptor(call)
    function, value = argument(call, 0), argument(call, 1)
    count = flow(call, value)
    parts = value.item.payload if value.item is not None and isinstance(value.item.payload, tuple) else (UNKNOWN,)
    return lazy(count, applied(call, function, count, *parts), each("builtins.map"))


def groupby(call: Call) -> Value:
    _adaptor(call)
    value, key = argument(call, 0), argument(call, 1, "key")
    count = flow(call, value)
    result = bare(value.item)
    if key is not UNKNOWN and key.kind != "none":
        result = applied(call, key, count, result)
    if is_endless(count):
        return lazy(count, pair(result, UNKNOWN))
    call.spend(seconds("itertools.groupby", count))
    groups = count * constant(0.0, 1.0, 0.3)
    return lazy(groups, pair(result, lazy(constant(1.0, 10.0, 3.0), bare(value.item))))


def longest(call: Call) -> Value:
    _adaptor(call)
    counts = [flow(call, value) for value in call.args]
    size = ZERO
    for count in counts:
        a, b = size.exact, count.exact
        size = count if a is None or b is None or b > a else size
    return lazy(size, pair(*(value.item or UNKNOWN for value in call.args)), each("builtins.zip"))


# functools.


def reduce(call: Call) -> Value:
    function, value = argument(call, 0), argument(call, 1)
    count = call.consume(value)
    item = bare(value.item)
    call.spend(seconds("functools.reduce", count))
    start = argument(call, 2, "initial") if len(call.args) > 2 else item
    return applied(call, function, count, start, item)


def partial(call: Call) -> Value:
    call.spend(primitive("functools.partial"))
    return call.args[0] if call.args and call.args[0].kind == "function" else Value("object", name="functools.partial")


def decorator(cost: str) -> Rule:
    """A decorator: what it returns costs about what it gets."""

    def rule(call: Call) -> Value:
        call.spend(primitive(cost))
        if call.args and call.args[0].kind in ("user-function", "function", "class"):
            return call.args[0]
        return Value("function", name="functools.wraps()")

    return rule


def getter(call: Call) -> Value:
    call.spend(primitive("operator.itemgetter"))
    return Value("function", name="operator.itemgetter()", payload=call.args)
