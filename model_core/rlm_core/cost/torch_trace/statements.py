"""Statements of a trace: loops, definitions, and branches.

A branch with an unknown condition is taken unless it raises.
"""

from __future__ import annotations

import ast

from ..concrete.frame import Signal, evaluate, execute
from ..concrete.syntax import bind, each_item, each_time
from ..concrete.values import UNKNOWN, LibraryName, NameScope, SourceFunction, Value
from ..domain.names import defaults_of, imported_names
from ..domain.syntax import data_fields
from .arithmetic import items_of, truth
from .context import SourceException, TraceContext, attempted
from .values import SourceClass, Tensor


def iterated(context: TraceContext, value: Value) -> list[Value]:
    """Return the items of a loop: those of a sequence, the slices of a tensor, or one UNKNOWN."""
    most = context.recorder.most_iterations
    if isinstance(value, Tensor):
        value = [value.view(value.shape[1:])] * min(value.shape[0] if value.shape else 0, most)
    if isinstance(value, range) and len(value) > most:
        context.recorder.unknown += 1
        context.recorder.repeated *= len(value) / most
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


def _follow_raise(context: TraceContext, node: ast.Raise) -> Signal:
    raise SourceException


def _follow_import(context: TraceContext, node: ast.Import | ast.ImportFrom) -> Signal:
    context.scope.names.update({name: LibraryName(dotted) for name, dotted in imported_names(node)})
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
    before = context.recorder.repeated
    try:
        return each_item(context, node, iterated(context, evaluate(context, node.iter)))
    finally:
        context.recorder.repeated = before


def _follow_with(context: TraceContext, node: ast.With) -> Signal:
    for item in node.items:
        value = evaluate(context, item.context_expr)
        if item.optional_vars is not None:
            bind(context, item.optional_vars, value)
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


TraceContext.statements.update(
    {
        ast.Raise: _follow_raise, ast.Import: _follow_import, ast.ImportFrom: _follow_import,
        ast.Assert: _follow_assert, ast.If: _follow_if, ast.For: _follow_for, ast.While: each_time,
        ast.With: _follow_with, ast.Try: _follow_try, ast.FunctionDef: _follow_function, ast.ClassDef: _follow_class,
    }
)  # fmt: skip
