"""How many results a recursive function makes of each result of a recursive call, such as two subsets of each."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from .recursion_syntax import calls_itself
from .syntax import Function

_WRAPPERS = frozenset({"list", "tuple", "sorted", "reversed", "set", "iter", "enumerate"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)


@lru_cache(maxsize=128)
def results_per_result(node: Function) -> float:
    """The results that a call makes of each result of a recursive call; infinite in a loop, 1 where it is not known."""
    if isinstance(node, ast.Lambda):
        return 1.0
    known = {
        target.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Assign) and _is_recursive(inner.value, node, frozenset())
        for target in inner.targets
        if isinstance(target, ast.Name)
    }
    most = 1.0
    for inner in ast.walk(node):
        if isinstance(inner, (ast.For, ast.AsyncFor)) and _is_recursive(inner.iter, node, known):
            most = max(most, _made(inner.body))
        elif isinstance(inner, (ast.BinOp, *_COMPREHENSIONS)):
            most = max(most, _of_expression(inner, node, known))
    return most


def _is_recursive(part: ast.expr, node: ast.FunctionDef | ast.AsyncFunctionDef, known: Iterable[str]) -> bool:
    """Whether an expression is the results of a recursive call."""
    match part:
        case ast.Name(id=name):
            return name in known
        case ast.Call(func=ast.Name(id=wrapper), args=[inner, *_]) if wrapper in _WRAPPERS:
            return _is_recursive(inner, node, known)
        case ast.Call():
            return calls_itself(part, node)
    return False


def _of_expression(part: ast.expr, node: ast.FunctionDef | ast.AsyncFunctionDef, known: Iterable[str]) -> float:
    """How often an expression has each result of a recursive call."""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
        return _of_expression(part.left, node, known) + _of_expression(part.right, node, known)
    if isinstance(part, _COMPREHENSIONS):
        of_results = sum(_is_recursive(generator.iter, node, known) for generator in part.generators)
        filtered = any(generator.ifs for generator in part.generators)
        return 0.0 if of_results != 1 else math.inf if len(part.generators) > 1 and not filtered else 1.0
    return float(_is_recursive(part, node, known))


def _made(body: Sequence[ast.stmt]) -> float:
    """The items that statements yield or put into one container at most."""
    places: dict[str, float] = {}
    for statement in body:
        for place, count in _places(statement).items():
            places[place] = places.get(place, 0.0) + count
    return max(places.values(), default=0.0)


def _places(statement: ast.stmt) -> dict[str, float]:
    match statement:
        case ast.Expr(value=ast.Yield()):
            return {"": 1.0}
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=container, attr="append" | "add"))):
            return {ast.dump(container): 1.0}
        case ast.For() | ast.While():
            return {"": math.inf} if _made(statement.body) else {}
        case ast.If():
            made = max(_made(statement.body), _made(statement.orelse))
            return {"": made} if made else {}
        case ast.With() | ast.Try():
            return {"": made} if (made := _made(statement.body)) else {}
    return {}
