"""The conditions on which a loop goes on, and how many iterations they allow."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager

from ..domain.context import Context
from ..domain.dispatch import peek
from ..domain.quantities import ZERO, Quantity, larger
from ..domain.syntax import BlockSyntax, LoopNode, leaving, place_of, walk
from ..domain.values import SIZED, number_of
from .solver import NEVER, Gap, iterations, of_all
from .transitions import Counter, Transitions, transitions
from .walks import iterations_of_walk

_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def iterations_of(context: Context, node: ast.While) -> Quantity | None:
    """The iterations of a ``while`` loop by its condition; None where that does not bound them."""
    tests = list(parts(node.test))
    if not any(_may_bound(context, node, test) for test in tests):
        return None
    moves = transitions(context, node)
    return of_all([_of_test(context, node, test, moves) for test in tests]) if moves is not None else None


def iterations_until_exit(context: Context, node: LoopNode, counter: Counter | None = None) -> Quantity | None:
    """The iterations of a loop until a comparison in its body, whose branch leaves it, first holds."""
    tests = [test for test in exit_conditions(node.body) if _may_bound(context, node, test)]
    moves = transitions(context, node, counter) if tests else None
    counts = [_of_test(context, node, test, moves) for test in tests] if moves is not None else []
    return next((count for count in counts if count is not None), None)


def exit_conditions(body: Sequence[ast.stmt]) -> Iterator[ast.Compare]:
    """The comparisons on which a loop goes on beyond a statement of its body that leaves it."""
    for statement in body:
        if isinstance(statement, ast.If) and leaving(statement.body) in ("break", "return"):
            negated = _negated(comparison(statement.test))
            if negated is not None:
                yield negated


def comparison(test: ast.expr) -> ast.Compare | None:
    """A condition as a comparison of two, also one that ``not`` turns round."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _negated(comparison(test.operand))
    return test if isinstance(test, ast.Compare) and len(test.ops) == 1 else None


def negation(test: ast.expr) -> ast.expr:
    """The condition that holds where another fails."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), [negation(value) for value in values])
        case ast.Compare(ops=[_, _, *_]):
            return ast.BoolOp(ast.Or(), [negation(part) for part in parts(test)])
    return _negated(comparison(test)) or ast.UnaryOp(ast.Not(), test)


def ends_inside(block: BlockSyntax) -> bool:
    """Return whether a loop without end may be left."""
    return block.breaks or block.returns or block.raises or block.leaves_program


def parts(test: ast.expr) -> Iterator[ast.expr]:
    """The conditions that all hold where a condition does."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from parts(value)
        case ast.Compare(left=left, ops=ops, comparators=comparators) if len(ops) > 1:
            for op, right in zip(ops, comparators, strict=True):
                yield ast.Compare(left, [op], [right])
                left = right
        case _:
            yield test


def _may_bound(context: Context, node: LoopNode, test: ast.expr) -> bool:
    """Return whether a condition compares, or asks for, something that the loop changes."""
    assigned = context.block(node).assigned
    if not any(isinstance(part, (ast.Name, ast.Attribute)) and place_of(part) in assigned for part in walk(test)):
        return False
    match test:
        case ast.Name() | ast.Attribute() | ast.Call(func=ast.Name(id="len")):
            return True
        case ast.BoolOp(values=values):
            return all(_may_bound(context, node, value) for value in values)
    compared = comparison(test)
    return compared is not None and type(compared.ops[0]) in _NEGATED


def _of_test(context: Context, node: LoopNode, test: ast.expr, moves: Transitions) -> Quantity | None:
    """The iterations that one condition allows."""
    if isinstance(test, ast.BoolOp):
        # The loop goes on while any of the parts holds.
        counts = [of_all([_of_test(context, node, part, moves) for part in parts(value)]) for value in test.values]
        most: Quantity | None = ZERO
        for count in counts:
            most = larger(most, count) if most is not None and count is not None else None
        return most
    walked = iterations_of_walk(node, test, moves)
    if walked is not None:
        return walked
    with _in_symbols(context, moves):
        gap = gap_of(context, test)
    grown = context.block(node).grown
    if gap is None or _is_refilled(gap, {moves.symbols[name] for name in moves.symbols if name in grown}):
        return None
    count = iterations(gap, moves.after, moves.starts)
    # What adds to a container or takes from it may know it by another name.
    is_number = all(
        moves.names[name].is_number for name, symbol in moves.symbols.items() if symbol in gap.distance.names
    )
    return count if count != NEVER or is_number else None


@contextmanager
def _in_symbols(context: Context, moves: Transitions) -> Iterator[None]:
    """Evaluate with the names that a loop changes in symbols."""
    frame = context.frame
    names = frame.names
    frame.names = {**names, **moves.names}
    try:
        yield
    finally:
        frame.names = names


def gap_of(context: Context, test: ast.expr) -> Gap | None:
    """How far a condition is from failing; None where no number says so."""
    compared = comparison(test)
    if compared is None:
        value = peek(context, test)
        if value.kind in SIZED and value.size is not None:
            return Gap(value.size)
        number = number_of(value)
        return Gap(number, "at other than zero") if number is not None else None
    left, right = (number_of(peek(context, side)) for side in (compared.left, compared.comparators[0]))
    if left is None or right is None:
        return None
    match compared.ops[0]:
        case ast.Lt():
            return Gap(right - left)
        case ast.LtE():
            return Gap(right - left, "below zero")
        case ast.Gt():
            return Gap(left - right)
        case ast.GtE():
            return Gap(left - right, "below zero")
        case ast.NotEq():
            return Gap(left - right, "at other than zero")
    return None


def _is_refilled(gap: Gap, grown: Set[str]) -> bool:
    """Return whether a loop puts items into the container that it empties: it is a list of work."""
    return any(
        amount[1] > 0 and any(name in grown for (name, _), _ in monomial)
        for monomial, amount in gap.distance.terms.items()
    )


def _negated(compared: ast.Compare | None) -> ast.Compare | None:
    negated = _NEGATED.get(type(compared.ops[0])) if compared is not None else None
    return ast.Compare(compared.left, [negated()], compared.comparators) if compared and negated else None
