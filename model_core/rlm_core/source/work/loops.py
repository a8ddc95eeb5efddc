"""What loops cost: trip counts, early exits, and what their bodies change from trip to trip."""

from __future__ import annotations

import ast
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from rlm_core.types import CauseKind

from . import object_sizes
from .calls import SHRINKING, Calls
from .expressions import ENDLESS, distinct, literal, number_of
from .frames import Frame, Loop, LoopVariable, joined, restore_points
from .meter import ALWAYS, Meter
from .quantities import ONE, ZERO, Quantity, Range, constant, mixed, of_size
from .scope import Scope
from .syntax import BlockSyntax, leaving, own_update
from .trips import FLIPPED, NEGATED, NEVER, Counter, first_square
from .unit_costs import primitive, seconds
from .values import MISSING, UNKNOWN, Entries, Value

LoopNode = ast.For | ast.AsyncFor | ast.While
_UNROLLED = 12
_UNROLLED_NODES = 400
_CONCRETE_TRIPS = 400
_TRIED_TRIPS = 24
_TWICE_DEPTH = 4
_MOST_CONCRETE_NODES = 80
_KEPT_SHARE = 6  # of the budget that is left
_FEWEST_REPORTED = 100
_GROWN = frozenset({"list", "set", "dict", "deque"})


