"""Rules for ``json``, ``pickle``, ``csv``, ``struct``, ``copy`` and hashes."""

from __future__ import annotations

import struct

from ..domain import object_sizes
from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.values import NONE, UNKNOWN, Call, Entries, Value
from .rules import (
    SHORT,
    Rule,
    argument,
    bare,
    container,
    lazy,
    receiver,
    text,
)
from .unit_costs import each, primitive, seconds

_CONTAINERS = frozenset({"list", "tuple", "dict", "set", "frozenset", "deque"})
_MOST_DEPTH = 6
_FIELDS = 6.0  # of a row of a table
_ROW_BUFFER = 131072.0  # in which a writer puts a row together: MEM_INCR of Modules/_csv.c in four bytes each
# Characters of values as they are written: a float has as many digits as it needs.
_WIDTHS = {"int": 5.0, "float": 9.0, "bool": 4.5, "none": 0.0}
_PAIR, _CSV_LINE = 12.0, 30.0  # characters of a pair in an address, and of a line of a table


def leaves(call: Call, value: Value, depth: int = 0) -> tuple[Quantity, Quantity]:
    """The numbers and texts inside a value, and the characters of its texts."""
    if value.kind in ("str", "bytes"):
        return ONE, value.size if value.size is not None else constant(1.0, 40.0, 8.0)
    if (value.kind not in _CONTAINERS and value.kind != "unknown") or depth >= _MOST_DEPTH:
        return ONE, ZERO
    if value.kind == "unknown":
        return (call.length(value), ZERO) if not depth else (ONE, ZERO)
    if value.kind == "dict" and isinstance(value.payload, Entries) and value.payload.pairs:
        parts, characters = ONE, ZERO
        for key, part in value.payload.pairs:
            more, longer = leaves(call, part, depth + 1)
            parts = parts + ONE + more
            characters = characters + constant(len(key) if isinstance(key, str) else 4) + longer
        return parts, characters
    count = call.length(value)
    parts, characters = leaves(call, value.item or UNKNOWN, depth + 1)
    if value.kind == "dict":
        more, longer = leaves(call, value.entry or UNKNOWN, depth + 1)
        parts, characters = parts + more, characters + longer
    return ONE + count * parts, count * characters


def dumps(call: Call) -> Value:
    value = argument(call, 0, "obj")
    parts, characters = leaves(call, value)
    pretty = argument(call, 99, "indent")
    name = "json.dumps.indent" if pretty is not UNKNOWN and pretty.kind != "none" else "json.dumps"
    call.spend(seconds(name, parts) + characters.times(each("json.dumps.text")))
    size = parts.times(6.0) + characters
    # The encoder joins a list of pieces.
    call.allocate(parts.times(16.0) + size)
    return text(size)


def dump(call: Call) -> Value:
    value = dumps(call)
    call.spend(seconds("file.write", value.size))
    return NONE


def pickled(call: Call) -> Value:
    parts, characters = leaves(call, argument(call, 0, "obj"))
    call.spend(seconds("pickle.dumps", parts) + characters.times(each("concat.text")))
    return text(parts.times(4.0) + characters, "bytes")


def shallow_copy(call: Call) -> Value:
    value = argument(call, 0)
    call.spend(primitive("copy.copy"))
    if value.kind in ("list", "dict", "set", "deque"):
        count = call.length(value)
        call.spend(seconds("dict.copy" if value.kind == "dict" else "list.copy", count))
        return replace(value, bytes=object_sizes.container(value.kind, count))
    return bare(value)


def deep_copy(call: Call) -> Value:
    value = argument(call, 0)
    parts, _ = leaves(call, value)
    name = "copy.deepcopy.nested" if value.item is not None and value.item.kind in _CONTAINERS else "copy.deepcopy"
    call.spend(seconds(name, parts))
    held = _held(call, value)
    # The memo of the copies has an entry for each container.
    call.allocate(held.times(0.2))
    return replace(value, bytes=held)


def _held(call: Call, value: Value, depth: int = 0) -> Quantity:
    """The bytes of a copy of a value and of the containers in it; numbers and texts are shared."""
    if value.kind not in _CONTAINERS or depth >= _MOST_DEPTH:
        return ZERO
    count = call.length(value)
    held = object_sizes.container(value.kind, count)
    for part in (value.item, value.entry):
        if part is not None and part.kind in _CONTAINERS:
            held = held + count * _held(call, part, depth + 1)
    return held


# Hashes: an object remembers only its type, and ``update`` reads its argument.


def new_hash(cost: str) -> Rule:
    """``hashlib.sha256(data)``, by the name of the function and its unit cost."""

    def rule(call: Call) -> Value:
        call.spend(primitive(cost))
        if call.args:
            call.spend(call.length(call.args[0]).times(each(cost)))
        return Value("object", name=cost, bytes=constant(80.0))

    return rule


def update_hash(call: Call) -> Value:
    """``hash.update(data)``; those of ``hmac`` are taken for SHA-256."""
    name = receiver(call).name
    cost = name if name.startswith("hashlib.") else "hashlib.sha256"
    call.spend(constant(primitive("call.builtin")) + call.length(argument(call, 0)).times(each(cost)))
    return NONE


# struct and csv.


def packed(call: Call) -> Value:
    call.spend(constant(primitive("struct.pack")) + constant(len(call.args)).times(each("struct.pack")))
    layout = argument(call, 0).constant
    try:
        size = struct.calcsize(layout) if isinstance(layout, str) and len(layout) < 100 else 8
    except struct.error:
        size = 8
    return text(constant(size), "bytes")


def text_width(value: Value) -> Quantity:
    """The characters of a value as a text."""
    if value.kind in _WIDTHS:
        return constant(_WIDTHS[value.kind])
    return value.size if value.kind in ("str", "bytes") and value.size is not None else SHORT


def row_width(row: Value) -> Quantity:
    """The characters of a row of a table, with separators and the end of the line."""
    if row.kind == "dict" and isinstance(row.payload, Entries) and row.payload.pairs:
        fields = [part for _, part in row.payload.pairs]
    else:
        parts = row.payload if isinstance(row.payload, tuple) else ()
        fields = [part for part in parts if isinstance(part, Value)]
    if fields:
        return sum((text_width(field) + ONE for field in fields), ONE)
    count = row.size if row.size is not None else constant(_FIELDS)
    return count * (text_width((row.entry if row.kind == "dict" else row.item) or UNKNOWN) + ONE) + ONE


def csv_writer(call: Call) -> Value:
    """``csv.writer(file)``: its item is the file, by its type."""
    call.spend(seconds("csv.reader"))
    file = Value("object", name=argument(call, 0, "csvfile").name)
    return Value("object", name="csv.writer()", item=file, bytes=constant(_ROW_BUFFER))


def csv_rows(call: Call) -> Value:
    """``writer.writerows(rows)``."""
    rows = argument(call, 0)
    count, row = call.consume(rows), rows.item or UNKNOWN
    fields = row.size if row.size is not None else constant(_FIELDS)
    call.spend(count * seconds("csv.writerow", fields))
    return NONE


def csv_reader(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    if value.name == "io.StringIO":
        count = count.times(1 / _CSV_LINE)
    call.spend(primitive("csv.reader"))
    line = value.item.size if value.item is not None and value.item.size is not None else constant(40.0)
    row = container(
        "list", constant(1.0, 20.0, 6.0), Value("str", size=constant(6.0), bytes=constant(55.0)), fresh=True
    )
    return lazy(count, row, line.times(each("csv.reader")))
