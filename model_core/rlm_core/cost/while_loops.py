"""``while`` loops: counted, read trip by trip, or without end."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from rlm_core.types import CauseKind

from . import library
from .amortised import amortised_trips
from .domain.meter import ALWAYS, Meter
from .domain.quantities import ONE, Quantity, constant, of_size
from .domain.values import UNKNOWN, number_of
from .frames import Frame, Loop, LoopVariable, restore_points
from .library.unit_costs import primitive
from .loops import FEWEST_REPORTED, Loops
from .syntax import BlockSyntax
from .trip_counts import comparison, conditions, ends_inside, sides
from .trips import NEVER

_CONCRETE_TRIPS = 400
_MOST_CONCRETE_NODES = 80
_KEPT_SHARE = 6  # of the budget that is left
_UNCHANGING = frozenset({"int", "float", "bool", "str", "bytes", "none"})


class WhileLoops(Loops):
    """Reads ``while`` loops."""

    def while_loop(self, node: ast.While) -> None:
        """Read a ``while`` loop."""
        loop = Loop(node=node)
        truth = self.truth(self.scratch(node.test))
        if truth is False:
            self.value(node.test)
            self.run(node.orelse)
            return
        if isinstance(node.test, ast.Constant) and truth is True:
            self._forever(node, loop)
            return
        paid = self._paid_around(node)
        if paid is not None:
            self._loop(node, loop, self._until_exit(node, loop, paid, None), None)
            return
        ends = self._ends(node)
        endless = ends == NEVER and not ends_inside(self.block(node))
        trips = constant(ends[0], ends[2], ends[1]) if ends not in (None, NEVER) else None
        if ends is None:
            if _never_changes(node, self.block(node), self.frame):
                if truth is None:
                    self._maybe_endless(node, loop)
                    return
                endless = True
            elif truth is True and self._run_through(node, loop):
                return
            else:
                loop.items = self._worked_off(node)
                trips = loop.items or self._counted(node)
        if ends is None and trips is not None and trips.constant is not None:
            trips = trips.at_most(self._bound(node))
        if trips is None:
            trips = ONE if endless else of_size(f"?{node.lineno}")
        trips = self._until_exit(node, loop, trips, self._trip_of_while(node))
        self._set_variable(node, loop, trips)
        self._loop(node, loop, trips, None, endless=endless)

    def _paid_around(self, node: ast.While) -> Quantity | None:
        """The trips of a loop that undoes what the loop around it has done, on average."""
        around = self.frame.loops[-1] if self.frame.loops else None
        paid = amortised_trips(node, around.node) if around is not None and around.node is not None else None
        if around is None or paid is None:
            return None
        farthest, outer = self._farthest(node, paid.counter), around.trips.constant
        if farthest is None or outer is None or outer[1] <= 0:
            return paid.trips
        return constant(0.0, farthest / max(outer[0], 1.0), farthest / outer[1])

    def _farthest(self, node: ast.While, counter: str) -> float | None:
        """How far a counter may move until the condition of a loop fails, however often the loop runs."""
        for test in conditions(node):
            compared = comparison(test)
            for side, other in () if compared is None else sides(compared):
                if not (isinstance(side, ast.Name) and side.id == counter):
                    continue
                start, end = number_of(self.frame.lookup(counter) or UNKNOWN), number_of(self.scratch(other))
                distance = (end - start).constant if start is not None and end is not None else None
                if distance is not None:
                    return max(abs(distance[0]), abs(distance[2]))
        return None

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
            trips = self._until_exit(node, loop, library.ENDLESS, exit_)
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
        if has_yield and not leaves and not caught:
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
        if trips >= FEWEST_REPORTED:
            line = node.lineno - 1 if not frame.depth else frame.line
            self.meter.cause(CauseKind.LOOP, line, node.test, total.total, constant(trips))
        if loop.exits and len(frame.results) > results:
            self.stop()
        elif not loop.exits:
            self.run(node.orelse)
        return True


def _calls_next(node: ast.While) -> bool:
    """Whether a loop asks an iterator for its next item, which raises at its end."""
    return any(
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "next"
        for inner in ast.walk(node)
    )


def _is_straight(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Break))


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
    values = {name: frame.names.get(name) for name in names}
    if any(value is None for value in values.values()) or names & block.assigned.keys():
        return False
    uses = _uses(frame.node if frame.node is not None else node)
    if uses is None:
        return False
    # What is not a number or a text may be an object that its methods change, here or under another name.
    objects = {name for name, value in values.items() if value is not None and value.kind not in _UNCHANGING}
    inside = Counter(inner.id for inner in ast.walk(node.test) if isinstance(inner, ast.Name))
    return all(uses[name] == inside[name] for name in objects)


@lru_cache(maxsize=128)
def _uses(function: ast.AST) -> Counter[str] | None:
    """How often a function mentions each name; None where it binds names of the functions around."""
    names: Counter[str] = Counter()
    for inner in ast.walk(function):
        if isinstance(inner, (ast.Nonlocal, ast.Global)):
            return None
        if isinstance(inner, ast.Name):
            names[inner.id] += 1
    return names
