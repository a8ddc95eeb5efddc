"""Loop transitions: how iterations change the sizes, numbers and bytes of the names that a loop binds."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ..domain import object_sizes
from ..domain.lattice import joined
from ..domain.quantities import Quantity, constant, exponential, product
from ..domain.records import replace
from ..domain.syntax import place_of, walk
from ..domain.values import Value

_OF_ITEMS = frozenset({"append", "add", "appendleft", "get", "setdefault"})
_MULTIPLIED = frozenset({"list", "tuple", "str"})
_LEAST_FACTOR, _SAME_FACTOR = 1.5, 0.1
_USUAL = 10.0  # of a size that is not known
_FARTHER = 1.4  # the second trip has to begin at a size that is so many times the first


def between(old: Quantity | None, step: Quantity | None, count: Quantity) -> Quantity | None:
    """Return a quantity that each trip of a loop moves: on average, and from the first to the last trip."""
    if old is None or step is None:
        return old
    start, moved, trips = old.constant, step.constant, count.constant
    if start is None or moved is None or trips is None or not math.isfinite(trips[2]):
        return old + step * count.times(0.5)
    most = max(trips[2] - 1, 0.0)
    low, high = start[0] + min(product(moved[0], most), 0.0), start[2] + max(product(moved[2], most), 0.0)
    return constant(low, high, start[1] + product(moved[1], max(trips[1] - 1, 0.0) / 2))


def rebound_names(
    before: Mapping[str, Value], after: Mapping[str, Value], names: Iterable[str], count: Quantity
) -> dict[str, Value]:
    """Names with another number or size from the second trip on: what they are in the trips of a loop."""
    joint: dict[str, Value] = {}
    for name in names:
        old, new = before.get(name), after.get(name)
        if old is None or new is None or old is new:
            continue
        for former, latter in ((old.number, new.number), (old.size, new.size)):
            if former is not None and former.constant is not None and former != latter:
                others = max(count.evaluate(lambda name: 10.0)[1] - 1, 0.1)
                joint[name] = replace(joined([(1.0, old), (others, new)]), bytes=old.bytes)
    return joint


def up_to(items: Quantity, step: Quantity, count: Quantity) -> Quantity:
    """The trips that add ``step`` items each, so many that no more than ``items`` are added."""
    most, total = items.constant, (step * count).constant
    if most is None or total is None or total[1] <= most[1]:
        return count
    return count.times(most[1] / total[1])


def kept_size(value: Value, size: Quantity | None) -> Quantity | None:
    """The size of a container that may drop items."""
    return size if size is None or value.most is None else size.at_most(value.most)


def shell_growth(kind: str, size: Quantity, added: Quantity) -> Quantity:
    """The bytes that a container takes more without its items, when it grows item by item."""
    before = object_sizes.container(kind, size, grown=True)
    return object_sizes.container(kind, size + added, grown=True) - before


def moved_by(old: Quantity | None, step: Quantity | None, times: Quantity) -> Quantity | None:
    """A quantity after trips that each move it by a step; unchanged where the step is not known."""
    return old if old is None or step is None else old + step * times


def adds_up(old: Value, new: Value) -> bool:
    """Return whether a value that is made of the one before gets so many items more, or less, in each trip.

    A copy of a container of unknown size may be a part of it, of which the next trip takes a part again.
    """
    if old.size is None or new.size is None:
        return False
    step = new.size - old.size
    low, likely, high = step.evaluate(lambda name: _USUAL)
    is_more, is_less = likely > 0 and low >= 0, likely < 0 and high <= 0
    return (is_more and old.size.constant is not None) or ((is_more or is_less) and step.constant is not None)


def renewed_sizes(names: Iterable[str], first: Mapping[str, Value], second: Mapping[str, Value]) -> set[str]:
    """The names that have one size after two trips which they began with different sizes: a digest of the one before.

    What a trip adds to their size says nothing of the next one.
    """
    return {name for name in names if (size := first[name].size) is not None and size == second[name].size}


def resized(value: Value, size: Quantity | None) -> Value:
    """A value of another size; an array keeps its axes but the first one."""
    if value.kind != "array" or size is None or not value.shape:
        return replace(value, size=size)
    inside = [axis.exact or 0.0 for axis in value.shape[1:]]
    items = math.prod(inside)
    return replace(value, size=size, shape=(size.times(1 / items), *value.shape[1:])) if items > 0 else value


def uses(node: ast.stmt, names: set[str]) -> bool:
    """Return whether a loop uses these names in a way that their size may matter."""
    return not _sized_names(node).isdisjoint(names)


@lru_cache(maxsize=128)
def _sized_names(node: ast.stmt) -> frozenset[str]:
    """Return the names that a statement reads, but to add an item to them or to look one up."""
    nodes = walk(node)
    left_out: set[ast.expr] = set()
    for inner in nodes:
        if isinstance(inner, ast.Subscript):
            left_out.add(inner.value)
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _OF_ITEMS:
            left_out.add(inner.func.value)
    return frozenset(
        place_of(inner)
        for inner in nodes
        if isinstance(inner, (ast.Name, ast.Attribute)) and isinstance(inner.ctx, ast.Load) and inner not in left_out
    )


def multiplied_sizes(
    starts: Mapping[str, Value],
    ends: Mapping[str, Value],
    starts_again: Mapping[str, Value],
    ends_again: Mapping[str, Value],
) -> dict[str, float]:
    """Lists and texts that each trip makes larger by one factor, seen in two trips that began at different sizes."""
    factors = {}
    for name, end in ends_again.items():
        if end.kind not in _MULTIPLIED:
            continue
        sizes = [_likely(values.get(name)) for values in (starts, ends, starts_again, ends_again)]
        if min(sizes) <= 0 or sizes[2] < _FARTHER * sizes[0] or _is_of_parts(end):
            continue
        first, second = sizes[1] / sizes[0], sizes[3] / sizes[2]
        # What happens under a condition may not happen.
        trips = ((starts[name], ends[name]), (starts_again[name], end))
        if any(_least(after) < _LEAST_FACTOR * _least(before) for before, after in trips):
            continue
        if first >= _LEAST_FACTOR and abs(second / first - 1) < _SAME_FACTOR:
            factors[name] = second
    return factors


@lru_cache(maxsize=128)
def multiplied_numbers(node: ast.For) -> frozenset[str]:
    """The names that a loop binds to products of themselves.

    ``[]``: the entries of a table that are products of others in it. Such numbers get more digits with each
    trip. A product in an inner loop is paid there.
    """
    found = set()
    for statement in node.body:
        for part in () if isinstance(statement, (ast.For, ast.While)) else walk(statement):
            match part:
                case ast.AugAssign(target=target, op=op, value=value):
                    # What is written as `x *= y` is read as `x = x * y`.
                    value = ast.BinOp(ast.Name(ast.unparse(target)), op, value) if isinstance(op, ast.Mult) else value
                case ast.Assign(targets=[target], value=value):
                    pass
                case _:
                    continue
            operations = [inner for inner in walk(value) if isinstance(inner, ast.BinOp)]
            # A remainder stays small, and a quotient may be a float.
            if not any(isinstance(inner.op, (ast.Mod, ast.BitAnd, ast.Div)) for inner in operations):
                for inner in operations:
                    found |= _own_product(target, inner) if isinstance(inner.op, ast.Mult) else set()
    return frozenset(found)


def _own_product(target: ast.expr, factors: ast.BinOp) -> set[str]:
    """The name that a product of itself is bound to, or ``[]`` for an entry of a table."""
    sides = (factors.left, factors.right)
    match target:
        case ast.Name(id=name):
            others = [side for side in sides if not (isinstance(side, ast.Name) and side.id == name)]
            return {name} if len(others) == 1 and not _is_one(others[0]) else set()
        case ast.Subscript(value=table):
            text = ast.unparse(table)
            is_own = all(isinstance(side, ast.Subscript) and ast.unparse(side.value) == text for side in sides)
            return {"[]"} if is_own else set()
    return set()


def _is_one(factor: ast.expr) -> bool:
    """Return whether a factor is written as 1 or -1."""
    return isinstance(factor, (ast.Constant, ast.UnaryOp)) and ast.unparse(factor) in ("1", "-1")


def _is_of_parts(value: Value) -> bool:
    """Return whether a size depends on parts of objects, or on what nothing names: a tree has only so many nodes."""
    names = value.size.names if value.size is not None else ()
    return any(name.startswith("?") or ("." in name and not name.startswith("self.")) for name in names)


def _likely(value: Value | None) -> float:
    return value.size.evaluate(lambda name: _USUAL)[1] if value is not None and value.size is not None else 0.0


def _least(value: Value) -> float:
    return value.size.evaluate(lambda name: _USUAL)[0] if value.size is not None else 0.0


def powers(size: Quantity, factor: float, count: Quantity) -> tuple[Quantity, Quantity]:
    """Return what a size that each trip multiplies is on average, and after all trips."""
    last = size * exponential(factor, count)
    total, trips = last.times(1 / (factor - 1)), count.exact
    return (total.times(1 / max(trips, 1.0)) if trips is not None else total), last
