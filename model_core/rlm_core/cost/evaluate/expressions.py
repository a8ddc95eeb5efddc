"""Names, attributes, operators, and the other expressions that no other module evaluates."""

from __future__ import annotations

import ast

from .. import library
from ..domain.context import Context
from ..domain.dispatch import evaluate, peek
from ..domain.folding import MISSING, UNARY
from ..domain.frames import Frame
from ..domain.quantities import ONE, ZERO
from ..domain.records import replace
from ..domain.syntax import parse_expression, place_of
from ..domain.values import UNKNOWN, Value, literal, number_of
from ..library.unit_costs import each, primitive
from .bindings import bind_target
from .containers import is_stored
from .library_calls import apply_rule
from .objects import instance_attribute, property_of, special
from .operations import binary_operation, compiled

_MANAGER = Value("object", name="django.QuerySet")
_MOST_CONSTANTS = 10  # that are read inside each other
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}


def evaluate_constant(context: Context, node: ast.Constant) -> Value:
    """Return a literal."""
    return literal(node.value)


def evaluate_name(context: Context, node: ast.Name) -> Value:
    """Return the value of a name: bound here or around, the function that is being read, or a global one."""
    value = context.frame.lookup(node.id)
    if value is not None:
        return value
    for frame in reversed(context.open):
        function = frame.node
        if (
            isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            and function.name == node.id
            # It is not a method.
            and "." not in frame.qualname.rpartition("<locals>.")[2]
            # A name means that function only in its own file.
            and frame.scope.home() is context.frame.scope.home()
        ):
            return Value("user-function", name=node.id, payload=(function, frame))
    return _global_value(context, node.id)


def _global_value(context: Context, name: str) -> Value:
    """The value of a name that the function does not bind."""
    scope = context.frame.scope
    text = scope.constant(name)
    if text is not None:
        return _outer_constant(context, text)
    definition = scope.function(name)
    if definition is not None and not scope.is_class(name):
        return Value("user-function", name=name, payload=definition)
    if scope.is_class(name):
        return Value("class", name=name)
    dotted = scope.imported(name)
    if dotted is not None:
        return imported_value(dotted)
    if library.rule_for(f"builtins.{name}") is not None:
        return Value("function", name=f"builtins.{name}")
    conventional = library.CONVENTIONAL.get(name)
    if conventional is not None:
        return imported_value(conventional)
    return Value("unknown", name=name)


def _outer_constant(context: Context, text: str) -> Value:
    tree = parse_expression(text)
    if tree is None:
        return UNKNOWN
    frame = Frame(context.frame.scope, line=context.frame.line, depth=context.frame.depth + 1)
    if frame.depth >= _MOST_CONSTANTS:
        return UNKNOWN
    # Computed at import: not paid for by the function, not its memory, and not called by what is being read.
    with context.inside(frame), context.elsewhere():
        value = peek(context, tree)
    return replace(value, bytes=ZERO)


def evaluate_attribute(context: Context, node: ast.Attribute) -> Value:
    """Return the value of an attribute."""
    base = evaluate(context, node.value)
    kept = context.frame.names.get(place_of(node))
    if kept is None:
        return attribute_of(context, base, node.attr)
    context.meter.spend(primitive("load.attribute"))
    if base.owner is None:
        context.miss(f".{node.attr}", base)
    return kept


def attribute_of(context: Context, base: Value, name: str) -> Value:
    """An attribute of a value."""
    if base.kind == "module":
        value = imported_value(f"{base.name}.{name}")
        return _MANAGER if value.kind == "module" and library.is_manager(base.name, name) else value
    costly = library.property_rule(base, name)
    if costly is not None:
        return apply_rule(context, costly, f".{name}", [], {}, base)
    context.meter.spend(primitive("load.attribute"))
    if isinstance(base.payload, dict) and name in base.payload:
        stored: Value = base.payload[name]
        return stored
    computed = property_of(context, base, name)
    if computed is not None:
        return computed
    known_attribute = instance_attribute(context, base, name) if base.kind == "unknown" else None
    if known_attribute is not None:
        return known_attribute
    known = library.attribute(base, name)
    if known is not None:
        return known
    owner = _class_of(context, base)
    if owner is not None:
        text = context.frame.scope.constant(f"{owner}.{name}")
        if text is not None:
            return _outer_constant(context, text)
    if base.kind in ("class", "unknown", "function") and library.is_manager(base.name, name):
        return _MANAGER
    if owner is None:
        context.miss(f".{name}", base)
    if base.kind == "unknown" and base.name:
        return Value("unknown", name=f"{base.name}.{name}")
    return UNKNOWN


