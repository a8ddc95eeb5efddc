"""Makes values of plain data larger by a factor, so that they stay like those that a program would have.

What is distinct stays distinct, what is sorted stays sorted, rows keep their length, square matrices stay square, a
graph keeps its edges within its nodes, a text keeps its form. What a value means is not known, so there are several
ways to grow it; the caller takes the first that the function accepts. A grown value shares nothing with the original.
"""

from __future__ import annotations

import collections
import datetime
import io
import math
import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

from ..plain_data import (
    SCALARS,
    instance_parts,
    is_array,
    is_heap_type,
    is_iterator,
    new_instance,
    rest_of,
    set_attributes,
)
from .copies import clone
from .text_growth import Way, bytes_ways, distinct_texts, text_ways

_RECORD = 4  # a tuple of so many numbers or fewer is a point or a size, not a series
_NUMBERS = (int, float)


class CannotGrowError(Exception):
    """There is nothing to repeat, or no further distinct value."""


def ways_to_grow(value: Any) -> Iterator[Way]:
    """The ways to grow a value, the most natural first; none for what has no size, such as a number."""
    cls = type(value)
    if cls is str:
        yield from text_ways(value, ways_to_grow)
    elif cls in (bytes, bytearray):
        yield from bytes_ways(value, ways_to_grow)
    elif cls in (list, tuple, collections.deque):
        yield from _sequence_ways(value)
    elif cls in (set, frozenset):
        if value:
            yield lambda factor: cls(distinct(list(value), len(value) * factor))
    elif isinstance(value, dict) and cls.__module__ in ("builtins", "collections"):
        yield from _mapping_ways(value)
    elif cls is range and len(value):
        yield lambda factor: range(value.start, value.start + value.step * len(value) * factor, value.step)
    elif cls in (io.StringIO, io.BytesIO):
        content = value.getvalue()
        for way in text_ways(content, ways_to_grow) if cls is io.StringIO else bytes_ways(content, ways_to_grow):
            yield partial(_applied, partial(_file_of, cls), way)
    elif is_iterator(value):
        for way in ways_to_grow(rest_of(value)):
            yield partial(_applied, iter, way)
    elif is_array(value) and value.size:
        yield from _array_ways(value)


def _applied(make: Callable[[Any], Any], way: Way, factor: int) -> Any:
    return make(way(factor))


def size_of(value: Any) -> int:
    """The size by which growth is counted: items or letters."""
    cls = type(value)
    if cls in (io.StringIO, io.BytesIO):
        return len(value.getvalue())
    if is_iterator(value):
        return len(rest_of(value))
    if is_array(value):
        return int(value.size)
    if cls in (str, bytes, bytearray, list, tuple, set, frozenset, collections.deque, range) or isinstance(value, dict):
        return len(value)
    return 0


def extended(values: Sequence[Any], count: int) -> list[Any]:
    """Values like the given ones, of which the first are copies; distinct or sorted if those are."""
    types = {type(one) for one in values}
    number = len(values)
    if types == {str}:
        return distinct_texts(list(values), count)
    if types == {bytes}:
        return [text.encode("latin-1") for text in distinct_texts([one.decode("latin-1") for one in values], count)]
    if len(types) == 1 and types <= {int, float, datetime.timedelta, datetime.date, datetime.datetime}:
        return _extended_numbers(values, count)
    if len(types) == 1 and is_heap_type(values[0].__class__):
        return _extended_instances(values, count)
    if len(types) == 1 and types <= {tuple, list} and len({len(one) for one in values}) == 1 and values[0]:
        (cls,) = types
        columns = [extended([row[index] for row in values], count) for index in range(len(values[0]))]
        return [cls(row) for row in zip(*columns, strict=True)]
    if types == {dict} and len({tuple(one) for one in values}) == 1 and values[0]:
        columns = [extended([row[key] for row in values], count) for key in values[0]]
        return [dict(zip(values[0], row, strict=True)) for row in zip(*columns, strict=True)]
    return _repeated(values, count) if number else []


