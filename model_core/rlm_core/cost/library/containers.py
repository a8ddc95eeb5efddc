"""Rules for the methods of lists, tuples, dictionaries and sets, and for ``collections``, ``heapq`` and ``bisect``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..domain import object_sizes
from ..domain.quantities import ONE, ZERO, constant, mixed
from ..domain.values import NONE, UNKNOWN, Call, Value
from .builtin_collections import distinct, hashing_cost, sort
from .rules import (
    BOOL,
    INT,
    Attribute,
    Rule,
    applied,
    argument,
    arguments,
    bare,
    container,
    counted,
    exact_number,
    fixed,
    flow,
    lazy,
    makes_items,
    pair,
    receiver,
)
from .unit_costs import each, primitive, seconds


def _sort(call: Call) -> Value:
    value = receiver(call)
    sort(call, value, call.length(value))
    return NONE


def _searching(result: Value) -> Rule:
    """``index``, ``remove`` and ``x in``: on average half of the items are compared."""

    def rule(call: Call) -> Value:
        value = receiver(call)
        count = call.length(value)
        wanted = next(iter(arguments(call)), UNKNOWN)
        name = "contains.list.text" if wanted.kind == "str" else "contains.list"
        call.spend(constant(primitive("call.builtin")) + seconds(name, mixed([(0.5, ONE), (0.5, count)])))
        return result

    return rule


def _count(call: Call) -> Value:
    call.spend(constant(primitive("call.builtin")) + seconds("contains.list", call.length(receiver(call))))
    return INT


def _extend(call: Call) -> Value:
    value = next(iter(arguments(call)), UNKNOWN)
    count = call.consume(value)
    call.spend(seconds("list.extend" if value.kind in ("list", "tuple") else "builtins.list", count))
    return NONE


def _pop(call: Call) -> Value:
    value, rest = receiver(call), arguments(call)
    call.spend(primitive("list.pop"))
    if rest:
        index = exact_number(rest[0])
        moved = ZERO if index is not None and index < 0 else call.length(value)
        if index is None:
            moved = moved.times(0.5)
        call.spend(moved.times(each("list.insert")))
    return bare(value.item)


def _insert(call: Call) -> Value:
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
        kind = "set" if value.kind == "frozenset" else value.kind if value.kind != "unknown" else cost.split(".")[0]
        return replace(value, kind=kind, size=count, bytes=object_sizes.container(kind, count))

    return rule


def _clearing(cost: str) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(seconds(cost, call.length(receiver(call))))
        return NONE

    return rule


def _reverse(call: Call) -> Value:
    call.spend(seconds("list.reverse", call.length(receiver(call))))
    return NONE


# Dictionaries.


def _view(part: str) -> Rule:
    def rule(call: Call) -> Value:
        value = receiver(call)
        call.spend(primitive("dict.items"))
        key = bare(value.item) if value.kind == "dict" else UNKNOWN
        entry = bare(value.entry) if value.kind == "dict" else UNKNOWN
        item = key if part == "keys" else entry if part == "values" else pair(key, entry)
        return Value("view", size=call.length(value), item=item)

    return rule


def _get(call: Call) -> Value:
    value = receiver(call)
    call.spend(primitive("dict.get"))
    return bare(value.entry) if value.kind == "dict" else UNKNOWN


def _popitem(call: Call) -> Value:
    value = receiver(call)
    call.spend(primitive("dict.popitem"))
    return pair(bare(value.item), bare(value.entry))


def _update(call: Call) -> Value:
    for value in arguments(call):
        count = call.consume(value)
        call.spend(seconds("dict.update" if value.kind == "dict" else "builtins.set", count))
    call.spend(constant(primitive("call.builtin")) + seconds("build.dict", constant(len(call.keywords))))
    return NONE


# Sets.


def _combining(part: str) -> Rule:
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
        return container("set", size, value.item)

    return rule


def _comparing(call: Call) -> Value:
    count = call.length(receiver(call))
    for other in arguments(call):
        if other.kind not in ("set", "frozenset", "dict"):
            count = count + call.consume(other)
    call.spend(seconds("set.intersection", mixed([(0.5, ONE), (0.5, count)])))
    return BOOL


def _set_update(call: Call) -> Value:
    for other in arguments(call):
        count = call.consume(other)
        call.spend(hashing_cost(other, count))
    return NONE


# collections.


def _counter(call: Call) -> Value:
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


def _most_common(call: Call) -> Value:
    value, rest = receiver(call), arguments(call)
    count = call.length(value)
    wanted = rest[0].number if rest and rest[0].kind in ("int", "unknown") else None
    call.spend(seconds("collections.Counter.most_common", count))
    entry = pair(bare(value.item), INT)
    return container("list", wanted if wanted is not None else count, entry, fresh=True)


def _elements(call: Call) -> Value:
    value = receiver(call)
    call.spend(primitive("builtins.map"))
    return lazy(call.length(UNKNOWN), value.item, each("itertools.chain"))


def _deque(call: Call) -> Value:
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


def _mapping(name: str) -> Rule:
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


def _namedtuple(call: Call) -> Value:
    call.spend(primitive("collections.namedtuple"))
    return Value("function", name="collections.namedtuple()")


def _chainmap(call: Call) -> Value:
    call.spend(primitive("object.init"))
    return Value("dict", item=UNKNOWN)


# heapq and bisect.


def _logarithmic(name: str, result: Callable[[Value], Value], *, heap: int = 0) -> Rule:
    def rule(call: Call) -> Value:
        value = argument(call, heap)
        call.spend(seconds(name, call.length(value)))
        return result(value)

    return rule


def _heapify(call: Call) -> Value:
    call.spend(seconds("heapq.heapify", call.length(argument(call, 0, "x"))))
    return NONE


def _n_extreme(call: Call) -> Value:
    wanted, value = argument(call, 0, "n"), argument(call, 1, "iterable")
    count = call.consume(value)
    key = argument(call, 2, "key")
    if key is not UNKNOWN and key.kind != "none":
        applied(call, key, count, bare(value.item))
    size = wanted.number if wanted.number is not None else constant(1.0, 10.0, 5.0)
    whole, part = count.exact, size.exact
    if whole is None or part is None or part < whole:
        call.spend(seconds("heapq.nlargest", count))
    call.spend(seconds("builtins.sorted", size))
    return container("list", size, value.item)


def _merge(call: Call) -> Value:
    count = ZERO
    for value in call.args:
        count = count + flow(call, value)
    call.spend(primitive("builtins.map"))
    return lazy(count, call.args[0].item if call.args else None, each("heapq.merge"))


def _insort(call: Call) -> Value:
    count = call.length(argument(call, 0, "a"))
    call.spend(seconds("bisect.bisect", count) + count.times(each("list.insert") / 2))
    return NONE


def _array(call: Call) -> Value:
    call.spend(primitive("array.array"))
    value = argument(call, 1, "initializer")
    if len(call.args) < 2:
        return Value("bytearray", size=ZERO, bytes=constant(80.0), name="array.array")
    count = call.consume(value)
    call.spend(count.times(each("array.array")))
    code = argument(call, 0)
    width = {"b": 1.0, "B": 1.0, "h": 2.0, "H": 2.0, "i": 4.0, "I": 4.0, "f": 4.0}.get(str(code.constant), 8.0)
    return Value("bytearray", size=count, item=INT, bytes=count.times(width) + constant(80.0), name="array.array")


def _total(call: Call) -> Value:
    call.spend(seconds("builtins.sum", call.length(receiver(call))))
    return INT


def _set_pop(call: Call) -> Value:
    call.spend(primitive("set.discard"))
    return bare(receiver(call).item)


def _deque_pop(call: Call) -> Value:
    call.spend(primitive("deque.pop"))
    return bare(receiver(call).item)


def _array_bytes(call: Call) -> Value:
    size = call.length(receiver(call)).times(8.0)
    call.spend(seconds("builtins.bytes.copy", size))
    return Value("bytes", size=size, bytes=size)


FUNCTIONS: dict[str, Rule] = {
    "collections.Counter": _counter,
    "collections.deque": _deque,
    "collections.defaultdict": _mapping("collections.defaultdict"),
    "collections.OrderedDict": _mapping("collections.OrderedDict"),
    "collections.namedtuple": _namedtuple,
    "collections.namedtuple()": fixed("object.init", Value("object", name="tuple", bytes=constant(72.0))),
    "collections.ChainMap": _chainmap,
    "collections.UserDict": _mapping("collections.OrderedDict"),
    "typing.NamedTuple": _namedtuple,
    "heapq.heappush": _logarithmic("heapq.heappush", lambda value: NONE),
    "heapq.heappop": _logarithmic("heapq.heappop", lambda value: bare(value.item)),
    "heapq.heapreplace": _logarithmic("heapq.heappop", lambda value: bare(value.item)),
    "heapq.heappushpop": _logarithmic("heapq.heappush", lambda value: bare(value.item)),
    "heapq.heapify": _heapify,
    "heapq.nlargest": _n_extreme,
    "heapq.nsmallest": _n_extreme,
    "heapq.merge": _merge,
    "bisect.bisect": _logarithmic("bisect.bisect", lambda value: INT),
    "bisect.bisect_left": _logarithmic("bisect.bisect", lambda value: INT),
    "bisect.bisect_right": _logarithmic("bisect.bisect", lambda value: INT),
    "bisect.insort": _insort,
    "bisect.insort_left": _insort,
    "bisect.insort_right": _insort,
    "array.array": _array,
}
_LIST: dict[str, Rule] = {
    "append": fixed("list.append.call", NONE),
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "remove": _searching(NONE),
    "index": _searching(INT),
    "count": _count,
    "sort": _sort,
    "reverse": _reverse,
    "copy": copying("list.copy"),
    "clear": _clearing("list.clear"),
}
_DICT: dict[str, Rule] = {
    "get": _get,
    "items": _view("items"),
    "keys": _view("keys"),
    "values": _view("values"),
    "setdefault": _get,
    "pop": fixed("dict.pop"),
    "popitem": _popitem,
    "update": _update,
    "copy": copying("dict.copy"),
    "clear": _clearing("dict.clear"),
    "most_common": _most_common,
    "elements": _elements,
    "subtract": _update,
    "total": _total,
    "move_to_end": fixed("dict.pop", NONE),
}
_SET: dict[str, Rule] = {
    "add": fixed("set.add.call", NONE),
    "discard": fixed("set.discard", NONE),
    "remove": fixed("set.discard", NONE),
    "pop": _set_pop,
    "union": _combining("union"),
    "intersection": _combining("intersection"),
    "difference": _combining("difference"),
    "symmetric_difference": _combining("symmetric"),
    "update": _set_update,
    "intersection_update": _comparing,
    "difference_update": _set_update,
    "issubset": _comparing,
    "issuperset": _comparing,
    "isdisjoint": _comparing,
    "copy": copying("set.copy"),
    "clear": _clearing("list.clear"),
}
_DEQUE: dict[str, Rule] = {
    **{name: fixed("deque.append", NONE) for name in ("append", "appendleft")},
    **dict.fromkeys(("pop", "popleft"), _deque_pop),
    "extend": _extend,
    "extendleft": _extend,
    "rotate": _clearing("list.reverse"),
    "clear": _clearing("list.clear"),
    "remove": _searching(NONE),
    "index": _searching(INT),
    "count": _count,
    "reverse": _reverse,
    "insert": _insert,
    "copy": copying("list.copy"),
}


METHODS: dict[tuple[str, str], Rule] = {
    **{("list", name): rule for name, rule in _LIST.items()},
    **{("tuple", name): _LIST[name] for name in ("index", "count")},
    **{("range", name): fixed("contains.range", INT) for name in ("index", "count")},
    **{("dict", name): rule for name, rule in _DICT.items()},
    **{("set", name): rule for name, rule in _SET.items()},
    **{("frozenset", name): _SET[name] for name in _SET if name not in ("add", "discard", "remove", "pop", "clear")},
    **{("deque", name): rule for name, rule in _DEQUE.items()},
    ("bytearray", "tolist"): copying("list.copy"),
    ("bytearray", "tobytes"): _array_bytes,
    ("bytearray", "frombytes"): _extend,
}
ATTRIBUTES: dict[tuple[str, str], Attribute] = {
    ("collections.deque", "maxlen"): lambda value: counted(value.size) if value.size is not None else INT,
}
