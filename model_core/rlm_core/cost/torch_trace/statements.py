"""Statements of a trace: assignments, loops, definitions, and branches.

A branch with an unknown condition is taken unless it raises.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..domain.names import defaults_of, imported_names
from ..domain.syntax import data_fields
from .arithmetic import items_of, truth
from .context import STATEMENTS, Signal, SourceException, TraceContext, attempted, evaluate, execute
from .shaping import index
from .values import (
    UNKNOWN,
    Instance,
    LibraryName,
    ModuleContainer,
    NameScope,
    SourceClass,
    SourceFunction,
    Tensor,
    TorchLayer,
    Value,
)

_BREAK, _CONTINUE = ("break", None), ("continue", None)


def bind_target(context: TraceContext, target: ast.expr, value: Value) -> None:
    """Bind a value to a target; what does not fit binds UNKNOWN."""
    if isinstance(target, ast.Name):
        if context.scope is context.top and target.id in context.overrides:
            given = context.overrides[target.id]
            value = (given,) if isinstance(value, tuple) and isinstance(given, int) else given
        context.scope.names[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item, part in zip(target.elts, _unpacked(context, value, target.elts), strict=True):
            bind_target(context, item.value if isinstance(item, ast.Starred) else item, part)
    elif isinstance(target, ast.Attribute):
        owner = evaluate(context, target.value)
        if isinstance(owner, Instance):
            owner.attributes[target.attr] = value
        elif isinstance(owner, TorchLayer):
            (owner.weights if isinstance(value, Tensor) else owner.options)[target.attr] = value
    elif isinstance(target, ast.Subscript):
        owner, key = evaluate(context, target.value), evaluate(context, target.slice)
        if isinstance(owner, Tensor):
            attempted(_store, context, owner, key, value)
        elif isinstance(owner, (list, dict)):
            attempted(owner.__setitem__, key, value)
        elif isinstance(owner, ModuleContainer):
            owner.items[str(key)] = value


def _store(context: TraceContext, owner: Tensor, key: Value, value: Value) -> None:
    """Elements written into a part of a tensor."""
    part = index(context.recorder, owner, key)
    inputs = [value] if isinstance(value, Tensor) else []
    context.recorder.add("store", "elementwise", inputs, part.shape, dtype=owner.dtype)


def _unpacked(context: TraceContext, value: Value, targets: Sequence[ast.expr]) -> list[Value]:
    """The parts of a value for as many targets, one of which may be starred."""
    if isinstance(value, Tensor) and value.shape and value.shape[0] == len(targets):
        return [attempted(index, context.recorder, value, number) for number in range(len(targets))]
    parts = attempted(items_of, value)
    starred = [number for number, item in enumerate(targets) if isinstance(item, ast.Starred)]
    if isinstance(parts, list) and starred and len(parts) >= len(targets) - 1:
        start, end = starred[0], len(parts) - (len(targets) - starred[0] - 1)
        return [*parts[:start], parts[start:end], *parts[end:]]
    return parts if isinstance(parts, list) and len(parts) == len(targets) else [UNKNOWN] * len(targets)


def iterated(context: TraceContext, value: Value) -> list[Value]:
    """Return the items of a loop: those of a sequence, the slices of a tensor, or one UNKNOWN."""
    most = context.recorder.most_iterations
    if isinstance(value, Tensor):
        value = [value.view(value.shape[1:])] * min(value.shape[0] if value.shape else 0, most)
    if isinstance(value, range) and len(value) > most:
        context.recorder.unknown += 1
        value = value[:most]
    items = attempted(items_of, value)
    return items if isinstance(items, list) else [UNKNOWN]


def new_function(
    context: TraceContext, node: ast.FunctionDef | ast.Lambda, owner: SourceClass | None = None
) -> SourceFunction:
    """Return a function of the source with its default values."""
    defaults = {name: evaluate(context, value) for name, value in defaults_of(node.args)}
    marks = {ast.unparse(item) for item in getattr(node, "decorator_list", [])}
    return SourceFunction(node, context.scope, defaults, owner, "staticmethod" in marks, "property" in marks)


def _follow_expression(context: TraceContext, node: ast.Expr) -> Signal:
    if not isinstance(node.value, ast.Constant):
        evaluate(context, node.value)
    return None


def _follow_return(context: TraceContext, node: ast.Return) -> Signal:
    return "return", None if node.value is None else evaluate(context, node.value)


def _follow_raise(context: TraceContext, node: ast.Raise) -> Signal:
    raise SourceException


def _follow_import(context: TraceContext, node: ast.Import | ast.ImportFrom) -> Signal:
    context.scope.names.update({name: LibraryName(dotted) for name, dotted in imported_names(node)})
    return None


def _follow_assignment(context: TraceContext, node: ast.Assign | ast.AnnAssign) -> Signal:
    if node.value is not None:
        value = evaluate(context, node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            bind_target(context, target, value)
    return None


def _follow_augmented(context: TraceContext, node: ast.AugAssign) -> Signal:
    load = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
    bind_target(context, node.target, evaluate(context, load))
    return None


def _follow_assert(context: TraceContext, node: ast.Assert) -> Signal:
    if context.observer is not None:
        evaluate(context, node.test)
    return None


def _follow_if(context: TraceContext, node: ast.If) -> Signal:
    known = truth(evaluate(context, node.test))
    if known is None:
        known = not any(isinstance(item, ast.Raise) for item in node.body)
    return execute(context, node.body if known else node.orelse)


def _follow_for(context: TraceContext, node: ast.For) -> Signal:
    for item in iterated(context, evaluate(context, node.iter)):
        bind_target(context, node.target, item)
        signal = execute(context, node.body)
        if signal == _BREAK:
            return None
        if signal is not None and signal != _CONTINUE:
            return signal
    return execute(context, node.orelse)


def _follow_while(context: TraceContext, node: ast.While) -> Signal:
    while truth(evaluate(context, node.test)):
        signal = execute(context, node.body)
        if signal == _BREAK:
            return None
        if signal is not None and signal != _CONTINUE:
            return signal
    return None


def _follow_with(context: TraceContext, node: ast.With) -> Signal:
    for item in node.items:
        value = evaluate(context, item.context_expr)
        if item.optional_vars is not None:
            bind_target(context, item.optional_vars, value)
    return execute(context, node.body)


def _follow_try(context: TraceContext, node: ast.Try) -> Signal:
    try:
        signal = execute(context, node.body)
    except SourceException:
        signal = execute(context, node.handlers[0].body) if node.handlers else None
    return signal or execute(context, node.finalbody)


def _follow_function(context: TraceContext, node: ast.FunctionDef) -> Signal:
    context.scope.names[node.name] = new_function(context, node)
    return None


def _follow_class(context: TraceContext, node: ast.ClassDef) -> Signal:
    bases = tuple(evaluate(context, base) for base in node.bases)
    kind = SourceClass(node.name, tuple(base for base in bases if isinstance(base, (SourceClass, LibraryName))))
    body = context.inside(NameScope(context.scope))
    for item in node.body:
        context.recorder.step()
        if isinstance(item, ast.FunctionDef):
            kind.members[item.name] = new_function(context, item, kind)
        else:
            execute(body, [item])
    kind.members.update({name: value for name, value in body.scope.names.items() if name not in kind.members})
    kind.fields = tuple(data_fields(node) or ())
    context.scope.names[node.name] = kind
    return None


STATEMENTS.update(
    {
        ast.Expr: _follow_expression, ast.Return: _follow_return, ast.Raise: _follow_raise,
        ast.Break: lambda context, node: _BREAK, ast.Continue: lambda context, node: _CONTINUE,
        ast.Import: _follow_import, ast.ImportFrom: _follow_import, ast.Assign: _follow_assignment,
        ast.AnnAssign: _follow_assignment, ast.AugAssign: _follow_augmented, ast.Assert: _follow_assert,
        ast.If: _follow_if, ast.For: _follow_for, ast.While: _follow_while, ast.With: _follow_with,
        ast.Try: _follow_try, ast.FunctionDef: _follow_function, ast.ClassDef: _follow_class,
    }
)  # fmt: skip
