"""The ends of loops: comparisons of counters with numbers, and exits inside the body."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..domain.context import Context
from ..domain.dispatch import peek
from ..domain.frames import Loop
from ..domain.meter import ALWAYS
from ..domain.quantities import ONE, ZERO, Quantity, Range, constant, mixed
from ..domain.syntax import BlockSyntax, LoopNode, own_update, walk
from ..domain.values import number_of
from .counters import FLIPPED, NEGATED, NEVER, Counter


def until_early_exit(context: Context, trips: Quantity, loop: Loop, going: Range, node: LoopNode) -> Quantity:
    """The number of iterations, in view of exits inside the body."""
    if going == ALWAYS or not loop.exits:
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


def first_iteration(
    context: Context, node: LoopNode, test: ast.expr, counters: Mapping[str, Sequence[Counter]]
) -> Range | None:
    """The number of trips before a comparison of a counter with a number that the loop does not change holds."""
    compared = comparison(test)
    if compared is None:
        return None
    left, right, op = compared.left, compared.comparators[0], type(compared.ops[0])
    for side, other, turned in ((left, right, op), (right, left, FLIPPED.get(op))):
        counter = counters.get(side.id if isinstance(side, ast.Name) else "")
        if counter is None or turned is None or not is_unchanged(context, node, other):
            continue
        limit = number_of(peek(context, other))
        bounds = limit.constant if limit is not None else None
        if bounds is None:
            return None
        firsts = [start.first(turned, bound) for start, bound in _combined(counter, bounds)]
        return _spanned(firsts)
    return None


def is_unchanged(context: Context, node: LoopNode, expression: ast.expr) -> bool:
    """Return whether a loop does not change what an expression reads."""
    assigned = context.block(node).assigned
    return not any(isinstance(inner, ast.Name) and inner.id in assigned for inner in walk(expression))


def counter_of(context: Context, node: ast.While, name: str) -> tuple[Counter, ...] | None:
    """The counter that each trip of a loop moves once by a fixed amount.

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
    return tuple(Counter(start, update[0], step) for start in ordered)


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