class Loops(Calls):
    """Reads loops; all other statements are left to a subclass."""

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

    @abstractmethod
    def branches(self, branches: Sequence[tuple[Range, Sequence[ast.stmt]]]) -> None:
        """Read one of several blocks, each with its share of the runs."""

    def stop(self) -> None:
        """Nothing behind this statement runs."""
        self.meter.reach = (0.0, 0.0, 0.0)

    def for_loop(self, node: ast.For | ast.AsyncFor) -> None:
        """Read a ``for`` loop."""
        iterable = self.value(node.iter)
        if self._unrolled(node, iterable):
            return
        loop = Loop()
        with self.region() as source:
            whole = self.consume(iterable)
            self.meter.spend(primitive("loop.start"))
        endless = source.endless is not None
        source.endless = None
        names = dict(self.frame.names)
        loop.variable = self.bind_items(node.target, iterable)
        self.frame.restore(names, self.frame.held)
        exit_ = self._trip_of_for(node, loop.variable)
        trips = whole
        if endless and exit_ is not None and exit_[1] != NEVER:
            trips = constant(ENDLESS)
        elif endless and _ends_inside(self.block(node)):
            trips = of_size(f"?{node.lineno}")
        trips = self._until_exit(node, loop, trips, exit_)
        count = self._loop(node, loop, trips, lambda: self.bind_items(node.target, iterable), endless=endless)
        # A loop that is left early leaves the rest of a lazy iterable alone.
        share = ONE
        limits, ran = whole.constant, count.constant
        if endless:
            share = count
        elif limits is not None and ran is not None and limits[1] > 0:
            share = Quantity(
                {(): (min(ran[0] / limits[0], 1.0) if limits[0] else 1.0, min(ran[1] / limits[1], 1.0), 1.0)}
            )
        elif loop.exits:
            share = constant(0.0, 1.0, 0.5)
        self.meter.add(source, share)

    def _unrolled(self, node: ast.For | ast.AsyncFor, iterable: Value) -> bool:
        """Read a short loop over known values once for each of them."""
        items: list[Value] | None = None
        if iterable.kind == "range" and isinstance(iterable.payload, tuple) and len(iterable.payload) == 3:
            start, step, count = iterable.payload
            if 0 <= count <= _UNROLLED and start == int(start) and step == int(step):
                items = [literal(int(start + step * k)) for k in range(int(count))]
        elif (
            iterable.kind in ("tuple", "list")
            and isinstance(iterable.payload, tuple)
            and len(iterable.payload) <= _UNROLLED
        ):
            items = [value for value in iterable.payload if isinstance(value, Value)]
        elif iterable.known and isinstance(iterable.constant, (tuple, str)) and len(iterable.constant) <= _UNROLLED:
            items = [literal(part) for part in iterable.constant]
        if items is None or node.orelse or any(item.kind == "unknown" for item in items):
            return False
        if len(items) > 1 and len(items) * self.block(node).nodes > _UNROLLED_NODES:
            return False
        outer = self.meter
        names_of_items = [replace(item, bytes=ZERO) for item in items]
        loop = Loop()
        entered = self.frame.points()
        self.frame.loops.append(loop)
        with self.region() as total:
            for item in names_of_items:
                if total.reach[2] <= 0:
                    break
                total.spend(primitive("loop.for"))
                self.bind_target(node.target, item)
                before = total.reach
                with self.region() as body:
                    self.run(node.body)
                going = body.reach
                left = self._left_by(node, going)
                if left != going:
                    restore_points(entered)
                body.reach = ALWAYS
                total.add(body)
                total.reach = (
                    (before[0] * left[0], before[1] * left[1], before[2] * left[2]) if left != ALWAYS else before
                )
        self.frame.loops.pop()
        restore_points(entered)
        if self.frame.loops and loop.exits and self.block(node).returns:
            self.frame.loops[-1].exits = True
        goes_on = total.reach
        returned = self.block(node).returns
        total.reach = ALWAYS
        outer.add(total)
        if returned and goes_on != ALWAYS:
            has_break = self.block(node).breaks
            likely = goes_on[1] if not has_break else max(goes_on[1], 0.5)
            outer.reach = (
                outer.reach[0] * goes_on[0],
                outer.reach[1] * likely,
                outer.reach[2] * (1.0 if has_break else goes_on[2]),
            )
        return True

    def _left_by(self, node: LoopNode, going: Range) -> Range:
        """The share of iterations after which the next follows: ``continue`` ends only one of them."""
        block = self.block(node)
        if going == ALWAYS or not block.continues:
            return going
        if not block.breaks and not block.returns:
            return ALWAYS
        return (going[0], max(going[1], 0.7), 1.0)

    def _loop(
        self,
        node: LoopNode,
        loop: Loop,
        trips: Quantity,
        bind: Callable[[], object] | None,
        *,
        endless: bool = False,
    ) -> Quantity:
        """Read a loop's body and add it as often as it runs; the number of iterations."""
        frame = self.frame
        before, held = dict(frame.names), frame.held
        assigned = self.block(node).assigned
        for name in assigned.keys() & before.keys():
            value = before[name]
            if value.known or (isinstance(value.payload, (tuple, Entries)) and value.kind != "user-function"):
                frame.names[name] = replace(value, constant=MISSING, payload=None)
        first = dict(frame.names)
        results, filled, yields = len(frame.results), dict(frame.filled), frame.yields
        frame.yields = ZERO
        body, exit_range = self._body(node, loop, bind)
        count = self._early(trips, loop, exit_range, node)
        changes = self._changes(first, frame.names, assigned, self.block(node).updates)
        rebound = _rebound(first, frame.names, assigned.keys() - changes.keys(), count)
        moving = {*changes, *rebound}
        after = dict(frame.names)
        if moving and self.loop_depth < _TWICE_DEPTH and _reads(node, moving):
            del frame.results[results:]
            frame.yields = ZERO
            frame.restore(first | rebound, held)
            half = count.times(0.5)
            for name, (size, number, bytes_) in changes.items():
                value = first[name]
                frame.names[name] = replace(
                    value,
                    size=_between(value.size, size, count),
                    number=_between(value.number, number, count),
                    bytes=value.bytes + bytes_ * half,
                )
            body, _ = self._body(node, loop, bind)
        frame.yields = yields + frame.yields * count
        # State after the loop.
        frame.restore(dict(before), held)
        for name, value in after.items():
            old = first.get(name)
            if old is value:
                continue
            change = changes.get(name)
            if change is not None and old is not None:
                size, number, bytes_ = change
                times = count
                if value.kind in ("set", "dict") and value.item is not None and size is not None and size.terms:
                    # Keys that come again take nothing more.
                    times = distinct(value.item, count)
                inner = frame.filled.get(name, ZERO) - filled.get(name, ZERO)
                shell = ZERO
                if value.kind in _GROWN and size is not None and old.size is not None:
                    # A container grows in steps: what the first item takes says nothing of the others.
                    first_step, steps = _shell_growth(value.kind, old.size, size), size * times
                    shell = _shell_growth(value.kind, old.size, steps) - first_step * times
                total = old.bytes + (bytes_ - inner) * times + inner * count + shell
                if inner.terms:
                    frame.filled[name] = filled.get(name, ZERO) + inner * count
                new = replace(
                    value,
                    constant=MISSING,
                    size=_moved(old.size, size, times),
                    number=_moved(old.number, number, count),
                    bytes=total if total.terms else ZERO,
                )
                new = self._multiplied(node, name, new, count, after)
            else:
                new = (
                    replace(
                        value, constant=MISSING, payload=None if not isinstance(value.payload, dict) else value.payload
                    )
                    if name in assigned and old is not None
                    else value
                )
                new = self._multiplied(node, name, new, count, after)
            frame.bind(name, new)
        low = min(count.evaluate(lambda name: 0.0)[0], 1.0)
        for index in range(results, len(frame.results)):
            weight, value = frame.results[index]
            frame.results[index] = (weight * 0.5, value)
        kind = "loop.for" if not isinstance(node, ast.While) else "loop.while"
        body.spend(primitive(kind))
        grown = frame.held
        body.peak, peak = ZERO, body.peak
        self.meter.add(body, count)
        self.meter.hold(peak)
        self.meter.hold(grown)
        total = body.total * count
        if count.evaluate(lambda name: 10.0)[1] >= _FEWEST_REPORTED:
            header = node.iter if not isinstance(node, ast.While) else node.test
            self.meter.cause(CauseKind.LOOP, node.lineno - 1 if not frame.depth else frame.line, header, total, count)
        leaves_exactly = loop.exit is not None and loop.exit_share > 0
        block = self.block(node)
        if endless and not loop.exits and not frame.handlers:
            self.meter.run_on(node.lineno - 1 if not frame.depth else frame.line)
            self.stop()
        elif leaves_exactly:
            if loop.exit is not None and leaving(loop.exit.body) == "return":
                self.stop()
        elif loop.exits and block.returns:
            reach = self.meter.reach
            if exit_range[2] <= 0 and not block.breaks and low >= 1:
                self.stop()
            else:
                self.meter.reach = (0.0, reach[1] * (0.75 if block.breaks else 0.5), reach[2])
        if node.orelse and not leaves_exactly:
            if loop.exits and block.breaks:
                self.branches([((0.0, 0.5, 1.0), node.orelse), ((0.0, 0.5, 1.0), [])])
            else:
                self.run(node.orelse)
        return count

    def _body(self, node: LoopNode, loop: Loop, bind: Callable[[], object] | None) -> tuple[Meter, Range]:
        """The cost of one iteration, and the share of iterations that the next one follows."""
        frame = self.frame
        entered = frame.points()
        frame.loops.append(loop)
        self.loop_depth += 1
        variable = loop.variable
        if variable is not None:
            variable.restart()
        with self.region() as meter:
            if bind is not None:
                bind()
            elif variable is not None:
                variable.value = frame.names[variable.name]
            if isinstance(node, ast.While):
                self.value(node.test)
                self.meter.spend(primitive("branch"))
            self.run(node.body)
            going = meter.reach
            meter.reach = ALWAYS
        self.loop_depth -= 1
        frame.loops.pop()
        restore_points(entered)
        return meter, self._left_by(node, going)

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
            return Quantity({(): (min(1.0, low), max(expected, min(likely, 1.0)), high)})
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
            return Quantity({(): (min(whole[0], first), min(whole[1], first), min(whole[2], last))})
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
                number = variable.at(k)
                self.frame.names[variable.name] = literal(int(number) if number == int(number) else number)
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
        compared = _comparison(test)
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

    def _changes(
        self,
        before: dict[str, Value],
        after: dict[str, Value],
        assigned: Mapping[str, None],
        updates: Mapping[str, object],
    ) -> dict[str, tuple[Quantity | None, Quantity | None, Quantity]]:
        """What one iteration adds to sizes, numbers and bytes of the names that it changes."""
        changes: dict[str, tuple[Quantity | None, Quantity | None, Quantity]] = {}
        for name in assigned:
            old, new = before.get(name), after.get(name)
            if name in self.frame.chained and old is not None and new is not None:
                changes[name] = (None, None, new.bytes - old.bytes)
                continue
            if name in updates and updates[name] is None:
                # Bound to something else in each iteration: what it becomes does not add up.
                continue
            if old is None or new is None or old is new or old.kind != new.kind:
                continue
            if old.kind in ("list", "set", "dict", "str", "bytes", "deque", "bytearray", "object"):
                if old.size is not None and new.size is not None:
                    size = new.size - old.size
                    changes[name] = (size, None, new.bytes - old.bytes)
                elif old.kind == "object" and (new.bytes - old.bytes).terms:
                    changes[name] = (None, None, new.bytes - old.bytes)
            elif old.number is not None and new.number is not None:
                step = new.number - old.number
                if step.constant is not None:
                    changes[name] = (None, step, ZERO)
        return changes

    def _multiplied(
        self, node: ast.stmt, name: str, value: Value, count: Quantity, inside: Mapping[str, Value]
    ) -> Value:
        """A number that each iteration multiplies may become large: pay for its digits.

        ``inside`` are the names as they are in the loop.
        """
        if value.kind not in ("int",):
            return value
        factor = _factor_of(node, name)
        if factor is None:
            return value
        amount: Quantity | None = constant(2.0)
        if not isinstance(factor, _Doubled):
            names, held = self.frame.names, self.frame.held
            self.frame.restore(dict(inside), held)
            amount = number_of(self.scratch(factor))
            self.frame.restore(names, held)
        bits_each = 1.0
        if isinstance(factor, _Doubled):
            bits_each = factor.bits
        elif amount is not None and amount.constant is not None:
            bits_each = math.log2(max(amount.constant[1], 2.0))
        digits = count.times(bits_each / 30)
        likely = digits.evaluate(lambda size: 10.0)[1]
        if likely < 4:
            return value
        self.meter.spend(seconds("bigint.small", digits.times(0.5)) * count)
        return replace(value, constant=MISSING, number=None, size=digits, bytes=digits.times(4.0))

    def while_loop(self, node: ast.While) -> None:
        """Read a ``while`` loop."""
        loop = Loop()
        truth = self.truth(self.scratch(node.test))
        if truth is False:
            self.value(node.test)
            self.run(node.orelse)
            return
        if isinstance(node.test, ast.Constant) and truth is True:
            self._forever(node, loop)
            return
        ends = self._ends(node)
        endless = ends == NEVER and not _ends_inside(self.block(node))
        trips = Quantity({(): ends}) if ends not in (None, NEVER) else None
        if ends is None:
            if _never_changes(node, self.block(node), self.frame):
                if truth is None:
                    self._maybe_endless(node, loop)
                    return
                endless = True
            elif truth is True and self._run_through(node, loop):
                return
            else:
                trips = self._counted(node)
        if trips is None:
            trips = ONE if endless else of_size(f"?{node.lineno}")
        trips = self._until_exit(node, loop, trips, self._trip_of_while(node))
        self._set_variable(node, loop, trips)
        self._loop(node, loop, trips, None, endless=endless)

    def _set_variable(self, node: ast.While, loop: Loop, trips: Quantity) -> None:
        """Let conditions on the counter of a loop with a known number of trips be exact."""
        count = trips.exact
        if count is None:
            return
        for name, update in self.block(node).updates.items():
            if update is not None and update[0] in "+-":
                moving = self._counter(node, name)
                if moving is not None and len(moving[0]) == 1:
                    [counter] = moving[0]
                    step = counter.amount if counter.sign == "+" else -counter.amount
                    loop.variable = LoopVariable(name, counter.start, step, count)
                    return

    def _maybe_endless(self, node: ast.While, loop: Loop) -> None:
        """A loop whose condition never changes: it runs for ever or not at all."""
        with self.region() as meter:
            self._loop(node, loop, ONE, None, endless=True)
        meter.reach = ALWAYS
        self.meter.branch([((0.0, 0.5, 1.0), meter), ((0.0, 0.5, 1.0), Meter())])

    def _forever(self, node: ast.While, loop: Loop) -> None:
        """``while True``: ends only by an exit inside."""
        block = self.block(node)
        exit_ = self._trip_of_while(node)
        if exit_ is not None and exit_[1] != NEVER:
            trips = self._until_exit(node, loop, constant(ENDLESS), exit_)
            self._set_variable(node, loop, trips)
            self._loop(node, loop, trips, None)
            return
        loop.may_leave = True
        exact = self._counter_exit(node) if exit_ is None else None
        if exact is not None:
            self._loop(node, loop, exact, None)
            return
        leaves = block.breaks or block.returns or block.raises or block.leaves_program or _calls_next(node)
        if exit_ is not None:
            leaves, loop.exit = False, exit_[0]
        has_yield = block.yields
        # What leaves by an exception is caught outside the loop.
        caught = self.frame.handlers > 0 and any(
            isinstance(inner, (ast.Call, ast.Subscript)) for inner in ast.walk(node)
        )
        if has_yield and not leaves:
            # A generator without end: what it costs depends on how many items are taken.
            self.frame.yields_endlessly = True
            self._loop(node, loop, ONE, None)
            return
        endless = not leaves and not has_yield and not caught
        trips = ONE if endless else of_size(f"?{node.lineno}")
        if leaves and not block.breaks and not block.continues and _is_straight(node.body):
            trips = ONE
        self._loop(node, loop, trips, None, endless=endless)
        if not endless and not block.breaks and not caught:
            self.stop()

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
        for test in _conditions(node):
            trips = None
            compared = _comparison(test)
            if compared is not None and type(compared.ops[0]) in NEGATED:
                counters: dict[str, Sequence[Counter]] = {}
                for name in _names(compared):
                    moving = self._counter(node, name)
                    if moving is not None:
                        counters[name] = moving[0]
                negated = ast.Compare(compared.left, [NEGATED[type(compared.ops[0])]()], compared.comparators)
                trips = self._first_trip(node, negated, counters) if counters else None
            if trips is None:
                return None
            ends = (min(ends[0], trips[0]), min(ends[1], trips[1]), min(ends[2], trips[2]))
        return ends

    def _counted(self, node: ast.While) -> Quantity | None:
        """An estimate of the iterations of a loop whose condition compares a counter that iterations move or scale."""
        tests = _conditions(node)
        counts = []
        for test in tests:
            compared = _comparison(test)
            drained = self._drained(node, test.id) if isinstance(test, ast.Name) else None
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
        return Quantity({(): (min(low, high), likely, max(low, high))})

    def _run_through(self, node: ast.While, loop: Loop) -> bool:
        """Read a short loop over known numbers trip by trip; False where a condition is not known."""
        frame, block = self.frame, self.block(node)
        if block.nested_loops or block.yields or block.nodes > _MOST_CONCRETE_NODES:
            return False
        names, held, results = dict(frame.names), frame.held, len(frame.results)
        allowed = self.left // _KEPT_SHARE
        entered = frame.points()
        frame.loops.append(loop)
        ends = False
        try:
            with self.region() as total:
                trips = 0
                while trips < _CONCRETE_TRIPS and self.left > allowed:
                    truth = self.truth(self.value(node.test))
                    if truth is None:
                        break
                    if not truth:
                        ends = True
                        break
                    trips += 1
                    with self.region() as body:
                        self.run(node.body)
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
            restore_points(entered)
            if not ends:
                frame.restore(names, held)
                del frame.results[results:]
                loop.exits = False
        if not ends:
            return False
        self.meter.add(total)
        if trips >= _FEWEST_REPORTED:
            line = node.lineno - 1 if not frame.depth else frame.line
            self.meter.cause(CauseKind.LOOP, line, node.test, total.total, constant(trips))
        if loop.exits and len(frame.results) > results:
            self.stop()
        elif not loop.exits:
            self.run(node.orelse)
        return True


