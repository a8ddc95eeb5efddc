"""What statements cost: assignments, branches, early exits, exceptions; loops are in :mod:`loops`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from .comprehensions import same_name
from .conditions import Condition, rest_of
from .containers import is_stored
from .domain import object_sizes
from .domain.folding import MISSING
from .domain.meter import ALWAYS, Meter, scaled
from .domain.quantities import ZERO, Quantity, Range, constant, mixed
from .domain.values import NUMBERS, UNKNOWN, Value
from .expressions import imported_value
from .frames import joined
from .library.unit_costs import each, primitive
from .syntax import leaving
from .while_loops import WhileLoops

_MOST_NESTING = 40
_EXIT_GUESS = 0.3
_RAISE_GUESS = 0.05
_HANDLER_SHARE = 0.05
_INTERRUPTS = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError"})
_RAISED = 0.5  # of what raising and catching an exception takes


class Interpreter(WhileLoops):
    """Reads the statements of functions."""

    nesting = 0

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
                self.for_loop(node)
            case ast.While():
                self.while_loop(node)
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
                names, held = self.frame.names, self.frame.held
                self.frame.restore(dict(names), held)
                self.run(node.body)
                self.frame.restore(names, held)
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
        is_new = value.kind == "object" and isinstance(source, ast.Call)
        if (is_new or isinstance(source, (ast.Tuple, ast.List, ast.Dict))) and value.bytes.terms:
            # `node = Node(item, node)` and `node = (item, node)`: the new object keeps the previous one.
            held_in = {ast.Call: "args", ast.Dict: "values"}.get(type(source), "elts")
            parts: Sequence[ast.expr] = getattr(source, held_in)
            passed = {part.id for part in parts if isinstance(part, ast.Name)}
            for target in targets:
                previous = self.frame.names.get(target.id) if isinstance(target, ast.Name) else None
                if previous is not None and isinstance(target, ast.Name) and target.id in passed:
                    value = replace(value, bytes=value.bytes + previous.bytes)
                    self.frame.chained.add(target.id)
        # Chosen elements of an array are a copy; views have no bytes.
        is_copy = value.kind == "array" and isinstance(source, ast.Subscript)
        if is_stored(source) and value.bytes.terms and not is_copy:
            value = replace(value, bytes=ZERO)
        if isinstance(source, ast.Name) and any(loop.counts(source.id) for loop in self.frame.loops):
            # The number of a trip lives on in the list that it is put into.
            value = replace(value, bytes=constant(object_sizes.scalar("int")))
        for index, target in enumerate(targets):
            # `d[i] = i`: the key is the value.
            is_held = index > 0 or (isinstance(target, ast.Subscript) and same_name(target.slice, source))
            self.bind_target(target, replace(value, bytes=ZERO) if is_held else value)
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
            self.store_item(target, result if result.kind in NUMBERS else replace(result, bytes=ZERO))
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
        if self.frame.around:
            self.frame.note_put(scaled(self.path, self.meter.reach)[1])
        for loop in self.frame.loops:
            loop.exits = True
        self.stop()

    def _raise(self, node: ast.Raise) -> None:
        self.value(node.exc)
        self.meter.spend(primitive("raise") * _RAISED)
        for loop in self.frame.loops:
            loop.exits = True
        self.stop()

    def _leave(self, *, is_break: bool) -> None:
        if self.frame.loops and is_break:
            self.frame.loops[-1].exits = True
        self.stop()

    # Branches

    def _if(self, node: ast.If) -> None:
        self.meter.spend(primitive("branch"))
        condition = self.judged(node.test)
        loop = self.frame.loops[-1] if self.frame.loops else None
        if loop is not None and loop.exit is node:
            leaves = loop.exit_share
            condition = replace(condition, share=(leaves, leaves, leaves), rest=(1 - leaves, 1 - leaves, 1 - leaves))
        else:
            condition = self._in_view_of_exits(node, condition)
        self.branches([(condition.share, node.body), (condition.rest, node.orelse)], condition)

    def _in_view_of_exits(self, node: ast.If, condition: Condition) -> Condition:
        """A guess for a branch that leaves: guards are rare, errors rarer; in a recursion by the number of calls."""
        first, other = leaving(node.body), leaving(node.orelse)
        share = condition.share
        if first == other or share[0] == 1 or share[2] == 0 or (condition.variable is None and share[0] == share[2]):
            return condition
        leaves = first or other
        guess = _EXIT_GUESS
        if leaves == "raise":
            guess = _RAISE_GUESS
        elif leaves == "return" and self.frame.recurses and share[0] < share[2]:
            # All checks together end that share of the calls.
            guess = 1 - (1 - self.frame.base_share) ** (1 / self.frame.checks)
        elif first:
            guess = min(share[1], _EXIT_GUESS)
        if condition.variable is not None:
            if leaves == "continue":
                return condition
            # In one trip at most: the share of all trips says little of those before it.
            share = (0.0, guess, 1.0)
        share = (share[0], guess, share[2]) if first else (share[0], 1 - guess, share[2])
        return replace(condition, share=share, rest=rest_of(share))

    def branches(
        self, branches: Sequence[tuple[Range, Sequence[ast.stmt]]], condition: Condition | None = None
    ) -> None:
        """Read one of several blocks, each with its share of the runs; ``condition`` chooses between two of them."""
        taken = [(index, share, body) for index, (share, body) in enumerate(branches) if share[2] > 0]
        if len(taken) == 1 and taken[0][1][0] == 1:
            self.run(taken[0][2])
            return
        frame = self.frame
        names, held = frame.names, frame.held
        variable = condition.variable if condition is not None else None
        remaining: list[int] = []
        meters: list[tuple[Range, Meter]] = []
        ends: list[tuple[Range, Range, dict[str, Value], Quantity]] = []
        for index, share, body in taken:
            frame.restore(dict(names), held)
            if variable is not None and condition is not None:
                variable.points = condition.misses if index else condition.hits
            before = len(frame.results)
            with self.region() as meter:
                self.path = scaled(self.path, share)
                self.run(body)
            for result in range(before, len(frame.results)):
                weight, value = frame.results[result]
                frame.results[result] = (weight * share[1], value)
            if variable is not None and meter.reach[2] > 0:
                remaining += variable.points
            meters.append((share, meter))
            ends.append((share, meter.reach, frame.names, frame.held))
            meter.reach = ALWAYS
        if variable is not None:
            variable.points = sorted(remaining)
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
        self.branches([((0.0, 1 / len(node.cases), 1.0), case.body) for case in node.cases])

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
        catches = any(_catches_errors(handler) for handler in node.handlers)
        self.frame.handlers += catches
        self.run(node.body)
        self.frame.handlers -= catches
        if node.orelse:
            # Nothing says that the statements before do not raise.
            self.meter.reach = (0.0, *self.meter.reach[1:]) if node.handlers else self.meter.reach
            self.run(node.orelse)
        after = self.meter.reach
        if node.handlers:
            share = _HANDLER_SHARE / len(node.handlers)
            certain = any(isinstance(statement, ast.Raise) for statement in node.body)
            frame, names, held = self.frame, self.frame.names, self.frame.held
            self.meter.reach = before
            likely, leaves = 0.0, False
            for handler in node.handlers:
                frame.restore(dict(names), held)
                if handler.name:
                    frame.names[handler.name] = Value("object", name="Exception")
                chance = 1.0 / len(node.handlers) if certain else share
                with self.region() as meter:
                    meter.spend(primitive("raise") * (1 - _RAISED if certain else 1.0))
                    self.path = scaled(self.path, (0.0, chance, 1.0))
                    self.run(handler.body)
                meter.waits = [replace(wait, on_error=True) for wait in meter.waits]
                likely += chance * meter.reach[1]
                leaves = leaves or meter.reach[0] < 1
                meter.reach = ALWAYS
                self.meter.branch([((0.0, chance, 1.0), meter), ((0.0, 1 - chance, 1.0), Meter())])
            frame.restore(names, held)
            # A handler that does not leave goes on behind the statement.
            self.meter.reach = (
                0.0 if leaves else after[0],
                min(max(after[1], before[1] * likely), 1.0),
                max(after[2], before[2] if likely else 0.0),
            )
        if node.finalbody:
            reach = self.meter.reach
            self.meter.reach = before
            self.run(node.finalbody)
            self.meter.reach = reach if self.meter.reach[2] > 0 else self.meter.reach


def _catches_errors(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches what the code itself may raise, and not only what ends it from outside."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(name).rpartition(".")[2] not in _INTERRUPTS for name in caught)


def _is_costless(node: ast.stmt) -> bool:
    """Whether a statement is a docstring or a type hint alone, which must not change any fact."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.AnnAssign) and node.value is None
