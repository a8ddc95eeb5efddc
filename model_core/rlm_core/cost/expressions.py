"""What expressions evaluate to, and what evaluating them costs."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import library
from .comprehensions import Comprehensions
from .containers import is_stored
from .domain.folding import MISSING
from .domain.quantities import ONE, ZERO
from .domain.values import NONE, UNKNOWN, Value, literal, number_of
from .frames import Frame
from .library.unit_costs import each, primitive
from .operations import compiled
from .syntax import parse_expression

_MOST_DEPTH = 80


class Expressions(Comprehensions):
    """Evaluates expressions; calls are left to a subclass."""

    deep = 0

    @abstractmethod
    def call(self, node: ast.Call) -> Value:
        """Evaluate a call."""

    def value(self, node: ast.expr | None) -> Value:
        """Evaluate an expression."""
        if node is None:
            return NONE
        self.step()
        handler = _HANDLERS.get(type(node))
        if handler is None or self.deep > _MOST_DEPTH:
            return UNKNOWN
        self.deep += 1
        try:
            return handler(self, node)
        finally:
            self.deep -= 1

    # One method per kind of expression.

    def _constant(self, node: ast.Constant) -> Value:
        return literal(node.value)

    def _name(self, node: ast.Name) -> Value:
        value = self.frame.lookup(node.id)
        if value is not None:
            return value
        for frame in reversed(self.open):
            function = frame.node
            is_method = "." in frame.qualname.rpartition("<locals>.")[2]
            if (
                isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
                and function.name == node.id
                and not is_method
                # A name means that function only in its own file.
                and frame.scope.home() is self.frame.scope.home()
            ):
                return Value("user-function", name=node.id, payload=(function, frame))
        return self.global_value(node.id)

    def global_value(self, name: str) -> Value:
        """The value of a name that the function does not bind."""
        scope = self.frame.scope
        text = scope.constant(name)
        if text is not None:
            return self._outer_constant(text)
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

    def _outer_constant(self, text: str) -> Value:
        tree = parse_expression(text)
        if tree is None:
            return UNKNOWN
        outer, self.frame = self.frame, Frame(self.frame.scope, line=self.frame.line, depth=self.frame.depth + 1)
        try:
            # Computed at import: not paid for by the function, not its memory, and not called by what is being read.
            with self.elsewhere():
                value = self.scratch(tree) if self.frame.depth < _MOST_DEPTH // 8 else UNKNOWN
        finally:
            self.frame = outer
        return replace(value, bytes=ZERO)

    def _attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        return self.attribute_of(base, node.attr, node)

    def attribute_of(self, base: Value, name: str, node: ast.Attribute | None = None) -> Value:
        """An attribute of a value."""
        if base.kind == "module":
            return imported_value(f"{base.name}.{name}")
        self.meter.spend(primitive("load.attribute"))
        if isinstance(base.payload, dict) and name in base.payload:
            stored: Value = base.payload[name]
            return stored
        computed = self.property_of(base, name)
        if computed is not None:
            return computed
        self.opaque += base.kind in ("unknown", "object", "class")
        if base.kind == "unknown" and base.name == "self":
            known_attribute = self.instance_attribute(name)
            if known_attribute is not None:
                return known_attribute
        known = library.attribute(base, name)
        if known is not None:
            return known
        owner = self._class_of(base)
        if owner is not None:
            text = self.frame.scope.constant(f"{owner}.{name}")
            if text is not None:
                return self._outer_constant(text)
        if base.kind == "unknown" and base.name:
            return Value("unknown", name=f"{base.name}.{name}")
        return UNKNOWN

    @abstractmethod
    def property_of(self, base: Value, name: str) -> Value | None:
        """What a property of the program's own classes returns; spends what it costs."""

    @abstractmethod
    def instance_attribute(self, name: str) -> Value | None:
        """What ``__init__`` stores in an attribute of ``self``, None where that is not known."""

    def _class_of(self, base: Value) -> str | None:
        if base.kind == "class":
            return base.name
        if base.kind == "object" and base.payload is not None:
            return base.name
        if base.kind == "unknown" and base.name in ("self", "cls"):
            return self.frame.qualname.split(".<locals>")[0].rpartition(".")[0] or None
        return None

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if self._is_compiled(node.left) and self._is_compiled(node.right):
            computed = compiled(node.op, left.constant, right.constant)
            if computed is not None:
                self.compiled.add(id(node))
                return replace(computed, bytes=ZERO)
        if "array" in (left.kind, right.kind):
            left = library.temporary(left) if not is_stored(node.left) else left
            right = library.temporary(right) if not is_stored(node.right) else right
        result = self.operation(node.op, left, right)
        temporaries = [
            value
            for value, part in ((left, node.left), (right, node.right))
            if not is_stored(part) and value is not result.payload
        ]
        if result.kind == "array":
            result = replace(result, payload=None)
        self.hold(result, *temporaries)
        return result

    def _is_compiled(self, node: ast.expr) -> bool:
        """Whether an expression is a constant when the program runs."""
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        return isinstance(node, ast.Constant) or id(node) in self.compiled

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            return literal(not truth) if truth is not None else Value("bool")
        if value.known and isinstance(value.constant, (int, float)):
            folded = value.constant
            if isinstance(node.op, ast.USub):
                return literal(-folded)
            if isinstance(node.op, ast.Invert):
                return literal(~folded) if isinstance(folded, int) else UNKNOWN
            return literal(+folded)
        if value.kind == "array":
            rule = library.operator_rule("array", "-")
            return self.apply_rule(rule, "-", [value, literal(0)], {}, None) if rule is not None else value
        self.meter.spend(primitive("unary"))
        number = number_of(value)
        return replace(value, constant=MISSING, number=number.times(-1.0) if number is not None else None)

    def _lambda(self, node: ast.Lambda) -> Value:
        self.meter.spend(primitive("lambda"))
        return Value("user-function", payload=(node, self.frame))

    def _await(self, node: ast.Await) -> Value:
        self.meter.spend(primitive("await"))
        self.awaited.add(node.value)
        return self.value(node.value)

    def _yield(self, node: ast.Yield) -> Value:
        value = self.value(node.value)
        self.frame.yields = self.frame.yields + self.meter.weighted(ONE)
        self.meter.spend(each("yield"))
        self.frame.results.append((1.0, value))
        return UNKNOWN

    def _yield_from(self, node: ast.YieldFrom) -> Value:
        value = self.value(node.value)
        count = self.consume(value)
        self.meter.spend(count.times(each("yield")))
        self.frame.yields = self.frame.yields + self.meter.weighted(count)
        self.frame.results.append((1.0, value.item or UNKNOWN))
        return UNKNOWN

    def _named(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.bind_target(node.target, value)
        return value

    def _starred(self, node: ast.Starred) -> Value:
        return self.value(node.value)

    def _call(self, node: ast.Call) -> Value:
        return self.call(node)


def imported_value(dotted: str) -> Value:
    """What a dotted name of a library is: a constant, a function with or without a rule, or a module."""
    known = library.attribute(Value("module", name=dotted.rpartition(".")[0]), dotted.rpartition(".")[2])
    if known is not None:
        return known
    if library.rule_for(dotted) is not None:
        return Value("function", name=dotted)
    return Value("module", name=dotted)


_HANDLERS: dict[type[ast.expr], Callable[[Any, Any], Value]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._boolean,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._conditional,
    ast.List: Expressions._sequence,
    ast.Tuple: Expressions._sequence,
    ast.Set: Expressions._sequence,
    ast.Dict: Expressions._dict,
    ast.Subscript: Expressions._subscript,
    ast.JoinedStr: Expressions._joined_text,
    ast.Lambda: Expressions._lambda,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._generator,
    ast.Await: Expressions._await,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
    ast.NamedExpr: Expressions._named,
    ast.Starred: Expressions._starred,
    ast.Call: Expressions._call,
}