def _may_leave(block: BlockSyntax) -> bool:
    """Whether a statement in a loop may end it before its time; errors are not expected."""
    return block.breaks or block.returns


def _ends_inside(block: BlockSyntax) -> bool:
    """Whether a loop without end may be left."""
    return block.breaks or block.returns or block.raises or block.leaves_program


def _conditions(node: ast.While) -> list[ast.expr]:
    """The conditions that all hold while a loop runs."""
    test = node.test
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _comparison(test: ast.expr) -> ast.Compare | None:
    """A condition as a comparison of two: ``while n`` compares a number with 0."""
    if isinstance(test, ast.Compare):
        return test if len(test.ops) == 1 else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _comparison(test.operand)
        negated = None if inner is None else NEGATED.get(type(inner.ops[0]))
        return None if inner is None or negated is None else ast.Compare(inner.left, [negated()], inner.comparators)
    return ast.Compare(test, [ast.NotEq()], [ast.Constant(0)]) if isinstance(test, ast.Name) else None


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


def _between(old: Quantity | None, step: Quantity | None, count: Quantity) -> Quantity | None:
    """What a quantity is in the trips of a loop that each move it: on average, and from the first to the last trip."""
    if old is None or step is None:
        return old
    start, moved, trips = old.constant, step.constant, count.constant
    if start is None or moved is None or trips is None or not math.isfinite(trips[2]):
        return old + step * count.times(0.5)
    most = max(trips[2] - 1, 0.0)
    low, high = start[0] + min(moved[0] * most, 0.0), start[2] + max(moved[2] * most, 0.0)
    return Quantity({(): (low, start[1] + moved[1] * max(trips[1] - 1, 0.0) / 2, high)})


