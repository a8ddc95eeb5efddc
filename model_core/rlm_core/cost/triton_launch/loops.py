"""Loops of a program. A long one is followed at its first iterations, in the middle and at its end.

What it carries from one iteration to the next must grow by the same step; otherwise it is followed one by one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np

from ..concrete.frame import RULE_ERRORS, Signal, evaluate, execute
from ..concrete.syntax import bind, each_item
from ..concrete.values import UNKNOWN, Value
from ..domain.records import replace
from .program import Program, joined
from .tally import Counts, Tally
from .values import BlockPointer, Data, NotUnderstood, Pointer

_FOLLOWED = 8  # iterations of a loop that is followed whole
_PROBED = 3  # iterations that show how what a loop carries grows
_MOST_UNLIKE = 4_000  # iterations of a loop that does not grow by the same step
_MOST_SEARCHED = 2**40


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
    steps = steps_between(*states)

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
    tally.add_unlimited(counts)
    program.scope.names = {name: joined(before.get(name, value), value) for name, value in program.scope.names.items()}
    return None


def _iterate(program: Program, node: ast.For | ast.While, count: int, start: Callable[[int], None]) -> Signal:
    """A loop of a known number of iterations; ``start`` begins one."""
    carried = _carried(node)

    def follow(number: int) -> Signal:
        start(number)
        return execute(program, node.body)

    def jump(state: dict[str, Value], steps: dict[str, Value], times: int) -> None:
        _jump(program, state, steps, times)

    return iterate(program.tally, count, follow, lambda: _state(program, carried), jump)


def iterate(
    tally: Tally,
    count: int,
    follow: Callable[[int], Signal],
    state: Callable[[], dict[str, Value]],
    jump: Callable[[dict[str, Value], dict[str, Value], int], None],
) -> Signal:
    """Count a loop of a known number of iterations.

    Args:
        tally: counts it.
        count: number of iterations.
        follow: evaluates the iteration of a number.
        state: returns the values that an iteration takes from the one before.
        jump: sets these to what they are some iterations after a state, given by how much they grow in each.
    """
    signals: list[Signal] = []

    def counted(number: int) -> Counts:
        return tally.during(lambda: signals.append(follow(number)))

    def ended() -> bool:
        return signals[-1] is not None and signals[-1][0] != "continue"

    states = [state()]
    whole = count <= _FOLLOWED
    total = np.zeros_like(tally.counts)
    last = total
    for number in range(count if whole else _PROBED):
        last = counted(number)
        total = total + last
        if ended():
            tally.counts += total
            return signals[-1] if signals[-1] is not None and signals[-1][0] == "return" else None
        states.append(state())
    if not whole:
        steps = steps_between(*states[-3:])
        if steps is None:
            return _unlike(tally, follow, count, total)
        # Simpson's rule over all but the first two iterations and the last one, which masks often cut short.
        middle, end = (_PROBED - 1 + count - 2) // 2, count - 2
        nodes = []
        for number in (middle, end):
            jump(states[-1], steps, number - _PROBED)
            nodes.append(counted(number))
        with np.errstate(invalid="ignore"):  # without a limit is not a number here: neither is known
            total = total - last + (count - _PROBED) * (last + 4 * nodes[0] + nodes[1]) / 6
        if not np.array_equal(last[2], nodes[0][2]):
            tally.exact = False
        jump(states[-1], steps, count - 1 - _PROBED)
        total = total + counted(count - 1)
    tally.counts += total
    return signals[-1] if signals and signals[-1] is not None and signals[-1][0] == "return" else None


def _unlike(tally: Tally, follow: Callable[[int], Signal], count: int, total: Counts) -> Signal:
    """The rest of a loop whose iterations are followed one by one."""
    tally.counts += total
    done = min(count, _MOST_UNLIKE)
    for number in range(_PROBED, done):
        signal = follow(number)
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


def steps_between(
    first: dict[str, Value], second: dict[str, Value], third: dict[str, Value]
) -> dict[str, Value] | None:
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
        program.scope.names[name] = advanced(value, steps.get(name), times)


def advanced(value: Value, step: Value, times: int) -> Value:
    """A value that grows by a step in each iteration, some iterations later."""
    if step is None:
        return value
    if isinstance(value, Pointer):
        return replace(value, offset=advanced(value.offset, step, times))
    if isinstance(value, BlockPointer):
        offsets = tuple(advanced(part, own, times) for part, own in zip(value.offsets, step, strict=True))
        return replace(value, offsets=offsets)
    if isinstance(value, tuple):
        return tuple(advanced(part, own, times) for part, own in zip(value, step, strict=True))
    return value + step * times


Program.statements.update({ast.For: _for, ast.While: _while})
