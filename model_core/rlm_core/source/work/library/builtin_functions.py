"""Rules for Python's builtin functions and types, but for ``open`` and ``print``, which are in :mod:`.system`."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .. import object_sizes
from ..quantities import ONE, ZERO, Quantity, constant, larger, mixed
from ..unit_costs import each, primitive, seconds
from ..values import NONE, UNKNOWN, Call, Value, number_of
from .rules import (
    BOOL,
    INT,
    ORDERED,
    SHORT,
    Attribute,
    Rule,
    applied,
    argument,
    bare,
    collection_cost,
    constants,
    container,
    counted,
    exact_number,
    fewest,
    fixed,
    flow,
    folded,
    integer,
    is_endless,
    lazy,
    literal,
    makes_items,
    pair,
    real,
    text,
)

_LAZY_ZEROS = 1 << 25  # bytes; smaller blocks are reused and written
_MAPPED_SECONDS = 1e-5  # of a call of mmap and one of munmap
_ALPHABET = 30.0  # different characters in a text of usual length


def sort_cost(value: Value, item: Value, count: Quantity) -> Quantity:
    """The seconds of sorting: linear where the order is known, else by what the items are."""
    if value.kind == "range" or value.name == ORDERED:
        return seconds("builtins.sorted.ordered", count)
    name = {"float": ".float", "str": ".text", "bytes": ".text", "tuple": ".tuple", "list": ".tuple"}.get(item.kind, "")
    return seconds(f"builtins.sorted{name}", count)


def sort(call: Call, value: Value, count: Quantity) -> None:
    """Spend what sorting takes, with its key function and the room for merging."""
    key, item = argument(call, 99, "key"), value.item or UNKNOWN
    if key is not UNKNOWN and key.kind != "none":
        result = applied(call, key, count, bare(item))
        ordered = value if value.kind != "range" else replace(value, kind="list")
        call.spend(sort_cost(ordered, result, count) + count.times(each("builtins.sorted.key")))
        call.allocate(object_sizes.container("list", count) + result.bytes * count)
    else:
        call.spend(sort_cost(value, item, count))
    if value.kind != "range" and value.name != ORDERED:
        call.allocate(count.times(object_sizes.REFERENCE / 2))


def _sorted(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    sort(call, value, count)
    grown = value.kind == "iterator"
    result = container("list", count, value.item, grown=grown, fresh=makes_items(value))
    return replace(result, name=ORDERED)


def _list(call: Call) -> Value:
    if not call.args:
        call.spend(primitive("build.list"))
        return container("list", ZERO, None)
    value = call.args[0]
    count = call.length(value) if value.kind == "range" else call.consume(value)
    if makes_items(value) and value.item is not None:
        call.spend(collection_cost(value.item, count))
    name = {"range": ".range", "list": ".copy", "tuple": ".copy", "str": ".text"}.get(value.kind, "")
    call.spend(seconds(f"builtins.list{name}", count))
    result = container("list", count, value.item, grown=value.kind == "iterator", fresh=makes_items(value))
    positions = value.payload if value.kind in ("list", "tuple") and isinstance(value.payload, tuple) else None
    return replace(result, name=ORDERED if value.kind == "range" or value.name == ORDERED else "", payload=positions)


def _tuple(call: Call) -> Value:
    if not call.args:
        return literal(())
    value = call.args[0]
    count = call.consume(value)
    if value.kind == "tuple":
        call.spend(primitive("call.builtin"))
        return bare(value)
    call.spend(seconds("builtins.list.copy" if value.kind == "list" else "builtins.list", count))
    result = container("tuple", count, value.item, fresh=makes_items(value))
    return replace(result, payload=value.payload if value.kind == "list" else None)


def _has_characters(value: Value) -> bool:
    """Whether a value is a text or a collection of single characters."""
    item = value.item
    is_single = item is not None and item.kind == "str" and item.size is not None and item.size.exact == 1
    return value.kind == "str" or is_single


def distinct(value: Value, count: Quantity) -> Quantity:
    """How many different items there are among ``count``, at most."""
    fixed_count = count.constant
    if value.known and isinstance(value.constant, (tuple, str, bytes)):
        try:
            return constant(len(set(value.constant)))
        except TypeError:
            return count
    if _has_characters(value) and fixed_count is not None:
        low, likely, high = fixed_count
        return Quantity({(): (min(low, 1.0), min(likely, _ALPHABET), high)})
    item = value.item
    if item is None or value.kind == "range" or item.number is None or fixed_count is None:
        return count
    if item.known:
        return fewest(count, ONE)
    limits = item.number.constant
    if item.kind == "int" and limits is not None and limits[2] > limits[0]:
        return fewest(count, constant(limits[2] - limits[0] + 1))
    return count


def hashing_cost(value: Value, count: Quantity) -> Quantity:
    """The seconds of putting items into a table."""
    item = value.item or UNKNOWN
    if item.kind in ("str", "tuple", "bytes"):
        return seconds("builtins.set.text", count)
    return seconds("builtins.set", count)


def _set(kind: str) -> Rule:
    def rule(call: Call) -> Value:
        if not call.args:
            call.spend(primitive("build.set"))
            return container(kind, ZERO, None)
        value = call.args[0]
        count = call.consume(value)
        call.spend(hashing_cost(value, count))
        size = distinct(value, count)
        result = container(kind, size, value.item, fresh=makes_items(value))
        # The old table exists until the new one is filled.
        call.allocate(object_sizes.container(kind, size, grown=True) - object_sizes.container(kind, size))
        return result

    return rule


def _dict(call: Call) -> Value:
    size, cost = constant(len(call.keywords)), seconds("build.dict", constant(len(call.keywords)))
    item: Value | None = Value("str") if call.keywords else None
    entry: Value | None = next(iter(call.keywords.values()), None)
    value = argument(call, 0)
    if call.args:
        count = call.consume(value)
        size = size + count
        if value.kind == "dict":
            cost = cost + seconds("dict.copy", count)
            item, entry = value.item, value.entry
        else:
            cost = cost + seconds("builtins.dict", count)
            parts = value.item.payload if value.item is not None else None
            if isinstance(parts, tuple) and len(parts) == 2:
                item, entry = parts
            elif value.item is not None and value.item.item is not None:
                item = entry = value.item.item
    call.spend(cost + constant(primitive("call.builtin")))
    if value.kind != "dict" and call.args:
        call.allocate(object_sizes.container("dict", size, grown=True) - object_sizes.container("dict", size))
    return container("dict", size, item or UNKNOWN, entry=entry or UNKNOWN)


def _len(call: Call) -> Value:
    call.spend(primitive("call.builtin"))
    value = argument(call, 0)
    if value.kind in ("int", "float", "none", "bool", "function", "object"):
        return integer(value.size)
    return counted(call.length(value))


def _range(call: Call) -> Value:
    call.spend(primitive("builtins.range"))
    if not 1 <= len(call.args) <= 3:
        return Value("range")
    parts = list(call.args)
    start, stop = (literal(0), parts[0]) if len(parts) == 1 else (parts[0], parts[1])
    step = parts[2] if len(parts) == 3 else literal(1)
    exact = [exact_number(part) for part in (start, stop, step)]
    a, b, c = exact
    if a is not None and b is not None and c is not None and c:
        count = float(max(math.ceil((b - a) / c), 0))
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
    low, likely, high = sorted(max(value, 0.0) for value in limits)
    return Quantity({(): (low, likely, high)})


def _int_bytes(first: float, last: float) -> Quantity:
    """Bytes of an int between two numbers, on average: small ones are shared."""
    low, high = min(first, last), max(first, last)
    count = high - low + 1
    shared = max(min(high, 256.0) - max(low, -5.0) + 1, 0.0)
    width = object_sizes.scalar("int", round(min(max(abs(low), abs(high), 257.0), 1e30)))
    return constant(width * (1 - min(shared / count, 1.0)))


def _map(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    if len(call.args) < 2:
        return lazy(ZERO, None)
    function, *values = call.args
    count = flow(call, values[0])
    for value in values[1:]:
        count = fewest(count, flow(call, value))
    item = applied(call, function, count, *[bare(value.item) for value in values])
    return lazy(count, item, each("builtins.map"))


def _filter(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    if len(call.args) < 2:
        return lazy(ZERO, None)
    function, value = call.args[0], call.args[1]
    count = flow(call, value)
    applied(call, function, count, bare(value.item))
    if is_endless(count):
        return lazy(count, value.item)
    call.spend(count.times(each("builtins.filter")))
    return lazy(count * constant(0.0, 1.0, 0.5), value.item)


def _zip(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    if not call.args:
        return lazy(ZERO, None)
    count = flow(call, call.args[0])
    for value in call.args[1:]:
        count = fewest(count, flow(call, value))
    # The tuple is reused where the loop unpacks it.
    return lazy(count, pair(*(value.item or UNKNOWN for value in call.args)), each("builtins.zip"))


def _enumerate(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    value = argument(call, 0, "iterable")
    count = flow(call, value)
    number = Value("int", number=None if is_endless(count) else count.times(0.5), bytes=constant(28))
    return lazy(count, pair(number, value.item or UNKNOWN), each("builtins.enumerate"))


def _reversed(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    value = argument(call, 0)
    if value.kind == "range":
        bounds = value.payload
        if isinstance(bounds, tuple):
            start, step, count = bounds
            return replace(value, payload=(start + step * max(count - 1, 0), -step, count))
        return value
    return lazy(call.length(value), value.item)


def _iter(call: Call) -> Value:
    call.spend(primitive("builtins.map"))
    value = argument(call, 0)
    if len(call.args) > 1:
        call.unknown(ONE)
        return lazy(call.length(UNKNOWN), UNKNOWN)
    return value if value.kind == "iterator" else lazy(call.length(value), value.item)


def _next(call: Call) -> Value:
    call.spend(primitive("call.builtin"))
    value = argument(call, 0)
    call.spend(value.step)
    return bare(value.item)


def _sum(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    item = value.item or UNKNOWN
    if item.kind in ("list", "tuple"):
        # Every addition copies what is there.
        copied = count * count * (item.size if item.size is not None else constant(1.0)).times(0.5)
        call.spend(seconds("concat.list", copied))
        return container("list", count * (item.size or ONE), item.item)
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


def _extreme(function: Callable[..., Any]) -> Rule:
    is_least = function is min

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
            result = _least(result, number) if is_least else _most(result, number)
        return Value(kind, number=result)

    return rule


def _least(left: Quantity, right: Quantity) -> Quantity:
    return fewest(left, right)


def _most(left: Quantity, right: Quantity) -> Quantity:
    a, b = left.constant, right.constant
    if a is not None and b is not None:
        return Quantity({(): (max(a[0], b[0]), max(a[1], b[1]), max(a[2], b[2]))})
    return larger(left, right)


def _any(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    call.spend(seconds("builtins.any", mixed([(0.5, ONE), (0.5, count)])))
    return BOOL


def _same_number(cost: str, function: Callable[..., Any], kind: str = "") -> Rule:
    """A rule of a function that hardly changes a number: ``abs``, ``round``, ``int``, ``math.floor``."""

    def rule(call: Call) -> Value:
        call.spend(primitive(cost))
        known = folded(call, function)
        if known is not None:
            return known
        value = argument(call, 0)
        result = kind or (value.kind if value.kind in ("int", "float") else "unknown")
        held = constant(object_sizes.scalar(result)) if result != "unknown" else ZERO
        return Value(result, number=number_of(value), bytes=held)

    return rule


def _int(call: Call) -> Value:
    value = argument(call, 0)
    if value.kind in ("str", "bytes") and not (value.known and len(call.args) == 1):
        size = value.size if value.size is not None else SHORT
        limit = size.constant
        if limit is not None and limit[1] > 40:
            call.spend(seconds("bigint.text", size.times(3.33 / 30)))
            return Value("int", size=size.times(3.33 / 30), bytes=size.times(0.45))
        call.spend(seconds("builtins.int.text", size))
        return folded(call, int) or integer()
    call.spend(primitive("builtins.int.text" if value.kind == "str" else "builtins.int"))
    known = folded(call, int)
    if known is not None:
        return known
    return replace(value, bytes=ZERO) if value.kind == "int" else integer(number_of(value))


def _float(call: Call) -> Value:
    value = argument(call, 0)
    call.spend(primitive("builtins.float.text" if value.kind == "str" else "builtins.float"))
    return folded(call, float) or real(number_of(value) if value.kind != "str" else None)


def _str(call: Call) -> Value:
    if not call.args:
        return literal("")
    value = call.args[0]
    return text_of(call, value) if len(call.args) == 1 else text(call.length(value))


def text_of(call: Call, value: Value, *, quoted: bool = False) -> Value:
    """``str(value)`` or ``repr(value)``: containers item by item."""
    if value.kind == "str" and not quoted:
        call.spend(primitive("call.builtin"))
        return bare(value)
    if value.kind == "int" and value.size is not None and not value.known:
        call.spend(seconds("bigint.text", value.size))
        return text(value.size.times(9.03))
    if value.kind in ("int", "float", "bool", "none"):
        call.spend(primitive("builtins.str.float" if value.kind == "float" else "builtins.str"))
        known = constants([value])
        if known is not None:
            try:
                return literal(str(known[0]))
            except ValueError:
                return text(SHORT)
        limits = value.number.constant if value.number is not None else None
        if value.kind == "int" and limits is not None:
            low, likely, high = (math.floor(math.log10(max(abs(limit), 1.0))) + 1.0 for limit in limits)
            return text(Quantity({(): (min(low, high), likely, high)}))
        return text(constant(16.0, 20.0) if value.kind == "float" else constant(1.0, 12.0, 4.0))
    if value.kind in ("list", "tuple", "set", "dict", "frozenset", "deque") and value.size is not None:
        item = value.item or UNKNOWN
        per = "builtins.repr.float" if item.kind == "float" else "builtins.repr"
        parts = value.size.times(2.0 if value.kind == "dict" else 1.0)
        call.spend(seconds(per, parts))
        size = parts.times(9.0 if item.kind in ("int", "bool", "unknown") else 20.0)
        call.allocate(size.times(1.25))
        return text(size)
    if value.kind in ("str", "bytes"):
        call.spend(seconds("builtins.repr.text", call.length(value)))
        return text(call.length(value))
    call.spend(primitive("builtins.str.object"))
    return text(SHORT)


def _repr(call: Call) -> Value:
    return text_of(call, argument(call, 0), quoted=True)


def _blank(kind: str) -> Rule:
    """``bytes`` and ``bytearray``: of a number, that many zeros; of a text or an iterable, its bytes."""

    def rule(call: Call) -> Value:
        value = argument(call, 0)
        if not call.args:
            call.spend(primitive("call.builtin"))
            return text(ZERO, kind)
        if value.kind in ("int", "bool"):
            size = value.number if value.number is not None else call.length(UNKNOWN)
            fixed_size = size.exact
            # The operating system gives out large blocks as zeros; ``bytearray`` writes them again.
            is_lazy = kind == "bytes" and fixed_size is not None and fixed_size > _LAZY_ZEROS
            call.spend(constant(_MAPPED_SECONDS) if is_lazy else seconds("builtins.bytes", size))
            return text(size, kind)
        if value.kind in ("str", "bytes", "bytearray", "array", "unknown"):
            size = call.length(value)
            call.spend(seconds("builtins.bytes.copy", size))
            return text(size, kind)
        size = call.consume(value)
        call.spend(seconds("builtins.bytes.items", size))
        return text(size, kind)

    return rule


def _pow(call: Call) -> Value:
    if len(call.args) == 3:
        base, exponent, modulus = call.args
        bits = ZERO
        for value in (exponent,):
            if value.known and isinstance(value.constant, int):
                bits = constant(value.constant.bit_length())
            else:
                bits = value.size.times(30.0) if value.size is not None else constant(1.0, 64.0, 20.0)
        each_bit = constant(each("builtins.pow.modulo"))
        if modulus.size is not None:
            each_bit = each_bit + seconds("builtins.pow.modulo.digits", modulus.size)
        call.spend(constant(primitive("builtins.pow.modulo")) + bits * each_bit)
        known = constants(call.args)
        if known is not None and all(isinstance(part, int) and part.bit_length() <= 512 for part in known):
            return folded(call, pow) or INT
        return Value("int", size=modulus.size, bytes=INT.bytes)
    call.spend(primitive("power.int"))
    known = constants(call.args)
    if known is not None and len(known) == 2 and all(isinstance(part, (int, float)) for part in known):
        base, exponent = known
        if isinstance(base, float) or isinstance(exponent, float) or abs(exponent) * base.bit_length() <= 4096:
            return folded(call, pow) or UNKNOWN
        bits = min(abs(exponent), 10**15) * base.bit_length()
        digits = constant(bits / 30)
        call.spend(seconds("bigint.multiply", digits.times(0.5)).times(1.5))
        return Value("int", size=digits, bytes=digits.times(4.0) + constant(24))
    return UNKNOWN


def _divmod(call: Call) -> Value:
    call.spend(primitive("builtins.divmod"))
    known = folded(call, divmod)
    if known is not None:
        return known
    return pair(INT, INT)


def _hash(call: Call) -> Value:
    value = argument(call, 0)
    if value.kind in ("str", "bytes"):
        call.spend(seconds("builtins.hash.text", call.length(value)))
    elif value.kind == "tuple":
        call.spend(seconds("builtins.hash.tuple", call.length(value)))
    else:
        call.spend(primitive("call.builtin"))
    return INT


def _object(name: str, cost: str) -> Rule:
    spent = primitive(cost)

    def rule(call: Call) -> Value:
        call.spend(spent)
        return Value("object", name=name)

    return rule


def _getattr(call: Call) -> Value:
    call.spend(primitive("builtins.getattr"))
    return UNKNOWN


def _code(call: Call) -> Value:
    """``eval`` and ``exec``: what the text does is not read."""
    call.spend(seconds("builtins.eval", call.length(argument(call, 0))))
    call.unknown(ONE)
    return UNKNOWN


def _compile(call: Call) -> Value:
    call.spend(seconds("builtins.eval", call.length(argument(call, 0))))
    return Value("object", name="code")


def _exception(call: Call) -> Value:
    call.spend(primitive("builtins.exception"))
    return Value("object", name="exception")


def _of_digits(function: Callable[..., Any]) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(primitive("builtins.str"))
        return folded(call, function) or text(constant(3.0, 20.0, 8.0))

    return rule


def _format(call: Call) -> Value:
    call.spend(primitive("builtins.format"))
    return folded(call, format) or text(SHORT)


def _fromkeys(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    call.spend(hashing_cost(value, count).times(1.5))
    size = distinct(value, count)
    entry = argument(call, 1)
    return container("dict", size, value.item, fresh=makes_items(value), entry=bare(entry) if call.args[1:] else NONE)


FUNCTIONS: dict[str, Rule] = {
    "builtins.sorted": _sorted,
    "builtins.list": _list,
    "builtins.tuple": _tuple,
    "builtins.set": _set("set"),
    "builtins.frozenset": _set("frozenset"),
    "builtins.dict": _dict,
    "builtins.dict.fromkeys": _fromkeys,
    "builtins.len": _len,
    "builtins.range": _range,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.zip": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.reversed": _reversed,
    "builtins.iter": _iter,
    "builtins.next": _next,
    "builtins.sum": _sum,
    "builtins.min": _extreme(min),
    "builtins.max": _extreme(max),
    "builtins.any": _any,
    "builtins.all": _any,
    "builtins.abs": _same_number("call.builtin", abs),
    "builtins.round": _same_number("builtins.round", round),
    "builtins.int": _int,
    "builtins.float": _float,
    "builtins.complex": fixed("builtins.float", Value("complex", bytes=constant(32))),
    "builtins.bool": fixed("call.builtin", BOOL, bool),
    "builtins.str": _str,
    "builtins.repr": _repr,
    "builtins.ascii": _repr,
    "builtins.format": _format,
    "builtins.bytes": _blank("bytes"),
    "builtins.bytearray": _blank("bytearray"),
    "builtins.memoryview": fixed("builtins.memoryview", Value("memoryview")),
    "builtins.pow": _pow,
    "builtins.divmod": _divmod,
    "builtins.hash": _hash,
    "builtins.id": fixed("builtins.id", INT),
    "builtins.ord": fixed("call.builtin", Value("int"), ord),
    "builtins.chr": fixed("call.builtin", Value("str", size=ONE, item=Value("str", size=ONE)), chr),
    "builtins.hex": _of_digits(hex),
    "builtins.oct": _of_digits(oct),
    "builtins.bin": _of_digits(bin),
    "builtins.isinstance": fixed("builtins.isinstance", BOOL),
    "builtins.issubclass": fixed("builtins.isinstance", BOOL),
    "builtins.callable": fixed("call.builtin", BOOL),
    "builtins.getattr": _getattr,
    "builtins.hasattr": fixed("builtins.getattr", BOOL),
    "builtins.setattr": fixed("builtins.setattr", NONE),
    "builtins.delattr": fixed("builtins.setattr", NONE),
    "builtins.type": fixed("call.builtin", Value("class")),
    "builtins.super": fixed("builtins.super", UNKNOWN),
    "builtins.object": _object("object", "call.builtin"),
    "builtins.property": fixed("builtins.super", UNKNOWN),
    "builtins.staticmethod": fixed("builtins.super", UNKNOWN),
    "builtins.classmethod": fixed("builtins.super", UNKNOWN),
    "builtins.slice": fixed("call.builtin", Value("slice")),
    "builtins.vars": fixed("call.builtin", Value("dict")),
    "builtins.globals": fixed("call.builtin", Value("dict")),
    "builtins.locals": fixed("call.builtin", Value("dict")),
    "builtins.dir": fixed("builtins.dir", Value("list", size=constant(30.0), item=Value("str"))),
    "builtins.eval": _code,
    "builtins.exec": _code,
    "builtins.compile": _compile,
} | {
    f"builtins.{name}": _exception
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
METHODS: dict[tuple[str, str], Rule] = {}
ATTRIBUTES: dict[tuple[str, str], Attribute] = {
    ("builtins.dict", "fromkeys"): lambda value: Value("function", name="builtins.dict.fromkeys"),
}
