"""Loops that visit each node of a structure once: they take a node off a list and put those that it leads to on it.

``while queue: node = queue.popleft(); queue.append(node.left)``, level by level, with a stack and a walker. How often
such a loop runs is the number of nodes, which is named after the node that the list begins with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..domain.context import Context
from ..domain.quantities import ONE, Quantity, constant, of_size
from ..domain.syntax import LoopNode, walk
from ..domain.values import Value

_TAKING = frozenset({"get", "get_nowait", "pop", "popleft"})
_PUTTING = frozenset({"append", "appendleft", "extend", "insert", "put"})


@dataclass(frozen=True, slots=True)
class Traversal:
    """The lists that hold nodes for later, and the names that the condition tests."""

    holders: frozenset[str]
    tested: tuple[str, ...]


def iterations_of_traversal(context: Context, node: ast.While) -> Quantity | None:
    """The iterations of a loop that visits the nodes of a structure; fewer where it may be left early."""
    found = traversal(node)
    values = [context.frame.lookup(name) for name in (*found.tested, *sorted(found.holders))] if found else []
    names = [name for value in values if value is not None and (name := _first_node(value))]
    if not names:
        return None
    block = context.block(node)
    is_left = block.breaks or block.returns
    return of_size(names[0]) * constant(0.0 if is_left else 1.0, 1.0, 1.0)


def iterations_inside(context: Context, node: LoopNode) -> Quantity | None:
    """The iterations, on average, of a loop inside a traversal that takes nodes or puts them: one for each node."""
    around = (loop.node for loop in reversed(context.frame.loops) if isinstance(loop.node, ast.While))
    found = next((found for loop in around if isinstance(loop, ast.While) and (found := traversal(loop))), None)
    if found is None:
        return None
    moves = any(name in found.holders for name, _, _ in _changes(node)) or (
        isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and node.iter.id in found.holders
    )
    return ONE if moves else None


@lru_cache(maxsize=128)
def traversal(node: ast.While) -> Traversal | None:
    """The traversal that a loop is; None for other loops, and where what is put on a list is not a part of a node."""
    tested = tuple(
        dict.fromkeys(part.id for part in walk(node.test) if isinstance(part, ast.Name) and part.id != "len")
    )
    changes = list(_changes(node))
    holders = {name for name, _, is_put in changes if not is_put} & {name for name, _, is_put in changes if is_put}
    assigned = [(name, value) for name, value in _assigned(node) if value is not None]
    # `level = following`: the list of what comes next takes the place of the one at hand.
    renamed = {(name, value.id) for name, value in assigned if isinstance(value, ast.Name) and name in tested}
    holders |= {name for pair in renamed for name in pair if pair[1] in {put for put, _, is_put in changes if is_put}}
    walkers: set[str] = set()
    for _ in range(3):
        walkers |= {name for name, value in assigned if _is_node(value, holders, walkers)}
    walkers -= holders
    puts = [value for name, value, is_put in changes if is_put and name in holders]
    moved = [value for name, value in assigned if name in walkers and isinstance(value, ast.Attribute)]
    leads_on = any(_leads_on(part, walkers) for value in (*puts, *moved) for part in walk(value))
    if not leads_on or not holders.intersection(tested) or not all(_is_part(value, walkers) for value in puts):
        return None
    return Traversal(frozenset(holders), tested)


def _changes(node: LoopNode) -> Iterator[tuple[str, ast.expr, bool]]:
    """What a loop takes from lists and puts on them: the list, the call or what is put, and whether it is put."""
    for inner in walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute), args=args):
                if attribute in _TAKING:
                    yield name, inner, False
                elif attribute in _PUTTING and args:
                    yield name, args[-1], True
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                yield name, value, True
            case _:
                pass


def _assigned(node: LoopNode) -> Iterator[tuple[str, ast.expr]]:
    """The names that a loop binds, each to an expression, or to an item of one."""
    for inner in walk(node):
        match inner:
            case ast.Assign(targets=[target], value=value) | ast.For(target=target, iter=value):
                yield from ((part.id, value) for part in walk(target) if isinstance(part, ast.Name))
            case _:
                pass


def _is_node(value: ast.expr, holders: set[str], walkers: set[str]) -> bool:
    """Return whether an expression is a node that a list holds, or one that a node leads to."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if name in holders:
            return attribute in _TAKING
        case ast.Attribute(value=holder) | ast.Subscript(value=holder):
            return _is_node(holder, holders, walkers)
        case ast.Name(id=name):
            return name in walkers or name in holders
    return False


def _leads_on(part: ast.AST, walkers: set[str]) -> bool:
    return isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in walkers


def _is_part(value: ast.expr, walkers: set[str]) -> bool:
    """Return whether what is put on a list is a node at hand or parts of one, and not found by what a node holds.

    ``graph[node.key]`` may be put there again and again.
    """
    match value:
        case ast.Name(id=name):
            return name in walkers
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
            return _is_part(inner, walkers)
        case ast.Call(func=ast.Name(), args=[inner]) | ast.Call(func=ast.Attribute(value=inner), args=[]):
            return _is_part(inner, walkers)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(_is_part(part, walkers) for part in parts)
        case ast.ListComp(generators=[first]) | ast.GeneratorExp(generators=[first]):
            return _is_part(first.iter, walkers)
    return False


def _first_node(value: Value) -> str:
    """The name of a node, or of the first one that a list holds, alone or in a tuple."""
    if value.kind == "unknown":
        return value.name if not value.name.startswith("?") else ""
    if value.kind in ("list", "deque", "tuple") and value.item is not None and value.item is not value:
        parts = value.payload if isinstance(value.payload, tuple) else ()
        named = [part for part in parts if isinstance(part, Value)] or [value.item]
        return next((name for part in named if (name := _first_node(part))), "")
    return ""
