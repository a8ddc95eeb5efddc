"""Assignments to names, items and attributes, and containers that grow and shrink."""

from __future__ import annotations

import ast

from .. import library
from ..domain import object_sizes
from ..domain.context import Context
from ..domain.dispatch import evaluate, peek
from ..domain.folding import MISSING
from ..domain.quantities import ONE, ZERO, Quantity, constant, of_size
from ..domain.records import replace
from ..domain.syntax import place_of
from ..domain.values import NUMBERS, SIZED, UNKNOWN, Value, literal, number_of
from ..library.unit_costs import each, primitive
from .containers import entry_of, index_of
from .library_calls import apply_rule
from .objects import special
from .places import kept_place


def bind_items(context: Context, target: ast.expr, iterable: Value) -> None:
    """Bind a loop's target to an average item."""
    item = iterable.item if iterable.item is not None else UNKNOWN
    if isinstance(target, ast.Name):
        item = _named(item, target.id)
    if iterable.kind not in ("range", "iterator"):
        item = replace(item, bytes=ZERO)
    bind_target(context, target, item)


def _named(item: Value, name: str) -> Value:
    """Return an item whose size, where the text does not show it, has the name of the loop's target."""
    if item.kind == "unknown" and not item.name:
        return replace(item, name=name)
    if item.kind in SIZED and item.size is None:
        return replace(item, size=of_size(name))
    return item


def bind_target(context: Context, target: ast.expr, value: Value) -> None:
    """Bind the names of an assignment's target."""
    if isinstance(target, ast.Name):
        context.frame.bind(target.id, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        context.meter.spend(primitive("unpack"))
        parts = value.payload if isinstance(value.payload, tuple) and value.kind in ("tuple", "list") else None
        if parts is None and value.known and isinstance(value.constant, tuple):
            parts = tuple(literal(part) for part in value.constant)
        starred = next((k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)), len(target.elts))
        for place, element in enumerate(target.elts):
            # Behind a starred name the parts are counted from the end.
            index = place if place <= starred or parts is None else len(parts) - len(target.elts) + place
            inner = element.value if isinstance(element, ast.Starred) else element
            if isinstance(element, ast.Starred):
                left = context.length(value) - constant(len(target.elts) - 1)
                item = value.item or Value("unknown", name=_label(inner))
                bind_target(
                    context, inner, Value("list", size=left, item=item, bytes=object_sizes.container("list", left))
                )
            elif parts is not None and 0 <= index < len(parts) and isinstance(parts[index], Value):
                bind_target(context, inner, parts[index])
            else:
                known = value.item if value.kind != "unknown" else None
                bind_target(context, inner, known or Value("unknown", name=_label(inner)))
    elif isinstance(target, ast.Starred):
        bind_target(context, target.value, value)
    elif isinstance(target, ast.Subscript):
        store_item(context, target, value)
    elif isinstance(target, ast.Attribute):
        base = evaluate(context, target.value)
        if base.owner is None:
            context.miss(f".{target.attr}=", base)
        context.meter.spend(primitive("store.attribute"))
        attribute = place_of(target)
        if attribute in context.frame.names:
            context.frame.bind(attribute, value)
        if isinstance(base.payload, dict) and base.kind == "object":
            base.payload[target.attr] = value
            if attribute in context.frame.names:
                return
            if value.bytes.terms:
                context.frame.held = context.frame.held + value.bytes


def store_item(context: Context, target: ast.Subscript, value: Value) -> None:
    """``target[index] = value``: a dict may get an item more."""
    base = evaluate(context, target.value)
    index = index_of(context, target.slice)
    if base.kind == "array":
        rule = library.operator_rule("array", "[]=")
        if rule is not None:
            apply_rule(context, rule, "[]=", [base, index, value], {}, None)
        return
    if special(context, base, "__setitem__", index, value) is not None:
        return
    context.miss("[]=", base)
    context.meter.spend(primitive("store.dict" if base.kind == "dict" else "store.subscript"))
    if base.kind == "dict" and not _is_update(base, index):
        if place := kept_place(context, target.value):
            grow(context, place, base, ONE, index, value)
        elif isinstance(target.value, ast.Subscript):
            fill(context, target.value, constant(object_sizes.DICT_ENTRY) + index.bytes + value.bytes)
    elif base.kind == "list" and value.kind in NUMBERS and value.bytes.terms:
        _hold_numbers(context, target.value, value)


