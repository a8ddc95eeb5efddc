"""Displays, items and slices of containers, texts with fields, and assignments to names and items."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache

from . import library
from .conditions import Conditions
from .domain import object_sizes
from .domain.folding import MISSING, MOST_TEXT, is_small
from .domain.quantities import ONE, ZERO, Quantity, constant
from .domain.values import NONE, NUMBERS, SEQUENCES, UNKNOWN, Entries, Value, literal, number_of
from .frames import LoopVariable, joined
from .library.unit_costs import primitive, seconds
from .trip_changes import any_of

_MOST_PARTS = 16
_SUBSCRIPTS = {"dict": "subscript.dict", "tuple": "subscript.tuple", "str": "subscript.text", "bytes": "subscript.text"}
_SLICES = {"str": "slice.text", "bytes": "slice.text", "tuple": "slice.tuple"}
_FORMATTED = {"int": "fstring.int", "float": "fstring.float"}


class Containers(Conditions):
    """Evaluates containers and binds names; their parts are left to a subclass."""

    def _sequence(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        kind = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[type(node)]
        parts: list[Value] = []
        size, held = ZERO, ZERO
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner = self.value(element.value)
                size = size + self.consume(inner)
                parts.append(inner.item or UNKNOWN)
            else:
                part = self.value(element)
                parts.append(part)
                size = size + ONE
                if not is_stored(element):
                    held = held + part.bytes
        if kind == "tuple" and parts and all(part.known for part in parts) and len(parts) == len(node.elts):
            return (
                literal(tuple(part.constant for part in parts)) if len(parts) <= 64 else _sized(kind, parts, size, held)
            )
        self.meter.spend(seconds(f"build.{kind}", size))
        value = _sized(kind, parts, size, held + object_sizes.container(kind, size))
        if kind in ("tuple", "list") and len(parts) == len(node.elts) <= _MOST_PARTS:
            value = replace(value, payload=tuple(parts))
        self.hold(value)
        return value

    def _dict(self, node: ast.Dict) -> Value:
        keys = [self.value(key) for key in node.keys if key is not None]
        entries = self.values(node.values)
        size = constant(len(keys))
        held = ZERO
        for part, value in zip(node.values, entries, strict=True):
            if not is_stored(part):
                held = held + value.bytes
        for key, value in zip(node.keys, entries, strict=True):
            if key is None:
                size = size + self.length(value)
        self.meter.spend(seconds("build.dict", size))
        item = joined([(1 / len(keys), replace(key, bytes=ZERO)) for key in keys]) if keys else UNKNOWN
        entry = joined([(1 / len(entries), replace(value, bytes=ZERO)) for value in entries]) if entries else UNKNOWN
        bytes_ = held + object_sizes.container("dict", size)
        parts = None
        if len(keys) == len(node.keys) <= _MOST_PARTS and all(key.known for key in keys):
            pairs = ((key.constant, replace(value, bytes=ZERO)) for key, value in zip(keys, entries, strict=True))
            parts = Entries(tuple(pairs))
        result = Value("dict", size=size, item=item, entry=entry, bytes=bytes_, payload=parts)
        self.hold(result)
        return result

    def _subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if base.kind == "array":
            index = self._index(node.slice)
            rule = library.operator_rule("array", "[]")
            if rule is None:
                return UNKNOWN
            chosen = self.apply_rule(rule, "[]", [base, index], {}, None)
            self.hold(chosen, *(() if isinstance(node.slice, ast.Name) else (index,)))
            return chosen
        if isinstance(node.slice, ast.Slice):
            return self._slice_of(base, node.slice)
        index = self.value(node.slice)
        if base.known and index.known:
            try:
                return literal(base.constant[index.constant])
            except (TypeError, IndexError, KeyError, ValueError):
                return UNKNOWN
        if (
            isinstance(base.payload, tuple)
            and index.known
            and isinstance(index.constant, int)
            and base.kind in ("tuple", "list")
        ):
            part = base.payload[index.constant] if -len(base.payload) <= index.constant < len(base.payload) else None
            return replace(part, bytes=ZERO) if isinstance(part, Value) else UNKNOWN
        self.opaque += base.kind in ("unknown", "object")
        self.meter.spend(primitive(_SUBSCRIPTS.get(base.kind, "subscript.list")))
        if base.kind == "dict" and index.known:
            stored = entry_of(base, index.constant)
            if stored is not None:
                return stored
        item = base.entry if base.kind == "dict" else base.item
        if item is not None:
            item = replace(item, bytes=ZERO)
            # What was assigned to it since the list was made is not known; flags count as they were made.
            is_kept = base.kind != "list" or item.kind == "bool" or not self._assigns_items()
            return item if is_kept else any_of(item)
        if base.kind == "unknown" and base.name:
            return Value("unknown", name=f"{base.name}[]")
        return UNKNOWN

    def _assigns_items(self) -> bool:
        """Whether the function that is being read assigns to items of containers; of a program, its loops around."""
        node = self.frame.node
        return any(map(assigns_items, [node] if node is not None else [loop.node for loop in self.frame.loops]))

    def _index(self, node: ast.expr) -> Value:
        """The index of an array: a value, a slice, or a tuple of them."""
        if isinstance(node, ast.Slice):
            bounds = tuple(
                self.value(part) if part is not None else NONE for part in (node.lower, node.upper, node.step)
            )
            return Value("slice", payload=bounds)
        if isinstance(node, ast.Tuple):
            return Value("tuple", size=constant(len(node.elts)), payload=tuple(self._index(part) for part in node.elts))
        return self.value(node)

    def _slice_of(self, base: Value, node: ast.Slice) -> Value:
        lower, upper, step = (
            self.value(part) if part is not None else None for part in (node.lower, node.upper, node.step)
        )
        if base.known and all(part is None or part.known for part in (lower, upper, step)):
            try:
                bounds = slice(*(part.constant if part is not None else None for part in (lower, upper, step)))
                self.meter.spend(primitive("slice"))
                return literal(base.constant[bounds])
            except (TypeError, ValueError):
                return UNKNOWN
        size = self.sliced_size(self.length(base), lower, upper, step)
        self.meter.spend(seconds(_SLICES.get(base.kind, "slice"), size))
        kind = base.kind if base.kind in SEQUENCES else "list" if base.kind == "unknown" else base.kind
        held = object_sizes.container(kind, size) if kind in SEQUENCES else ZERO
        item = base.item if base.item is not None else Value("unknown", name=f"{base.name}[]" if base.name else "")
        result = Value(kind, size=size, item=item, bytes=held, payload=None)
        self.hold(result)
        return result

    def sliced_size(self, whole: Quantity, lower: Value | None, upper: Value | None, step: Value | None) -> Quantity:
        """The number of items in a slice of ``whole`` items."""
        total = whole.exact
        if (
            total is not None
            and 0 <= total < 2**53
            and all(part is None or part.known for part in (lower, upper, step))
        ):
            try:
                bounds = slice(*(None if part is None else part.constant for part in (lower, upper, step)))
                return constant(len(range(*bounds.indices(round(total)))))
            except (TypeError, ValueError):
                return whole

        def bound(value: Value | None, default: Quantity) -> Quantity:
            if value is None or value.kind == "none":
                return default
            number = number_of(value)
            if number is None:
                return default * constant(0.0, 1.0, 0.5)
            exact = number.exact
            if exact is not None and exact < 0:
                return whole + number
            fixed, total = number.constant, whole.constant
            if fixed is not None and total is not None:
                low, likely, high = (max(min(a, b), 0.0) for a, b in zip(fixed, total, strict=True))
                return constant(low, high, likely)
            return number

        size = bound(upper, whole) - bound(lower, ZERO)
        if step is not None and step.known and isinstance(step.constant, (int, float)) and abs(step.constant) > 1:
            size = size.times(1 / abs(step.constant))
        fixed = size.constant
        if fixed is not None:
            low, likely, high = (max(value, 0.0) for value in fixed)
            return constant(low, high, likely)
        return size

    def _joined_text(self, node: ast.JoinedStr) -> Value:
        size = ZERO
        texts: list[str] | None = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                fixed = str(part.value)
                size = size + constant(len(fixed))
                if texts is not None:
                    texts.append(fixed)
                continue
            if isinstance(part, ast.FormattedValue):
                inner = self.value(part.value)
                self.opaque += inner.kind in ("unknown", "object")
                self.meter.spend(primitive(_FORMATTED.get(inner.kind, "fstring")))
                if part.format_spec is not None and inner.kind != "float":
                    self.meter.spend(primitive("fstring.spec"))
                is_plain = part.format_spec is None and inner.known and is_small(inner.constant)
                shown = str(inner.constant) if is_plain else ""
                if texts is not None and is_plain and len(shown) < 200:
                    texts.append(shown)
                    size = size + constant(len(shown))
                else:
                    texts = None
                    size = size + (inner.size if inner.kind == "str" and inner.size is not None else constant(4.0))
        self.meter.spend(seconds("concat.text", size))
        if texts is not None and sum(map(len, texts)) < MOST_TEXT:
            return literal("".join(texts))
        return Value("str", size=size, item=Value("str", size=ONE), bytes=object_sizes.container("str", size))

    def bind_items(self, target: ast.expr, iterable: Value) -> LoopVariable | None:
        """Bind a loop's target to an average item; the loop variable where it runs over known numbers."""
        item = iterable.item if iterable.item is not None else Value("unknown", name=_label(target))
        if item.kind == "unknown" and not item.name and isinstance(target, ast.Name):
            item = Value("unknown", name=target.id)
        if iterable.kind not in ("range", "iterator"):
            item = replace(item, bytes=ZERO)
        self.bind_target(target, item)
        bounds = iterable.payload if iterable.kind == "range" or iterable.name == library.COUNTING else None
        if isinstance(target, ast.Name) and isinstance(bounds, tuple) and len(bounds) == 3:
            return LoopVariable(target.id, *bounds, value=item)
        return None

    def bind_target(self, target: ast.expr, value: Value) -> None:
        """Bind the names of an assignment's target."""
        if isinstance(target, ast.Name):
            self.frame.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.meter.spend(primitive("unpack"))
            parts = value.payload if isinstance(value.payload, tuple) and value.kind in ("tuple", "list") else None
            if parts is None and value.known and isinstance(value.constant, tuple):
                parts = tuple(literal(part) for part in value.constant)
            starred = next((k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)), len(target.elts))
            for place, element in enumerate(target.elts):
                # Behind a starred name the parts are counted from the end.
                index = place if place <= starred or parts is None else len(parts) - len(target.elts) + place
                inner = element.value if isinstance(element, ast.Starred) else element
                if isinstance(element, ast.Starred):
                    left = self.length(value) - constant(len(target.elts) - 1)
                    item = value.item or Value("unknown", name=_label(inner))
                    self.bind_target(
                        inner, Value("list", size=left, item=item, bytes=object_sizes.container("list", left))
                    )
                elif parts is not None and 0 <= index < len(parts) and isinstance(parts[index], Value):
                    self.bind_target(inner, parts[index])
                else:
                    known = value.item if value.kind != "unknown" else None
                    self.bind_target(inner, known or Value("unknown", name=_label(inner)))
        elif isinstance(target, ast.Starred):
            self.bind_target(target.value, value)
        elif isinstance(target, ast.Subscript):
            self.store_item(target, value)
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value)
            self.meter.spend(primitive("store.attribute"))
            if isinstance(base.payload, dict) and base.kind == "object":
                base.payload[target.attr] = value
                if value.bytes.terms:
                    self.frame.held = self.frame.held + value.bytes

    def store_item(self, target: ast.Subscript, value: Value) -> None:
        """``target[index] = value``: a dict may get an item more."""
        base = self.value(target.value)
        index = self._index(target.slice)
        if base.kind == "array":
            rule = library.operator_rule("array", "[]=")
            if rule is not None:
                self.apply_rule(rule, "[]=", [base, index, value], {}, None)
            return
        self.meter.spend(primitive("store.dict" if base.kind == "dict" else "store.subscript"))
        if base.kind == "dict" and not _is_update(base, index):
            if isinstance(target.value, ast.Name):
                self.grown(target.value.id, base, ONE, index, value)
            elif isinstance(target.value, ast.Subscript):
                self.fill(target.value, constant(object_sizes.DICT_ENTRY) + index.bytes + value.bytes)
        elif base.kind == "list" and value.kind in NUMBERS and value.bytes.terms:
            self._hold_numbers(target.value, value)

    def _hold_numbers(self, lists: ast.expr, number: Value) -> None:
        """Note the memory of new numbers in lists, also of lists: one for each trip, at most one for each item."""
        items = ONE
        while isinstance(lists, ast.Subscript):
            items, lists = items * self.length(self.scratch(lists)), lists.value
        items = items * self.length(self.scratch(lists))
        stored = ONE
        for loop in self.frame.loops:
            stored = stored * loop.trips
        most, times = items.constant, stored.constant
        if most is not None and times is not None:
            low, likely, high = (min(pair) for pair in zip(most, times, strict=True))
            self.hold(Value("object", bytes=number.bytes * constant(low, high, likely)))

    def fill(self, inner: ast.expr, added: Quantity) -> None:
        """Let the container that a name holds grow by what is added to a container inside it."""
        while isinstance(inner, (ast.Subscript, ast.Call, ast.Attribute)):
            inner = inner.func if isinstance(inner, ast.Call) else inner.value
        outer = self.frame.names.get(inner.id) if isinstance(inner, ast.Name) else None
        if outer is not None and isinstance(inner, ast.Name) and outer.kind in ("list", "dict", "object"):
            self.frame.filled[inner.id] = self.frame.filled.get(inner.id, ZERO) + added
            self.frame.bind(inner.id, replace(outer, bytes=outer.bytes + added))

    def grown(self, name: str, base: Value, count: Quantity, item: Value, entry: Value | None = None) -> None:
        """Rebind a container that got ``count`` items more."""
        size = self.length(base) + count
        if base.most is not None:
            size = size.at_most(base.most)
            count = size - self.length(base)
        added = item.bytes * count + (entry.bytes * count if entry is not None else ZERO)
        if item.bytes.terms:
            self.meter.spend(library.collection_cost(item, count))
        kind = base.kind
        shell = object_sizes.container(kind, size, grown=True) - object_sizes.container(
            kind, self.length(base), grown=True
        )
        # A text that was a constant becomes a separate object.
        is_text = kind in ("str", "bytes")
        self.frame.bind(
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
        self.hold()


def entry_of(base: Value, key: object) -> Value | None:
    """The value of a key in a dict display."""
    if isinstance(base.payload, Entries):
        for known, value in base.payload.pairs:
            if type(known) is type(key) and known == key:
                return value
    return None


def _is_update(base: Value, index: Value) -> bool:
    return index.known and entry_of(base, index.constant) is not None


def _label(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""


def _sized(kind: str, parts: list[Value], size: Quantity, held: Quantity) -> Value:
    item = joined([(1 / len(parts), replace(part, bytes=ZERO)) for part in parts]) if parts else UNKNOWN
    return Value(kind, size=size, item=item, bytes=held)


@lru_cache(maxsize=256)
def assigns_items(node: ast.AST | None) -> bool:
    """Whether something in a statement assigns to an item."""
    return node is not None and any(
        isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store) for inner in ast.walk(node)
    )


def is_stored(node: ast.expr) -> bool:
    """Whether an expression only refers to an object that something else holds."""
    is_part = isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)
    return is_part or isinstance(node, (ast.Name, ast.Attribute, ast.Constant))
