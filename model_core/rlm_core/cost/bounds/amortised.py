"""Inner loops that undo what the loop around them did: a stack that is popped, a window whose start follows its end.

One run of such a loop can be long, but all its runs together make no more trips than the loop around them adds items to
the container, or has steps for the counter to follow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..domain.context import Context
from ..domain.dispatch import peek
from ..domain.quantities import Quantity, constant
from ..domain.syntax import BlockSyntax, LoopNode, own_update, read_update, walk
from ..domain.values import UNKNOWN, number_of
from .conditions import comparison, parts

_TAKING = frozenset({"pop", "popleft", "popitem", "remove", "discard"})
_PUTTING = frozenset({"append", "appendleft", "add", "insert"})
_PUTTING_MANY = frozenset({"extend", "extendleft", "update"})
_LIKELY_SHARE = 0.8  # of what may be undone: some items stay to the end
_COMPOUND = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Amortised:
    """The trips of a loop for each trip of the loop around it, on average; ``counter`` is what moves in both."""

    trips: Quantity
    counter: str = ""


def amortised_trips(inner: ast.While, outer: LoopNode) -> Amortised | None:
    """Return what bounds all runs of ``inner`` in ``outer`` together; None where nothing does."""
    names = {part.id for part in walk(inner.test) if isinstance(part, ast.Name)}
    around = list(_around(inner, outer))
    block = BlockSyntax(inner.body)
    for container in map(_taken_from, inner.body):
        if container in names and container not in block.grown:
            added = _added(around, container)
            if added:
                return Amortised(constant(0.0, added, _LIKELY_SHARE * added))
    for name in sorted(names | _indices(inner)):
        update = block.updates.get(name)
        moves = update is not None and update[0] in "+-" and block.stores.get(name) == 1
        if moves and any(own_update(statement, name) for statement in inner.body):
            assert update is not None
            if all(_moves_on(node, name, update[0]) for node in around):
                return Amortised(constant(0.0, 2.0, _LIKELY_SHARE), name)
    return None


def _around(inner: ast.While, outer: LoopNode) -> Iterator[ast.AST]:
    """The nodes of a loop outside an inner loop."""
    stack: list[ast.AST] = [*outer.body, *([] if isinstance(outer, ast.While) else [outer.target])]
    while stack:
        node = stack.pop()
        if node is not inner:
            yield node
            if isinstance(node, ast.AugAssign):
                stack.append(node.value)  # what it binds is in the statement
            elif not isinstance(node, _FUNCTIONS):
                stack += ast.iter_child_nodes(node)


def _taken_from(statement: ast.stmt) -> str:
    """The name of the container that a statement takes an item from, else an empty one."""
    for node in () if isinstance(statement, _COMPOUND) else walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if attribute in _TAKING:
                return name
            case _:
                pass
    return ""


def _added(nodes: Iterable[ast.AST], container: str) -> int:
    """How many items one trip adds to a container; 0 where that is not known, or the container is a new one."""
    count = 0
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if name == container:
                if attribute in _PUTTING_MANY:
                    return 0
                count += attribute in _PUTTING
            case ast.Name(id=name, ctx=ast.Store()) | ast.AugAssign(target=ast.Name(id=name)) if name == container:
                return 0
            case ast.For() | ast.AsyncFor() | ast.While() if _added(
                (part for statement in node.body for part in walk(statement)), container
            ):
                return 0
            case _:
                pass
    return count


def _indices(inner: ast.While) -> set[str]:
    """Names that stand for a place in a sequence."""
    return {
        node.slice.id for node in walk(inner) if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name)
    }


def _moves_on(node: ast.AST, name: str, sign: str) -> bool:
    """Return whether a node leaves a counter alone or moves it in the same direction."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
        update = read_update(node.op, node.value)
        return update is not None and update[0] == sign
    return not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))


def paid_by_outer_loop(context: Context, node: ast.While) -> Quantity | None:
    """The trips of a loop that undoes what the loop around it has done, on average."""
    around = context.frame.loops[-1] if context.frame.loops else None
    paid = amortised_trips(node, around.node) if around is not None and around.node is not None else None
    if around is None or paid is None:
        return None
    farthest, outer = _farthest(context, node, paid.counter), around.trips.constant
    if farthest is None or outer is None or outer[1] <= 0:
        return paid.trips
    return constant(0.0, farthest / max(outer[0], 1.0), farthest / outer[1])


def resumed_trips(context: Context, node: ast.For | ast.AsyncFor, whole: Quantity) -> Quantity | None:
    """The trips, on average, of a loop over a range that goes on where its last run in the loop around it ended.

    The range starts at a name that the loop around binds to nothing but the counter: ``for j in range(right, 0, -1)``
    and ``right = j``. All runs together make no more trips than one that is not left, and one more for each run.
    """
    around = context.frame.loops[-1] if context.frame.loops else None
    match node:
        case ast.For(
            target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=[ast.Name(id=start), _, *_])
        ) if around is not None and around.node is not None:
            stored = [
                part
                for statement in around.node.body
                for part in walk(statement)
                if isinstance(part, ast.Name) and part.id == start and isinstance(part.ctx, ast.Store)
            ]
            resumed = [
                part
                for statement in around.node.body
                for part in walk(statement)
                if isinstance(part, ast.Assign)
                and isinstance(part.value, ast.Name)
                and part.value.id == counter
                and [target for target in part.targets if isinstance(target, ast.Name) and target.id == start]
            ]
            if not stored or len(stored) != len(resumed):
                return None
            outer = around.trips.constant
            if whole.constant is not None and outer is not None and outer[1] > 0:
                low, likely, high = whole.constant
                return constant(min(low, 1.0), high / max(outer[0], 1.0) + 1, likely / outer[1] + 1)
            return constant(0.0, 2.0, 2.0) if whole.terms.keys() - {()} == around.trips.terms.keys() - {()} else None
    return None


def _farthest(context: Context, node: ast.While, counter: str) -> float | None:
    """How far a counter may move until the condition of a loop fails, however often the loop runs."""
    for test in parts(node.test):
        compared = comparison(test)
        sides = [] if compared is None else [compared.left, compared.comparators[0]]
        for side, other in zip(sides, reversed(sides), strict=True):
            if not (isinstance(side, ast.Name) and side.id == counter):
                continue
            start, end = number_of(context.frame.lookup(counter) or UNKNOWN), number_of(peek(context, other))
            distance = (end - start).constant if start is not None and end is not None else None
            if distance is not None:
                return max(abs(distance[0]), abs(distance[2]))
    return None