def _class_of(context: Context, base: Value) -> str | None:
    if base.kind == "class":
        return base.name
    owner = base.owner
    return context.frame.qualname.split(".<locals>")[0].rpartition(".")[0] if owner in ("self", "cls") else owner


def evaluate_binary(context: Context, node: ast.BinOp) -> Value:
    """Return the value of a binary operation."""
    left, right = evaluate(context, node.left), evaluate(context, node.right)
    if _is_compiled(context, node.left) and _is_compiled(context, node.right):
        computed = compiled(node.op, left.constant, right.constant)
        if computed is not None:
            context.compiled.add(node)
            return replace(computed, bytes=ZERO)
    result = binary_operation(context, node.op, left, right)
    temporaries = [value for value, part in ((left, node.left), (right, node.right)) if not is_stored(part)]
    context.hold(result, *temporaries)
    return result


def _is_compiled(context: Context, node: ast.expr) -> bool:
    """Return whether an expression is a constant when the program runs."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) or node in context.compiled


def evaluate_unary(context: Context, node: ast.UnaryOp) -> Value:
    """Return the value of a unary operation."""
    value = evaluate(context, node.operand)
    if isinstance(node.op, ast.Not):
        truth = value.truth
        return literal(not truth) if truth is not None else Value("bool")
    if value.known and isinstance(value.constant, (int, float)):
        is_float = isinstance(node.op, ast.Invert) and isinstance(value.constant, float)
        return UNKNOWN if is_float else literal(UNARY[type(node.op)](value.constant))
    computed = special(context, value, _UNARY[type(node.op)])
    if computed is not None:
        return computed
    if value.kind == "array":
        rule = library.operator_rule("array", "-")
        return apply_rule(context, rule, "-", [value, literal(0)], {}, None) if rule is not None else value
    context.miss("-", value)
    context.meter.spend(primitive("unary"))
    number = number_of(value)
    return replace(value, constant=MISSING, number=number.times(-1.0) if number is not None else None)


def evaluate_lambda(context: Context, node: ast.Lambda) -> Value:
    """Return a function; its body is read where it is called."""
    context.meter.spend(primitive("lambda"))
    return Value("user-function", payload=(node, context.frame))


def evaluate_await(context: Context, node: ast.Await) -> Value:
    """Return what a coroutine returns."""
    context.meter.spend(primitive("await"))
    context.awaited.add(node.value)
    return evaluate(context, node.value)


def evaluate_yield(context: Context, node: ast.Yield) -> Value:
    """Note an item that a generator yields."""
    value = evaluate(context, node.value)
    context.frame.yields = context.frame.yields + context.meter.weighted(ONE)
    context.meter.spend(each("yield"))
    context.frame.results.append((1.0, value))
    return UNKNOWN


def evaluate_yield_from(context: Context, node: ast.YieldFrom) -> Value:
    """Note the items that a generator yields from another iterable."""
    value = evaluate(context, node.value)
    count = context.consume(value)
    context.meter.spend(count.times(each("yield")))
    context.frame.yields = context.frame.yields + context.meter.weighted(count)
    context.frame.results.append((1.0, value.item or UNKNOWN))
    return UNKNOWN


def evaluate_named(context: Context, node: ast.NamedExpr) -> Value:
    """Bind a name inside an expression."""
    value = evaluate(context, node.value)
    bind_target(context, node.target, value)
    return value


def evaluate_starred(context: Context, node: ast.Starred) -> Value:
    """Return the iterable behind a star."""
    return evaluate(context, node.value)


def imported_value(dotted: str) -> Value:
    """Return what a dotted name of a library is: a constant, a function with or without a rule, or a module."""
    known = library.attribute(Value("module", name=dotted.rpartition(".")[0]), dotted.rpartition(".")[2])
    if known is not None:
        return known
    if library.rule_for(dotted) is not None:
        return Value("function", name=dotted)
    return Value("module", name=dotted)
