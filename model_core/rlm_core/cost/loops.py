"""What loops cost, and what their bodies change from trip to trip."""

from __future__ import annotations

import ast
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rlm_core.types import CauseKind

from . import library
from .comprehensions import distinct
from .domain import object_sizes
from .domain.folding import MISSING
from .domain.meter import ALWAYS, Meter
from .domain.quantities import ONE, ZERO, Quantity, Range, constant, is_whole, of_size, part_of
from .domain.values import Entries, Value, literal, number_of
from .factors import Doubled, factor_of
from .frames import Loop, restore_points
from .library.unit_costs import primitive, seconds
from .syntax import LoopNode, leaving
from .trip_changes import (
    any_entries,
    any_of,
    between,
    kept_size,
    moved_by,
    multiplied_sizes,
    powers,
    rebound_names,
    shell_growth,
    up_to,
    uses,
)
from .trip_counts import TripCounts, ends_inside
from .trips import NEVER

_UNROLLED, _UNROLLED_WITH_CALLS = 24, 12
_UNROLLED_NODES = 400
_TWICE_DEPTH = 4
_USUAL_TERMS, _STEPS_PER_TERM = 4, 2
FEWEST_REPORTED = 100
_GROWN = frozenset({"list", "set", "dict", "deque"})
_TEXTS = frozenset({"str", "bytes"})


Change = tuple[Quantity | None, Quantity | None, Quantity]
"""What a trip adds to the size, number and bytes of a name."""


