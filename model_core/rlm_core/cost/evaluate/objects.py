"""Objects of the program's own classes: their construction, properties and attributes."""

from __future__ import annotations

import ast
import re

from .. import library
from ..domain import object_sizes
from ..domain.constructors import ConstructorReading, Footprint, sizes_in
from ..domain.context import Context
from ..domain.dispatch import MOST_NESTING, call_value, evaluate
from ..domain.folding import MISSING
from ..domain.frames import Frame
from ..domain.meter import Meter
from ..domain.quantities import ZERO, constant, larger, of_size
from ..domain.records import replace
from ..domain.syntax import data_fields, parsed_class
from ..domain.values import UNKNOWN, Entries, Value
from ..library.unit_costs import primitive
from ..scope import Definition, Trace
from .function_bodies import MOST_INLINED, definition_of, is_open, read_function
from .library_calls import apply_rule
from .parameters import assumed
from .shown_types import of_hint, typed

_FILLED = frozenset({"list", "dict", "set", "deque"})
_PROPERTY = re.compile(r"\s*@(?:functools\.)?(?:cached_)?property\b")


def construct(
    context: Context, target: Value, args: list[Value], keywords: dict[str, Value], name: str, receiver: Value | None
) -> Value:
    """Return a new instance of a class; what ``__init__`` does is paid for."""
    attributes: dict[str, Value] = {}
    instance = Value("object", name=target.name, payload=attributes)
    definition = context.frame.scope.function("__init__", target.name, context.frame.qualname)
    fields = _fields_of(context, target.name) if definition is None else None
    context.meter.spend(primitive("object" if definition is None and fields is None else "object.init"))
    if definition is not None:
        call_value(context, Value("user-function", payload=definition), args, keywords, receiver=instance)
    elif fields is not None:
        given = dict(zip(fields, args, strict=False)) | keywords
        for field, default in fields.items():
            context.meter.spend(primitive("store.attribute"))
            attributes[field] = replace(given[field], bytes=ZERO) if field in given else evaluate(context, default)
    held = constant(object_sizes.instance(len(attributes) or len(args) + len(keywords)))
    # Its attributes keep what they are bound to: mostly the arguments.
    own = ZERO
    for value in (*attributes.values(), *args, *keywords.values()):
        own = own + value.bytes
    return replace(instance, bytes=held + own)


def _fields_of(context: Context, name: str) -> dict[str, ast.expr | None] | None:
    """The fields of a dataclass or named tuple of the file, with their defaults."""
    text = context.frame.scope.class_text(name)
    node = parsed_class(text) if text is not None else None
    return data_fields(node) if node is not None else None


def special(context: Context, base: Value, method: str, *args: Value) -> Value | None:
    """Return what a special method of an object returns, such as ``__add__``; None where nothing is known of it.

    Those of the program's own classes are read, those of the library's are entries of its tables.
    """
    if base.kind not in ("unknown", "object"):
        return None
    rule = library.special_rule(base, method)
    if rule is not None:
        context.note_kind(base.name)
        return apply_rule(context, rule, method, args, {}, base)
    owner = base.owner
    definition = context.frame.scope.function(method, owner, context.frame.qualname) if owner else None
    if definition is None or is_open(context, definition):
        return None
    return call_value(context, Value("user-function", payload=definition), list(args), {}, method, base)


def _hints_of(context: Context, owner: str) -> dict[str, ast.expr]:
    """Return the type hints of attributes in the body of a class of the file."""
    text = context.frame.scope.class_text(owner)
    node = parsed_class(text) if text is not None else None
    return {
        part.target.id: part.annotation
        for part in (node.body if node is not None else ())
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    }


def property_of(context: Context, base: Value, name: str) -> Value | None:
    """Return what a property of the program's own classes returns; spends what it costs."""
    owner = base.owner
    definition = context.frame.scope.function(name, owner, context.frame.qualname) if owner else None
    if definition is None or not _PROPERTY.match(definition.text):
        return None
    if owner not in ("self", "cls") and is_open(context, definition):
        return None
    return call_value(context, Value("user-function", payload=definition), [], {}, name, base)


def instance_attribute(context: Context, base: Value, name: str) -> Value | None:
    """Return what ``__init__`` stores in an attribute of an object; a number may have changed since."""
    looked_up = base.owner
    owner = looked_up
    if looked_up in ("self", "cls"):
        owner = context.frame.qualname.split(".<locals>")[0].rpartition(".")[0]
    if not owner or not looked_up or context.frame.depth > MOST_INLINED:
        return None
    if looked_up in ("self", "cls") and context.frame.qualname.endswith("__init__"):
        return None
    context.footprint.classes.add(owner)
    if owner not in context.instances:
        attributes: dict[str, Value] = {}
        context.instances[owner] = attributes
        definition = context.frame.scope.function("__init__", looked_up, context.frame.qualname)
        if definition is not None:
            _read_constructor(context, definition, owner, attributes)
        for field, hint in _hints_of(context, owner).items():
            value = of_hint(context, hint, f"{base.name}.{field}" if base.name else "")
            if value is not None and attributes.get(field, UNKNOWN).kind == "unknown":
                attributes[field] = value
    value = context.instances[owner].get(name)
    label = f"{base.name}.{name}" if base.name else ""
    if value is None or value.kind in ("none", "unknown"):
        return Value("unknown", name=label, type=value.type) if value is not None and value.type else None
    payload = value.payload
    if isinstance(payload, dict):
        # What was None at first, such as the next node of the first one, has been bound since.
        payload = {name: part for name, part in payload.items() if part.kind != "none"}
    value = replace(value, bytes=ZERO, payload=None if isinstance(payload, (tuple, Entries)) else payload)
    if value.kind in _FILLED or value.kind == "object":
        item = value.item
        if item is not None and item.kind in _FILLED:
            item = replace(item, size=None, constant=MISSING, payload=None)  # items of items have come and gone
        return replace(value, size=of_size(label) if label else None, constant=MISSING, item=item)
    return assumed(label, value)


