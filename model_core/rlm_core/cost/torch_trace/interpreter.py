"""Statements of the shape interpreter, which walks the syntax tree of a source text and binds names to abstract values.

Nothing is run. A branch with an unknown condition is taken unless it raises; unknown values bind UNKNOWN.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .arithmetic import items_of, truth
from .expressions import Expressions
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
Signal = tuple[str, Value] | None


class SourceException(Exception):  # noqa: N818 - the source's own exception
    """The source raises on every path from here."""


class Interpreter(Expressions):
    """Follows one source text; ``overrides`` replace values assigned to names at its top level."""

    def run(self, body: Sequence[ast.stmt], scope: NameScope) -> Signal:
        """Run statements in order; returns how control leaves them, None at the end."""
        for statement in body:
            self.step()
            action = getattr(self, "_run_" + type(statement).__name__.lower(), None)
            signal: Signal = action(statement, scope) if action else None
            if signal is not None:
                return signal
        return None

    def run_function(self, function: SourceFunction, scope: NameScope) -> Value:
        """Run a function's body in a scope that holds its arguments."""
        if isinstance(function.node, ast.Lambda):
            return self.evaluate(function.node.body, scope)
        signal = self.run(function.node.body, scope)
        return signal[1] if signal is not None and signal[0] == "return" else None

    def _run_expr(self, node: ast.Expr, scope: NameScope) -> Signal:
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value, scope)
        return None

    def _run_return(self, node: ast.Return, scope: NameScope) -> Signal:
        return "return", None if node.value is None else self.evaluate(node.value, scope)

    def _run_raise(self, node: ast.Raise, scope: NameScope) -> Signal:
        raise SourceException

    def _run_break(self, node: ast.Break, scope: NameScope) -> Signal:
        return _BREAK

    def _run_continue(self, node: ast.Continue, scope: NameScope) -> Signal:
        return _CONTINUE

    def _run_import(self, node: ast.Import, scope: NameScope) -> Signal:
        for item in node.names:
            name = item.asname or item.name.partition(".")[0]
            scope.names[name] = LibraryName(item.name if item.asname else name)
        return None

    def _run_importfrom(self, node: ast.ImportFrom, scope: NameScope) -> Signal:
        for item in node.names:
            scope.names[item.asname or item.name] = LibraryName(f"{node.module}.{item.name}")
        return None

    def _run_assign(self, node: ast.Assign, scope: NameScope) -> Signal:
        value = self.evaluate(node.value, scope)
        for target in node.targets:
            self.assign(target, value, scope)
        return None

    def _run_annassign(self, node: ast.AnnAssign, scope: NameScope) -> Signal:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value, scope), scope)
        return None

    def _run_augassign(self, node: ast.AugAssign, scope: NameScope) -> Signal:
        load = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
        self.assign(node.target, self.evaluate(load, scope), scope)
        return None

    def assign(self, target: ast.expr, value: Value, scope: NameScope) -> None:
        """Bind a value to a target; what does not fit binds UNKNOWN."""
        if isinstance(target, ast.Name):
            if scope is self.top and target.id in self.overrides:
                given = self.overrides[target.id]
                value = (given,) if isinstance(value, tuple) and isinstance(given, int) else given
            scope.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item, part in zip(target.elts, self.unpacked(value, target.elts), strict=True):
                self.assign(item.value if isinstance(item, ast.Starred) else item, part, scope)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, scope)
            if isinstance(owner, Instance):
                owner.attributes[target.attr] = value
            elif isinstance(owner, TorchLayer):
                (owner.weights if isinstance(value, Tensor) else owner.options)[target.attr] = value
        elif isinstance(target, ast.Subscript):
            owner, key = self.evaluate(target.value, scope), self.evaluate(target.slice, scope)
            if isinstance(owner, Tensor):
                self.guarded(self.store, owner, key, value)
            elif isinstance(owner, (list, dict)):
                self.guarded(owner.__setitem__, key, value)
            elif isinstance(owner, ModuleContainer):
                owner.items[str(key)] = value

    def store(self, owner: Tensor, key: Value, value: Value) -> None:
        """Elements written into a part of a tensor."""
        part = index(self.recorder, owner, key)
        inputs = [value] if isinstance(value, Tensor) else []
        self.recorder.add("store", "elementwise", inputs, part.shape, dtype=owner.dtype)

    def unpacked(self, value: Value, targets: Sequence[ast.expr]) -> list[Value]:
        """The parts of a value for as many targets, one of which may be starred."""
        if isinstance(value, Tensor) and value.shape and value.shape[0] == len(targets):
            return [self.guarded(index, self.recorder, value, number) for number in range(len(targets))]
        parts = self.guarded(items_of, value)
        starred = [number for number, item in enumerate(targets) if isinstance(item, ast.Starred)]
        if isinstance(parts, list) and starred and len(parts) >= len(targets) - 1:
            start, end = starred[0], len(parts) - (len(targets) - starred[0] - 1)
            return [*parts[:start], parts[start:end], *parts[end:]]
        return parts if isinstance(parts, list) and len(parts) == len(targets) else [UNKNOWN] * len(targets)

    def _run_if(self, node: ast.If, scope: NameScope) -> Signal:
        known = truth(self.evaluate(node.test, scope))
        if known is None:
            known = not any(isinstance(item, ast.Raise) for item in node.body)
        return self.run(node.body if known else node.orelse, scope)

    def _run_for(self, node: ast.For, scope: NameScope) -> Signal:
        for item in self.turns(self.evaluate(node.iter, scope)):
            self.assign(node.target, item, scope)
            signal = self.run(node.body, scope)
            if signal == _BREAK:
                return None
            if signal is not None and signal != _CONTINUE:
                return signal
        return self.run(node.orelse, scope)

    def _run_while(self, node: ast.While, scope: NameScope) -> Signal:
        while truth(self.evaluate(node.test, scope)):
            signal = self.run(node.body, scope)
            if signal == _BREAK:
                return None
            if signal is not None and signal != _CONTINUE:
                return signal
        return None

    def _run_with(self, node: ast.With, scope: NameScope) -> Signal:
        for item in node.items:
            value = self.evaluate(item.context_expr, scope)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, scope)
        return self.run(node.body, scope)

    def _run_try(self, node: ast.Try, scope: NameScope) -> Signal:
        try:
            signal = self.run(node.body, scope)
        except SourceException:
            signal = self.run(node.handlers[0].body, scope) if node.handlers else None
        return signal or self.run(node.finalbody, scope)

    def _run_delete(self, node: ast.Delete, scope: NameScope) -> Signal:
        return None

    def _run_functiondef(self, node: ast.FunctionDef, scope: NameScope) -> Signal:
        scope.names[node.name] = self.function(node, scope)
        return None

    def _run_classdef(self, node: ast.ClassDef, scope: NameScope) -> Signal:
        bases = tuple(self.evaluate(base, scope) for base in node.bases)
        kind = SourceClass(node.name, tuple(base for base in bases if isinstance(base, (SourceClass, LibraryName))))
        inner = NameScope(scope)
        for item in node.body:
            self.step()
            if isinstance(item, ast.FunctionDef):
                kind.members[item.name] = self.function(item, scope, kind)
            else:
                self.run([item], inner)
        kind.members.update({name: value for name, value in inner.names.items() if name not in kind.members})
        if any("dataclass" in ast.unparse(mark) for mark in node.decorator_list):
            fields = [
                item.target.id
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            ]
            kind.fields = tuple(fields)
        scope.names[node.name] = kind
        return None
