"""Comprehensions and generator expressions."""

from __future__ import annotations

import ast

from rlm_core.types import CauseKind

from .. import library
from ..domain import object_sizes
from ..domain.context import Context
from ..domain.dispatch import evaluate
from ..domain.frames import Loop
from ..domain.meter import Meter
from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.values import NUMBERS, Value
from ..library.unit_costs import each, primitive
from .bindings import bind_items
from .conditions import judge
from .containers import is_stored
from .iterators import without_end
from .loop_waits import mark, note_reading
from .objects import special
from .operations import note_allocation

_OPEN = 4.0  # times the least count: then it is open
_USUAL_CHARACTERS, _MOST_CHARACTERS = 20.0, 256.0  # different ones in a text
_GENERATOR_BYTES = 500.0  # a generator object with its frame
_PRODUCERS: dict[type[ast.expr], str] = {
    ast.ListComp: "comprehension", ast.SetComp: "comprehension.set", ast.DictComp: "comprehension.dict",
    ast.GeneratorExp: "generator",
}  # fmt: skip


def evaluate_comprehension(context: Context, node: ast.ListComp | ast.SetComp | ast.DictComp) -> Value:
    """Return the list, set or dict of a comprehension."""
    kind = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict"}[type(node)]
    names, held_before = dict(context.frame.names), context.frame.held
    context.meter.spend(primitive(_PRODUCERS[type(node)]))
    with context.region() as body:
        count, item, entry = _generated(context, node.generators, node, body)
    context.frame.restore(names, held_before)
    if kind != "list":
        count = distinct(item, count)
    held = object_sizes.container(kind, count, grown=True) + item.bytes * count
    if entry is not None:
        held = held + entry.bytes * count
    context.meter.add(body)
    for fresh in (item, entry):
        if fresh is not None and fresh.bytes.terms:
            context.meter.spend(library.collection_cost(fresh, count))
    bare = replace(item, bytes=ZERO)
    result = Value(
        kind, size=count, item=bare, entry=replace(entry, bytes=ZERO) if entry is not None else None, bytes=held
    )
    context.hold(result)
    note_allocation(context, result, "comprehension")
    return result


def _generated(
    context: Context, generators: list[ast.comprehension], node: ast.expr, outer: Meter, iterable: Value | None = None
) -> tuple[Quantity, Value, Value | None]:
    """The number of elements that nested loops of a comprehension yield, and an average element; all paid for.

    ``iterable`` is what the first loop runs over, where it has been evaluated before.
    """
    first, rest = generators[0], generators[1:]
    iterable = evaluate(context, first.iter) if iterable is None else iterable
    note_reading(context, first.iter)
    iterable = special(context, iterable, "__iter__") or iterable
    with context.producing_items():
        trips = context.consume(iterable)
    loop = Loop(trips=trips)
    context.frame.loops.append(loop)
    share = ONE
    with context.region() as body:
        context.meter.spend(primitive("loop.for"))
        bind_items(context, first.target, iterable)
        for test in first.ifs:
            condition = judge(context, test)
            context.meter.spend(primitive("branch"))
            share = share * Quantity({(): condition.share})
        loop.trips = trips * share
        with context.region() as inner:
            entry: Value | None = None
            if rest:
                context.meter.spend(primitive("loop.start"))
                count, item, entry = _generated(context, rest, node, inner)
            else:
                count = ONE
                if isinstance(node, ast.DictComp):
                    item, entry = evaluate(context, node.key), evaluate(context, node.value)
                    if is_stored(node.value) and entry.kind not in NUMBERS:
                        entry = replace(entry, bytes=ZERO)
                else:
                    element = node.elt  # type: ignore[attr-defined]
                    item = evaluate(context, element)
                    is_fresh = iterable.kind == "iterator" and same_name(element, first.target)
                    if is_stored(element) and not is_fresh and item.kind not in NUMBERS:
                        item = replace(item, bytes=ZERO)
                context.meter.spend(each(_PRODUCERS[type(node)]))
        context.meter.add(inner, share)
    context.frame.loops.pop()
    mark(context, body, first, trips)
    outer.add(body, trips)
    _low, likely, _high = trips.evaluate(lambda name: 10.0)
    if likely >= 1000:
        outer.cause(CauseKind.LOOP, context.frame.line, first.iter, body.total * trips, trips)
    return count * share * trips, item, entry


def evaluate_generator(context: Context, node: ast.GeneratorExp) -> Value:
    """Return the iterator of a generator expression, which costs when it is consumed."""
    names, held_before = dict(context.frame.names), context.frame.held
    first = node.generators[0]
    iterable = evaluate(context, first.iter)
    context.meter.spend(primitive("generator"))
    context.meter.hold(context.frame.held + constant(_GENERATOR_BYTES))
    body = Meter(context.meter.parallel, place=context.meter.place)
    with context.region(body):
        # The first iterable is evaluated when the generator is made; all the rest when it is consumed.
        count, item, _ = _generated(context, node.generators, node, body, iterable)
    context.frame.restore(names, held_before)
    result = Value("iterator", size=count, item=item, payload=body, name="generator", bytes=object_sizes.GENERATOR)
    if library.is_endless(iterable.size):
        result = replace(without_end(item, body), name="generator", bytes=object_sizes.GENERATOR)
    context.hold(result)
    return result


def same_name(first: ast.expr, second: ast.expr) -> bool:
    """Return whether two expressions are one name: what an iterator yields is held by nothing else."""
    return isinstance(first, ast.Name) and isinstance(second, ast.Name) and first.id == second.id


def distinct(item: Value, count: Quantity) -> Quantity:
    """The number of different values among ``count`` items: a remainder has only as many as its divisor."""
    number, total = item.number, count.constant
    if item.kind == "str" and item.size is not None and item.size.exact == 1 and total is not None:
        low, likely, high = total
        return constant(min(low, 1.0), min(high, _MOST_CHARACTERS), min(likely, _USUAL_CHARACTERS))
    limits = number.constant if number is not None and item.kind in ("int", "unknown") else None
    if limits is None or total is None or limits[0] == limits[2]:
        return count
    most = limits[2] - limits[0] + 1
    low, likely, high = (min(value, most) for value in total)
    return constant(low, high, likely)
