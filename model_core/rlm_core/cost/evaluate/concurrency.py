"""Waits of what runs at the same time: coroutines and tasks.

Computing times are not treated here: coroutines share one interpreter, so theirs add up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rlm_core.types import WaitKind

from ..domain.context import Context
from ..domain.dispatch import evaluate
from ..domain.meter import Meter, PendingWait
from ..domain.quantities import Range, constant
from ..domain.records import replace
from ..domain.syntax import walk
from ..domain.values import Value

_START_SECONDS = 6e-6  # of a task


def longest(waits: Sequence[PendingWait]) -> list[PendingWait]:
    """The longest wait of each kind, which takes as long as all of them do."""
    kept: dict[tuple[WaitKind, bool], PendingWait] = {}
    for wait in waits:
        other = kept.get((wait.kind, wait.by_name))
        if other is None or _likely(wait) > _likely(other):
            kept[wait.kind, wait.by_name] = wait
    return sorted(kept.values(), key=_likely, reverse=True)


def in_background(waits: Sequence[PendingWait]) -> list[PendingWait]:
    """The waits of a task that is started and goes on while others start."""
    return [replace(wait, background=True, over="") for wait in longest(waits)]


def ended(waits: Sequence[PendingWait]) -> list[PendingWait]:
    """The waits of a function in which tasks were started: it ends when the longest of them has ended.

    ``waits`` is in the order of the text: what the function itself waits after the first task began is part of that.
    """
    first = next((place for place, wait in enumerate(waits) if wait.background), None)
    if first is None:
        return list(waits)
    own = [wait for wait in waits if not wait.background]
    meanwhile = [_range(wait) for wait in waits[first:] if not wait.background]
    least, usual, most = (sum(values) for values in zip((0.0, 0.0, 0.0), *meanwhile, strict=True))
    tasks = []
    for wait in longest([wait for wait in waits if wait.background]):
        if wait.seconds is not None and most > 0:
            low, likely, high = _range(wait)
            span = max(low - most, 0.0), max(likely - usual, 0.0), max(high - least, 0.0)
            wait = replace(wait, seconds=constant(span[0], span[2], span[1]))
        tasks.append(replace(wait, background=False))
    return [*own, *tasks]


def _range(wait: PendingWait) -> Range:
    """The least, likely and most seconds, with sizes of 1; zeros where they are not known."""
    return wait.seconds.evaluate(lambda name: 1.0) if wait.seconds is not None else (0.0, 0.0, 0.0)


def _likely(wait: PendingWait) -> tuple[float, float]:
    return _range(wait)[1], wait.times.evaluate(lambda name: 1.0)[1]


@contextmanager
def in_the_background(context: Context) -> Iterator[None]:
    """Let what is evaluated here wait in the background, where it may also run for ever."""
    with context.region(Meter(parallel=True, place=context.place)) as body:
        yield
    body.waits, body.endless = in_background(body.waits), None
    context.meter.add(body)


@contextmanager
def left_alone(context: Context) -> Iterator[None]:
    """Let what is evaluated here run after the function has returned: starting it is all that the function pays."""
    with context.region():
        yield
    context.meter.spend(_START_SECONDS)


def is_joined(context: Context, node: ast.Call) -> bool:
    """Return whether the function that starts a task can wait for its end.

    A coroutine does so in a task group that it opens, or where it keeps the task in a local name or a list. A task
    whose result is dropped, or kept in an attribute, goes on after the function has returned.
    """
    function = context.frame.node
    if not isinstance(function, ast.AsyncFunctionDef):
        return False
    for part in walk(function):
        match part:
            case ast.AsyncWith(items=items):
                opened = {ast.unparse(item.optional_vars) for item in items if item.optional_vars is not None}
                if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in opened:
                    return True
            case ast.Expr(value=value) if value is node:
                return False
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=value) if value is node:
                return False
    return True


def gather(context: Context, node: ast.Call) -> Value:
    """Coroutines that wait at the same time."""
    with context.region(Meter(parallel=True, place=context.place)) as body:
        for argument in node.args:
            context.awaited.update(_awaitables(argument))
            value = evaluate(context, argument)
            if value.kind == "iterator":
                context.consume(value)
    body.waits = [replace(wait, over="") for wait in longest(body.waits)]
    context.meter.add(body)
    return Value("list")


def _awaitables(argument: ast.expr) -> Iterator[ast.expr]:
    """The parts of an argument that are coroutines: itself, or the items of a list."""
    match argument:
        case ast.Starred(value=value):
            yield from _awaitables(value)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            yield from items
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item) | ast.SetComp(elt=item):
            yield item
        case _:
            yield argument
