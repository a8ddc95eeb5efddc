"""Assignments of a trace, the items of its loops, and the functions that it defines."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..domain.names import defaults_of
from .arithmetic import items_of
from .context import TraceContext, evaluate, guarded
from .shaping import index
from .values import UNKNOWN, Instance, ModuleContainer, SourceClass, SourceFunction, Tensor, TorchLayer, Value

_MAX_ITERATIONS = 400  # a longer loop is traced that far and counts as not understood


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
            guarded(_store, context, owner, key, value)
        elif isinstance(owner, (list, dict)):
            guarded(owner.__setitem__, key, value)
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
        return [guarded(index, context.recorder, value, number) for number in range(len(targets))]
    parts = guarded(items_of, value)
    starred = [number for number, item in enumerate(targets) if isinstance(item, ast.Starred)]
    if isinstance(parts, list) and starred and len(parts) >= len(targets) - 1:
        start, end = starred[0], len(parts) - (len(targets) - starred[0] - 1)
        return [*parts[:start], parts[start:end], *parts[end:]]
    return parts if isinstance(parts, list) and len(parts) == len(targets) else [UNKNOWN] * len(targets)


def iterated(context: TraceContext, value: Value) -> list[Value]:
    """Return the items of a loop: those of a sequence, the slices of a tensor, or one UNKNOWN."""
    if isinstance(value, Tensor):
        value = [value.view(value.shape[1:])] * min(value.shape[0] if value.shape else 0, _MAX_ITERATIONS)
    if isinstance(value, range) and len(value) > _MAX_ITERATIONS:
        context.recorder.unknown += 1
        value = value[:_MAX_ITERATIONS]
    items = guarded(items_of, value)
    return items if isinstance(items, list) else [UNKNOWN]


def new_function(
    context: TraceContext, node: ast.FunctionDef | ast.Lambda, owner: SourceClass | None = None
) -> SourceFunction:
    """Return a function of the source with its default values."""
    defaults = {name: evaluate(context, value) for name, value in defaults_of(node.args)}
    marks = {ast.unparse(item) for item in getattr(node, "decorator_list", [])}
    return SourceFunction(node, context.scope, defaults, owner, "staticmethod" in marks, "property" in marks)
