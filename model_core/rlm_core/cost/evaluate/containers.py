"""Displays, items and slices of containers, and texts with fields."""

from __future__ import annotations

import ast
from functools import lru_cache

from .. import library
from ..domain import object_sizes
from ..domain.context import Context
from ..domain.dispatch import evaluate
from ..domain.folding import MOST_TEXT, is_small
from ..domain.lattice import any_of, joined
from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.syntax import walk
from ..domain.values import NONE, SEQUENCES, UNKNOWN, Entries, Value, literal, number_of
from ..library.unit_costs import primitive, seconds
from .library_calls import apply_rule
from .objects import special

_MOST_PARTS = 16
_SUBSCRIPTS = {"dict": "subscript.dict", "tuple": "subscript.tuple", "str": "subscript.text", "bytes": "subscript.text"}
_SLICES = {"str": "slice.text", "bytes": "slice.text", "tuple": "slice.tuple"}
_FORMATTED = {"int": "fstring.int", "float": "fstring.float"}


def evaluate_sequence(context: Context, node: ast.List | ast.Tuple | ast.Set) -> Value:
    """Return a list, tuple or set display."""
    kind = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[type(node)]
    parts: list[Value] = []
    size, held = ZERO, ZERO
    for element in node.elts:
        if isinstance(element, ast.Starred):
            inner = evaluate(context, element.value)
            size = size + context.consume(inner)
            parts.append(inner.item or UNKNOWN)
        else:
            part = evaluate(context, element)
            parts.append(part)
            size = size + ONE
            if not is_stored(element):
                held = held + part.bytes
    if kind == "tuple" and parts and all(part.known for part in parts) and len(parts) == len(node.elts):
        return literal(tuple(part.constant for part in parts)) if len(parts) <= 64 else _sized(kind, parts, size, held)
    context.meter.spend(seconds(f"build.{kind}", size))
    value = _sized(kind, parts, size, held + object_sizes.container(kind, size))
    if kind in ("tuple", "list") and len(parts) == len(node.elts) <= _MOST_PARTS:
        value = replace(value, payload=tuple(parts))
    context.hold(value)
    return value


def evaluate_dict(context: Context, node: ast.Dict) -> Value:
    """Return a dict display."""
    keys = [evaluate(context, key) for key in node.keys if key is not None]
    entries = [evaluate(context, part) for part in node.values]
    size = constant(len(keys))
    held = ZERO
    for part, value in zip(node.values, entries, strict=True):
        if not is_stored(part):
            held = held + value.bytes
    for key, value in zip(node.keys, entries, strict=True):
        if key is None:
            size = size + context.length(value)
    context.meter.spend(seconds("build.dict", size))
    item = joined([(1 / len(keys), replace(key, bytes=ZERO)) for key in keys]) if keys else UNKNOWN
    entry = joined([(1 / len(entries), replace(value, bytes=ZERO)) for value in entries]) if entries else UNKNOWN
    bytes_ = held + object_sizes.container("dict", size)
    parts = None
    if len(keys) == len(node.keys) <= _MOST_PARTS and all(key.known for key in keys):
        pairs = ((key.constant, replace(value, bytes=ZERO)) for key, value in zip(keys, entries, strict=True))
        parts = Entries(tuple(pairs))
    result = Value("dict", size=size, item=item, entry=entry, bytes=bytes_, payload=parts)
    context.hold(result)
    return result


def evaluate_subscript(context: Context, node: ast.Subscript) -> Value:
    """Return an item or a slice."""
    base = evaluate(context, node.value)
    if library.special_rule(base, "__getitem__") is not None:
        return special(context, base, "__getitem__", index_of(context, node.slice)) or UNKNOWN
    if base.kind == "array":
        index = index_of(context, node.slice)
        rule = library.operator_rule("array", "[]")
        if rule is None:
            return UNKNOWN
        chosen = apply_rule(context, rule, "[]", [base, index], {}, None)
        context.hold(chosen, *(() if isinstance(node.slice, ast.Name) else (index,)))
        return chosen
    if isinstance(node.slice, ast.Slice):
        return _slice_of(context, base, node.slice)
    index = evaluate(context, node.slice)
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
    computed = special(context, base, "__getitem__", index)
    if computed is not None:
        return computed
    context.miss("[]", base)
    context.meter.spend(primitive(_SUBSCRIPTS.get(base.kind, "subscript.list")))
    if base.kind == "dict" and index.known:
        stored = entry_of(base, index.constant)
        if stored is not None:
            return stored
    item = base.entry if base.kind == "dict" else base.item
    if item is not None:
        item = replace(item, bytes=ZERO)
        # What was assigned to it since the list was made is not known; flags count as they were made.
        is_kept = base.kind != "list" or item.kind == "bool" or not _assigns_items(context)
        return item if is_kept else any_of(item)
    if base.kind == "unknown" and base.name:
        return Value("unknown", name=f"{base.name}[]")
    return UNKNOWN


