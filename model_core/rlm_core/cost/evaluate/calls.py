"""Calls, and what they are calls of: library functions, functions and classes of the program, and unknown ones."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from rlm_core.types import CauseKind

from .. import library
from ..domain.context import Context
from ..domain.dispatch import call_value, evaluate
from ..domain.meter import PendingCause
from ..domain.origins import COSTLY_KINDS
from ..domain.quantities import ONE, ZERO, Quantity
from ..domain.records import replace
from ..domain.syntax import bound_methods, called_name
from ..domain.values import STARRED, UNKNOWN, Value
from ..library.unit_costs import primitive
from .bindings import fill, grow, shrink
from .concurrency import gather, in_the_background, is_joined, left_alone
from .containers import is_stored
from .function_bodies import definition_of
from .iterators import early_stop, lazy_call
from .library_calls import apply_rule
from .loop_waits import note_usual_wait
from .methods import METHOD, call_method, method_target
from .objects import special
from .operations import note_allocation
from .places import kept_place

_STARTING = frozenset({"create_task", "ensure_future"})  # run a coroutine in the background
_RUNNING = frozenset({"run", "run_until_complete", "shield"})  # run a coroutine to its end
_INSERTING = frozenset({"bisect.insort", "bisect.insort_left", "bisect.insort_right", "heapq.heappush"})
# Functions that call a special method of their first argument.
_SPECIAL = {
    f"builtins.{name}": f"__{name}__"
    for name in ("len", "str", "repr", "hash", "int", "float", "bool", "abs", "round", "iter", "next", "reversed")
}
_MOST_STARRED = 32


def evaluate_call(context: Context, node: ast.Call) -> Value:
    """Evaluate a call."""
    outer_line = context.frame.line
    if not context.frame.depth:
        context.frame.line = node.lineno - 1
    try:
        return _call_of(context, node)
    finally:
        context.frame.line = outer_line


def _call_of(context: Context, node: ast.Call) -> Value:
    function = node.func
    receiver: Value | None = None
    if isinstance(function, ast.Attribute):
        receiver = evaluate(context, function.value)
        target = method_target(context, receiver, function)
    else:
        target = evaluate(context, function)
        method = _bound_method(context, function) if target.kind == "unknown" else None
        if method is not None:
            call = ast.copy_location(ast.Call(method, node.args, node.keywords), node)
            if node in context.awaited:
                context.awaited.add(call)
            return _call_of(context, call)
    if target.kind in ("function", "module") and target.name.endswith(("asyncio.gather", "asyncio.wait")):
        return gather(context, node)
    name = called_name(node)
    if name.rpartition(".")[2] in _STARTING:
        with in_the_background(context) if is_joined(context, node) else left_alone(context):
            for argument in node.args:
                evaluate(context, argument)
        return UNKNOWN
    if node not in context.awaited and _is_coroutine(context, target):
        # It runs later, if at all: the result is an object that something else awaits. A plain function never does.
        with left_alone(context) if isinstance(context.frame.node, ast.FunctionDef) else in_the_background(context):
            return _result_of(context, node, name, target, receiver)
    result = _result_of(context, node, name, target, receiver)
    note_usual_wait(context, node, target, receiver)
    return result


def _bound_method(context: Context, function: ast.expr) -> ast.Attribute | None:
    """Return the method that a local name stands for, as after ``append = items.append``."""
    node = context.frame.node
    if not isinstance(function, ast.Name) or node is None or isinstance(node, ast.Lambda):
        return None
    return bound_methods(node).get(function.id)


def _is_coroutine(context: Context, target: Value) -> bool:
    found = definition_of(context, target) if target.kind == "user-function" else None
    return found is not None and isinstance(found[0], ast.AsyncFunctionDef)


def _result_of(context: Context, node: ast.Call, name: str, target: Value, receiver: Value | None) -> Value:
    """The result of a call of ``target``, written as ``name``, with the arguments of a node."""
    function = node.func
    if name.rpartition(".")[2] in _RUNNING:
        context.awaited.update(node.args)
    args = [value for argument in node.args for value in _passed(context, argument)]
    keywords = {word.arg: evaluate(context, word.value) for word in node.keywords if word.arg is not None}
    for word in node.keywords:
        if word.arg is None:
            evaluate(context, word.value)
    if target.kind == "function" and target.name in ("builtins.map", "builtins.filter") and len(args) > 1:
        return lazy_call(context, target.name, args)
    if target.kind == "function" and target.name in ("builtins.any", "builtins.all", "builtins.next") and args:
        stopped = early_stop(context, target.name.rpartition(".")[2], node, args)
        if stopped is not None:
            return stopped
    before = context.meter.total if receiver is not None or target.kind == "function" else None
    temporaries = [value for value, part in zip(args, node.args, strict=False) if not is_stored(part)]
    if receiver is not None and isinstance(function, ast.Attribute) and not is_stored(function.value):
        temporaries.append(receiver)
    # An array without a name lives until the call returns.
    passed = [value.bytes for value in temporaries if value.kind == "array" and value.bytes.terms]
    held = context.frame.held
    if passed and target.kind != "user-function":
        context.frame.held = sum(passed, held)
    if receiver is not None and isinstance(function, ast.Attribute) and target is METHOD:
        is_awaited = node in context.awaited
        result = call_method(context, function, receiver, args, keywords, name, is_awaited=is_awaited)
    else:
        result = call_value(
            context, target, args, keywords, name, receiver if receiver and receiver.kind != "module" else None
        )
    if passed:
        context.frame.held = held
    if context.left_in_receiver.terms:
        if target.kind == "user-function" and isinstance(function, ast.Attribute):
            fill(context, function.value, context.left_in_receiver)
        context.left_in_receiver = ZERO
    inserts = target.kind == "function" and target.name in _INSERTING and len(args) > 1
    if inserts and (place := kept_place(context, node.args[0])):
        grow(context, place, args[0], ONE, args[1])
    if target.name == "heapq.heappop" and node.args and (place := kept_place(context, node.args[0])):
        shrink(context, place, args[0])
    _note_call(context, name, before)
    if result.bytes.terms:
        context.hold(result, *temporaries)
        note_allocation(context, result, name)
    return result


def _passed(context: Context, argument: ast.expr) -> Sequence[Value]:
    """Return what an argument passes: ``*items`` the items, if they are few and their number is known."""
    value = evaluate(context, argument)
    count = value.size.exact if isinstance(argument, ast.Starred) and value.size is not None else None
    if count is None or not 0 <= count <= _MOST_STARRED or value.kind not in ("list", "tuple"):
        is_open = isinstance(argument, ast.Starred) and count is None and value.payload is None
        return [replace(value, payload=STARRED) if is_open else value]
    if isinstance(value.payload, tuple) and len(value.payload) == count:
        return [part if isinstance(part, Value) else UNKNOWN for part in value.payload]
    return [value.item or UNKNOWN] * round(count)


def _note_call(context: Context, name: str, before: Quantity | None) -> None:
    if before is None or context.meter.total is before:
        return
    spent = context.meter.total - before
    if spent.evaluate(lambda size: 10.0)[1] >= 5e-6:
        context.meter.causes.append(PendingCause(CauseKind.CALL, context.frame.line, name, spent, ONE))


def call_library(
    context: Context,
    target: Value,
    args: list[Value],
    keywords: dict[str, Value],
    name: str,
    receiver: Value | None,
) -> Value:
    """Call a function of a library, or something of a module that has no rule."""
    if target.name in _SPECIAL and args:
        computed = special(context, args[0], _SPECIAL[target.name])
        if computed is not None:
            return computed
        context.miss(target.name.rpartition(".")[2], args[0])
    rule = library.rule_for(target.name)
    if rule is not None:
        if target.name in COSTLY_KINDS:
            context.note_kind(target.name)
        return apply_rule(context, rule, name or target.name, args, keywords, None)
    context.meter.spend(primitive("call.builtin"))
    context.meter.miss(f"{name or target.name}()")
    return library.function_result(target.name)


def call_other(
    context: Context,
    target: Value,
    args: list[Value],
    keywords: dict[str, Value],
    name: str,
    receiver: Value | None,
) -> Value:
    """Call a value that is not known to be a function or a class: an object may have a rule."""
    if target.kind == "unknown" and target.name == "cls":
        owner = context.frame.qualname.split(".<locals>")[0].rpartition(".")[0]
        return call_value(context, Value("class", name=owner), args, keywords)
    called = library.method_rule(target.name, "__call__") if target.kind == "object" else None
    if called is not None:
        return apply_rule(context, called, name, args, keywords, target)
    context.meter.spend(primitive("call.builtin"))
    context.meter.miss(f"{name or target.name}()")
    for value in args:
        # Of an iterator without end it takes what it needs.
        if value.kind == "iterator" and not library.is_endless(value.size):
            context.consume(value)
    return UNKNOWN
