"""Exits of loops: the iterations after which a statement inside a loop leaves it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..domain.context import Context
from ..domain.dispatch import peek
from ..domain.frames import Loop, LoopVariable
from ..domain.meter import ALWAYS
from ..domain.quantities import ONE, ZERO, Quantity, Range, constant, mixed
from ..domain.syntax import BlockSyntax, LoopNode, leaving, own_update, walk
from ..domain.values import number_of
from .counters import FLIPPED, NEGATED, NEVER, Counter, first_square

_TRIED_TRIPS = 24


def until_early_exit(context: Context, trips: Quantity, loop: Loop, going: Range, node: LoopNode) -> Quantity:
    """The number of iterations, in view of exits inside the body."""
    if going == ALWAYS or not loop.exits or loop.exit is not None:
        return trips
    if going[2] <= 0:
        return mixed([(1.0, ONE)]) if trips.constant is None or trips.constant[1] >= 1 else trips
    leaves = max(1 - going[1], 1e-3)
    whole = trips.constant
    only_errors = not (context.block(node).breaks or context.block(node).returns)
    if only_errors:
        return mixed([(0.0, ONE), (1.0, trips)])
    if whole is not None:
        low, likely, high = whole
        if leaves < 0.2:
            expected = min((1 - (1 - leaves) ** min(likely, 1e6)) / leaves, likely) if leaves < 0.06 else likely / 2
        else:
            expected = likely / 2
        return constant(min(1.0, low), high, max(expected, min(likely, 1.0)))
    return mixed([(0.5, ZERO), (0.5, trips)])


def until_exit(
    context: Context, node: LoopNode, loop: Loop, trips: Quantity, exit_: tuple[ast.If, Range] | None
) -> Quantity:
    """The trips of a loop that a statement leaves after a known number of trips, if not at its end."""
    if exit_ is None:
        loop.may_leave = _may_leave(context.block(node))
        return trips
    statement, before = exit_
    whole, first = trips.constant, before[0] + 1
    variable = loop.variable
    if before == NEVER or (whole is not None and whole[2] <= before[0]):
        loop.exit = statement
        return trips
    if before[0] != before[2] or whole is None or whole[0] < before[2]:
        # It may end before.
        loop.may_leave = True
        last = before[2] + 1
        if whole is None:
            return constant(0.0, last, first)
        return constant(min(whole[0], first), min(whole[2], last), min(whole[1], first))
    loop.exit, loop.exit_share = statement, 1 / first
    if variable is not None:
        variable.count = min(variable.count, first)
    return constant(first)


def exit_of_for(
    context: Context, node: ast.For | ast.AsyncFor, variable: LoopVariable | None
) -> tuple[ast.If, Range] | None:
    """The only exit of a loop over known numbers, and the number of trips before it leaves."""
    if variable is None or variable.step == 0 or context.block(node).stores.get(variable.name) != 1:
        return None
    position = _only_exit(context, node)
    if position is None:
        return None
    statement = node.body[position]
    assert isinstance(statement, ast.If)
    counter = Counter(variable.start, "+", variable.step)
    before = first_iteration(context, node, statement.test, {variable.name: (counter,)})
    if before is None and is_unchanged(context, node, statement.test, but=variable.name):
        before = _tried(context, statement.test, variable)
    return None if before is None else (statement, before)


def exit_of_while(context: Context, node: ast.While) -> tuple[ast.If, Range] | None:
    """The only exit inside a loop, and the number of trips before it leaves."""
    position = _only_exit(context, node)
    if position is None:
        return None
    statement = node.body[position]
    assert isinstance(statement, ast.If)
    counters: dict[str, Sequence[Counter]] = {}
    for name in names_in(statement.test):
        moving = counter_of(context, node, name)
        if moving is not None:
            starts, place = moving
            counters[name] = [start.moved() for start in starts] if place < position else starts
    before = first_iteration(context, node, statement.test, counters) if counters else None
    return None if before is None else (statement, before)


def _tried(context: Context, test: ast.expr, variable: LoopVariable) -> Range | None:
    """The trips before a condition holds, found by trying the first few."""
    names = context.frame.names
    context.frame.names = dict(names)
    try:
        for k in range(int(min(variable.count, _TRIED_TRIPS))):
            context.frame.names[variable.name] = variable.at(k)
            truth = peek(context, test).truth
            if truth is None:
                return None
            if truth:
                return float(k), float(k), float(k)
    finally:
        context.frame.names = names
    return NEVER if variable.count <= _TRIED_TRIPS else None


def _only_exit(context: Context, node: LoopNode) -> int | None:
    """The place in a loop's body of the only statement that may leave it: ``if ...: break`` or ``return``."""
    block = context.block(node)
    if not (block.breaks or block.returns) or block.raises or block.leaves_program:
        return None
    places = [
        place
        for place, statement in enumerate(node.body)
        if isinstance(statement, ast.If) and leaving(statement.body) in ("break", "return") and not statement.orelse
    ]
    if len(places) != 1:
        return None
    statement = node.body[places[0]]
    assert isinstance(statement, ast.If)
    others = BlockSyntax([*node.body[: places[0]], *statement.body[:-1], *node.body[places[0] + 1 :]])
    before = BlockSyntax([*node.body[: places[0]], *statement.body[:-1]]) if block.continues else None
    if others.breaks or others.returns or (before is not None and before.continues):
        return None
    return places[0]


