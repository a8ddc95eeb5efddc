"""How often loops run, from their counters, conditions and exits."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence

from .calls import Calls
from .domain.meter import ALWAYS
from .domain.quantities import ONE, ZERO, Quantity, Range, ceiling, constant, mixed
from .domain.values import UNKNOWN, number_of
from .frames import Loop, LoopVariable
from .method_effects import SHRINKING
from .scaling import scaling
from .scope import Scope
from .syntax import BlockSyntax, LoopNode, leaving, own_update
from .trips import FLIPPED, NEGATED, NEVER, Counter, first_square
from .worklists import worklist

_TRIED_TRIPS = 24
_MOST_EACH = 4.0  # items that each of many searches meets, where their number is not known


class TripCounts(Calls):
    """Counts the trips of loops; reading their bodies is left to a subclass."""

    def __init__(self, scope: Scope, budget: int) -> None:
        super().__init__(scope, budget)
        self.blocks: dict[int, BlockSyntax] = {}

    def block(self, node: LoopNode) -> BlockSyntax:
        """What a loop's body does, read once."""
        block = self.blocks.get(id(node))
        if block is None:
            block = self.blocks[id(node)] = BlockSyntax(
                [*node.body, *([] if isinstance(node, ast.While) else [node.target])]
            )
        return block

    def _early(self, trips: Quantity, loop: Loop, going: Range, node: LoopNode) -> Quantity:
        """The number of iterations, in view of exits inside the body."""
        if going == ALWAYS or not loop.exits or loop.exit is not None:
            return trips
        if going[2] <= 0:
            return mixed([(1.0, ONE)]) if trips.constant is None or trips.constant[1] >= 1 else trips
        leaves = max(1 - going[1], 1e-3)
        whole = trips.constant
        only_errors = not (self.block(node).breaks or self.block(node).returns)
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

    def _until_exit(self, node: LoopNode, loop: Loop, trips: Quantity, exit_: tuple[ast.If, Range] | None) -> Quantity:
        """The trips of a loop that a statement leaves after a known number of trips, if not at its end."""
        if exit_ is None:
            loop.may_leave = _may_leave(self.block(node))
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

    def _trip_of_for(self, node: ast.For | ast.AsyncFor, variable: LoopVariable | None) -> tuple[ast.If, Range] | None:
        """The only exit of a loop over known numbers, and the number of trips before it leaves."""
        if variable is None or variable.step == 0 or self.block(node).stores.get(variable.name) != 1:
            return None
        position = self._only_exit(node)
        if position is None:
            return None
        statement = node.body[position]
        assert isinstance(statement, ast.If)
        counter = Counter(variable.start, "+", variable.step)
        before = self._first_trip(node, statement.test, {variable.name: (counter,)})
        if before is None and self._is_fixed(node, statement.test, but=variable.name):
            before = self._tried(statement.test, variable)
        return None if before is None else (statement, before)

    def _tried(self, test: ast.expr, variable: LoopVariable) -> Range | None:
        """The trips before a condition holds, found by trying the first few."""
        names = self.frame.names
        self.frame.names = dict(names)
        try:
            for k in range(int(min(variable.count, _TRIED_TRIPS))):
                self.frame.names[variable.name] = variable.at(k)
                truth = self.truth(self.scratch(test))
                if truth is None:
                    return None
                if truth:
                    return float(k), float(k), float(k)
        finally:
            self.frame.names = names
        return NEVER if variable.count <= _TRIED_TRIPS else None

    def _only_exit(self, node: LoopNode) -> int | None:
        """The place in a loop's body of the only statement that may leave it: ``if ...: break`` or ``return``."""
        block = self.block(node)
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

    def _first_trip(self, node: LoopNode, test: ast.expr, counters: Mapping[str, Sequence[Counter]]) -> Range | None:
        """The number of trips before a comparison of a counter with a number that the loop does not change holds."""
        compared = comparison(test)
        if compared is None:
            return None
        left, right, op = compared.left, compared.comparators[0], type(compared.ops[0])
        for side, other, turned in ((left, right, op), (right, left, FLIPPED.get(op))):
            squared = _squared(side)
            counter = counters.get(squared or (side.id if isinstance(side, ast.Name) else ""))
            if counter is None or turned is None or not self._is_fixed(node, other):
                continue
            limit = number_of(self.scratch(other))
            bounds = limit.constant if limit is not None else None
            if bounds is None:
                return None
            firsts = [
                first_square(start, turned, bound) if squared else start.first(turned, bound)
                for start, bound in _combined(counter, bounds)
            ]
            return _spanned(firsts)
        return None

    def _is_fixed(self, node: LoopNode, expression: ast.expr, but: str = "") -> bool:
        """Whether a loop does not change what an expression reads."""
        assigned = self.block(node).assigned
        return not any(
            isinstance(inner, ast.Name) and inner.id in assigned and inner.id != but for inner in ast.walk(expression)
        )

    def _counter(self, node: ast.While, name: str) -> tuple[tuple[Counter, ...], int] | None:
        """The counter that each trip of a loop moves once by a fixed amount, and the place of that statement.

        Where its start is a range: for the likely, the least and the largest start.
        """
        block, value = self.block(node), self.frame.lookup(name)
        update = block.updates.get(name)
        starts = value.number.constant if value is not None and value.number is not None else None
        if update is None or starts is None or block.stores.get(name) != 1 or not self._is_fixed(node, update[1]):
            return None
        place = next((place for place, statement in enumerate(node.body) if own_update(statement, name)), None)
        if place is None or (block.continues and BlockSyntax(node.body[:place]).continues):
            return None
        amount = number_of(self.scratch(update[1]))
        step = amount.exact if amount is not None else None
        if step is None:
            return None
        ordered = dict.fromkeys((starts[1], starts[0], starts[2]))
        return tuple(Counter(start, update[0], step) for start in ordered), place

    def _trip_of_while(self, node: ast.While) -> tuple[ast.If, Range] | None:
        """The only exit inside a loop, and the number of trips before it leaves."""
        position = self._only_exit(node)
        if position is None:
            return None
        statement = node.body[position]
        assert isinstance(statement, ast.If)
        counters: dict[str, Sequence[Counter]] = {}
        for name in _names(statement.test):
            moving = self._counter(node, name)
            if moving is not None:
                starts, place = moving
                counters[name] = [start.moved() for start in starts] if place < position else starts
        before = self._first_trip(node, statement.test, counters) if counters else None
        return None if before is None else (statement, before)

    def _counter_exit(self, node: ast.While) -> Quantity | None:
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
                count = self._counted_test(node, test)
                if count is not None:
                    return count
        return None

    def _ends(self, node: ast.While) -> Range | None:
        """The trips of a loop whose condition compares counters with numbers, by arithmetic."""
        ends: Range = NEVER
        for trips in self._ends_of(node):
            if trips is None:
                return None
            ends = (min(ends[0], trips[0]), min(ends[1], trips[1]), min(ends[2], trips[2]))
        return ends

    def _bound(self, node: ast.While) -> float:
        """The most trips that a condition on a counter allows, whatever the other conditions say."""
        return min((trips[2] for trips in self._ends_of(node) if trips is not None), default=math.inf)

    def _ends_of(self, node: ast.While) -> Iterator[Range | None]:
        """The trips after which each part of a condition fails; None where that is not arithmetic."""
        for test in conditions(node):
            compared = comparison(test)
            if compared is None or type(compared.ops[0]) not in NEGATED:
                yield None
                continue
            counters: dict[str, Sequence[Counter]] = {}
            for name in _names(compared):
                moving = self._counter(node, name)
                if moving is not None:
                    counters[name] = moving[0]
            negated = ast.Compare(compared.left, [NEGATED[type(compared.ops[0])]()], compared.comparators)
            yield self._first_trip(node, negated, counters) if counters else None

    def _counted(self, node: ast.While) -> Quantity | None:
        """An estimate of the iterations of a loop whose condition compares a counter that iterations move or scale."""
        tests = conditions(node)
        counts = []
        for test in tests:
            compared = comparison(test)
            drained = self._drained(node, test.id) if isinstance(test, ast.Name) else None
            if drained is None and isinstance(test, ast.Name) and scaling(node.body, test.id) == "shrinks":
                number = number_of(self.frame.lookup(test.id) or UNKNOWN)
                drained = number.log() if number is not None else None
            if drained is not None:
                counts.append(drained)
            elif compared is not None:
                count = self._counted_test(node, compared)
                if count is not None:
                    counts.append(count)
        if not counts:
            return None
        if len(counts) < len(tests):
            return mixed([(0.0, ZERO), (0.5, ONE), (0.5, counts[0])])
        return counts[0]

    def _counted_test(self, node: ast.While, test: ast.Compare) -> Quantity | None:
        left, right = test.left, test.comparators[0]
        filled = self._filled_up(node, left, right)
        if filled is not None:
            return filled
        changed = self.block(node).updates
        for side, other, flipped in ((left, right, False), (right, left, True)):
            if not (isinstance(side, ast.Name) and side.id in changed):
                name = _squared(side)
                if name is not None and name in changed:
                    # `while i * i <= n`: up to the square root.
                    bound = number_of(self.scratch(other))
                    update = changed[name]
                    if bound is not None and update is not None and update[0] == "+":
                        return bound.power(0.5)
                continue
            update = changed[side.id]
            bound = number_of(self.scratch(other))
            start = number_of(self.frame.lookup(side.id) or UNKNOWN)
            if isinstance(other, ast.Name) and other.id in changed and changed[other.id] is None and update is None:
                # `while low < high` that takes the middle halves the distance.
                distance = (bound - start) if bound is not None and start is not None and not flipped else None
                if distance is not None and self.block(node).takes_middle:
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
            step = number_of(self.scratch(amount))
            value = step.constant[1] if step is not None and step.constant is not None else None
            if value is None or value <= 0:
                return None
            return _count_steps(sign, value, start, bound, closed=isinstance(test.ops[0], (ast.LtE, ast.GtE)))
        return None

    def _drained(self, node: ast.While, name: str) -> Quantity | None:
        """The iterations of ``while items`` where each removes items and none adds any."""
        value = self.frame.lookup(name)
        if value is None or value.size is None or not value.size.terms:
            return None
        uses = sum(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(node))
        methods = [
            inner.func.attr
            for inner in ast.walk(node)
            if isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and isinstance(inner.func.value, ast.Name)
            and inner.func.value.id == name
        ]
        # Another use of the name might add items.
        if uses != len(methods) + 1 or not methods or any(method not in SHRINKING for method in methods):
            return None
        return value.size.times(1 / len(methods))

    def _worked_off(self, node: ast.While) -> Quantity | None:
        """The iterations of a search, which meets each field of a grid or node of a graph at most once."""
        work = worklist(node)
        if work is None:
            return None
        sides = [number_of(self.scratch(bound)) for bound in work.bounds if self._is_fixed(node, bound)]
        most = ONE
        for side in sides:
            if side is not None:
                most = most * side
        if most is ONE:
            graphs = [self.scratch(graph) for graph in work.graphs]
            most = next((self.length(graph) for graph in graphs if graph.size is not None or graph.name), ONE)
        if most is ONE:
            return None
        again = self._runs_on_marked(work.marked)
        if again is None:
            return mixed([(0.0, ONE), (1.0, most)])
        # All searches together meet each field or node once.
        fields, runs = most.constant, again.constant
        if fields is None or runs is None or runs[1] <= 0:
            return constant(0.0, _MOST_EACH, 1.0)
        return constant(0.0, fields[2] / max(runs[0], 1.0), fields[1] / runs[1])

    def _runs_on_marked(self, marked: frozenset[str]) -> Quantity | None:
        """How often a search runs that goes on with what it has marked; None where each run marks others."""
        runs = None
        for loop in reversed(self.frame.loops):
            if not marked or loop.node is None or any(name in self.block(loop.node).stores for name in marked):
                break
            runs = loop.trips if runs is None else runs * loop.trips
        return runs

    def _filled_up(self, node: ast.While, left: ast.expr, right: ast.expr) -> Quantity | None:
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
            for inner in ast.walk(node)
        )
        bound, value = number_of(self.scratch(right)), self.frame.lookup(container.id)
        if not appends or bound is None or value is None or value.size is None:
            return None
        distance = (bound - value.size).times(1 / appends)
        fixed = distance.constant
        if fixed is None:
            return distance
        low, likely, high = (abs(amount) for amount in fixed)
        return constant(low, high, likely)