class Loops(TripCounts):
    """Reads ``for`` loops, and what all loops do; all other statements are left to a subclass."""

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
        loop = Loop(node=node)
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
        if not endless:
            trips = whole
        if endless and exit_ is not None and exit_[1] != NEVER:
            trips = library.ENDLESS
        elif endless and ends_inside(self.block(node)):
            trips = of_size(f"?{node.lineno}")
        trips = self._until_exit(node, loop, trips, exit_)
        count = self._loop(node, loop, trips, lambda: self.bind_items(node.target, iterable), endless=endless)
        # A loop that is left early leaves the rest of a lazy iterable alone.
        share = ONE
        limits, ran = whole.constant, count.constant
        if endless:
            share = count
        elif limits is not None and ran is not None and limits[1] > 0:
            share = constant(part_of(ran[0], limits[0]), 1.0, part_of(ran[1], limits[1]))
        elif loop.exits:
            share = constant(0.0, 1.0, 0.5)
        self.meter.add(source, share)

    def _unrolled(self, node: ast.For | ast.AsyncFor, iterable: Value) -> bool:
        """Read a short loop over known values once for each of them."""
        items: list[Value] | None = None
        if iterable.kind == "range" and isinstance(iterable.payload, tuple) and len(iterable.payload) == 3:
            start, step, count = iterable.payload
            if 0 <= count <= _UNROLLED and is_whole(start) and is_whole(step):
                items = [literal(int(start + step * k)) for k in range(int(count))]
        elif (
            iterable.kind in ("tuple", "list")
            and isinstance(iterable.payload, tuple)
            and len(iterable.payload) <= _UNROLLED
        ):
            items = [value for value in iterable.payload if isinstance(value, Value)]
        elif iterable.known and isinstance(iterable.constant, (tuple, str)) and len(iterable.constant) <= _UNROLLED:
            items = [literal(part) for part in iterable.constant]
        elif iterable.kind in _GROWN and iterable.item is not None and not self.block(node).risks:
            count = iterable.size.exact if iterable.size is not None else None
            items = [iterable.item] * round(count) if count is not None and 0 <= count <= _UNROLLED else None
        if items is None or node.orelse or any(item.kind == "unknown" for item in items):
            return False
        block = self.block(node)
        if len(items) > 1 and len(items) * block.nodes > _UNROLLED_NODES:
            return False
        if len(items) > _UNROLLED_WITH_CALLS and block.risks:
            # Each call of a function of the program takes a share of the budget.
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
        # What a loop changes is added up term by term.
        self.step(_STEPS_PER_TERM * max(len(frame.held.terms) - _USUAL_TERMS, 0))
        loop.trips = trips
        before, held = dict(frame.names), frame.held
        assigned = self.block(node).assigned
        for name in assigned.keys() & before.keys():
            value = before[name]
            if isinstance(value.payload, Entries) and name not in self.block(node).grown:
                frame.names[name] = value = replace(value, payload=any_entries(value.payload))
            elif value.known or (isinstance(value.payload, (tuple, Entries)) and value.kind != "user-function"):
                frame.names[name] = value = replace(value, constant=MISSING, payload=None)
            if name in self.block(node).grown and value.item is not None:
                frame.names[name] = replace(value, item=any_of(value.item))
        first = dict(frame.names)
        results, inner_bytes, yields = len(frame.results), dict(frame.filled), frame.yields
        recursive = [len(one.recursive) for one in self.open]
        frame.yields = ZERO
        multiplied: dict[str, tuple[Quantity, Quantity]] = {}
        body, exit_range = self._body(node, loop, bind)
        count = self._early(trips, loop, exit_range, node)
        # Functions that the body calls may fill containers around them.
        filled = {name: None for name, value in frame.names.items() if first.get(name, value) is not value}
        changes = self._changes(first, frame.names, assigned | filled, self.block(node).updates)
        rebound = rebound_names(first, frame.names, assigned.keys() - changes.keys(), count)
        moving = {*changes, *rebound}
        after = dict(frame.names)
        if moving and self.loop_depth < _TWICE_DEPTH and uses(node, moving):
            del frame.results[results:]
            for one, known in zip(self.open, recursive, strict=True):
                del one.recursive[known:]
            begun = first | rebound
            body = self._read_again(node, loop, bind, begun, changes, count, held)
            factors = multiplied_sizes(first, after, self._halfway(begun, changes, count), frame.names)
            if isinstance(node, ast.For) and factors:
                multiplied = {name: powers(first[name].size or ONE, by, count) for name, by in factors.items()}
                del frame.results[results:]
                for one, known in zip(self.open, recursive, strict=True):
                    del one.recursive[known:]
                middle = {name: replace(first[name], size=average) for name, (average, _) in multiplied.items()}
                others = {name: change for name, change in changes.items() if name not in multiplied}
                body = self._read_again(node, loop, bind, begun | middle, others, count, held)
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
                if value.kind in _GROWN and loop.items is not None and size is not None:
                    times = up_to(loop.items, size, times)
                if value.most is not None and old.size is not None and size is not None:
                    times = up_to(constant(value.most) - old.size, size, times)
                inner = frame.filled.get(name, ZERO) - inner_bytes.get(name, ZERO)
                shell = ZERO
                if value.kind in _GROWN and size is not None and old.size is not None:
                    # A container grows in steps: what the first item takes says nothing of the others.
                    first_step, steps = shell_growth(value.kind, old.size, size), size * times
                    shell = shell_growth(value.kind, old.size, steps) - first_step * times
                total = old.bytes + (bytes_ - inner) * times + inner * count + shell
                if inner.terms:
                    frame.filled[name] = inner_bytes.get(name, ZERO) + inner * count
                moved = moved_by(old.size, size, times)
                if value.kind in _TEXTS and moved is not None:
                    total = object_sizes.container(value.kind, moved)
                new = replace(
                    value,
                    constant=MISSING,
                    size=multiplied[name][1] if name in multiplied else moved,
                    number=moved_by(old.number, number, count),
                    bytes=total if total.terms else ZERO,
                )
                new = self._multiplied(node, name, new, count, after)
            elif name in multiplied:
                last = multiplied[name][1]
                held_by = object_sizes.container(value.kind, last)
                new = replace(value, constant=MISSING, payload=None, size=last, bytes=held_by)
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
        if count.evaluate(lambda name: 10.0)[1] >= FEWEST_REPORTED:
            header = node.iter if not isinstance(node, ast.While) else node.test
            self.meter.cause(CauseKind.LOOP, node.lineno - 1 if not frame.depth else frame.line, header, total, count)
        leaves_exactly = loop.exit is not None and loop.exit_share > 0
        block = self.block(node)
        if endless and not loop.exits and not self.is_caught:
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

    def _read_again(
        self,
        node: LoopNode,
        loop: Loop,
        bind: Callable[[], object] | None,
        names: Mapping[str, Value],
        changes: Mapping[str, Change],
        count: Quantity,
        held: Quantity,
    ) -> Meter:
        """The cost of an iteration in the middle of a loop, when the names that it changes have changed half-way."""
        frame = self.frame
        frame.yields = ZERO
        frame.restore(self._halfway(names, changes, count), held)
        return self._body(node, loop, bind)[0]

    @staticmethod
    def _halfway(names: Mapping[str, Value], changes: Mapping[str, Change], count: Quantity) -> dict[str, Value]:
        """The names that a loop changes as they are in the middle of it."""
        middle, half = dict(names), count.times(0.5)
        for name, (size, number, bytes_) in changes.items():
            value = names[name]
            middle[name] = replace(
                value,
                size=kept_size(value, between(value.size, size, count)),
                number=between(value.number, number, count),
                bytes=value.bytes + bytes_ * half,
            )
        return middle

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

    def _changes(
        self,
        before: dict[str, Value],
        after: dict[str, Value],
        assigned: Mapping[str, None],
        updates: Mapping[str, object],
    ) -> dict[str, Change]:
        """What one iteration adds to sizes, numbers and bytes of the names that it changes."""
        changes: dict[str, Change] = {}
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
            if old.kind in ("list", "tuple", "set", "dict", "str", "bytes", "deque", "bytearray", "object"):
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
        factor = factor_of(node, name)
        if factor is None:
            return value
        amount: Quantity | None = constant(2.0)
        if not isinstance(factor, Doubled):
            names, held = self.frame.names, self.frame.held
            self.frame.restore(dict(inside), held)
            amount = number_of(self.scratch(factor))
            self.frame.restore(names, held)
        bits_each = 1.0
        if isinstance(factor, Doubled):
            bits_each = factor.bits
        elif amount is not None and amount.constant is not None:
            bits_each = math.log2(max(amount.constant[1], 2.0))
        digits = count.times(bits_each / 30)
        likely = digits.evaluate(lambda size: 10.0)[1]
        if likely < 4:
            return value
        self.meter.spend(seconds("bigint.small", digits.times(0.5)) * count)
        return replace(value, constant=MISSING, number=None, size=digits, bytes=digits.times(4.0))
