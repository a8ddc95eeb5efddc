"""Defines the rules of library functions and what they share: constant folding and usual results.

A rule receives a :class:`Call`, spends what the call costs, and returns the abstract result. It never raises on odd
arguments: what it does not understand is ``UNKNOWN``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..domain import object_sizes
from ..domain.folding import is_small
from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.records import replace
from ..domain.values import UNKNOWN, Call, Value
from ..domain.values import literal as constant_value
from .unit_costs import seconds

Rule = Callable[[Call], Value]
Attribute = Callable[[Value], Value | None]

ENDLESS = constant(math.inf)
"""The size of an iterator without end, such as ``itertools.count()``."""
ORDERED = "ordered"
"""The ``name`` of a list that is sorted: sorting it again takes linear time."""
SEQUENCES = frozenset({"list", "tuple"})

BOOL = Value("bool")
INT = Value("int", bytes=constant(object_sizes.scalar("int")))
FLOAT = Value("float", bytes=constant(object_sizes.scalar("float")))
CHARACTER = Value("str", size=ONE)
BYTE = Value("int")
# A short text of unknown content, such as ``str(x)``; a range, because nothing in the text fixes it.
SHORT = constant(1.0, 40.0, 8.0)
_COLUMNS = 4  # of a table whose columns are not known
_GIVEN = Value()  # an argument that is there, and not known


def is_endless(size: Quantity | None) -> bool:
    """Return whether a size is that of an iterator without end."""
    return size is not None and any(high == math.inf for _, _, high in size.terms.values())


def argument(call: Call, position: int, *names: str) -> Value:
    """The argument at a position or under one of its keywords; the object ``UNKNOWN`` itself if it is absent."""
    if 0 <= position < len(call.args):
        return _given(call.args[position])
    for name in names:
        if name in call.keywords:
            return _given(call.keywords[name])
    return UNKNOWN


def _given(value: Value) -> Value:
    return _GIVEN if value is UNKNOWN else value


def bound(call: Call) -> Value | None:
    """The object whose method is called, None for a function and for a method called through its class."""
    owner = call.receiver
    return None if owner is None or owner.kind in ("function", "class") else owner


def receiver(call: Call) -> Value:
    """The object whose method is called; called through its class, the first argument."""
    owner = bound(call)
    if owner is not None:
        return owner
    return call.args[0] if call.args else UNKNOWN


def arguments(call: Call) -> Sequence[Value]:
    """The arguments of a method without its receiver, which comes first when it is called through the class."""
    return call.args if bound(call) is not None else call.args[1:]


def literal(value: Any) -> Value:
    """A value that a call returns: a new object, which takes memory; ``UNKNOWN`` if the analysis does not keep it."""
    known = constant_value(value)
    if isinstance(value, tuple):
        return replace(known, item=literal(value[0])) if value else known
    if known.kind in ("int", "float", "str", "bytes"):
        return replace(known, bytes=constant(object_sizes.scalar(known.kind, value)))
    return known


def integer(number: Quantity | None = None) -> Value:
    """An int, with its value as far as that is known."""
    return replace(INT, number=number)


def real(number: Quantity | None = None) -> Value:
    """A float, with its value as far as that is known."""
    return replace(FLOAT, number=number)


def counted(number: Quantity) -> Value:
    """An int that counts something: a literal where the count is exact."""
    exact = number.exact
    if exact is not None and 0 <= exact < 2**53:
        return literal(round(exact))
    return integer(number)


def text(size: Quantity, kind: str = "str") -> Value:
    """A fresh text of that many characters, or bytes."""
    item = CHARACTER if kind == "str" else BYTE
    return Value(kind, size=size, item=item, bytes=object_sizes.container(kind, size))


def text_kind(value: Value) -> str:
    """The kind of a text like this one."""
    return value.kind if value.kind in ("str", "bytes", "bytearray") else "str"


def bare(value: Value | None) -> Value:
    """A value without its memory: something else holds it."""
    if value is None:
        return UNKNOWN
    return replace(value, bytes=ZERO) if value.bytes.terms else value


def passed(value: Value) -> Value:
    """An item as an adaptor passes it on: with its memory only if iterating makes it."""
    return (value.item or UNKNOWN) if makes_items(value) else bare(value.item)


def makes_items(value: Value) -> bool:
    """Return whether iterating over a value makes objects that did not exist before."""
    return value.kind in ("range", "iterator", "view", "str", "bytes")


def container(
    kind: str,
    size: Quantity,
    item: Value | None,
    *,
    grown: bool = False,
    fresh: bool = False,
    entry: Value | None = None,
) -> Value:
    """A fresh container; its items count as its memory when they are ``fresh`` too."""
    held = object_sizes.container(kind, size, grown=grown)
    if fresh and item is not None:
        held = held + item.bytes * size
    if fresh and entry is not None:
        held = held + entry.bytes * size
    return Value(kind, size=size, item=bare(item), entry=bare(entry) if entry is not None else None, bytes=held)


def rows(type_: str, size: Quantity) -> Value:
    """A fresh table or column of a library: an object of a type with that many rows of numbers; or an array."""
    held = size.times(8.0 * _COLUMNS if type_.endswith("Frame") else 8.0)
    if type_ == "array":
        return Value("array", size=size, bytes=held)
    return Value("object", name=type_, size=size, bytes=held)


def collection_cost(item: Value, count: Quantity) -> Quantity:
    """Seconds that the garbage collector takes for ``count`` fresh containers that stay alive."""
    if item.kind == "tuple":
        return seconds("gc.tuple", count)
    if item.kind in ("list", "dict", "set", "deque", "object"):
        return seconds("gc.tracked", count)
    return ZERO


def lazy(size: Quantity, item: Value | None, step: float | Quantity = 0.0) -> Value:
    """An iterator; each item takes ``step`` seconds."""
    return Value(
        "iterator",
        size=size,
        item=item if item is not None else UNKNOWN,
        step=step if isinstance(step, Quantity) else constant(step),
    )


def flow(call: Call, value: Value) -> Quantity:
    """The number of items that an adaptor passes on; an iterator with an end is paid for at once."""
    size = call.length(value)
    return size if is_endless(size) else call.consume(value)


def pair(*parts: Value) -> Value:
    """A fresh tuple of a few values."""
    size = constant(len(parts))
    held = object_sizes.container("tuple", size)
    for part in parts:
        held = held + part.bytes
    return Value(
        "tuple",
        size=size,
        payload=tuple(bare(part) for part in parts),
        item=bare(parts[0]) if parts else None,
        bytes=held,
    )


def fewest(left: Quantity, right: Quantity) -> Quantity:
    """The smaller of two sizes, as far as that can be decided."""
    if is_endless(left):
        return right
    if is_endless(right):
        return left
    a, b = left.constant, right.constant
    if a is not None and b is not None:
        return constant(min(a[0], b[0]), min(a[2], b[2]), min(a[1], b[1]))
    if a is None and b is None:
        return left
    # A size that is not known and a limit: likely the limit, which holds in any case.
    limit = a if a is not None else b
    assert limit is not None
    return constant(0.0, limit[2], limit[1])


def share_of(part: Quantity, whole: Quantity) -> Quantity:
    """``part / whole`` of two sizes, at most 1; of unknown sizes, anything up to 1."""
    a, b = part.exact, whole.exact
    if a is not None and b is not None and b > 0:
        return constant(min(a / b, 1.0))
    return constant(0.0, 1.0, 0.5)


def constants(values: Sequence[Value]) -> list[Any] | None:
    """The Python values of arguments that the text fixes and that are small enough to compute with."""
    listed = []
    for value in values:
        if value.known and is_small(value.constant):
            listed.append(value.constant)
        else:
            return None
    return listed


def folded(call: Call, function: Callable[..., Any], values: Sequence[Value] | None = None) -> Value | None:
    """The literal that a pure function returns for known arguments, None where an argument is not known."""
    if call.keywords:
        return None
    listed = constants(call.args if values is None else values)
    if listed is None:
        return None
    try:
        result = function(*listed)
    except Exception:  # whatever the analysed program would raise
        return None
    if isinstance(result, list):
        return None
    value = literal(result) if isinstance(result, int) or is_small(result) else UNKNOWN
    return value if value.kind != "unknown" else None


def applied(call: Call, function: Value, times: Quantity, *args: Value) -> Value:
    """Call ``function`` so often; None stands for the identity, and nothing is called without end."""
    if function.kind == "none":
        return args[0] if args else UNKNOWN
    return call.apply(function, ONE if is_endless(times) else times, args)


def exact_number(value: Value) -> float | None:
    """A number that the text fixes."""
    return value.number.exact if value.number is not None else None
