"""Iterators: those without end, what ``map`` and ``filter`` make, and what stops before the end of one."""

from __future__ import annotations

import ast
import math

from .. import library
from ..bounds.searches import seen_share
from ..domain.context import Context
from ..domain.dispatch import call_value, peek
from ..domain.meter import Meter
from ..domain.quantities import ONE, ZERO, Quantity, constant, is_whole
from ..domain.records import replace
from ..domain.values import UNKNOWN, Value, literal
from ..library.unit_costs import each, primitive, seconds

_MOST_TRIED = 40.0  # items of a generator


def without_end(item: Value, body: Meter) -> Value:
    """An iterator without end, which is not a fault while it is not consumed; ``body`` is what one item costs."""
    rest = Meter(body.parallel, unknown=dict(body.unknown), waits=body.waits, causes=body.causes)
    return Value("iterator", size=library.ENDLESS, item=item, step=body.total, payload=rest)


def lazy_call(context: Context, name: str, args: list[Value]) -> Value:
    """``map`` and ``filter`` call their function when they are consumed."""
    context.meter.spend(primitive("builtins.map"))
    sizes = [context.length(value) for value in args[1:]]
    endless = all(library.is_endless(size) for size in sizes)
    with context.region(Meter(context.meter.parallel, place=context.meter.place)) as body:
        counts = [
            context.consume(value)
            for value, size in zip(args[1:], sizes, strict=True)
            if endless or not library.is_endless(size)
        ]
        items = [replace(value.item, bytes=ZERO) if value.item is not None else UNKNOWN for value in args[1:]]
        with context.region() as each_call:
            result = call_value(context, args[0], items, {}, "")
            context.meter.spend(each("builtins.map"))
        context.meter.add(each_call, counts[0])
    item = library.passed(args[1]) if name == "builtins.filter" else result
    if endless:
        return without_end(item, body)
    if name == "builtins.filter":
        kept = counts[0] * constant(0.0, 1.0, 0.5)
        return Value("iterator", size=kept, item=item, payload=body)
    return Value("iterator", size=counts[0], item=item, payload=body)


def early_stop(context: Context, name: str, node: ast.Call, args: list[Value]) -> Value | None:
    """``any``, ``all`` and ``next`` stop early: the least is one item."""
    iterator = args[0]
    if name == "next":
        if iterator.kind != "iterator":
            return None
        count = context.length(iterator)
        exact = count.exact
        if isinstance(iterator.payload, Meter):
            total = count.constant
            test = _filter_of(node)
            share = seen_share(context, test) if test is not None else constant(0.0, 1.0, 0.3)
            if exact == math.inf:
                share = ONE
            elif total is not None and total[1] > 0:
                first = min(1 / total[1], 1.0)
                share = constant(first) if test is None else constant(0.0, 1.0, first)
            context.meter.add(iterator.payload, share)
        context.meter.spend(iterator.step)
        context.meter.spend(primitive("call.builtin"))
        return replace(iterator.item, bytes=ZERO) if iterator.item is not None else UNKNOWN
    if library.is_endless(iterator.size):
        # It ends at an item that is not known.
        items = context.named_size(UNKNOWN)
        context.meter.spend(iterator.step * items)
        if isinstance(iterator.payload, Meter):
            context.meter.add(iterator.payload, items)
        return Value("bool")
    share = _stopping_share(context, name, node)
    if isinstance(iterator.payload, Meter) and iterator.kind == "iterator":
        context.meter.spend(primitive("call.builtin"))
        context.meter.add(iterator.payload, share)
        return Value("bool")
    context.meter.spend(seconds("contains.list", context.length(iterator) * share))
    return Value("bool")


def _stopping_share(context: Context, name: str, node: ast.Call) -> Quantity:
    """The share of items that ``any`` or ``all`` of a generator over known numbers looks at."""
    match node.args[0]:
        case ast.GeneratorExp(
            generators=[ast.comprehension(target=ast.Name(id=target), iter=source, ifs=[])], elt=test
        ):
            items = peek(context, source)
        case ast.GeneratorExp(generators=[*_, ast.comprehension(ifs=tests)], elt=elt):
            return seen_share(
                context, ast.BoolOp(ast.And(), [*tests, elt]) if tests and name == "any" else elt, ends=name == "any"
            )
        case _:
            return constant(0.0, 1.0, 0.5)
    if items.kind != "range" or not isinstance(items.payload, tuple) or not all(map(is_whole, items.payload[:2])):
        return seen_share(context, test, ends=name == "any")
    start, step, count = items.payload
    names = context.frame.names
    context.frame.names = dict(names)
    try:
        for k in range(int(min(count, _MOST_TRIED))):
            context.frame.names[target] = literal(int(start + step * k))
            truth = peek(context, test).truth
            if truth is not (name != "any"):
                return constant(0.0, 1.0, 0.5) if truth is None else constant((k + 1) / count)
    finally:
        context.frame.names = names
    return constant(0.0, 1.0, 1.0)


def _filter_of(node: ast.Call) -> ast.expr | None:
    """The condition on the items of a generator; None where it gives all of them."""
    match node.args[0]:
        case ast.GeneratorExp(generators=[*_, ast.comprehension(ifs=[_, *_] as tests)]):
            return ast.BoolOp(ast.And(), tests)
    return None
