"""Comprehensions and generator expressions."""

from __future__ import annotations

import ast
from dataclasses import replace

from rlm_core.types import CauseKind

from . import library
from .containers import Containers, is_stored
from .domain import object_sizes
from .domain.meter import Meter
from .domain.quantities import ONE, ZERO, Quantity, constant
from .domain.values import NUMBERS, Value
from .frames import Loop
from .library.unit_costs import each, primitive

_OPEN = 4.0  # times the least count: then it is open
_USUAL_CHARACTERS, _MOST_CHARACTERS = 20.0, 256.0  # different ones in a text
_GENERATOR_BYTES = 500.0  # a generator object with its frame
_PRODUCERS: dict[type[ast.expr], str] = {
    ast.ListComp: "comprehension", ast.SetComp: "comprehension.set", ast.DictComp: "comprehension.dict",
    ast.GeneratorExp: "generator",
}  # fmt: skip


class Comprehensions(Containers):
    """Evaluates comprehensions; their parts are left to a subclass."""

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp) -> Value:
        kind = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict"}[type(node)]
        names, held_before = dict(self.frame.names), self.frame.held
        self.meter.spend(primitive(_PRODUCERS[type(node)]))
        with self.region() as body:
            count, item, entry = self._generated(node.generators, node, body)
        self.frame.restore(names, held_before)
        if kind != "list":
            count = distinct(item, count)
        held = object_sizes.container(kind, count, grown=True) + item.bytes * count
        if entry is not None:
            held = held + entry.bytes * count
        self.meter.add(body)
        for fresh in (item, entry):
            if fresh is not None and fresh.bytes.terms:
                self.meter.spend(library.collection_cost(fresh, count))
        bare = replace(item, bytes=ZERO)
        result = Value(
            kind, size=count, item=bare, entry=replace(entry, bytes=ZERO) if entry is not None else None, bytes=held
        )
        self.hold(result)
        self._note_allocation(result, "comprehension")
        return result

    def _generated(
        self, generators: list[ast.comprehension], node: ast.expr, outer: Meter, iterable: Value | None = None
    ) -> tuple[Quantity, Value, Value | None]:
        """The number of elements that nested loops of a comprehension yield, and an average element; all paid for.

        ``iterable`` is what the first loop runs over, where it has been evaluated before.
        """
        first, rest = generators[0], generators[1:]
        iterable = self.value(first.iter) if iterable is None else iterable
        trips = self.consume(iterable)
        variable = self.bind_items(first.target, iterable)
        if variable is not None:
            variable.restart()
        loop = Loop(variable=variable, trips=trips)
        self.frame.loops.append(loop)
        share = ONE
        with self.region() as body:
            for test in first.ifs:
                condition = self.judged(test)
                if condition.variable is not None:
                    condition.variable.points = condition.hits
                self.meter.spend(primitive("branch"))
                share = share * Quantity({(): condition.share})
            loop.trips = trips * share
            with self.region() as inner:
                entry: Value | None = None
                if rest:
                    self.meter.spend(primitive("loop.start"))
                    count, item, entry = self._generated(rest, node, inner)
                else:
                    count = ONE
                    if isinstance(node, ast.DictComp):
                        item, entry = self.value(node.key), self.value(node.value)
                        if is_stored(node.value) and entry.kind not in NUMBERS:
                            entry = replace(entry, bytes=ZERO)
                    else:
                        element = node.elt  # type: ignore[attr-defined]
                        item = self.value(element)
                        is_fresh = iterable.kind == "iterator" and same_name(element, first.target)
                        if is_stored(element) and not is_fresh and item.kind not in NUMBERS:
                            item = replace(item, bytes=ZERO)
                    self.meter.spend(each(_PRODUCERS[type(node)]))
            self.meter.add(inner, share)
        self.frame.loops.pop()
        outer.add(body, trips)
        _low, likely, _high = trips.evaluate(lambda name: 10.0)
        if likely >= 1000:
            outer.cause(CauseKind.LOOP, self.frame.line, first.iter, body.total * trips, trips)
        return count * share * trips, item, entry

    def _generator(self, node: ast.GeneratorExp) -> Value:
        names, held_before = dict(self.frame.names), self.frame.held
        first = node.generators[0]
        iterable = self.value(first.iter)
        self.meter.spend(primitive("generator"))
        self.meter.hold(self.frame.held + constant(_GENERATOR_BYTES))
        body = Meter(self.meter.parallel)
        with self.region(body):
            # The first iterable is evaluated when the generator is made; all the rest when it is consumed.
            count, item, _ = self._generated(node.generators, node, body, iterable)
        self.frame.restore(names, held_before)
        result = Value("iterator", size=count, item=item, payload=body, name="generator", bytes=object_sizes.GENERATOR)
        if library.is_endless(iterable.size):
            result = replace(without_end(item, body), name="generator", bytes=object_sizes.GENERATOR)
        self.hold(result)
        return result


def same_name(first: ast.expr, second: ast.expr) -> bool:
    """Whether two expressions are one name: what an iterator yields is held by nothing else."""
    return isinstance(first, ast.Name) and isinstance(second, ast.Name) and first.id == second.id


def without_end(item: Value, body: Meter) -> Value:
    """An iterator without end, which is not a fault while it is not consumed; ``body`` is what one item costs."""
    rest = Meter(body.parallel, unknown=body.unknown, waits=body.waits, causes=body.causes)
    return Value("iterator", size=library.ENDLESS, item=item, step=body.total, payload=rest)


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
