"""``while`` loops: counted, read trip by trip, or without end."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from rlm_core.types import CauseKind

from ..bounds.amortised import paid_by_outer_loop
from ..bounds.conditions import ends_inside, iterations_of, iterations_until_exit
from ..bounds.solver import NEVER
from ..bounds.traversals import iterations_inside, iterations_of_traversal
from ..bounds.walks import iterations_of_cuts, iterations_of_endless_walk
from ..bounds.worklists import iterations_of_search
from ..domain.context import Context
from ..domain.dispatch import evaluate, execute, peek
from ..domain.frames import Frame, Loop
from ..domain.meter import ALWAYS, Meter
from ..domain.quantities import ONE, constant
from ..domain.syntax import BlockSyntax, walk
from ..library.unit_costs import primitive
from .loops import FEWEST_REPORTED, read_loop
from .places import attributes_as_names

_CONCRETE_TRIPS = 400
_MOST_CONCRETE_NODES = 80
_KEPT_SHARE = 6  # of the budget that is left
_UNCHANGING = frozenset({"int", "float", "bool", "str", "bytes", "none"})


def read_while(context: Context, node: ast.While) -> None:
    """Read a ``while`` loop."""
    with attributes_as_names(context, node):
        _read_while(context, node)


def _read_while(context: Context, node: ast.While) -> None:
    loop = Loop(node=node)
    truth = peek(context, node.test).truth
    if truth is False:
        evaluate(context, node.test)
        execute(context, node.orelse)
        return
    if isinstance(node.test, ast.Constant) and truth is True:
        _read_forever(context, node, loop)
        return
    paid = iterations_inside(context, node) or paid_by_outer_loop(context, node)
    if paid is not None:
        read_loop(context, node, loop, paid, None)
        return
    trips = iterations_of(context, node)
    endless = trips == NEVER and not ends_inside(context.block(node))
    if trips is None or (trips.exact is None and trips.constant is not None):
        if _never_changes(node, context.block(node), context.frame):
            if truth is None:
                _read_maybe_endless(context, node, loop)
                return
            endless = True
        elif truth is True and _read_each_iteration(context, node, loop):
            return
    if trips is None and not endless:
        trips = loop.items = iterations_of_search(context, node)
        trips = iterations_of_cuts(context, node) if trips is None else trips
        trips = iterations_of_traversal(context, node) if trips is None else trips
    if trips is None or trips == NEVER:
        trips = ONE if endless else context.trips_of(node)
    read_loop(context, node, loop, trips, None, endless=endless)


def _read_maybe_endless(context: Context, node: ast.While, loop: Loop) -> None:
    """A loop whose condition never changes: it runs for ever or not at all."""
    with context.region() as meter:
        read_loop(context, node, loop, ONE, None, endless=True)
    meter.reach = ALWAYS
    context.meter.branch([((0.0, 0.5, 1.0), meter), ((0.0, 0.5, 1.0), Meter())])


def _read_forever(context: Context, node: ast.While, loop: Loop) -> None:
    """``while True``: ends only by an exit inside."""
    block = context.block(node)
    estimated = iterations_until_exit(context, node)
    if estimated is not None and estimated != NEVER:
        # A number of iterations that is known exactly is not that of what follows the exit, which runs once less.
        exits = sum(isinstance(part, (ast.Break, ast.Return)) for part in walk(node))
        loop.counts_exit = exits == 1 and estimated.constant is None
        read_loop(context, node, loop, estimated, None)
        return
    leaves = block.breaks or block.returns or block.raises or block.leaves_program or _calls_next(node)
    has_yield = block.yields
    # What leaves by an exception is caught outside the loop.
    caught = context.frame.handlers > 0 and any(isinstance(inner, (ast.Call, ast.Subscript)) for inner in walk(node))
    if has_yield and not leaves and not caught:
        # A generator without end: what it costs depends on how many items are taken.
        context.frame.yields_endlessly = True
        read_loop(context, node, loop, ONE, None)
        return
    endless = not leaves and not has_yield and not caught
    trips = ONE if endless else iterations_of_endless_walk(context, node) or context.trips_of(node)
    if leaves and not block.breaks and not block.continues and _is_straight(node.body):
        trips = ONE
    read_loop(context, node, loop, trips, None, endless=endless)
    if not endless and not block.breaks and not caught:
        context.stop()


def _read_each_iteration(context: Context, node: ast.While, loop: Loop) -> bool:
    """Read a short loop over known numbers trip by trip; False where a condition is not known."""
    frame, block = context.frame, context.block(node)
    if block.nested_loops or block.yields or block.nodes > _MOST_CONCRETE_NODES:
        return False
    names, held, results = dict(frame.names), frame.held, len(frame.results)
    allowed, context.footprint.spare = context.left // _KEPT_SHARE, -1
    frame.loops.append(loop)
    ends = False
    try:
        with context.region() as total:
            trips = 0
            while trips < _CONCRETE_TRIPS and context.left > allowed:
                truth = evaluate(context, node.test).truth
                if truth is None:
                    break
                if not truth:
                    ends = True
                    break
                trips += 1
                with context.region() as body:
                    execute(context, node.body)
                    body.spend(primitive("loop.while")) if body.reach == ALWAYS else None
                if body.reach != ALWAYS and (body.reach[2] > 0 or (loop.exits and block.raises)):
                    break
                left = body.reach[2] <= 0 and loop.exits
                body.reach = ALWAYS
                total.add(body)
                if left:
                    ends = True
                    break
    finally:
        frame.loops.pop()
        if not ends:
            frame.restore(names, held)
            del frame.results[results:]
            loop.exits = False
    if not ends:
        return False
    context.meter.add(total)
    if trips >= FEWEST_REPORTED:
        line = node.lineno - 1 if not frame.depth else frame.line
        context.meter.cause(CauseKind.LOOP, line, node.test, total.total, constant(trips))
    if loop.exits and len(frame.results) > results:
        context.stop()
    elif not loop.exits:
        execute(context, node.orelse)
    return True


def _calls_next(node: ast.While) -> bool:
    """Return whether a loop asks an iterator for its next item, which raises at its end."""
    return any(
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "next"
        for inner in walk(node)
    )


def _is_straight(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Break))


def _never_changes(node: ast.While, block: BlockSyntax, frame: Frame) -> bool:
    """Return whether a condition can only stay as it is: plain names and numbers that the body does not assign."""
    names = set()
    for inner in walk(node.test):
        if isinstance(inner, (ast.Call, ast.Attribute, ast.Subscript, ast.Await, ast.NamedExpr)):
            return False
        if isinstance(inner, ast.Name):
            names.add(inner.id)
    if block.breaks or block.returns or block.raises or block.yields or block.leaves_program or frame.handlers:
        return False
    values = {name: frame.names.get(name) for name in names}
    if any(value is None for value in values.values()) or names & block.assigned.keys():
        return False
    uses = _uses(frame.node if frame.node is not None else node)
    if uses is None:
        return False
    # What is not a number or a text may be an object that its methods change, here or under another name.
    objects = {name for name, value in values.items() if value is not None and value.kind not in _UNCHANGING}
    inside = Counter(inner.id for inner in walk(node.test) if isinstance(inner, ast.Name))
    return all(uses[name] == inside[name] for name in objects)


@lru_cache(maxsize=128)
def _uses(function: ast.AST) -> Counter[str] | None:
    """How often a function mentions each name; None where it binds names of the functions around."""
    names: Counter[str] = Counter()
    for inner in walk(function):
        if isinstance(inner, (ast.Nonlocal, ast.Global)):
            return None
        if isinstance(inner, ast.Name):
            names[inner.id] += 1
    return names