def first_iteration(
    context: Context, node: LoopNode, test: ast.expr, counters: Mapping[str, Sequence[Counter]]
) -> Range | None:
    """The number of trips before a comparison of a counter with a number that the loop does not change holds."""
    compared = comparison(test)
    if compared is None:
        return None
    left, right, op = compared.left, compared.comparators[0], type(compared.ops[0])
    for side, other, turned in ((left, right, op), (right, left, FLIPPED.get(op))):
        root = squared(side)
        counter = counters.get(root or (side.id if isinstance(side, ast.Name) else ""))
        if counter is None or turned is None or not is_unchanged(context, node, other):
            continue
        limit = number_of(peek(context, other))
        bounds = limit.constant if limit is not None else None
        if bounds is None:
            return None
        firsts = [
            first_square(start, turned, bound) if root else start.first(turned, bound)
            for start, bound in _combined(counter, bounds)
        ]
        return _spanned(firsts)
    return None


def is_unchanged(context: Context, node: LoopNode, expression: ast.expr, but: str = "") -> bool:
    """Return whether a loop does not change what an expression reads."""
    assigned = context.block(node).assigned
    return not any(
        isinstance(inner, ast.Name) and inner.id in assigned and inner.id != but for inner in walk(expression)
    )


def counter_of(context: Context, node: ast.While, name: str) -> tuple[tuple[Counter, ...], int] | None:
    """The counter that each trip of a loop moves once by a fixed amount, and the place of that statement.

    Where its start is a range: for the likely, the least and the largest start.
    """
    block, value = context.block(node), context.frame.lookup(name)
    update = block.updates.get(name)
    starts = value.number.constant if value is not None and value.number is not None else None
    if update is None or starts is None or block.stores.get(name) != 1 or not is_unchanged(context, node, update[1]):
        return None
    place = next((place for place, statement in enumerate(node.body) if own_update(statement, name)), None)
    if place is None or (block.continues and BlockSyntax(node.body[:place]).continues):
        return None
    amount = number_of(peek(context, update[1]))
    step = amount.exact if amount is not None else None
    if step is None:
        return None
    ordered = dict.fromkeys((starts[1], starts[0], starts[2]))
    return tuple(Counter(start, update[0], step) for start in ordered), place


def _may_leave(block: BlockSyntax) -> bool:
    """Return whether a statement in a loop may end it before its time; errors are not expected."""
    return block.breaks or block.returns


def comparison(test: ast.expr) -> ast.Compare | None:
    """A condition as a comparison of two: ``while n`` compares a number with 0."""
    if isinstance(test, ast.Compare):
        return test if len(test.ops) == 1 else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = comparison(test.operand)
        negated = None if inner is None else NEGATED.get(type(inner.ops[0]))
        return None if inner is None or negated is None else ast.Compare(inner.left, [negated()], inner.comparators)
    return ast.Compare(test, [ast.NotEq()], [ast.Constant(0)]) if isinstance(test, ast.Name) else None


def names_in(node: ast.expr) -> dict[str, None]:
    """Return the names in an expression, each once, in order."""
    return {inner.id: None for inner in walk(node) if isinstance(inner, ast.Name)}


def _combined(counter: Sequence[Counter], bounds: Range) -> list[tuple[Counter, float]]:
    """The ends of ranges of starts and bounds, the likely ones first."""
    ends = [bounds[1]] if bounds[0] == bounds[2] else [bounds[1], bounds[0], bounds[2]]
    return [(start, bound) for start in counter for bound in ends]


def _spanned(firsts: Sequence[Range | None]) -> Range | None:
    """From the least to the most of some ranges; None where one is not known or some are infinite."""
    known = [first for first in firsts if first is not None]
    if len(known) < len(firsts) or len({first == NEVER for first in known}) != 1:
        return None
    return min(first[0] for first in known), known[0][1], max(first[2] for first in known)


def squared(side: ast.expr) -> str | None:
    """The name of ``i * i`` or ``i ** 2``."""
    if not (isinstance(side, ast.BinOp) and isinstance(side.left, ast.Name)):
        return None
    if isinstance(side.op, ast.Mult) and isinstance(side.right, ast.Name) and side.right.id == side.left.id:
        return side.left.id
    is_square = isinstance(side.op, ast.Pow) and isinstance(side.right, ast.Constant) and side.right.value == 2
    return side.left.id if is_square else None


def ends_inside(block: BlockSyntax) -> bool:
    """Return whether a loop without end may be left."""
    return block.breaks or block.returns or block.raises or block.leaves_program
