"""Rules for the methods of lists, tuples, dictionaries and sets, and for ``collections``."""

from __future__ import annotations

from ..domain import object_sizes
from ..domain.quantities import ONE, ZERO, constant, mixed
from ..domain.records import replace
from ..domain.values import NONE, UNKNOWN, Call, Value
from .builtin_collections import distinct, hashing_cost, sort
from .rules import (
    BOOL,
    INT,
    Rule,
    argument,
    arguments,
    bare,
    container,
    counted,
    exact_number,
    makes_items,
    pair,
    receiver,
)
from .unit_costs import each, primitive, seconds


def sort_list(call: Call) -> Value:
    value = receiver(call)
    sort(call, value, call.length(value))
    return NONE


def searching(kind: str) -> Rule:
    """``index`` and ``remove``: on average half of the items are compared; ``remove`` moves those behind the place."""
    result = INT if kind == "int" else NONE

    def rule(call: Call) -> Value:
        value = receiver(call)
        count = call.length(value)
        wanted = next(iter(arguments(call)), UNKNOWN)
        name = "contains.list.text" if wanted.kind == "str" else "contains.list"
        call.spend(constant(primitive("call.builtin")) + seconds(name, call.searched(count)))
        if result is NONE:
            # Each item is either compared or moved: what both take is taken for all.
            call.spend(count.times(each("list.insert")))
        return result

    return rule


def extend(call: Call) -> Value:
    value = next(iter(arguments(call)), UNKNOWN)
    count = call.consume(value)
    call.spend(seconds("list.extend" if value.kind in ("list", "tuple") else "builtins.list", count))
    return NONE


def pop(call: Call) -> Value:
    value, rest = receiver(call), arguments(call)
    call.spend(primitive("list.pop"))
    if rest:
        index = exact_number(rest[0])
        moved = ZERO if index is not None and index < 0 else call.length(value)
        if index is None:
            moved = moved.times(0.5)
        call.spend(moved.times(each("list.insert")))
    return bare(value.item)


def insert(call: Call) -> Value:
    value, rest = receiver(call), arguments(call)
    index = exact_number(rest[0]) if rest else None
    count = call.length(value)
    call.spend(seconds("list.insert", count if index == 0 else count.times(0.5)))
    return NONE


def copying(cost: str) -> Rule:
    """A rule of a copy of the receiver."""

    def rule(call: Call) -> Value:
        value = receiver(call)
        count = call.length(value)
        call.spend(seconds(cost, count))
        kind = value.kind if value.kind != "unknown" else cost.split(".")[0]
        return replace(value, kind=kind, size=count, bytes=object_sizes.container(kind, count))

    return rule


# Dictionaries.


def update(call: Call) -> Value:
    for value in arguments(call):
        count = call.consume(value)
        call.spend(seconds("dict.update" if value.kind == "dict" else "builtins.set", count))
    call.spend(constant(primitive("call.builtin")) + seconds("build.dict", constant(len(call.keywords))))
    return NONE


# Sets.


def combining(part: str) -> Rule:
    """Set operations by method: ``part`` says which items the result has."""

    def rule(call: Call) -> Value:
        value = receiver(call)
        left = call.length(value)
        size = left
        for other in arguments(call):
            right = call.consume(other)
            cost = (
                hashing_cost(other, right)
                if part in ("union", "symmetric") or other.kind not in ("set", "frozenset", "dict")
                else seconds("set.intersection", left)
            )
            call.spend(cost)
            if part == "union":
                size = size + right
            elif part == "symmetric":
                size = (left + right) * constant(0.0, 1.0, 0.5)
            else:
                size = size * constant(0.0, 1.0, 0.5)
        if part in ("union", "difference", "symmetric"):
            call.spend(seconds("set.copy", left))
        return container("frozenset" if value.kind == "frozenset" else "set", size, value.item)

    return rule


def comparing(kind: str) -> Rule:
    """A rule of a set method that looks up the items of another: all of them, or up to one that decides."""
    result = BOOL if kind == "bool" else NONE

    def rule(call: Call) -> Value:
        count = call.length(receiver(call))
        for other in arguments(call):
            if other.kind not in ("set", "frozenset", "dict"):
                count = count + call.consume(other)
        call.spend(seconds("set.intersection", mixed([(0.5, ONE), (0.5, count)])))
        return result

    return rule


def update_set(call: Call) -> Value:
    for other in arguments(call):
        count = call.consume(other)
        call.spend(hashing_cost(other, count))
    return NONE


# collections.


def counter(call: Call) -> Value:
    call.spend(primitive("collections.Counter"))
    if not call.args:
        return Value("dict", size=constant(len(call.keywords)), name="collections.Counter", bytes=constant(72.0))
    value = call.args[0]
    count = call.consume(value)
    size = distinct(value, count)
    if value.kind == "dict":
        call.spend(seconds("dict.update", count))
    else:
        # Counting a text or a list runs in C; distinct items cost a table entry each.
        name = "collections.Counter.text" if value.kind == "str" else "collections.Counter"
        call.spend(count.times(each(name)))
    item = value.item
    held = container("dict", size, item, fresh=makes_items(value), grown=True)
    return replace(held, name="collections.Counter", entry=INT)


def most_common(call: Call) -> Value:
    value, rest = receiver(call), arguments(call)
    count = call.length(value)
    wanted = rest[0].number if rest and rest[0].kind in ("int", "unknown") else None
    call.spend(seconds("collections.Counter.most_common", count))
    entry = pair(bare(value.item), INT)
    return container("list", wanted if wanted is not None else count, entry, fresh=True)


def deque(call: Call) -> Value:
    call.spend(primitive("collections.deque"))
    value, limit = argument(call, 0), exact_number(argument(call, 1, "maxlen"))
    if not call.args:
        return Value("deque", size=ZERO, most=limit, bytes=constant(760.0), name="collections.deque")
    count = call.consume(value)
    call.spend(count.times(each("collections.deque")))
    if limit is not None:
        count = count.at_most(limit)
    held = container("deque", count, value.item, fresh=makes_items(value))
    return replace(held, name="collections.deque", most=limit)


def mapping(name: str) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(primitive(name))
        values = call.args[1:] if name == "collections.defaultdict" else call.args
        size = ZERO
        item = entry = None
        if values:
            size = call.consume(values[0])
            call.spend(seconds("builtins.dict", size))
            item, entry = values[0].item, values[0].entry
        if name == "collections.defaultdict" and call.args:
            entry = {"builtins.int": INT, "builtins.list": Value("list"), "builtins.set": Value("set"),
                     "builtins.dict": Value("dict")}.get(call.args[0].name, entry)  # fmt: skip
        held = container("dict", size, item)
        return replace(held, entry=entry, name=name)

    return rule


def array(call: Call) -> Value:
    call.spend(primitive("array.array"))
    value = argument(call, 1, "initializer")
    if len(call.args) < 2:
        return Value("bytearray", size=ZERO, bytes=constant(80.0), name="array.array")
    count = call.consume(value)
    call.spend(count.times(each("array.array")))
    code = argument(call, 0)
    width = {"b": 1.0, "B": 1.0, "h": 2.0, "H": 2.0, "i": 4.0, "I": 4.0, "f": 4.0}.get(str(code.constant), 8.0)
    return Value("bytearray", size=count, item=INT, bytes=count.times(width) + constant(80.0), name="array.array")


def limit(value: Value) -> Value:
    """The attribute ``maxlen`` of a deque."""
    return counted(value.size) if value.size is not None else INT