def _read_constructor(context: Context, definition: Definition, owner: str, attributes: dict[str, Value]) -> None:
    """Find what ``__init__`` stores in the attributes of an object of a class."""
    function = definition_of(context, Value("user-function", payload=definition))
    if function is None:
        return
    node, scope, qualname, _ = function
    names: dict[str, Value] = {}
    for parameter in (*node.args.args, *node.args.kwonlyargs):
        names[parameter.arg] = Value("unknown", name=parameter.arg)
    typed(context, node, names)
    names["self"] = Value("object", name=owner, payload=attributes)
    frame = Frame(scope, qualname, node, names, None, None, context.frame.line, context.frame.depth + 1)
    readings = context.readings
    if readings is None:
        _read_apart(context, frame)
        return
    homes = id(scope.home()), id(context.frame.scope.home())
    key = (owner, definition.qualname, definition.text, *homes, frame.depth, context.loop_depth)
    known = readings.constructors.get(key)
    if known is not None and _holds(context, known):
        _use(context, known, readings.trace, attributes)
    else:
        reading = _recorded(context, frame, owner, attributes, readings.trace)
        if reading is not None:
            readings.constructors[key] = reading


def _read_apart(context: Context, frame: Frame) -> None:
    """Read a constructor that ran before the functions that are being read."""
    deep, context.expression_depth = context.expression_depth, 0
    try:
        with context.elsewhere(), context.region(Meter()):
            read_function(context, frame)
    finally:
        context.expression_depth = deep


def _holds(context: Context, reading: ConstructorReading) -> bool:
    """Return whether reading a constructor here would find the same."""
    return (
        reading.needed <= context.left
        and reading.line in (None, context.frame.line)
        and context.statement_depth + reading.depth <= MOST_NESTING
        and context.instances.keys().isdisjoint(reading.others)
        and not context.left_in_receiver.terms
    )


def _use(context: Context, reading: ConstructorReading, trace: Trace, attributes: dict[str, Value]) -> None:
    """Leave an analysis as reading the constructor again would."""
    depth, spare = context.statement_depth + reading.depth, context.left - reading.needed
    context.footprint.include(Footprint({*reading.others}, depth, spare, reading.names_lines, reading.names_loops))
    context.step(reading.nodes)
    context.largest_block = larger(context.largest_block, reading.largest_block)
    context.dependencies += reading.dependencies
    context.instances |= {name: dict(values) for name, values in reading.others.items()}
    attributes |= reading.attributes
    trace.answers |= reading.answers


def _recorded(
    context: Context, frame: Frame, owner: str, attributes: dict[str, Value], trace: Trace
) -> ConstructorReading | None:
    """Read a constructor; None where what it finds may not be used again."""
    starts_plain, left, known = not context.left_in_receiver.terms, context.left, set(context.instances)
    dependencies, footprint = len(context.dependencies), context.footprint
    block, answers = context.largest_block, trace.answers
    read = context.footprint = Footprint()
    context.largest_block, trace.answers = ZERO, {}
    try:
        _read_apart(context, frame)
    finally:
        largest, given = context.largest_block, trace.answers
        context.largest_block, trace.answers = larger(block, largest), answers | given
        context.footprint = footprint
        footprint.include(read)
    others = {name: dict(values) for name, values in context.instances.items() if name not in known}
    sizes = sizes_in(value for stored in (attributes, *others.values()) for value in stored.values())
    if not (
        starts_plain
        and not context.left_in_receiver.terms
        and read.spare >= 0
        and read.depth <= MOST_NESTING
        and known.isdisjoint(read.classes - {owner})
        and sizes is not None
    ):
        return None
    # A size that is named after a line is the same one as that of a loop in this line.
    is_named = read.names_lines and (read.names_loops or f"?{frame.line}" in sizes | largest.names)
    return ConstructorReading(
        dict(attributes),
        others,
        frame.line if is_named else None,
        read.names_lines,
        read.names_loops,
        left - context.left,
        left - min(read.spare, context.left),
        max(read.depth - context.statement_depth, 0),
        largest,
        tuple(context.dependencies[dependencies:]),
        given,
    )
