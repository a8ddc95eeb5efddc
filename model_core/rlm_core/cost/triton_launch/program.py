"""One program of a launch: statements of its kernel, followed in order.

A long loop is followed at its first iterations, in the middle and at its end: what it carries from one to the next must
grow by the same step. Where data decide, both branches are followed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..concrete.frame import RULE_ERRORS, Frame, Signal, call_function, evaluate, execute
from ..concrete.syntax import EXPRESSIONS, STATEMENTS, bind, each_item
from ..concrete.values import UNKNOWN, Named, NameScope, SourceFunction, Value
from ..domain.records import replace
from .arithmetic import binary, compare, counted, truth
from .tally import Counts, Tally
from .values import BlockPointer, Data, NotUnderstood, Pointer, dtype_of, shape_of

_BUILTINS = frozenset({"range", "min", "max", "abs", "len", "float", "int", "bool", "print", "tuple", "isinstance"})
_FOLLOWED = 8  # iterations of a loop that is followed whole
_PROBED = 3  # iterations that show how what a loop carries grows
_LIKELY = 8  # iterations of a loop whose number data decide
_MOST_UNLIKE = 4_000  # iterations of a loop that does not grow by the same step
_MOST_SEARCHED = 2**40


@dataclass(slots=True, eq=False)
class Program(Frame):
    """A program of a launch: its place in the grid and the names that its kernel has bound."""

    tally: Tally
    scope: NameScope
    place: tuple[int, ...]
    grid: tuple[int, ...]
    depth: int = 0
    expressions: ClassVar[dict[type[ast.expr], Callable[[Any, Any], Value]]] = {**EXPRESSIONS}
    statements: ClassVar[dict[type[ast.stmt], Callable[[Any, Any], Signal]]] = {**STATEMENTS}
    most_depth: ClassVar[int] = 16

    @property
    def budget(self) -> Tally:
        """The tally, which counts the steps."""
        return self.tally

    def enter(self, function: SourceFunction, names: Named, args: Sequence[Value]) -> Program:
        """Return the frame of a call of a device function."""
        scope = NameScope(function.scope, names)
        return Program(self.tally, scope, self.place, self.grid, self.depth + 1)

    def is_builtin(self, name: str) -> bool:
        """Return whether a name is one of Python's that kernels may use."""
        return name in _BUILTINS

    def truth(self, value: Value) -> bool | None:
        """Return whether a value counts as true; None where data decide."""
        return None if value is UNKNOWN else truth(value)

    def binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return ``left OP right``; operations on data are counted."""
        return UNKNOWN if left is UNKNOWN or right is UNKNOWN else binary(self.tally, kind, left, right)

    def unary(self, kind: type[ast.unaryop], value: Value) -> Value:
        """Return ``OP value``."""
        if isinstance(value, Data):
            return value if value.dtype == "bool" else counted(self.tally, value.shape, value.dtype)
        if kind is ast.Invert:
            return not value if isinstance(value, bool) else ~value
        return -value if kind is ast.USub else value

    def compare(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return ``left OP right``: a truth value, a known mask, or data."""
        if left is UNKNOWN or right is UNKNOWN:
            shape = shape_of(right if left is UNKNOWN else left)
            return UNKNOWN if kind in (ast.Is, ast.IsNot) else Data(shape, "bool")
        return compare(self.tally, kind, left, right)

    def undecided(self, kind: type[ast.boolop | ast.unaryop], values: Sequence[Value]) -> Value:
        """Return data; ``and`` and ``or`` of blocks are those of their elements."""
        result, *others = values
        if kind is ast.Not:
            return Data(shape_of(result), "bool")
        for value in others:
            result = self.binary(ast.BitAnd if kind is ast.And else ast.BitOr, result, value)
        return Data((), "bool") if result is UNKNOWN and not others else result

    def either(self, body: ast.expr, orelse: ast.expr) -> Value:
        """Return a value that is one or the other."""
        return joined(evaluate(self, body), evaluate(self, orelse))

    def items(self, value: Value) -> list[Value]:
        """Return the items of a tuple."""
        return list(value)

    def parts(self, value: Value, targets: Sequence[ast.expr]) -> Sequence[Value]:
        """Return the parts of a tuple for as many targets; UNKNOWN for what does not fit."""
        is_fitting = isinstance(value, (tuple, list)) and len(value) == len(targets)
        return value if is_fitting else [UNKNOWN] * len(targets)

    def store(self, target: ast.expr, value: Value) -> None:
        """Do nothing: kernels store through pointers."""


def call_device(program: Program, function: SourceFunction, args: Sequence[Value], named: Named) -> Value:
    """Follow a device function and return its result; that it returns early does not end the program.

    Raises:
        LimitReached: calls nest too deeply, or the budget is used up.
    """
    certain = program.tally.certain
    result = call_function(program, function, args, named)
    program.tally.certain = certain
    return result