def _extended_instances(values: Sequence[Any], count: int) -> list[Any]:
    """Copies of instances of one class; what is distinct among their texts and numbers stays so."""
    grown = _repeated(values, count)
    parts = [instance_parts(one) for one in values]
    if any(one is None for one in parts):
        return grown
    known = [one for one in parts if one is not None]
    if known[0].base is tuple and len({len(one.content) for one in known}) == 1:
        rows = extended([one.content for one in known], count)
        grown = [new_instance(type(values[0]), tuple, row) for row in rows]
        for index, one in enumerate(grown):
            set_attributes(one, clone(known[index % len(known)].attributes))
        return grown
    for name in known[0].attributes:
        column = [one.attributes.get(name) for one in known]
        if {type(one) for one in column} in ({int}, {str}, {float}) and len(set(column)) == len(column) > 1:
            for one, value in zip(grown, extended(column, count), strict=True):
                set_attributes(one, {name: value})
    return grown


def distinct(values: Sequence[Hashable], count: int) -> list[Any]:
    """Distinct values like the given ones, which are distinct.

    Raises:
        CannotGrowError: there are no others, as for None, booleans and instances.
    """
    grown = extended(values, count)
    if len(set(grown)) < count:
        # Rows of which no column is distinct, as of a grid: the first column that can moves on with each copy.
        grown = [_moved(values[index % len(values)], index // len(values), values) for index in range(count)]
        if len(set(grown)) < count:
            raise CannotGrowError("no further distinct values")
    return grown


def _repeated(values: Sequence[Any], count: int) -> list[Any]:
    """Copies of the values in turn; what they share with each other is shared in each copy."""
    grown: list[Any] = []
    if all(type(one) in SCALARS for one in values):
        copies, rest = divmod(count, len(values))
        return [*list(values) * copies, *values[:rest]]
    while len(grown) < count:
        memo: dict[int, Any] = {}
        grown.extend(clone(one, memo) for one in values[: count - len(grown)])
    return grown


def _extended_numbers(values: Sequence[Any], count: int) -> list[Any]:
    number = len(values)
    if any(one != one for one in values) or (type(values[0]) is float and any(map(math.isinf, values))):
        return _repeated(values, count)
    try:
        least, most = min(values), max(values)
    except TypeError:  # times with and without a zone
        return _repeated(values, count)
    is_sorted = all(values[index] <= values[index + 1] for index in range(number - 1))
    is_falling = not is_sorted and all(values[index] >= values[index + 1] for index in range(number - 1))
    are_distinct = len(set(values)) == number
    if not (are_distinct or is_sorted or is_falling) or (least == most and number > 1):
        return _repeated(values, count)
    span = most - least
    unit: Any = {int: 1, float: 1.0}.get(type(values[0])) or datetime.timedelta(days=1)
    if number == 1:
        step = unit
    elif type(values[0]) is int:
        step = span + max(1, round(span / (number - 1))) if is_sorted or is_falling else span + 1
    else:
        step = span + span / (number - 1)
    sign = -1 if is_falling else 1
    grown = [values[index % number] + sign * step * (index // number) for index in range(count)]
    if not (is_sorted or is_falling):
        # One copy after the other would nearly be sorted, and an algorithm that sorts would have little to do.
        added = grown[number:]
        random.Random(number).shuffle(added)  # noqa: S311 - the same inputs in each run
        grown[number:] = added
    return grown


def _moved(value: Any, copy: int, values: Sequence[Any]) -> Any:
    if not copy:
        return value
    if type(value) is int:
        numbers = [one for one in values if type(one) is int]
        return value + copy * (max(numbers) - min(numbers) + 1)
    if type(value) is float:
        return value + copy * (max(abs(one) for one in values if type(one) is float) + 1.0)
    if type(value) is str:
        return f"{value}{copy}"
    if isinstance(value, tuple) and type(value) is not tuple and (parts := instance_parts(value)) is not None:
        rows = [instance_parts(one) for one in values]
        moved = _moved(parts.content, copy, [row.content for row in rows if row is not None])
        return new_instance(type(value), tuple, moved)
    if type(value) is tuple:
        for index, part in enumerate(value):
            if type(part) in (int, float, str):
                column = [one[index] for one in values if type(one) is tuple and len(one) > index]
                return (*value[:index], _moved(part, copy, column), *value[index + 1 :])
    raise CannotGrowError("no further distinct values")


def _sequence_ways(value: Any) -> Iterator[Way]:
    cls, count = type(value), len(value)
    make: Callable[[Any], Any] = cls
    if not count or (cls is collections.deque and value.maxlen is not None):
        return
    values = list(value)
    is_record = cls is tuple and (
        len({type(one) for one in values}) > 1 or (count <= _RECORD and all(type(one) in _NUMBERS for one in values))
    )
    if not is_record:
        if _is_square(values):
            yield lambda factor: _larger_square(value, factor)
        if edges := _edges(values):
            yield lambda factor: make(_more_edges(values, edges, factor))
        yield lambda factor: make(extended(values, count * factor))
        yield lambda factor: make(_repeated(values, count * factor))
    if count <= 2 * _RECORD:
        yield from _inner_ways(values, lambda grown: make(grown))


def _inner_ways(values: list[Any], make: Callable[[list[Any]], Any]) -> Iterator[Way]:
    """Grow what the values hold, and not their number: all together, each in its first way."""
    firsts = [next(ways_to_grow(one), None) for one in values]
    if any(way is not None and type(one) is not str for way, one in zip(firsts, values, strict=True)):
        # A text next to containers is rather a name or an option.
        firsts = [None if type(one) is str else way for way, one in zip(firsts, values, strict=True)]
    if any(firsts):
        yield lambda factor: make(
            [way(factor) if way is not None else clone(one) for way, one in zip(firsts, values, strict=True)]
        )


def _is_square(values: list[Any]) -> bool:
    count = len(values)
    return count > 1 and all(
        type(one) in (list, tuple) and len(one) == count and all(type(cell) in SCALARS for cell in one)
        for one in values
    )


def _larger_square(value: Any, factor: int) -> Any:
    """A square matrix of about ``factor`` times as many cells."""
    count = len(value)
    size = max(count + 1, round(count * math.sqrt(factor)))
    rows = [type(row)(extended(row, size)) for row in value]
    return type(value)(extended(rows, size))


def _edges(values: list[Any]) -> list[Any]:
    """The nodes of what looks like a list of edges; empty if it does not."""
    if len(values) < 2 or not all(type(one) in (tuple, list) and 2 <= len(one) <= 3 for one in values):
        return []
    starts, ends = [one[0] for one in values], [one[1] for one in values]
    if len({type(one) for one in (*starts, *ends)}) != 1 or type(starts[0]) not in (int, str):
        return []
    nodes = list(dict.fromkeys([*starts, *ends]))
    shared = set(starts) & set(ends)
    # Intervals and points have two numbers of one kind as well, but are not so often met twice.
    return nodes if len(shared) >= 2 and len(nodes) <= len(values) + 1 else []


def _more_edges(values: list[Any], nodes: list[Any], factor: int) -> list[Any]:
    """Copies of a graph with other nodes; an edge leads from each to the next."""
    grown = distinct(nodes, len(nodes) * factor)
    edges: list[Any] = []
    for copy in range(factor):
        names = dict(zip(nodes, grown[copy * len(nodes) :], strict=False))
        edges.extend(type(one)([names[one[0]], names[one[1]], *map(clone, one[2:])]) for one in values)
        if copy:
            last = edges[-len(values)]
            edges[-1] = type(last)([edges[-len(values) - 1][1], names[values[0][0]], *edges[-1][2:]])
    return edges


def _mapping_ways(value: Any) -> Iterator[Way]:
    if not value:
        return
    keys, values = list(value), list(value.values())
    neighbours = _neighbours(value)
    if neighbours:
        yield lambda factor: _larger_graph(value, factor)
    is_record = all(type(key) is str and key.isidentifier() for key in keys) and (
        len({type(one) for one in values}) > 1 or len(keys) <= 2
    )
    inner = list(_inner_ways(values, lambda grown: _mapping(value, keys, grown)))
    if is_record:
        yield from inner
    yield lambda factor: _mapping(value, distinct(keys, len(keys) * factor), extended(values, len(keys) * factor))
    if not is_record:
        yield lambda factor: _mapping(value, distinct(keys, len(keys) * factor), _repeated(values, len(keys) * factor))
        yield from inner


def _mapping(like: Any, keys: Sequence[Any], values: Sequence[Any]) -> Any:
    pairs = zip(keys, values, strict=True)
    if type(like) is collections.defaultdict:
        return collections.defaultdict(like.default_factory, pairs)
    return type(like)(dict(pairs))


def _neighbours(value: Any) -> bool:
    """Return whether a mapping is a graph: its values hold some of its keys, and nothing else."""
    some = False
    for one in value.values():
        if type(one) not in (list, set, tuple, dict, frozenset):
            return False
        for neighbour in one:
            if type(neighbour) not in (int, str, tuple) or neighbour not in value:
                return False
            some = True
    return some and len(value) > 1


def _larger_graph(value: Any, factor: int) -> Any:
    """Copies of a graph with other nodes, each joined to the next by one edge, or two where edges have no direction."""
    keys = list(value)
    grown = distinct(keys, len(keys) * factor)
    both = all(key in value[other] for key in keys for other in value[key])
    made: dict[Any, Any] = {}
    for copy in range(factor):
        names = dict(zip(keys, grown[copy * len(keys) : (copy + 1) * len(keys)], strict=True))
        for key in keys:
            one = value[key]
            if type(one) is dict:
                made[names[key]] = {names[other]: clone(weight) for other, weight in one.items()}
            else:
                made[names[key]] = type(one)(names[other] for other in one)
    linked = next((index for index in range(len(keys) - 1, -1, -1) if value[keys[index]]), 0)
    for copy in range(factor - 1):
        last, first = grown[copy * len(keys) + linked], grown[(copy + 1) * len(keys)]
        _join(made, last, first)
        if both:
            _join(made, first, last)
    return _mapping(value, list(made), list(made.values()))


def _join(graph: dict[Any, Any], start: Any, end: Any) -> None:
    neighbours = graph[start]
    if type(neighbours) is dict:
        neighbours[end] = next(iter(neighbours.values()), 1)
    else:
        graph[start] = type(neighbours)([*neighbours, end])


def _array_ways(value: Any) -> Iterator[Way]:
    if not value.ndim:
        return
    if value.ndim == 2 and value.shape[0] == value.shape[1] and value.shape[0] > 1:
        yield lambda factor: _larger_array(value, max(value.shape[0] + 1, round(value.shape[0] * math.sqrt(factor))), 2)
    yield lambda factor: _larger_array(value, value.shape[0] * factor, 1)


def _larger_array(value: Any, size: int, axes: int) -> Any:
    import numpy

    grown = value
    for axis in range(axes):
        copies = -(-size // value.shape[axis])
        parts = [grown] * copies
        if (
            value.ndim == 1
            and value.dtype.kind in "iuf"
            and numpy.isfinite(value).all()
            and (numpy.diff(value) >= 0).all()
        ):
            span = value[-1] - value[0]
            step = span + (span / max(len(value) - 1, 1) if value.dtype.kind == "f" else 1)
            parts = [grown + numpy.asarray(copy * step).astype(value.dtype) for copy in range(copies)]
        grown = numpy.take(numpy.concatenate(parts, axis=axis), range(size), axis=axis)
    return grown.astype(value.dtype)


def _file_of(cls: type, content: Any) -> Any:
    return io.StringIO(content, newline="") if cls is io.StringIO else io.BytesIO(content)