def _rebound(
    before: Mapping[str, Value], after: Mapping[str, Value], names: Iterable[str], count: Quantity
) -> dict[str, Value]:
    """Names with another number or size from the second trip on: what they are in the trips of a loop."""
    joint: dict[str, Value] = {}
    for name in names:
        old, new = before.get(name), after.get(name)
        if old is None or new is None or old is new:
            continue
        for former, latter in ((old.number, new.number), (old.size, new.size)):
            if former is not None and former.constant is not None and former != latter:
                others = max(count.evaluate(lambda name: 10.0)[1] - 1, 0.1)
                joint[name] = replace(joined([(1.0, old), (others, new)]), bytes=old.bytes)
    return joint


def _count_steps(sign: str, step: float, start: Quantity, bound: Quantity, *, closed: bool) -> Quantity | None:
    """About how often a counter moves or is scaled from one number to another; ``closed`` includes the bound."""
    if sign in "+-":
        distance = (bound - start) if sign == "+" else (start - bound)
        if closed:
            distance = distance + ONE
        fixed = distance.constant
        if fixed is None:
            return distance.times(1 / step)
        low, likely, high = (max(math.ceil(value / step), 0.0) for value in fixed)
        # Not every iteration may move it, or some more than once.
        return Quantity({(): (min(low, 1.0), likely, 2 * high)})
    if step <= 1:
        return None
    ends = (start.constant, bound.constant)
    if ends[0] is not None and ends[1] is not None:
        smaller, larger_ = sorted((max(ends[0][1], 1.0), max(ends[1][1], 1.0)))
        count = max(math.ceil(math.log(larger_ / smaller) / math.log(step)), 1.0)
        return constant(0.0, 2 * count, count)
    unknown = bound if sign == "*" else start
    return unknown.log().times(1 / math.log2(step)) if step != 2 else unknown.log()