def _if(program: Program, node: ast.If) -> Signal:
    value = evaluate(program, node.test)
    known = program.truth(value)
    if known is not None:
        return execute(program, node.body if known else node.orelse)
    if value is UNKNOWN:
        program.tally.exact = False
    before, tally = program.scope.names, program.tally
    signals: list[Signal] = []
    branches: list[dict[str, Value]] = []
    counts: list[Counts] = []
    for body in (node.body, node.orelse):
        program.scope.names = dict(before)
        counts.append(tally.during(lambda body=body: signals.append(execute(program, body))))  # type: ignore[misc]
        branches.append(program.scope.names)
    least, most = np.minimum(*counts), np.maximum(*counts)
    tally.counts += np.stack([least[0], most[1], most[2]])
    left = [signal is not None for signal in signals]
    if all(left):
        program.scope.names = branches[0]
        return signals[0]
    if any(left):
        tally.certain = False
        program.scope.names = branches[1 if left[0] else 0]
        return None
    names = {**branches[0], **branches[1]}
    for name in names:
        values = [branch[name] for branch in branches if name in branch]
        names[name] = values[0] if len(values) == 1 else joined(*values)
    program.scope.names = names
    return None


def joined(left: Value, right: Value) -> Value:
    """A value that is one or the other."""
    if left is right:
        return left
    if isinstance(left, Pointer) and isinstance(right, Pointer):
        return replace(left, offset=joined(left.offset, right.offset))
    numbers = (int, float, np.ndarray, Data)
    if isinstance(left, numbers) and isinstance(right, numbers):
        if not isinstance(left, Data) and not isinstance(right, Data) and np.array_equal(left, right):
            return left
        shape = shape_of(left) or shape_of(right)
        return Data(shape, dtype_of(left if isinstance(left, Data) else right))
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return tuple(map(joined, left, right))
    return left if _same(left, right) else UNKNOWN


def _same(left: Value, right: Value) -> bool:
    try:
        return bool(left == right)
    except ValueError:
        return False


def _for(program: Program, node: ast.For) -> Signal:
    items = evaluate(program, node.iter)
    if isinstance(items, (tuple, list)):
        return each_item(program, node, items)
    if not isinstance(items, range):
        bind(program, node.target, Data((), "int32"))
        return _uncertain(program, node.body)
    return _iterate(program, node, len(items), lambda number: bind(program, node.target, items[number]))


def _while(program: Program, node: ast.While) -> Signal:
    for _ in range(_PROBED):
        known = program.truth(evaluate(program, node.test))
        if known is None:
            return _uncertain(program, node.body)
        if not known:
            return None
        signal = execute(program, node.body)
        if signal is not None and signal[0] != "continue":
            return signal if signal[0] == "return" else None
    count = _count(program, node)
    return _iterate(program, node, count, lambda number: None) if count is not None else _uncertain(program, node.body)


def _count(program: Program, node: ast.While) -> int | None:
    """The iterations until a condition fails, if what the loop carries grows evenly; None if that is unknown."""
    start = dict(program.scope.names)
    tally, carried = program.tally, _carried(node)
    states = [_state(program, carried)]
    for _ in range(2):
        tally.during(lambda: execute(program, node.body))
        states.append(_state(program, carried))
    end = dict(program.scope.names)
    steps = _steps(*states)

    def holds(number: int) -> bool:
        program.scope.names = dict(end)
        _jump(program, states[-1], steps or {}, number - 2)
        return program.truth(evaluate(program, node.test)) is True

    count = None
    if steps is not None:
        high = 4
        while high < _MOST_SEARCHED and holds(high):
            high *= 2
        low = 0
        while low < high < _MOST_SEARCHED:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if holds(middle) else (low, middle)
        count = low if high < _MOST_SEARCHED else None
    program.scope.names = start
    return count


def _uncertain(program: Program, body: Sequence[ast.stmt]) -> Signal:
    """A loop whose number of iterations data decide."""
    tally = program.tally
    before = dict(program.scope.names)
    counts = tally.during(lambda: execute(program, body))
    with np.errstate(invalid="ignore"):
        most = np.where(counts[2] > 0, np.inf, 0.0)
    tally.counts += np.stack([np.zeros_like(most), _LIKELY * counts[1], most])
    program.scope.names = {name: joined(before.get(name, value), value) for name, value in program.scope.names.items()}
    return None


def _iterate(program: Program, node: ast.For | ast.While, count: int, start: Callable[[int], None]) -> Signal:
    """A loop of a known number of iterations; ``start`` begins one."""
    tally = program.tally
    signals: list[Signal] = []

    def follow(number: int) -> None:
        start(number)
        signals.append(execute(program, node.body))

    def counted(number: int) -> Counts:
        return tally.during(lambda: follow(number))

    def ended() -> bool:
        return signals[-1] is not None and signals[-1][0] != "continue"

    carried = _carried(node)
    states = [_state(program, carried)]
    whole = count <= _FOLLOWED
    total = np.zeros_like(tally.counts)
    last = total
    for number in range(count if whole else _PROBED):
        last = counted(number)
        total = total + last
        if ended():
            tally.counts += total
            return signals[-1] if signals[-1] is not None and signals[-1][0] == "return" else None
        states.append(_state(program, carried))
    if not whole:
        steps = _steps(*states[-3:])
        if steps is None:
            return _unlike(program, follow, signals, count, total)
        # Simpson's rule over all but the first two iterations and the last one, which masks often cut short.
        middle, end = (_PROBED - 1 + count - 2) // 2, count - 2
        nodes = []
        for number in (middle, end):
            _jump(program, states[-1], steps, number - _PROBED)
            nodes.append(counted(number))
        total = total - last + (count - _PROBED) * (last + 4 * nodes[0] + nodes[1]) / 6
        if not np.array_equal(last[2], nodes[0][2]):
            tally.exact = False
        _jump(program, states[-1], steps, count - 1 - _PROBED)
        total = total + counted(count - 1)
    tally.counts += total
    return signals[-1] if signals and signals[-1] is not None and signals[-1][0] == "return" else None


