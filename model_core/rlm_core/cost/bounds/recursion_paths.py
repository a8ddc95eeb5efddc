"""How many recursive calls a path through a function makes: branches that exclude each other count once."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..domain.records import replace
from ..domain.syntax import Function, walk
from .recursion_syntax import calls_itself, names_in

_NEVER = -math.inf  # calls on a path that nothing takes


@dataclass(frozen=True, slots=True)
class _Paths:
    """The most calls on a path through statements by where it ends; -inf where none does.

    Behind them, behind the loop around them, in its next trip, or behind the function.
    """

    behind: float
    broken: float = _NEVER
    again: float = _NEVER
    left: float = _NEVER

    def or_else(self, other: _Paths) -> _Paths:
        """The paths through one of two alternatives."""
        return _Paths(
            max(self.behind, other.behind),
            max(self.broken, other.broken),
            max(self.again, other.again),
            max(self.left, other.left),
        )

    def after(self, calls: float) -> _Paths:
        """The same paths after so many calls."""
        ends = (self.behind, self.broken, self.again, self.left)
        return _Paths(*(_NEVER if end == _NEVER else end + calls for end in ends))


@lru_cache(maxsize=128)
def most_calls(node: Function) -> float:
    """How many calls of itself a function makes on one path at most; infinite where a loop repeats one."""
    return math.inf if isinstance(node, ast.Lambda) else max(_heaviest(node, 1.0), 0.0)


@lru_cache(maxsize=128)
def always_calls_itself(node: Function) -> bool:
    """Return whether a function calls itself on each path, so that no call of it can end."""
    return not isinstance(node, ast.Lambda) and _heaviest(node, -1.0) < 0


def _heaviest(node: ast.FunctionDef | ast.AsyncFunctionDef, weight: float) -> float:
    """The largest sum over a path where each call of the function itself counts; -1 each: that of the fewest calls."""

    def of_expression(part: ast.AST) -> float:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return 0.0
        if isinstance(part, ast.BoolOp):
            first, *rest = (of_expression(value) for value in part.values)
            return first + sum(max(value, 0.0) for value in rest)
        inner = [of_expression(child) for child in ast.iter_child_nodes(part)]
        if isinstance(part, ast.IfExp):
            return of_expression(part.test) + max(of_expression(part.body), of_expression(part.orelse))
        total = sum(inner)
        if isinstance(part, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return math.inf if total > 0 else 0.0
        return total + (weight if isinstance(part, ast.Call) and calls_itself(part, node) else 0.0)

    def of_block(body: Sequence[ast.stmt]) -> _Paths:
        before, ends = 0.0, _Paths(behind=_NEVER)
        for statement in body:
            then = of_statement(statement).after(before)
            ends, before = ends.or_else(then), then.behind
            if before == _NEVER:
                break
        return replace(ends, behind=before)

    def of_statement(statement: ast.stmt) -> _Paths:
        before, last = 0.0, 0.0
        match statement:
            case ast.Return() | ast.Raise():
                return _Paths(behind=_NEVER, left=of_expression(statement))
            case ast.Break():
                return _Paths(behind=_NEVER, broken=0.0)
            case ast.Continue():
                return _Paths(behind=_NEVER, again=0.0)
            case ast.If():
                arms, before = [statement.body, statement.orelse], of_expression(statement.test)
            case ast.Match():
                arms = [*(case.body for case in statement.cases), []]
                before = of_expression(statement.subject)
            case ast.For() | ast.AsyncFor() | ast.While():
                inner, otherwise = of_block(statement.body), of_block(statement.orelse)
                header = of_expression(statement.test if isinstance(statement, ast.While) else statement.iter)
                each = max(inner.behind, inner.again, 0.0) if weight > 0 else 0.0
                if each and _repeats(statement, node):
                    header, each = math.inf, 0.0
                ended = otherwise.after(each).or_else(_Paths(behind=inner.broken))
                return ended.or_else(_Paths(_NEVER, left=inner.left)).after(header)
            case ast.Try() | ast.TryStar():
                arms = [[*statement.body, *statement.orelse], *(handler.body for handler in statement.handlers)]
                last = max(of_block(statement.finalbody).behind, 0.0)
            case ast.With() | ast.AsyncWith():
                arms, before = [statement.body], sum(of_expression(item) for item in statement.items)
            case _:
                return _Paths(behind=of_expression(statement))
        paths = _Paths(behind=_NEVER)
        for arm in arms:
            paths = paths.or_else(of_block(arm))
        return paths.after(before + last)

    paths = of_block(node.body)
    return max(paths.behind, paths.left)


def _repeats(loop: ast.For | ast.AsyncFor | ast.While, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether iterations call a function again and again.

    They do so about once where what they compute must equal something that they do not change: ``total + 1 == wanted``.
    """
    nodes = [inner for statement in loop.body for inner in walk(statement)]
    changed = {inner.id for inner in (loop, *nodes) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}

    def picks(test: ast.expr) -> bool:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return any(picks(value) for value in test.values)
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
            return False
        sides = [names_in(side) for side in (test.left, test.comparators[0])]
        is_plain = not any(isinstance(part, (ast.Subscript, ast.Attribute, ast.Call)) for part in walk(test))
        return (
            is_plain and all(sides) and [side.isdisjoint(changed) for side in sides] in ([True, False], [False, True])
        )

    def calls(part: ast.AST) -> bool:
        inner = list(ast.iter_child_nodes(part))
        if isinstance(part, ast.If) and picks(part.test):
            inner = [part.test, *part.orelse]
        elif isinstance(part, ast.BoolOp) and isinstance(part.op, ast.And):
            place = next((place for place, value in enumerate(part.values) if picks(value)), len(part.values))
            inner = list(part.values[:place])
        return (isinstance(part, ast.Call) and calls_itself(part, node)) or any(calls(one) for one in inner)

    return any(calls(statement) for statement in loop.body)