class _Doubled(ast.expr):
    """The factor of a number that is shifted or added to itself."""

    _fields = ()
    bits = 1.0


def _shell_growth(kind: str, size: Quantity, added: Quantity) -> Quantity:
    """The bytes that a container takes more without its items, when it grows item by item."""
    before = object_sizes.container(kind, size, grown=True)
    return object_sizes.container(kind, size + added, grown=True) - before


def _moved(old: Quantity | None, step: Quantity | None, times: Quantity) -> Quantity | None:
    return old if old is None or step is None else old + step * times


def _calls_next(node: ast.While) -> bool:
    """Whether a loop asks an iterator for its next item, which raises at its end."""
    return any(
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "next"
        for inner in ast.walk(node)
    )


def _is_straight(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Break))


def _reads(node: ast.stmt, names: set[str]) -> bool:
    """Whether a loop uses these names in a way that their size may matter."""
    growing = {
        inner.func.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in ("append", "add", "appendleft", "get", "setdefault")
        and isinstance(inner.func.value, ast.Name)
    }
    indexed = {inner.value for inner in ast.walk(node) if isinstance(inner, ast.Subscript)}
    return any(
        isinstance(inner, ast.Name)
        and isinstance(inner.ctx, ast.Load)
        and inner.id in names
        and inner not in growing
        and inner not in indexed
        for inner in ast.walk(node)
    )


