"""How many results a recursive function makes of each result of a recursive call, such as two subsets of each."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ..domain.quantities import product
from ..domain.syntax import Function, nodes_of
from .recursion_syntax import calls_itself

_WRAPPERS = frozenset({"list", "tuple", "sorted", "reversed", "set", "iter", "enumerate"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)


@lru_cache(maxsize=128)
def results_per_result(node: Function) -> float:
    """The results that a call makes of each result of a recursive call; infinite in a loop, 1 where it is not known."""
    if isinstance(node, ast.Lambda):
        return 1.0
    known: dict[str, float] = {}
    assigned = [inner for inner in nodes_of(node) if isinstance(inner, ast.Assign)]
    # In the order of the text, so that what a name is bound to is known where another is bound to more of it.
    for assign in sorted(assigned, key=lambda assign: assign.lineno):
        count = _of_expression(assign.value, node, known)
        known.update({target.id: count for target in assign.targets if isinstance(target, ast.Name) and count})
    most, are_items = 1.0, False
    for inner in nodes_of(node):
        if isinstance(inner, (ast.For, ast.AsyncFor)):
            count = _of_expression(inner.iter, node, known)
            most, are_items = max(most, product(count, _made(inner.body))), are_items or count > 0
        elif isinstance(inner, (ast.BinOp, *_COMPREHENSIONS)):
            most = max(most, _of_expression(inner, node, known))
            iterated = [generator.iter for generator in getattr(inner, "generators", ())]
            are_items = are_items or any(_of_expression(part, node, known) for part in iterated)
    # A sum of results may be one of numbers, unless something runs over them.
    return most if are_items else 1.0


def _of_expression(part: ast.expr, node: ast.FunctionDef | ast.AsyncFunctionDef, known: Mapping[str, float]) -> float:
    """How often an expression has each result of a recursive call; ``known`` is the same by name."""
    match part:
        case ast.Name(id=name):
            return known.get(name, 0.0)
        case ast.Call(func=ast.Name(id=wrapper), args=[inner, *_]) if wrapper in _WRAPPERS:
            return _of_expression(inner, node, known)
        case ast.Call():
            return float(calls_itself(part, node))
        case ast.BinOp(op=ast.Add()):
            return _of_expression(part.left, node, known) + _of_expression(part.right, node, known)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            counts = [_of_expression(generator.iter, node, known) for generator in part.generators]
            of_results = [count for count in counts if count]
            if len(of_results) != 1:
                return 0.0
            filtered = any(generator.ifs for generator in part.generators)
            return math.inf if len(counts) > 1 and not filtered else of_results[0]
    return 0.0


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