def _may_leave(block: BlockSyntax) -> bool:
    """Whether a statement in a loop may end it before its time; errors are not expected."""
    return block.breaks or block.returns


def conditions(node: ast.While) -> list[ast.expr]:
    """The conditions that all hold while a loop runs."""
    test = node.test
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def comparison(test: ast.expr) -> ast.Compare | None:
    """A condition as a comparison of two: ``while n`` compares a number with 0."""
    if isinstance(test, ast.Compare):
        return test if len(test.ops) == 1 else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = comparison(test.operand)
        negated = None if inner is None else NEGATED.get(type(inner.ops[0]))
        return None if inner is None or negated is None else ast.Compare(inner.left, [negated()], inner.comparators)
    return ast.Compare(test, [ast.NotEq()], [ast.Constant(0)]) if isinstance(test, ast.Name) else None


def sides(test: ast.Compare) -> tuple[tuple[ast.expr, ast.expr], tuple[ast.expr, ast.expr]]:
    """Each side of a comparison of two, with the other one."""
    left, right = test.left, test.comparators[0]
    return (left, right), (right, left)


def _names(node: ast.expr) -> dict[str, None]:
    return {inner.id: None for inner in ast.walk(node) if isinstance(inner, ast.Name)}


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


def _squared(side: ast.expr) -> str | None:
    """The name of ``i * i`` or ``i ** 2``."""
    if not (isinstance(side, ast.BinOp) and isinstance(side.left, ast.Name)):
        return None
    if isinstance(side.op, ast.Mult) and isinstance(side.right, ast.Name) and side.right.id == side.left.id:
        return side.left.id
    is_square = isinstance(side.op, ast.Pow) and isinstance(side.right, ast.Constant) and side.right.value == 2
    return side.left.id if is_square else None


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
    ends = (start.constant, bound.constant)
    if ends[0] is not None and ends[1] is not None:
        smaller, larger_ = sorted((max(ends[0][1], 1.0), max(ends[1][1], 1.0)))
        factor = larger_ / smaller if larger_ < math.inf else larger_
        count = max(ceiling(math.log(factor) / math.log(step)), 1.0) if step < math.inf else 1.0
        return constant(0.0, 2 * count, count)
    unknown = bound if sign == "*" else start
    return unknown.log().times(1 / math.log2(step)) if step != 2 else unknown.log()


def ends_inside(block: BlockSyntax) -> bool:
    """Whether a loop without end may be left."""
    return block.breaks or block.returns or block.raises or block.leaves_program