def _never_changes(node: ast.While, block: BlockSyntax, frame: Frame) -> bool:
    """Whether a condition can only stay as it is: plain names and numbers that the body does not assign."""
    names = set()
    for inner in ast.walk(node.test):
        if isinstance(inner, (ast.Call, ast.Attribute, ast.Subscript, ast.Await, ast.NamedExpr)):
            return False
        if isinstance(inner, ast.Name):
            names.add(inner.id)
    if block.breaks or block.returns or block.raises or block.yields or block.leaves_program or frame.handlers:
        return False
    changed = block.assigned.keys()
    local = all(name in frame.names for name in names)
    nested = any(isinstance(inner, (ast.Nonlocal, ast.Global)) for inner in ast.walk(node))
    return local and not nested and not (names & changed)


def _factor_of(node: ast.stmt, name: str) -> ast.expr | None:
    """The factor by which a loop multiplies a name in each iteration."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name) and inner.target.id == name:
            if isinstance(inner.op, (ast.Mult, ast.Pow)):
                return inner.value
            if isinstance(inner.op, ast.LShift):
                return _Doubled()
        if isinstance(inner, ast.Assign) and len(inner.targets) == 1:
            target, value = inner.targets[0], inner.value
            if isinstance(target, ast.Name) and target.id == name and isinstance(value, ast.BinOp):
                if isinstance(value.op, ast.Mult) and isinstance(value.left, ast.Name) and value.left.id == name:
                    return value.right
                if isinstance(value.op, ast.LShift) and isinstance(value.left, ast.Name) and value.left.id == name:
                    return _Doubled()
            if (
                isinstance(target, ast.Tuple)
                and isinstance(value, ast.Tuple)
                and len(target.elts) == len(value.elts) == 2
            ):
                # `a, b = b, a + b`: Fibonacci numbers grow by .69 bits.
                sums = [part for part in value.elts if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)]
                held = {part.id for part in target.elts if isinstance(part, ast.Name)}
                if (
                    name in held
                    and len(sums) == 1
                    and {n.id for n in ast.walk(sums[0]) if isinstance(n, ast.Name)} == held
                ):
                    doubled = _Doubled()
                    doubled.bits = 0.694
                    return doubled
    return None
