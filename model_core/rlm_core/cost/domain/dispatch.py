"""The entry points of the evaluator: evaluate an expression, execute statements, call a value.

Each finds the function that handles a type of syntax or a kind of value in a table, which ``rlm_core.cost.evaluate``
fills. What handles a part reaches the other parts through these, so that imports point one way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .context import Context
from .meter import Meter
from .values import NONE, UNKNOWN, Value

_MOST_DEPTH = 80  # of expressions
MOST_NESTING = 40  # of statements

Callee = Callable[[Context, Value, list[Value], dict[str, Value], str, Value | None], Value]
"""Handles a call of a value: the value, arguments, keyword arguments, the call as it is written, and the receiver."""

EXPRESSIONS: dict[type[ast.expr], Callable[[Context, Any], Value]] = {}
STATEMENTS: dict[type[ast.stmt], Callable[[Context, Any], None]] = {}
CALLEES: dict[str, Callee] = {}
OTHER = "other"
"""The key in ``CALLEES`` of the kinds that it does not list."""


def evaluate(context: Context, node: ast.expr | None) -> Value:
    """Return the value of an expression; evaluating it is paid for."""
    if node is None:
        return NONE
    context.step()
    handler = EXPRESSIONS.get(type(node))
    if handler is None or context.expression_depth > _MOST_DEPTH:
        return UNKNOWN
    context.expression_depth += 1
    place = context.place
    outer = place.node
    if context.frame.is_own:
        place.node = node
    try:
        return handler(context, node)
    finally:
        context.expression_depth -= 1
        place.node = outer


def peek(context: Context, node: ast.expr) -> Value:
    """Return the value of an expression without paying for it."""
    with context.region(Meter()):
        return evaluate(context, node)


def execute(context: Context, body: Sequence[ast.stmt]) -> None:
    """Read statements in order, up to the first that never continues."""
    context.statement_depth += 1
    context.footprint.depth = max(context.footprint.depth, context.statement_depth)
    outer = context.place.node
    try:
        for statement in body:
            if context.meter.reach[2] <= 0 or context.statement_depth > MOST_NESTING:
                break
            if _is_costless(statement):
                continue
            context.step()
            if not context.frame.depth:
                context.frame.line = statement.lineno - 1
            if context.frame.is_own:
                context.place.node = statement
            handler = STATEMENTS.get(type(statement))
            if handler is not None:
                handler(context, statement)
    finally:
        context.statement_depth -= 1
        context.place.node = outer


def call_value(
    context: Context,
    target: Value,
    args: list[Value],
    keywords: dict[str, Value],
    name: str = "",
    receiver: Value | None = None,
) -> Value:
    """Return the result of calling a value; the call is paid for.

    Args:
        context: where the call is.
        target: what is called.
        args: the positional arguments.
        keywords: the keyword arguments, by name.
        name: what the call is written as.
        receiver: the object whose method is called.
    """
    callee = CALLEES.get(target.kind) or CALLEES[OTHER]
    return callee(context, target, args, keywords, name, receiver)


def _is_costless(node: ast.stmt) -> bool:
    """Return whether a statement is a docstring or a type hint alone, which must not change any fact."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.AnnAssign) and node.value is None
