"""The iterations of ``while`` loops: exact where conditions compare counters with numbers, estimated otherwise."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence

from ..domain.context import Context
from ..domain.dispatch import peek
from ..domain.quantities import ONE, ZERO, Quantity, Range, ceiling, constant, mixed
from ..domain.syntax import SHRINKING, leaving, walk
from ..domain.values import UNKNOWN, number_of
from .counters import NEGATED, NEVER, Counter
from .exits import comparison, counter_of, first_iteration, is_unchanged, names_in, squared
from .geometric import scaling
from .worklists import worklist


def iterations_until_break(context: Context, node: ast.While) -> Quantity | None:
    """The iterations of ``while True`` with a counter that a ``break`` compares with a number."""
    for statement in node.body:
        if (
            isinstance(statement, ast.If)
            and leaving(statement.body) in ("break", "return")
            and isinstance(statement.test, ast.Compare)
            and len(statement.test.ops) == 1
        ):
            negated = NEGATED.get(type(statement.test.ops[0]))
            if negated is None:
                continue
            test = ast.Compare(statement.test.left, [negated()], statement.test.comparators)
            count = _estimated_iterations_of(context, node, test)
            if count is not None:
                return count
    return None


def exact_iterations(context: Context, node: ast.While) -> Range | None:
    """The trips of a loop whose condition compares counters with numbers, by arithmetic."""
    ends: Range = NEVER
    for trips in _exact_iterations_of_each(context, node):
        if trips is None:
            return None
        ends = (min(ends[0], trips[0]), min(ends[1], trips[1]), min(ends[2], trips[2]))
    return ends


def most_iterations(context: Context, node: ast.While) -> float:
    """The most trips that a condition on a counter allows, whatever the other conditions say."""
    return min((trips[2] for trips in _exact_iterations_of_each(context, node) if trips is not None), default=math.inf)


def _exact_iterations_of_each(context: Context, node: ast.While) -> Iterator[Range | None]:
    """The trips after which each part of a condition fails; None where that is not arithmetic."""
    for test in conditions(node):
        compared = comparison(test)
        if compared is None or type(compared.ops[0]) not in NEGATED:
            yield None
            continue
        counters: dict[str, Sequence[Counter]] = {}
        for name in names_in(compared):
            counter = counter_of(context, node, name)
            if counter is not None:
                counters[name] = counter
        negated = ast.Compare(compared.left, [NEGATED[type(compared.ops[0])]()], compared.comparators)
        yield first_iteration(context, node, negated, counters) if counters else None


def estimated_iterations(context: Context, node: ast.While) -> Quantity | None:
    """An estimate of the iterations of a loop whose condition compares a counter that iterations move or scale."""
    tests = conditions(node)
    counts = []
    for test in tests:
        compared = comparison(test)
        drained = _drained(context, node, test.id) if isinstance(test, ast.Name) else None
        if drained is None and isinstance(test, ast.Name) and scaling(node.body, test.id) == "shrinks":
            number = number_of(context.frame.lookup(test.id) or UNKNOWN)
            drained = number.log() if number is not None else None
        if drained is not None:
            counts.append(drained)
        elif compared is not None:
            count = _estimated_iterations_of(context, node, compared)
            if count is not None:
                counts.append(count)
    if not counts:
        return None
    if len(counts) < len(tests):
        return mixed([(0.0, ZERO), (0.5, ONE), (0.5, counts[0])])
    return counts[0]


def _estimated_iterations_of(context: Context, node: ast.While, test: ast.Compare) -> Quantity | None:
    left, right = test.left, test.comparators[0]
    filled = _filled_up(context, node, left, right)
    if filled is not None:
        return filled
    changed = context.block(node).updates
    for side, other, flipped in ((left, right, False), (right, left, True)):
        if not (isinstance(side, ast.Name) and side.id in changed):
            name = squared(side)
            if name is not None and name in changed:
                # `while i * i <= n`: up to the square root.
                bound = number_of(peek(context, other))
                update = changed[name]
                if bound is not None and update is not None and update[0] == "+":
                    root = bound.power(0.5)
                    known = root.constant
                    # From a start below zero it is as many steps again.
                    return root if known is None else constant(0.0, 2 * known[2] + 2, known[1])
            continue
        update = changed[side.id]
        bound = number_of(peek(context, other))
        start = number_of(context.frame.lookup(side.id) or UNKNOWN)
        if isinstance(other, ast.Name) and other.id in changed and changed[other.id] is None and update is None:
            # `while low < high` that takes the middle halves the distance.
            distance = (bound - start) if bound is not None and start is not None and not flipped else None
            if distance is not None and context.block(node).takes_middle:
                return _at_least_none(distance.log())
            return None
        if (how := scaling(node.body, side.id)) is not None and (update is None or update[0] in "+-"):
            largest = start if how == "shrinks" else bound
            return largest.log() if largest is not None else None
        if update is None or start is None or bound is None:
            return None
        if isinstance(other, ast.Name) and other.id in changed and update[0] == "+":
            # Two counters that meet.
            return (bound - start) if not flipped else (start - bound)
        sign, amount = update
        step = number_of(peek(context, amount))
        value = step.constant[1] if step is not None and step.constant is not None else None
        if value is None or value <= 0:
            return None
        return _count_steps(sign, value, start, bound, closed=isinstance(test.ops[0], (ast.LtE, ast.GtE)))
    return None


def _drained(context: Context, node: ast.While, name: str) -> Quantity | None:
    """The iterations of ``while items`` where each removes items and none adds any."""
    value = context.frame.lookup(name)
    if value is None or value.size is None or not value.size.terms:
        return None
    uses = sum(isinstance(inner, ast.Name) and inner.id == name for inner in walk(node))
    methods = [
        inner.func.attr
        for inner in walk(node)
        if isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and isinstance(inner.func.value, ast.Name)
        and inner.func.value.id == name
    ]
    # Another use of the name might add items.
    if uses != len(methods) + 1 or not methods or any(method not in SHRINKING for method in methods):
        return None
    return value.size.times(1 / len(methods))


def iterations_of_search(context: Context, node: ast.While) -> Quantity | None:
    """The iterations of a search, which meets each field of a grid or node of a graph at most once."""
    work = worklist(node)
    if work is None or context.frame.loops:
        return None  # searches that know where others have been meet few fields each
    lengths = [number_of(peek(context, bound)) for bound in work.bounds if is_unchanged(context, node, bound)]
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


def _filled_up(context: Context, node: ast.While, left: ast.expr, right: ast.expr) -> Quantity | None:
    """The iterations of ``while len(items) < n``, where each appends one item."""
    if not (isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "len" and left.args):
        return None
    container = left.args[0]
    if not isinstance(container, ast.Name):
        return None
    appends = sum(
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in ("append", "add", "appendleft", "pop", "popleft")
        and isinstance(inner.func.value, ast.Name)
        and inner.func.value.id == container.id
        for inner in walk(node)
    )
    bound, value = number_of(peek(context, right)), context.frame.lookup(container.id)
    if not appends or bound is None or value is None or value.size is None:
        return None
    distance = (bound - value.size).times(1 / appends)
    fixed = distance.constant
    if fixed is None:
        return distance
    low, likely, high = (abs(amount) for amount in fixed)
    return constant(low, high, likely)


def conditions(node: ast.While) -> list[ast.expr]:
    """The conditions that all hold while a loop runs."""
    test = node.test
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def sides(test: ast.Compare) -> tuple[tuple[ast.expr, ast.expr], tuple[ast.expr, ast.expr]]:
    """Each side of a comparison of two, with the other one."""
    left, right = test.left, test.comparators[0]
    return (left, right), (right, left)


def _at_least_none(quantity: Quantity) -> Quantity:
    return mixed([(0.0, ZERO), (1.0, quantity)])


def _count_steps(sign: str, step: float, start: Quantity, bound: Quantity, *, closed: bool) -> Quantity | None:
    """About how often a counter moves or is scaled from one number to another; ``closed`` includes the bound."""
    if sign in "+-":
        distance = (bound - start) if sign == "+" else (start - bound)
        if closed:
            distance = distance + ONE
        fixed = distance.constant
        if fixed is None:
            return distance.times(1 / step)
        low, likely, high = (max(ceiling(value / step), 0.0) for value in fixed)
        # Not every iteration may move it, or some more than once.
        return constant(min(low, 1.0), 2 * high, likely)
    if step <= 1:
        return None
    unknown = bound if sign == "*" else start
    return unknown.log().times(1 / math.log2(step)) if step != 2 else unknown.log()