def remove_item(context: Context, target: ast.Subscript) -> None:
    """``del target[index]``: the items of a list behind it move."""
    base = evaluate(context, target.value)
    index = index_of(context, target.slice)
    if special(context, base, "__delitem__", index) is not None:
        return
    context.miss("del []", base)
    context.meter.spend(primitive("store.dict" if base.kind == "dict" else "store.subscript"))
    if base.kind in ("list", "deque", "bytearray"):
        number = number_of(index)
        place = number.exact if number is not None else None
        if place is None or place >= 0:
            moved = context.length(base) if place == 0 or index.kind == "slice" else context.length(base).times(0.5)
            context.meter.spend(moved.times(each("list.insert")))
    if index.kind != "slice" and (container := kept_place(context, target.value)):
        shrink(context, container, base, at_least_one=True)


def _hold_numbers(context: Context, lists: ast.expr, number: Value) -> None:
    """Note the memory of new numbers in lists, also of lists: one for each trip, at most one for each item."""
    items = ONE
    while isinstance(lists, ast.Subscript):
        items, lists = items * context.length(peek(context, lists)), lists.value
    items = items * context.length(peek(context, lists))
    stored = ONE
    for loop in context.frame.loops:
        stored = stored * loop.trips
    most, times = items.constant, stored.constant
    if most is not None and times is not None:
        low, likely, high = (min(pair) for pair in zip(most, times, strict=True))
        context.hold(Value("object", bytes=number.bytes * constant(low, high, likely)))


def fill(context: Context, inner: ast.expr, added: Quantity) -> None:
    """Let the container that a name holds grow by what is added to a container inside it."""
    while isinstance(inner, (ast.Subscript, ast.Call, ast.Attribute)):
        inner = inner.func if isinstance(inner, ast.Call) else inner.value
    outer = context.frame.names.get(inner.id) if isinstance(inner, ast.Name) else None
    if outer is not None and isinstance(inner, ast.Name) and outer.kind in ("list", "dict", "object"):
        context.frame.filled[inner.id] = context.frame.filled.get(inner.id, ZERO) + added
        context.frame.bind(inner.id, replace(outer, bytes=outer.bytes + added))


def grow(context: Context, name: str, base: Value, count: Quantity, item: Value, entry: Value | None = None) -> None:
    """Rebind a container that got ``count`` items more."""
    size = context.length(base) + count
    if base.most is not None:
        size = size.at_most(base.most)
        count = size - context.length(base)
    added = item.bytes * count + (entry.bytes * count if entry is not None else ZERO)
    if item.bytes.terms:
        context.meter.spend(library.collection_cost(item, count))
    kind = base.kind
    shell = object_sizes.container(kind, size, grown=True) - object_sizes.container(
        kind, context.length(base), grown=True
    )
    # A text that was a constant becomes a separate object.
    is_text = kind in ("str", "bytes")
    context.frame.bind(
        name,
        replace(
            base,
            constant=MISSING,
            size=size,
            item=base.item if base.item is not None and base.item.kind != "unknown" else replace(item, bytes=ZERO),
            entry=base.entry
            if entry is None or (base.entry is not None and base.entry.kind != "unknown")
            else replace(entry, bytes=ZERO),
            bytes=object_sizes.container(kind, size) if is_text else base.bytes + added + shell,
            payload=None,
        ),
    )
    context.hold()


def _is_update(base: Value, index: Value) -> bool:
    return index.known and entry_of(base, index.constant) is not None


def _label(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""


def shrink(context: Context, name: str, container: Value, *, at_least_one: bool = False) -> None:
    """Rebind a container of which an item was taken, if it is known how many it has, or that it has one."""
    size = container.size.exact if container.size is not None else None
    if container.size is None or (size is None and not at_least_one) or (size is not None and size < 1):
        return
    likely = container.size.evaluate(lambda name: 10.0)[1]
    rest = container.bytes.times(1 - 1 / max(likely, 1.0))
    left = constant(size - 1) if size is not None else container.size - ONE
    context.frame.bind(name, replace(container, constant=MISSING, size=left, payload=None, bytes=rest))
