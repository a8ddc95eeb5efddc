"""What statements cost: assignments, branches, loops with their trip counts, early exits, exceptions."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlm_core.types import CauseKind

from . import object_sizes
from .calls import SHRINKING, Calls
from .expressions import distinct, imported_value, is_stored, literal, number_of
from .frames import Frame, Loop, joined
from .meter import ALWAYS, Meter, scaled
from .quantities import ONE, ZERO, Quantity, Range, constant, mixed, of_size
from .scope import Scope
from .syntax import BlockSyntax
from .unit_costs import each, primitive, seconds
from .values import MISSING, UNKNOWN, Entries, Value

_UNROLLED = 12
_UNROLLED_NODES = 400
_CONCRETE_TRIPS = 400
_MOST_NESTING = 40
_EXIT_GUESS = 0.3
_RAISE_GUESS = 0.05
_HANDLER_SHARE = 0.05
_TWICE_DEPTH = 4
_GROWN = frozenset({"list", "set", "dict", "deque"})


class Interpreter(Calls):
    """Reads the statements of functions."""

    nesting = 0

    def __init__(self, scope: Scope, budget: int) -> None:
        super().__init__(scope, budget)
        self.blocks: dict[int, BlockSyntax] = {}

    def block(self, node: ast.For | ast.AsyncFor | ast.While) -> BlockSyntax:
        """What a loop's body does, read once."""
        block = self.blocks.get(id(node))
        if block is None:
            block = self.blocks[id(node)] = BlockSyntax(
                [*node.body, *([] if isinstance(node, ast.While) else [node.target])]
            )
        return block

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Read statements in order, up to the first that never continues."""
        self.nesting += 1
        try:
            for statement in body:
                if self.meter.reach[2] <= 0 or self.nesting > _MOST_NESTING:
                    break
                self.statement(statement)
        finally:
            self.nesting -= 1

    def statement(self, node: ast.stmt) -> None:
        """Read one statement."""
        if _is_costless(node):
            return
        self.step()
        if not self.frame.depth:
            self.frame.line = node.lineno - 1
        match node:
            case ast.Expr():
                self.value(node.value)
            case ast.Assign():
                self._assign(node.targets, node.value)
            case ast.AnnAssign():
                if node.value is not None:
                    self._assign([node.target], node.value)
            case ast.AugAssign():
                self._augmented(node)
            case ast.Return():
                self._return(node)
            case ast.If():
                self._if(node)
            case ast.For() | ast.AsyncFor():
                self._for(node)
            case ast.While():
                self._while(node)
            case ast.With() | ast.AsyncWith():
                self._with(node)
            case ast.Try() | ast.TryStar():
                self._try(node)
            case ast.Match():
                self._match(node)
            case ast.Raise():
                self._raise(node)
            case ast.Break() | ast.Continue():
                self._leave(is_break=isinstance(node, ast.Break))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.meter.spend(primitive("def"))
                self.frame.bind(node.name, Value("user-function", name=node.name, payload=(node, self.frame)))
            case ast.ClassDef():
                self.meter.spend(primitive("class"))
                self.frame.bind(node.name, Value("unknown"))
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.frame.bind(target.id, UNKNOWN)
            case ast.Assert():
                self.value(node.test)
                self.meter.spend(primitive("branch"))
            case _:
                pass

    # Bindings

    def _assign(self, targets: Sequence[ast.expr], source: ast.expr) -> None:
        value = self.value(source)
        self.meter.spend(primitive("assign"))
        if value.kind == "object" and value.bytes.terms and isinstance(source, ast.Call):
            # `node = Node(item, node)`: the new object keeps the previous one.
            passed = {argument.id for argument in source.args if isinstance(argument, ast.Name)}
            for target in targets:
                previous = self.frame.names.get(target.id) if isinstance(target, ast.Name) else None
                if previous is not None and isinstance(target, ast.Name) and target.id in passed:
                    value = replace(value, bytes=value.bytes + previous.bytes)
                    self.frame.chained.add(target.id)
        # Chosen elements of an array are a copy; views have no bytes.
        is_copy = value.kind == "array" and isinstance(source, ast.Subscript)
        if is_stored(source) and value.bytes.terms and not is_copy:
            value = replace(value, bytes=ZERO)
        for index, target in enumerate(targets):
            self.bind_target(target, value if not index else replace(value, bytes=ZERO))
        self.hold()

    def _augmented(self, node: ast.AugAssign) -> None:
        right = self.value(node.value)
        target = node.target
        left = self.value(target) if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) else UNKNOWN
        if (
            isinstance(node.op, ast.Add)
            and isinstance(target, ast.Name)
            and left.kind in ("list", "str", "bytes", "bytearray", "deque")
        ):
            # A list is extended in place; CPython mostly extends text that nothing else holds in place, too.
            count = self.consume(right) if left.kind == "list" else self.length(right)
            if left.kind == "list":
                self.meter.spend(primitive("list.append"))
                self.meter.spend(count.times(each("build.list")))
            else:
                self.meter.spend(primitive("append.text"))
                self.meter.spend(count.times(each("concat.text")))
            item = right.item if right.item is not None else UNKNOWN
            self.grown(target.id, left, count, replace(item, bytes=ZERO) if left.kind != "list" else item)
            return
        if left.kind == "array" and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            result = self.operation(node.op, left, right)
            if isinstance(target, ast.Name):
                self.frame.bind(target.id, replace(left, constant=MISSING, bytes=left.bytes))
            del result
            return
        result = self.operation(node.op, left, right)
        self.meter.spend(primitive("assign"))
        if isinstance(target, ast.Name):
            self.frame.bind(target.id, result)
        elif isinstance(target, ast.Subscript):
            self.store_item(target, replace(result, bytes=ZERO))
        elif isinstance(target, ast.Attribute):
            self.bind_target(target, result)
        self.hold()

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.meter.spend(primitive("import.from" if isinstance(node, ast.ImportFrom) else "import"))
        for alias in node.names:
            if isinstance(node, ast.Import):
                if alias.asname is not None:
                    self.frame.bind(alias.asname, imported_value(alias.name))
                else:
                    root = alias.name.partition(".")[0]
                    self.frame.bind(root, Value("module", name=root))
            elif not node.level:
                self.frame.bind(alias.asname or alias.name, imported_value(f"{node.module}.{alias.name}"))
            else:
                self.frame.bind(alias.asname or alias.name, Value("unknown"))

    # Leaving

    def _return(self, node: ast.Return) -> None:
        value = self.value(node.value)
        self.frame.results.append((max(self.meter.reach[1], 1e-6), value))
        for loop in self.frame.loops:
            loop.exits = True
        self._stop()

    def _raise(self, node: ast.Raise) -> None:
        self.value(node.exc)
        self.meter.spend(primitive("raise"))
        for loop in self.frame.loops:
            loop.exits = True
        self._stop()

    def _leave(self, *, is_break: bool) -> None:
        if self.frame.loops and is_break:
            self.frame.loops[-1].exits = True
        self._stop()

    def _stop(self) -> None:
        self.meter.reach = (0.0, 0.0, 0.0)

    # Branches

    def _if(self, node: ast.If) -> None:
        self.meter.spend(primitive("branch"))
        share = self.probability(node.test)
        share = self._exit_share(node, share)
        self._branches([(share, node.body), (_rest(share), node.orelse)])

    def _exit_share(self, node: ast.If, share: Range) -> Range:
        """A guess for a branch that leaves: guards are rare, errors rarer; in a recursion by the number of calls."""
        if share[0] == share[2]:
            return share
        first, other = _leaves(node.body), _leaves(node.orelse)
        if first == other:
            return share
        leaving = first or other
        guess = _EXIT_GUESS
        if leaving == "raise":
            guess = _RAISE_GUESS
        elif leaving == "return" and self.frame.recurses:
            guess = self.frame.base_share
        elif first:
            guess = min(share[1], _EXIT_GUESS)
        return (share[0], guess, share[2]) if first else (share[0], 1 - guess, share[2])

    def _branches(self, branches: Sequence[tuple[Range, Sequence[ast.stmt]]]) -> None:
        taken = [(share, body) for share, body in branches if share[2] > 0]
        if len(taken) == 1 and taken[0][0][0] == 1:
            self.run(taken[0][1])
            return
        frame = self.frame
        names, held = frame.names, frame.held
        meters: list[tuple[Range, Meter]] = []
        ends: list[tuple[Range, Range, dict[str, Value], Quantity]] = []
        for share, body in taken:
            frame.restore(dict(names), held)
            before = len(frame.results)
            with self.region() as meter:
                self.path = scaled(self.path, share)
                self.run(body)
            for index in range(before, len(frame.results)):
                weight, value = frame.results[index]
                frame.results[index] = (weight * share[1], value)
            meters.append((share, meter))
            ends.append((share, meter.reach, frame.names, frame.held))
            meter.reach = ALWAYS
        outer = self.meter
        outer.branch(meters)
        low = sum(share[0] * reach[0] for share, reach, _, _ in ends)
        likely = sum(share[1] * reach[1] for share, reach, _, _ in ends)
        high = min(sum(share[2] * reach[2] for share, reach, _, _ in ends), 1.0)
        if all(reach[0] == 1 for _, reach, _, _ in ends):
            low = likely = 1.0
        if (low, likely, high) != (1.0, 1.0, 1.0):
            outer.reach = (outer.reach[0] * low, outer.reach[1] * likely, outer.reach[2] * high)
        going = [(share[1] * reach[1] or 1e-6, found, kept) for share, reach, found, kept in ends if reach[2] > 0]
        self._merge(names, held, going)

    def _merge(
        self, names: dict[str, Value], held: Quantity, ends: list[tuple[float, dict[str, Value], Quantity]]
    ) -> None:
        if not ends:
            self.frame.restore(names, held)
            return
        if len(ends) == 1:
            self.frame.restore(ends[0][1], ends[0][2])
            return
        total = sum(weight for weight, _, _ in ends)
        merged = dict(ends[0][1])
        for name in dict.fromkeys(name for _, bound, _ in ends for name in bound):
            values = [(weight / total, bound.get(name, UNKNOWN)) for weight, bound, _ in ends]
            if any(value is not values[0][1] for _, value in values):
                merged[name] = joined(values)
            else:
                merged[name] = values[0][1]
        self.frame.restore(merged, mixed((weight / total, kept) for weight, _, kept in ends))

    def _match(self, node: ast.Match) -> None:
        self.value(node.subject)
        self.meter.spend(primitive("match"))
        share = 1 / max(len(node.cases), 1)
        self._branches([((0.0, share, 1.0), case.body) for case in node.cases])

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        self.meter.spend(primitive("with"))
        suppresses = False
        for item in node.items:
            value = self.value(item.context_expr)
            suppresses |= "suppress" in value.name
            self.opaque += value.kind in ("unknown", "object")
            if item.optional_vars is not None:
                self.bind_target(item.optional_vars, value)
        self.frame.handlers += suppresses
        self.run(node.body)
        self.frame.handlers -= suppresses

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        self.meter.spend(primitive("try"))
        before = self.meter.reach
        self.frame.handlers += bool(node.handlers)
        self.run(node.body)
        self.frame.handlers -= bool(node.handlers)
        if node.orelse:
            self.run(node.orelse)
        after = self.meter.reach
        if node.handlers:
            share = _HANDLER_SHARE / len(node.handlers)
            certain = any(isinstance(statement, ast.Raise) for statement in node.body)
            frame, names, held = self.frame, self.frame.names, self.frame.held
            self.meter.reach = before
            likely = 0.0
            for handler in node.handlers:
                frame.restore(dict(names), held)
                if handler.name:
                    frame.names[handler.name] = Value("object", name="Exception")
                with self.region() as meter:
                    meter.spend(primitive("raise"))
                    self.run(handler.body)
                likely += (1.0 / len(node.handlers) if certain else share) * meter.reach[1]
                meter.reach = ALWAYS
                chance = 1.0 / len(node.handlers) if certain else share
                self.meter.branch([((0.0, chance, 1.0), meter), ((0.0, 1 - chance, 1.0), Meter())])
            frame.restore(names, held)
            # A handler that does not leave goes on behind the statement.
            self.meter.reach = (
                after[0],
                min(max(after[1], before[1] * likely), 1.0),
                max(after[2], before[2] if likely else 0.0),
            )
        if node.finalbody:
            reach = self.meter.reach
            self.meter.reach = before
            self.run(node.finalbody)
            self.meter.reach = reach if self.meter.reach[2] > 0 else self.meter.reach

    # Loops

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        iterable = self.value(node.iter)
        if self._unrolled(node, iterable):
            return
        loop = Loop()
        with self.region() as source:
            trips = self.consume(iterable)
            self.meter.spend(primitive("loop.start"))
        if source.endless is not None:
            endless, source.endless = True, None
        else:
            endless = False
        names = dict(self.frame.names)
        variable = self.bind_items(node.target, iterable, trips)
        loop.variable = variable
        self.frame.restore(names, self.frame.held)
        count = self._loop(node, loop, trips, lambda: self.bind_items(node.target, iterable, trips), endless=endless)
        # A loop that is left early leaves the rest of a lazy iterable alone.
        share = ONE
        whole, ran = trips.constant, count.constant
        if whole is not None and ran is not None and whole[1] > 0:
            share = Quantity({(): (min(ran[0] / whole[0], 1.0) if whole[0] else 1.0, min(ran[1] / whole[1], 1.0), 1.0)})
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
        self.frame.loops.append(loop)
        with self.region() as total:
            for item in names_of_items:
                if total.reach[2] <= 0:
                    break
                total.spend(primitive("loop.for"))
                self.bind_target(node.target, item)
                before = total.reach
                broken = loop.exit_share
                with self.region() as body:
                    self.run(node.body)
                going = body.reach
                left = self._left_by(node, going)
                body.reach = ALWAYS
                total.add(body)
                total.reach = (
                    (before[0] * left[0], before[1] * left[1], before[2] * left[2]) if left != ALWAYS else before
                )
                del broken
        self.frame.loops.pop()
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

    def _left_by(self, node: ast.For | ast.AsyncFor | ast.While, going: Range) -> Range:
        """The share of iterations after which the next follows: ``continue`` ends only one of them."""
        block = self.block(node)
        if going == ALWAYS or not block.continues:
            return going
        if not block.breaks and not block.returns:
            return ALWAYS
        return (going[0], max(going[1], 0.7), 1.0)

    def _loop(
        self,
        node: ast.For | ast.AsyncFor | ast.While,
        loop: Loop,
        trips: Quantity,
        bind: object,
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
        half = count.times(0.5)
        sensitive = changes and self.loop_depth < _TWICE_DEPTH and _reads(node, set(changes))
        after = dict(frame.names)
        if sensitive:
            del frame.results[results:]
            frame.yields = ZERO
            frame.restore(dict(first), held)
            for name, (size, number, bytes_) in changes.items():
                value = first[name]
                frame.names[name] = replace(
                    value,
                    size=_moved(value.size, size, half),
                    number=_moved(value.number, number, half),
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
        if count.evaluate(lambda name: 10.0)[1] >= 100:
            header = node.iter if not isinstance(node, ast.While) else node.test
            self.meter.cause(CauseKind.LOOP, node.lineno - 1 if not frame.depth else frame.line, header, total, count)
        if node.orelse:
            self.run(node.orelse)
        if endless and not loop.exits and not frame.handlers:
            self.meter.run_on(node.lineno - 1 if not frame.depth else frame.line)
            self._stop()
        elif loop.exits and self.block(node).returns and exit_range[1] < 1 and not self.block(node).breaks:
            reach = self.meter.reach
            self.meter.reach = (0.0, reach[1] * 0.5, reach[2])
        elif exit_range[2] <= 0 and self.block(node).returns and not self.block(node).breaks and low >= 1:
            self._stop()
        return count

    def _body(self, node: ast.For | ast.AsyncFor | ast.While, loop: Loop, bind: object) -> tuple[Meter, Range]:
        """The cost of one iteration, and the share of iterations that the next one follows."""
        frame = self.frame
        frame.loops.append(loop)
        self.loop_depth += 1
        with self.region() as meter:
            if callable(bind):
                bind()
            if isinstance(node, ast.While):
                self.value(node.test)
                self.meter.spend(primitive("branch"))
            self.run(node.body)
            going = meter.reach
            meter.reach = ALWAYS
        self.loop_depth -= 1
        frame.loops.pop()
        return meter, self._left_by(node, going)

    def _early(self, trips: Quantity, loop: Loop, going: Range, node: ast.For | ast.AsyncFor | ast.While) -> Quantity:
        """The number of iterations, in view of exits inside the body."""
        if going == ALWAYS or not loop.exits:
            return trips
        exact = self._exit_trip(node, loop)
        if exact is not None:
            whole = trips.constant
            return constant(min(exact, whole[1])) if whole is not None else constant(exact)
        if going[2] <= 0:
            return mixed([(1.0, ONE)]) if trips.constant is None or trips.constant[1] >= 1 else trips
        leaving = max(1 - going[1], 1e-3)
        whole = trips.constant
        only_errors = not (self.block(node).breaks or self.block(node).returns)
        if only_errors:
            return mixed([(0.0, ONE), (1.0, trips)])
        if whole is not None:
            low, likely, high = whole
            if leaving < 0.2:
                expected = (
                    min((1 - (1 - leaving) ** min(likely, 1e6)) / leaving, likely) if leaving < 0.06 else likely / 2
                )
            else:
                expected = likely / 2
            return Quantity({(): (min(1.0, low), max(expected, min(likely, 1.0)), high)})
        return mixed([(0.5, ZERO), (0.5, trips)])

    def _exit_trip(self, node: ast.For | ast.AsyncFor | ast.While, loop: Loop) -> float | None:
        """The iteration at which ``if variable >= limit: break`` leaves a loop over known numbers."""
        variable = loop.variable
        if variable is None or variable.step == 0:
            return None
        exits = [
            statement
            for statement in node.body
            if isinstance(statement, ast.If) and _leaves(statement.body) and "raise" not in _leaves(statement.body)
        ]
        others = [BlockSyntax([statement]) for statement in node.body if statement not in exits]
        if len(exits) != 1 or any(block.breaks or block.returns for block in others):
            return None
        test = exits[0].test
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name)):
            return None
        if test.left.id != variable.name:
            return None
        limit = number_of(self.scratch(test.comparators[0]))
        bound = limit.exact if limit is not None else None
        if bound is None:
            return None
        steps = (bound - variable.start) / variable.step
        match test.ops[0]:
            case ast.Gt() | ast.Lt():
                return max(math.floor(steps) + 2, 1.0)
            case ast.GtE() | ast.LtE() | ast.Eq():
                return max(math.ceil(steps) + 1, 1.0) if steps >= 0 else None
            case _:
                return None

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

    def _while(self, node: ast.While) -> None:
        loop = Loop()
        with self.region(Meter()):
            test = self.value(node.test)
        truth = self.truth(test)
        if truth is False:
            self.value(node.test)
            return
        if isinstance(node.test, ast.Constant) and truth is True:
            self._forever(node, loop)
            return
        if truth is True and self._runs_away(node):
            self._loop(node, loop, ONE, None, endless=True)
            return
        trips = self._counted(node)
        endless = False
        if trips is None and _never_changes(node, self.block(node), self.frame):
            endless, trips = True, ONE
            if truth is None:
                self._maybe_endless(node, loop)
                return
        if trips is None and truth is True:
            trips = self._concrete(node)
        if trips is None:
            trips = of_size(f"?{node.lineno}")
        self._loop(node, loop, trips, None, endless=endless)

    def _maybe_endless(self, node: ast.While, loop: Loop) -> None:
        """A loop whose condition never changes: it runs for ever or not at all."""
        with self.region() as meter:
            self._loop(node, loop, ONE, None, endless=True)
        meter.reach = ALWAYS
        self.meter.branch([((0.0, 0.5, 1.0), meter), ((0.0, 0.5, 1.0), Meter())])

    def _forever(self, node: ast.While, loop: Loop) -> None:
        """``while True``: ends only by an exit inside."""
        exact = self._counter_exit(node)
        if exact is not None:
            loop.variable = None
            self._loop(node, loop, exact, None)
            return
        block = self.block(node)
        leaves = block.breaks or block.returns or block.raises or block.leaves_program or _calls_next(node)
        has_yield = self.block(node).yields
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
        if leaves and not self.block(node).breaks and not self.block(node).continues and _is_straight(node.body):
            trips = ONE
        self._loop(node, loop, trips, None, endless=endless)
        if not endless and not self.block(node).breaks and not caught:
            self._stop()

    def _counter_exit(self, node: ast.While) -> Quantity | None:
        """The iterations of ``while True`` with a counter that a ``break`` compares with a number."""
        for statement in node.body:
            if (
                isinstance(statement, ast.If)
                and _leaves(statement.body) in ("break", "return")
                and isinstance(statement.test, ast.Compare)
            ):
                count = self._counted_test(node, statement.test, leaves=True)
                if count is not None:
                    return count
        return None

    def _counted(self, node: ast.While) -> Quantity | None:
        """The iterations of a loop whose condition compares a counter that each iteration moves or scales."""
        tests = (
            node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
        )
        counts = []
        for test in tests:
            if isinstance(test, ast.Compare) and len(test.ops) == 1:
                count = self._counted_test(node, test, leaves=False)
            elif isinstance(test, ast.Name) and (drained := self._drained(node, test.id)) is not None:
                count = drained
            elif isinstance(test, ast.Name):
                count = self._counted_test(node, ast.Compare(test, [ast.Gt()], [ast.Constant(0)]), leaves=False)
            else:
                count = None
            if count is not None:
                counts.append(count)
        if not counts:
            return None
        if len(counts) < len(tests):
            return mixed([(0.5, ONE), (0.5, counts[0])])
        return counts[0]

    def _counted_test(self, node: ast.While, test: ast.Compare, *, leaves: bool) -> Quantity | None:
        left, right = test.left, test.comparators[0]
        filled = self._filled_up(node, left, right)
        if filled is not None:
            return filled
        changed = self.block(node).updates
        for side, other, flipped in ((left, right, False), (right, left, True)):
            if not (isinstance(side, ast.Name) and side.id in changed):
                if (
                    isinstance(side, ast.BinOp)
                    and isinstance(side.op, (ast.Mult, ast.Pow))
                    and isinstance(side.left, ast.Name)
                    and side.left.id in changed
                ):
                    # `while i * i <= n`: up to the square root.
                    bound = number_of(self.scratch(other))
                    update = changed[side.left.id]
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
                    return distance.log()
                return None
            if update is None or start is None or bound is None:
                return None
            if isinstance(other, ast.Name) and other.id in changed and update[0] == "+":
                # Two counters that meet.
                return (bound - start) if not flipped else (start - bound)
            sign, amount = update
            step = number_of(self.scratch(amount)) if isinstance(amount, ast.expr) else constant(amount)
            value = step.constant[1] if step is not None and step.constant is not None else None
            if value is None or value <= 0:
                return None
            return _count_steps(sign, value, start, bound)
        del leaves
        return None

    def _runs_away(self, node: ast.While) -> bool:
        """Whether a loop moves its counter away from the bound: ``while i < 10: i -= 1``."""
        test, block = node.test, self.block(node)
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name)):
            return False
        update = block.updates.get(test.left.id)
        if update is None or update[0] not in "+-" or not isinstance(test.comparators[0], ast.Constant):
            return False
        step = number_of(self.scratch(update[1])) if isinstance(update[1], ast.expr) else None
        if step is None or step.exact is None or step.exact <= 0 or block.breaks or block.returns or block.raises:
            return False
        rises = update[0] == "+"
        return isinstance(test.ops[0], (ast.Gt, ast.GtE) if rises else (ast.Lt, ast.LtE))

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

    def _concrete(self, node: ast.While) -> Quantity | None:
        """Run a short loop over known numbers by value: the number of iterations."""
        frame = self.frame
        if sum(1 for _ in ast.walk(node)) > 80 or any(
            isinstance(inner, (ast.For, ast.While)) for inner in ast.walk(ast.Module(node.body, []))
        ):
            return None
        names, held, results = dict(frame.names), frame.held, len(frame.results)
        trips = 0
        try:
            with self.region(Meter()):
                while trips < _CONCRETE_TRIPS:
                    truth = self.truth(self.value(node.test))
                    if truth is None:
                        return None
                    if not truth:
                        return constant(trips)
                    self.run(node.body)
                    if self.meter.reach != ALWAYS:
                        return constant(trips + 1) if self.meter.reach[2] <= 0 else None
                    trips += 1
        finally:
            frame.restore(names, held)
            del frame.results[results:]
        return None


def _is_costless(node: ast.stmt) -> bool:
    """Whether a statement is a docstring or a type hint alone, which must not change any fact."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.AnnAssign) and node.value is None


