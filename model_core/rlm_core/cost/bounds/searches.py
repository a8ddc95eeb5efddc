"""Searches that end early: how far they get before what they look for is found.

One search may end at its first item. Those that a loop repeats look for different things, so that together they see a
share of all items at least. That holds where what ends them is rare, such as that two values are equal: a search for
the first digit of a text ends soon each time.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..domain.context import LEAST_SEEN, Context
from ..domain.quantities import Quantity, constant
from ..domain.syntax import LoopNode, leaving, walk

_PREFIXES = frozenset({"startswith", "endswith"})


def seen_share(context: Context, test: ast.expr | None, *, ends: bool = True) -> Quantity:
    """The share of items that a search sees which ends where a test holds, or does not (``ends``)."""
    is_long = test is not None and context.is_repeated and is_rare(test, holds=ends)
    return constant(LEAST_SEEN if is_long else 0.0, 1.0, 0.5)


def loop_test(node: LoopNode) -> ast.expr | None:
    """The condition on which a loop is left, if it is the only one."""
    tests = [part.test for part in _branches(node.body) if leaving(part.body) in ("break", "return")]
    others = sum(isinstance(part, (ast.Break, ast.Return)) for statement in node.body for part in walk(statement))
    return tests[0] if len(tests) == 1 and others == 1 else None


def is_rare(test: ast.expr, *, holds: bool = True) -> bool:
    """Return whether a condition that compares two changing values rarely holds, or rarely does not (``holds``)."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return is_rare(operand, holds=not holds)
        case ast.BoolOp(op=op, values=values):
            rare = [is_rare(value, holds=holds) for value in values]
            return any(rare) if isinstance(op, ast.And) is holds else all(rare)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            is_rare_op = isinstance(op, (ast.Eq, ast.Is) if holds else (ast.NotEq, ast.IsNot))
            return is_rare_op and not isinstance(left, ast.Constant) and not isinstance(right, ast.Constant)
        case ast.Call(func=ast.Attribute(attr=name), args=[argument, *_]):
            return holds and name in _PREFIXES and not isinstance(argument, ast.Constant)
    return False


def _branches(body: Sequence[ast.stmt]) -> list[ast.If]:
    return [statement for statement in body if isinstance(statement, ast.If) and not statement.orelse]
