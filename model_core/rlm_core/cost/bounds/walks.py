"""Loops whose iterations go on with the rest of what they were given.

A walk along a chain of objects (``while node is not None: node = node.next``) is as long as the chain, whose size is
named after the object that it begins at. Depths of trees are left out: a tree is far larger than it is deep. A
container that each iteration cuts at its front (``data = data[length:]``) gives as many parts as it has, at sizes that
do not grow with it.
"""

from __future__ import annotations

import ast

from ..domain.context import Context
from ..domain.quantities import LINEAR, Quantity, constant, of_size
from ..domain.syntax import LoopNode, place_of, walk
from .links import is_link, is_way_down, way_down
from .transitions import Transitions

_PARTS = constant(0.01, 1.0, 0.1)  # of a container, for each of its items: parts have one to a hundred items
_UP = frozenset({"parent", "root"})


def iterations_of_walk(node: LoopNode, test: ast.expr, moves: Transitions) -> Quantity | None:
    """The iterations of a loop that follows a chain until a condition says that it ends; None for other loops.

    An iteration that takes the next object out of the chain (``node.next = node.next.next``) brings its end as near.
    """
    is_end = True
    if isinstance(test, ast.Compare):
        is_end = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        if len(test.ops) > 1 or not isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
            return None
        test = test.left
    place, asked = _walker(test)
    symbol = moves.symbols.get(place, "")
    start, *others = _names(moves.starts.get(symbol)) or [""]
    ways = _names(moves.after.get(symbol))
    if ways == [start] and (removed := _removed(node, place)):
        ways = [f"{start}.{removed}"]
    steps = [step for way in ways for step in way.removeprefix(f"{start}.").split(".")]
    if (
        not start
        or others
        or not ways
        or not all(way.startswith(f"{start}.") for way in ways)
        or not _UP.isdisjoint(steps)
    ):
        return None
    if len(ways) > 1 or is_way_down(steps[-1]):
        return way_down(start) if all(map(is_link, steps)) else None
    # `node.value != key` ends anywhere, `node.next is not first` where a circle does.
    return of_size(start).times(1 / len(steps)) if is_end or asked <= {*steps} else None


def iterations_of_endless_walk(context: Context, node: ast.While) -> Quantity | None:
    """The iterations of a loop that goes on along the links of one object until something inside leaves it."""
    ways: dict[str, list[ast.expr]] = {}
    for part in walk(node):
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            ways.setdefault(part.targets[0].id, []).append(part.value)
    for name, values in ways.items():
        links = [value.attr for value in values if isinstance(value, ast.Attribute) and place_of(value.value) == name]
        value = context.frame.lookup(name)
        start = value.name if value is not None and value.kind == "unknown" else ""
        if start and len(links) == len(values) and any(map(is_way_down, links)) and all(map(is_link, links)):
            return way_down(start)
    return None


def iterations_of_cuts(context: Context, node: ast.While) -> Quantity | None:
    """The iterations of a loop that takes parts of unknown size off the front of what its condition is about."""
    for place in {place_of(part) for part in ast.walk(node.test) if isinstance(part, (ast.Name, ast.Attribute))} - {""}:
        cuts = [value for statement in node.body for target, value in _assigned(statement) if place_of(target) == place]
        if cuts and all(_is_rest(cut, place) for cut in cuts):
            value = context.frame.lookup(place)
            return None if value is None else context.length(value) * _PARTS
    return None


def _assigned(statement: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """What a statement assigns to which target, also of several at once."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            return list(zip(targets, values, strict=False))
        case ast.Assign(targets=targets, value=value):
            return [(target, value) for target in targets]
    return []


def _is_rest(node: ast.expr, place: str) -> bool:
    match node:
        case ast.Subscript(value=value, slice=ast.Slice(lower=ast.expr(), upper=None, step=None)):
            return place_of(value) == place
        case ast.Subscript(value=value, slice=ast.Slice(None, ast.UnaryOp(ast.USub()), None)):
            return place_of(value) == place
    return False


def _removed(node: LoopNode, place: str) -> str:
    """The attribute by which a loop both walks from a name and takes objects out behind it; ``""`` without one."""
    bound = {
        (ast.unparse(part.targets[0]), ast.unparse(part.value)) for part in walk(node) if isinstance(part, ast.Assign)
    }
    links = [value.removeprefix(f"{place}.") for target, value in bound if target == place]
    return next((link for link in links if (f"{place}.{link}", f"{place}.{link}.{link}") in bound), "")


def _walker(test: ast.expr) -> tuple[str, set[str]]:
    """The name that an expression is about, and the attributes of it that are asked for: ``node`` and ``next``."""
    asked: set[str] = set()
    while not place_of(test) or isinstance(test, ast.Attribute):
        match test:
            case ast.Attribute(value=value, attr=attribute):
                asked.add(attribute)
                test = value
            case ast.Call(func=ast.Attribute(value=value), args=[]):
                test = value
            case _:
                return "", asked
    return place_of(test), asked


def _names(amount: Quantity | None) -> list[str]:
    """The names of the sizes that a quantity is one of; empty for other quantities."""
    names = []
    for monomial, coefficient in amount.terms.items() if amount is not None else ():
        if len(monomial) != 1 or monomial[0][1] != 1 or monomial[0][0][1] != LINEAR or coefficient[2] > 1:
            return []
        names.append(monomial[0][0][0])
    return names