class _Doubled(ast.expr):
    """The factor of a number that is shifted or added to itself."""

    _fields = ()
    bits = 1.0


def _rest(share: Range) -> Range:
    return 1 - share[2], 1 - share[1], 1 - share[0]


def _shell_growth(kind: str, size: Quantity, added: Quantity) -> Quantity:
    """The bytes that a container takes more without its items, when it grows item by item."""
    before = object_sizes.container(kind, size, grown=True)
    return object_sizes.container(kind, size + added, grown=True) - before


def _moved(old: Quantity | None, step: Quantity | None, times: Quantity) -> Quantity | None:
    return old if old is None or step is None else old + step * times


def _count_steps(sign: str, step: float, start: Quantity, bound: Quantity) -> Quantity | None:
    if sign in "+-":
        distance = (bound - start) if sign == "+" else (start - bound)
        fixed = distance.constant
        if fixed is not None:
            low, likely, high = (max(math.ceil(value / step), 0.0) for value in fixed)
            return Quantity({(): (low, likely, high)})
        return distance.times(1 / step)
    if step <= 1:
        return None
    ends = (start.constant, bound.constant)
    if ends[0] is not None and ends[1] is not None:
        smaller, larger_ = sorted((max(ends[0][1], 1.0), max(ends[1][1], 1.0)))
        return constant(max(math.ceil(math.log(larger_ / smaller) / math.log(step)), 1.0))
    unknown = bound if sign == "*" else start
    return unknown.log().times(1 / math.log2(step)) if step != 2 else unknown.log()


def _calls_next(node: ast.While) -> bool:
    """Whether a loop asks an iterator for its next item, which raises at its end."""
    return any(
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "next"
        for inner in ast.walk(node)
    )


def _is_straight(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Break))


def _leaves(body: Sequence[ast.stmt]) -> str:
    """How a block ends: ``return``, ``raise``, ``break``, ``continue``, or nothing."""
    last = body[-1] if body else None
    if isinstance(last, ast.Return):
        return "return"
    if isinstance(last, ast.Raise):
        return "raise"
    return "break" if isinstance(last, ast.Break) else "continue" if isinstance(last, ast.Continue) else ""


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