def _unlike(
    program: Program, follow: Callable[[int], None], signals: list[Signal], count: int, total: Counts
) -> Signal:
    """The rest of a loop whose iterations are followed one by one."""
    tally = program.tally
    tally.counts += total
    done = min(count, _MOST_UNLIKE)
    for number in range(_PROBED, done):
        follow(number)
        signal = signals[-1]
        if signal is not None and signal[0] != "continue":
            return signal if signal[0] == "return" else None
    if count > done:
        last = tally.during(lambda: follow(done - 1))
        tally.counts += (count - done) * last
        tally.exact = False
    return None


def _carried(node: ast.For | ast.While) -> tuple[str, ...]:
    """The names whose value an iteration takes from the one before."""
    read: dict[str, None] = {}
    written: set[str] = set()

    def visit(item: ast.AST) -> None:
        if isinstance(item, ast.Name):
            if isinstance(item.ctx, ast.Store):
                written.add(item.id)
            elif item.id not in written:
                read.setdefault(item.id)
        elif isinstance(item, ast.AugAssign):
            visit(item.value)
            if isinstance(item.target, ast.Name):
                if item.target.id not in written:
                    read.setdefault(item.target.id)
                written.add(item.target.id)
        elif isinstance(item, (ast.Assign, ast.AnnAssign)):
            if item.value is not None:
                visit(item.value)
            for target in item.targets if isinstance(item, ast.Assign) else [item.target]:
                visit(target)
        elif isinstance(item, ast.If):
            visit(item.test)
            # What one branch alone binds may come from an iteration before.
            outer = set(written)
            for part in item.body:
                visit(part)
            body = set(written)
            written.clear()
            written.update(outer)
            for part in item.orelse:
                visit(part)
            written.intersection_update(body)
            written.update(outer)
        else:
            for child in ast.iter_child_nodes(item):
                visit(child)

    if isinstance(node, ast.While):
        visit(node.test)
    for statement in node.body:
        visit(statement)
    stored = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    return tuple(name for name in read if name in stored)


def _state(program: Program, names: Sequence[str]) -> dict[str, Value]:
    return {name: program.scope.names[name] for name in names if name in program.scope.names}


def _steps(first: dict[str, Value], second: dict[str, Value], third: dict[str, Value]) -> dict[str, Value] | None:
    """By how much each value grows in an iteration; None unless all grow by the same step each time."""
    steps: dict[str, Value] = {}
    for name, value in third.items():
        if name not in first or name not in second:
            continue
        try:
            one, other = _difference(first[name], second[name]), _difference(second[name], value)
        except RULE_ERRORS:
            return None
        if not _equal(one, other):
            return None
        steps[name] = other
    return steps


def _difference(before: Value, after: Value) -> Value:
    """What must be added to a value to get the other one; None where they are the same."""
    if before is after or isinstance(after, Data):
        return None
    if isinstance(after, Pointer) and isinstance(before, Pointer):
        if before.base != after.base:
            raise NotUnderstood("another tensor")
        return _difference(before.offset, after.offset)
    if isinstance(after, BlockPointer):
        return tuple(map(_difference, before.offsets, after.offsets))
    if isinstance(after, tuple):
        return tuple(map(_difference, before, after))
    if isinstance(after, (bool, str)) or after is None or after is UNKNOWN:
        if before is not after and before != after:
            raise NotUnderstood("it changes")
        return None
    return after - before


def _equal(left: Value, right: Value) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if left is None or right is None:
        return left is right
    return bool(np.array_equal(left, right))


def _jump(program: Program, state: dict[str, Value], steps: dict[str, Value], times: int) -> None:
    """Set the names that a loop carries to their values some iterations later."""
    for name, value in state.items():
        program.scope.names[name] = _advanced(value, steps.get(name), times)


def _advanced(value: Value, step: Value, times: int) -> Value:
    if step is None:
        return value
    if isinstance(value, Pointer):
        return replace(value, offset=_advanced(value.offset, step, times))
    if isinstance(value, BlockPointer):
        offsets = tuple(_advanced(part, own, times) for part, own in zip(value.offsets, step, strict=True))
        return replace(value, offsets=offsets)
    if isinstance(value, tuple):
        return tuple(_advanced(part, own, times) for part, own in zip(value, step, strict=True))
    return value + step * times


Program.statements.update({ast.If: _if, ast.For: _for, ast.While: _while})
