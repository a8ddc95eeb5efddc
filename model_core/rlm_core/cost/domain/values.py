"""Values of the program, as far as the analysis knows them: kind, size, what they hold, and bytes.

Values are immutable. A value that is not understood is ``UNKNOWN``; what is known of it is never more than what the
text says. ``Call`` is what a rule about a library function receives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from rlm_core.types import Growth, WaitKind

from .folding import MISSING, LargeInteger, is_bounded
from .quantities import ONE, ZERO, Quantity, constant
from .records import record

NUMBERS = frozenset({"int", "float", "bool"})
SEQUENCES = frozenset({"list", "tuple", "str", "bytes", "bytearray"})
SIZED = SEQUENCES | {"set", "frozenset", "dict", "deque"}
DIGIT_BITS = 30  # of a digit of CPython's integers


@record
class Value:
    """A value of the program, as far as it is known.

    kind: ``int``, ``float``, ``bool``, ``none``, ``str``, ``bytes``, ``list``, ``tuple``, ``set``, ``dict``, ``range``,
        ``iterator`` (lazy: generators, ``map``, ``zip`` ...), ``array`` (numpy), ``module``, ``function`` (of a
        library), ``user-function``, ``class``, ``object`` (an instance, ``name`` is its type) or ``unknown``.
    constant: the Python value where the text fixes it (numbers, text, None, tuples of those), else ``MISSING``.
    number: of an int or float: its value; several possible values are a range.
    size: of a container, text, iterator or array: the number of its items, characters or elements.
    item: what iteration yields, on average over all items; for a dict the keys.
    entry: of a dict: its values.
    bytes: the memory that the value holds, with the items that nothing else holds.
    shape, itemsize: of an array: its axes, and bytes per element; ``dtype`` as numpy writes it.
    step: of an iterator: the seconds that producing one item takes.
    name: dotted name of a module, library function, class, or the type of an object (``threading.Thread``).
    type: of an unknown value, its type where the text shows it: ``int``, ``float``, ``bool``, or a class of the
        program.
    optional: whether it may be None instead.
    most: of a container that drops items when it has more: how many it keeps (``deque(maxlen=...)``).
    payload: what only the analysis itself reads (the definition of a function of the program).
    """

    kind: str = "unknown"
    constant: Any = MISSING
    number: Quantity | None = None
    size: Quantity | None = None
    item: Value | None = None
    entry: Value | None = None
    bytes: Quantity = ZERO
    shape: tuple[Quantity, ...] | None = None
    itemsize: float = 8.0
    dtype: str = "float64"
    step: Quantity = ZERO
    name: str = ""
    type: str = ""
    optional: bool = False
    most: float | None = None
    payload: Any = field(default=None, compare=False, repr=False)

    @property
    def is_number(self) -> bool:
        """Return whether the value is a number."""
        return self.kind in NUMBERS or self.type in NUMBERS

    @property
    def owner(self) -> str | None:
        """Return what an object's class is looked up by: ``self``, or a class of the program; None if not known."""
        if self.kind == "object":
            return self.name if self.payload is not None else None
        if self.kind != "unknown" or self.is_number:
            return None
        return self.name if self.name in ("self", "cls") else self.type or None

    @property
    def known(self) -> bool:
        """Return whether the text fixes the value exactly."""
        return self.constant is not MISSING

    @property
    def truth(self) -> bool | None:
        """Return whether the value is true; None where the text does not say."""
        if self.known:
            try:
                return bool(self.constant)
            except Exception:
                return None
        if self.kind in SIZED and self.size is not None and self.size.exact is not None:
            return self.size.exact > 0
        if self.kind in ("user-function", "function", "module", "class"):
            return True
        return None


class _Starred:
    def __repr__(self) -> str:
        return "STARRED"


STARRED = _Starred()
"""The payload of what a call passes as ``*items`` where the number of items is not known."""


@record
class Entries:
    """The payload of a dict display: its keys, which the text fixes, with their values."""

    pairs: tuple[tuple[Any, Value], ...]


UNKNOWN = Value()
NONE = Value("none", None)


class Call(Protocol):
    """A call of a library function or method, as its rule sees it. ``name`` is what is called, as written."""

    name: str
    args: Sequence[Value]
    keywords: Mapping[str, Value]
    receiver: Value | None

    def spend(self, seconds: Quantity | float) -> None:
        """Add computing time."""

    def allocate(self, bytes_: Quantity | float) -> None:
        """Add memory that is needed during the call only; what the result holds is the result's ``bytes``."""

    def length(self, value: Value) -> Quantity:
        """The number of items of a value; an unknown one gets a size named after the argument's expression."""

    def consume(self, value: Value) -> Quantity:
        """The number of items that iterating over a value yields; spends what producing them takes."""

    def searched(self, count: Quantity) -> Quantity:
        """The number of items that a search for one of ``count`` sees."""

    def apply(self, function: Value, times: Quantity, args: Sequence[Value]) -> Value:
        """The result of calling ``function`` with ``args``; spends ``times`` such calls."""

    def wait(self, kind: WaitKind, seconds: Quantity | None = None) -> None:
        """The call waits: for a known time, or until something happens (None)."""

    def endless(self) -> None:
        """The call may not end."""

    def unknown(self, times: Quantity) -> None:
        """Something of unknown cost runs this many times."""

    def note_worst_case(self, pattern: str, seconds: Quantity, growth: Growth) -> None:
        """Matching a pattern may take this long for some text; nothing is spent."""


def literal(value: Any) -> Value:
    """A value that the text fixes: a constant, which takes no more memory when the program runs.

    Constants enter the analysis here: no larger number than ``MOST_BITS`` is kept, and no infinite one as a quantity.
    """
    if isinstance(value, LargeInteger):
        return Value("int", size=constant(value.bits / DIGIT_BITS))
    if value is None:
        return NONE
    if isinstance(value, bool):
        return Value("bool", value, number=constant(float(value)))
    if isinstance(value, int):
        bits = value.bit_length()
        if not is_bounded(value):
            return literal(LargeInteger(bits))
        return Value("int", value, number=constant(value), size=constant(bits / DIGIT_BITS) if bits > 64 else None)
    if isinstance(value, float):
        return Value("float", value, number=constant(value) if math.isfinite(value) else None)
    if isinstance(value, str):
        return Value("str", value, size=constant(len(value)), item=Value("str", size=ONE))
    if isinstance(value, bytes):
        return Value("bytes", value, size=constant(len(value)), item=Value("int"))
    if isinstance(value, tuple):
        kept = value if is_bounded(value) else MISSING
        return Value("tuple", kept, size=constant(len(value)), item=_item_of(value))
    return UNKNOWN


def _item_of(values: tuple[Any, ...]) -> Value:
    """An item of a tuple of constants: of numbers, one from the least to the largest; of others, one like the first."""
    if not values:
        return UNKNOWN
    first = literal(values[0])
    if any(value != values[0] for value in values) and all(type(value) in (int, float) for value in values):
        numbers = [literal(value).number for value in values]
        amounts = [number.constant[1] for number in numbers if number is not None and number.constant is not None]
        if len(amounts) == len(values):
            mean = sum(amounts) / len(amounts)
            return Value(first.kind, number=constant(min(amounts), max(amounts), mean))
    return first


def number_of(value: Value) -> Quantity | None:
    """A number's value; an unknown argument counts as a number of its name."""
    if value.number is not None:
        return value.number
    if value.kind == "unknown" and value.name:
        return Quantity({(((value.name, ""), 1.0),): (1.0, 1.0, 1.0)})
    return None
