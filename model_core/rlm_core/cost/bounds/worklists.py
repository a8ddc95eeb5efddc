"""Loops that take items off a list of work and put new ones on it, each at most once: searches of grids and graphs.

How often such a loop runs is not in its condition: it is the number of different items, that is of the fields inside
the bounds that items are compared with, or of the nodes of the mapping whose neighbours are followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..domain.context import Context
from ..domain.dispatch import peek
from ..domain.quantities import ONE, Quantity, mixed
from ..domain.syntax import Function, LoopNode, nodes_of, walk
from ..domain.values import number_of
from .recursion_syntax import calls_itself, is_cached, names_in

_TAKING = frozenset({"pop", "popleft", "get", "get_nowait"})
_PUTTING = frozenset({"append", "appendleft", "add", "extend", "update", "put", "insert"})
_HEAP_TAKING, _HEAP_PUTTING = frozenset({"heappop"}), frozenset({"heappush"})


@dataclass(frozen=True, slots=True)
class Worklist:
    """The bounds of the items of a list of work.

    ``bounds`` are the upper ends of the coordinates that items have, ``graphs`` the mappings or lists that neighbours
    are read from.
    """

    bounds: tuple[ast.expr, ...]
    graphs: tuple[ast.expr, ...]


def worklist(node: ast.While) -> Worklist | None:
    """The list of work that a loop condition tests, where the body takes from it and adds what it has not seen yet."""
    name = _tested(node.test)
    if name is None:
        return None
    takes = puts = marks = False
    bounds: dict[str, ast.expr] = {}
    graphs: dict[str, ast.expr] = {}
    for inner in _walk(node.body):
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=holder), attr=attribute)) if holder == name:
                takes |= attribute in _TAKING
                puts |= attribute in _PUTTING
            case ast.Call(args=[ast.Name(id=holder), *_]) if holder == name:
                function = inner.func
                called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                takes |= called in _HEAP_TAKING
                puts |= called in _HEAP_PUTTING
            case ast.AugAssign(target=ast.Name(id=holder), op=ast.Add()) if holder == name:
                puts = True
            case ast.Compare():
                marks |= any(isinstance(op, (ast.In, ast.NotIn)) for op in inner.ops)
                # `distance[v] is None`, `== -1`, `> new`: what was reached before.
                marks |= isinstance(inner.left, ast.Subscript) or isinstance(inner.comparators[-1], ast.Subscript)
                for subject, bound in _upper_bounds(inner):
                    bounds[ast.dump(subject)] = bound
            case ast.If(test=test) if _is_field(test):
                marks = True
            case ast.BoolOp(values=parts):
                marks |= any(_is_field(part) for part in parts)
            case ast.For(iter=source) | ast.comprehension(iter=source):
                graph = _neighbours(source)
                if graph is not None:
                    graphs[ast.dump(graph)] = graph
            case _:
                pass
    if not (takes and puts and marks) or not (bounds or graphs):
        return None
    return Worklist(tuple(bounds.values()), tuple(graphs.values()))


def iterations_of_search(context: Context, node: ast.While) -> Quantity | None:
    """The iterations of a search, which meets each field of a grid or node of a graph at most once."""
    work = worklist(node)
    if work is None or context.frame.loops:
        return None  # searches that know where others have been meet few fields each
    lengths = [number_of(peek(context, bound)) for bound in work.bounds if _is_unchanged(context, node, bound)]
    most = ONE
    for side in lengths:
        if side is not None:
            most = most * side
    if most is ONE:
        graphs = [peek(context, graph) for graph in work.graphs]
        most = next((context.length(graph) for graph in graphs if graph.size is not None or graph.name), ONE)
    if most is ONE:
        return None
    return mixed([(0.0, ONE), (1.0, most)])


@lru_cache(maxsize=128)
def searched_graph(node: Function) -> ast.expr | None:
    """The graph that a recursive function searches: it calls itself for the neighbours that it has not met yet."""
    if isinstance(node, ast.Lambda) or not is_cached(node):
        return None
    calls = [inner for inner in nodes_of(node) if isinstance(inner, ast.Call) and calls_itself(inner, node)]
    passed = {argument.id for call in calls for argument in call.args if isinstance(argument, ast.Name)}
    for inner in nodes_of(node):
        if isinstance(inner, ast.For) and not passed.isdisjoint(names_in(inner.target)):
            graph = _neighbours(inner.iter)
            if graph is not None:
                return graph
    return None


def _is_unchanged(context: Context, node: LoopNode, expression: ast.expr) -> bool:
    """Return whether a loop does not change what an expression reads."""
    assigned = context.block(node).assigned
    return not any(isinstance(inner, ast.Name) and inner.id in assigned for inner in walk(expression))


def _is_field(test: ast.expr) -> bool:
    """Return whether a condition is that of a field alone: ``grid[y][x]`` or ``not seen[node]``."""
    operand = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return isinstance(operand, ast.Subscript)


def _tested(test: ast.expr) -> str | None:
    """The name of ``while items``, ``while len(items) > 0`` or ``while items != []``."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Gt, ast.NotEq, ast.GtE)):
        test = test.left
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "len" and len(test.args) == 1:
        test = test.args[0]
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and isinstance(test.operand, ast.Call):
        # `while not queue.empty()`
        function = test.operand.func
        if isinstance(function, ast.Attribute) and function.attr == "empty":
            test = function.value
    return test.id if isinstance(test, ast.Name) else None


def _walk(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from walk(statement)


def _upper_bounds(test: ast.Compare) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a comparison bounds and by what: ``0 <= x < n`` and ``n > x``; constants bound nothing."""
    left = test.left
    for op, right in zip(test.ops, test.comparators, strict=True):
        if isinstance(op, (ast.Lt, ast.LtE)) and not isinstance(left, ast.Constant):
            yield left, right
        elif isinstance(op, (ast.Gt, ast.GtE)) and not isinstance(right, ast.Constant):
            yield right, left
        left = right


def _neighbours(source: ast.expr) -> ast.expr | None:
    """The graph in ``graph[node]``, ``graph[node].items()``, ``graph.get(node, [])`` and ``graph.neighbors(node)``."""
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        holder, method = source.func.value, source.func.attr
        if method in ("get", "neighbors", "neighbours", "successors", "adjacent"):
            return holder if isinstance(holder, (ast.Name, ast.Attribute)) else None
        if method not in ("items", "keys", "values"):
            return None
        source = holder
    if isinstance(source, ast.Subscript) and isinstance(source.value, (ast.Name, ast.Attribute)):
        return source.value
    return None
