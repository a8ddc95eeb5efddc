"""Rules for ``sorted``, ``len``, and the types that hold items: ``list``, ``tuple``, ``set``, ``dict``."""

from __future__ import annotations

from ..domain import object_sizes
from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.values import NONE, UNKNOWN, Call, Value
from .rules import (
    ORDERED,
    Rule,
    applied,
    argument,
    bare,
    collection_cost,
    container,
    counted,
    fewest,
    integer,
    literal,
    makes_items,
)
from .unit_costs import each, primitive, seconds

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


def sorted_rule(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    sort(call, value, count)
    grown = value.kind == "iterator"
    result = container("list", count, value.item, grown=grown, fresh=makes_items(value))
    return replace(result, name=ORDERED)


def list_rule(call: Call) -> Value:
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


def tuple_rule(call: Call) -> Value:
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
    """Return whether a value is a text or a collection of single characters."""
    item = value.item
    is_single = item is not None and item.kind == "str" and item.size is not None and item.size.exact == 1
    return value.kind == "str" or is_single


def distinct(value: Value, count: Quantity) -> Quantity:
    """Return how many different items there are among ``count``, at most."""
    fixed_count = count.constant
    if value.known and isinstance(value.constant, (tuple, str, bytes)):
        try:
            return constant(len(set(value.constant)))
        except TypeError:
            return count
    if _has_characters(value) and fixed_count is not None:
        low, likely, high = fixed_count
        return constant(min(low, 1.0), high, min(likely, _ALPHABET))
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


def set_rule(kind: str) -> Rule:
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


def dict_rule(call: Call) -> Value:
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


def len_rule(call: Call) -> Value:
    call.spend(primitive("call.builtin"))
    value = argument(call, 0)
    if value.kind in ("int", "float", "none", "bool", "function", "object"):
        return integer(value.size)
    return counted(call.length(value))


def fromkeys(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    call.spend(hashing_cost(value, count).times(1.5))
    size = distinct(value, count)
    entry = argument(call, 1)
    return container("dict", size, value.item, fresh=makes_items(value), entry=bare(entry) if call.args[1:] else NONE)
