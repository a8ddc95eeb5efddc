"""The expressions and statements that mean the same in every text that is followed; a domain adds the others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from ..domain.folding import MISSING, LargeInteger
from ..domain.names import lookup
from .frame import Frame, Signal, evaluate, execute
from .values import UNKNOWN, LibraryName, Named, Value

_BREAK, _CONTINUE = ("break", None), ("continue", None)


def name_value(frame: Frame, node: ast.Name) -> Value:
    """Return the value of a name; an unbound one may be Python's."""
    value = lookup(frame.scope, node.id)
    if value is not MISSING:
        return value
    return LibraryName(node.id) if frame.is_builtin(node.id) else UNKNOWN


def items_in(frame: Frame, nodes: Iterable[ast.expr]) -> list[Value]:
    """Return the values of a display or an argument list, stars unpacked."""
    values: list[Value] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            values += frame.items(evaluate(frame, node.value))
        else:
            values.append(evaluate(frame, node))
    return values


def keywords_in(frame: Frame, nodes: Iterable[ast.keyword]) -> Named:
    """Return the keyword arguments of a call, dictionaries unpacked."""
    named: Named = {}
    for item in nodes:
        value = evaluate(frame, item.value)
        if item.arg is not None:
            named[item.arg] = value
        elif isinstance(value, dict):
            named.update(value)
    return named


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    return frame.binary(type(node.op), left, right)


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    value = evaluate(frame, node.operand)
    if not isinstance(node.op, ast.Not):
        return frame.unary(type(node.op), value)
    known = frame.truth(value)
    return frame.undecided(ast.Not, [value]) if known is None else not known


def _boolean(frame: Frame, node: ast.BoolOp) -> Value:
    value: Value = UNKNOWN
    unsure: list[Value] = []
    for part in node.values:
        value = evaluate(frame, part)
        known = frame.truth(value)
        if known is not None and known is isinstance(node.op, ast.Or):
            return value
        if known is None:
            unsure.append(value)
    return frame.undecided(type(node.op), unsure) if unsure else value


def _comparison(frame: Frame, node: ast.Compare) -> Value:
    left, result = evaluate(frame, node.left), True
    for sign, item in zip(node.ops, node.comparators, strict=True):
        right = evaluate(frame, item)
        value = frame.compare(type(sign), left, right)
        result = value if result is True else frame.binary(ast.BitAnd, result, value)
        if result is False:
            return False
        left = right
    return result


def _conditional(frame: Frame, node: ast.IfExp) -> Value:
    known = frame.truth(evaluate(frame, node.test))
    if known is None:
        return frame.either(node.body, node.orelse)
    return evaluate(frame, node.body if known else node.orelse)


def bind(frame: Frame, target: ast.expr, value: Value) -> None:
    """Bind a value to a target; what does not fit binds UNKNOWN."""
    if isinstance(target, ast.Name):
        frame.bind(target.id, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item, part in zip(target.elts, frame.parts(value, target.elts), strict=True):
            bind(frame, item.value if isinstance(item, ast.Starred) else item, part)
    else:
        frame.store(target, value)


def _expression(frame: Frame, node: ast.Expr) -> Signal:
    if not isinstance(node.value, ast.Constant):
        evaluate(frame, node.value)
    return None


def _return(frame: Frame, node: ast.Return) -> Signal:
    return "return", None if node.value is None else evaluate(frame, node.value)


def _assignment(frame: Frame, node: ast.Assign | ast.AnnAssign) -> Signal:
    if node.value is not None:
        value = evaluate(frame, node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            bind(frame, target, value)
    return None


def _augmented(frame: Frame, node: ast.AugAssign) -> Signal:
    load = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
    bind(frame, node.target, evaluate(frame, load))
    return None


def each_item(frame: Frame, node: ast.For, items: Iterable[Value]) -> Signal:
    """Follow a loop item by item."""
    for item in items:
        bind(frame, node.target, item)
        signal = execute(frame, node.body)
        if signal == _BREAK:
            return None
        if signal is not None and signal != _CONTINUE:
            return signal
    return execute(frame, node.orelse)


def each_time(frame: Frame, node: ast.While) -> Signal:
    """Follow a loop as long as its condition is known to hold."""
    while frame.truth(evaluate(frame, node.test)):
        signal = execute(frame, node.body)
        if signal == _BREAK:
            return None
        if signal is not None and signal != _CONTINUE:
            return signal
    return None


EXPRESSIONS: dict[type[ast.expr], Callable[[Any, Any], Value]] = {
    ast.Constant: lambda frame, node: UNKNOWN if isinstance(node.value, LargeInteger) else node.value,
    ast.Tuple: lambda frame, node: tuple(items_in(frame, node.elts)),
    ast.Name: name_value, ast.BinOp: _binary, ast.UnaryOp: _unary, ast.BoolOp: _boolean, ast.Compare: _comparison,
    ast.IfExp: _conditional,
}  # fmt: skip
STATEMENTS: dict[type[ast.stmt], Callable[[Any, Any], Signal]] = {
    ast.Expr: _expression, ast.Return: _return, ast.Assign: _assignment, ast.AnnAssign: _assignment,
    ast.AugAssign: _augmented, ast.Break: lambda frame, node: _BREAK, ast.Continue: lambda frame, node: _CONTINUE,
}  # fmt: skip