def _assigns_items(context: Context) -> bool:
    """Return whether the function that is being read assigns to items of containers; of a program, its loops around."""
    node = context.frame.node
    return any(map(assigns_items, [node] if node is not None else [loop.node for loop in context.frame.loops]))


def index_of(context: Context, node: ast.expr) -> Value:
    """The index of an array: a value, a slice, or a tuple of them."""
    if isinstance(node, ast.Slice):
        bounds = tuple(
            evaluate(context, part) if part is not None else NONE for part in (node.lower, node.upper, node.step)
        )
        return Value("slice", payload=bounds)
    if isinstance(node, ast.Tuple):
        return Value(
            "tuple", size=constant(len(node.elts)), payload=tuple(index_of(context, part) for part in node.elts)
        )
    return evaluate(context, node)


def _slice_of(context: Context, base: Value, node: ast.Slice) -> Value:
    lower, upper, step = (
        evaluate(context, part) if part is not None else None for part in (node.lower, node.upper, node.step)
    )
    if base.known and all(part is None or part.known for part in (lower, upper, step)):
        try:
            bounds = slice(*(part.constant if part is not None else None for part in (lower, upper, step)))
            context.meter.spend(primitive("slice"))
            return literal(base.constant[bounds])
        except (TypeError, ValueError):
            return UNKNOWN
    context.miss("[:]", base)
    size = _sliced_size(context.length(base), lower, upper, step)
    context.meter.spend(seconds(_SLICES.get(base.kind, "slice"), size))
    kind = base.kind if base.kind in SEQUENCES else "list" if base.kind == "unknown" else base.kind
    held = object_sizes.container(kind, size) if kind in SEQUENCES else ZERO
    item = base.item if base.item is not None else Value("unknown", name=f"{base.name}[]" if base.name else "")
    result = Value(kind, size=size, item=item, bytes=held, payload=None)
    context.hold(result)
    return result


def _sliced_size(whole: Quantity, lower: Value | None, upper: Value | None, step: Value | None) -> Quantity:
    """The number of items in a slice of ``whole`` items."""
    total = whole.exact
    if total is not None and 0 <= total < 2**53 and all(part is None or part.known for part in (lower, upper, step)):
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


def evaluate_joined_text(context: Context, node: ast.JoinedStr) -> Value:
    """Return the text of an f-string."""
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
            inner = evaluate(context, part.value)
            context.miss("format", inner)
            context.meter.spend(primitive(_FORMATTED.get(inner.kind, "fstring")))
            if part.format_spec is not None and inner.kind != "float":
                context.meter.spend(primitive("fstring.spec"))
            is_plain = part.format_spec is None and inner.known and is_small(inner.constant)
            shown = str(inner.constant) if is_plain else ""
            if texts is not None and is_plain and len(shown) < 200:
                texts.append(shown)
                size = size + constant(len(shown))
            else:
                texts = None
                size = size + (inner.size if inner.kind == "str" and inner.size is not None else constant(4.0))
    context.meter.spend(seconds("concat.text", size))
    if texts is not None and sum(map(len, texts)) < MOST_TEXT:
        return literal("".join(texts))
    return Value("str", size=size, item=Value("str", size=ONE), bytes=object_sizes.container("str", size))


def entry_of(base: Value, key: object) -> Value | None:
    """The value of a key in a dict display."""
    if isinstance(base.payload, Entries):
        for known, value in base.payload.pairs:
            if type(known) is type(key) and known == key:
                return value
    return None


def _sized(kind: str, parts: list[Value], size: Quantity, held: Quantity) -> Value:
    item = joined([(1 / len(parts), replace(part, bytes=ZERO)) for part in parts]) if parts else UNKNOWN
    return Value(kind, size=size, item=item, bytes=held)


@lru_cache(maxsize=256)
def assigns_items(node: ast.AST | None) -> bool:
    """Return whether something in a statement assigns to an item."""
    return node is not None and any(
        isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store) for inner in walk(node)
    )


def is_stored(node: ast.expr) -> bool:
    """Return whether an expression only refers to an object that something else holds."""
    is_part = isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)
    return is_part or isinstance(node, (ast.Name, ast.Attribute, ast.Constant))
