"""Statements of a trace; a branch with an unknown condition is taken unless it raises."""

from __future__ import annotations

import ast

from ..domain.names import imported_names
from ..domain.syntax import data_fields
from .arithmetic import truth
from .bindings import bind_target, iterated, new_function
from .context import STATEMENTS, Signal, SourceException, TraceContext, evaluate, execute
from .values import LibraryName, NameScope, SourceClass

_BREAK, _CONTINUE = ("break", None), ("continue", None)


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
