"""How many bytes CPython objects take, as tracemalloc sees them: kinds and sizes -> bytes.

Source: ``Objects/listobject.c``, ``dictobject.c``, ``setobject.c``, ``unicodeobject.c`` and ``longobject.c`` of CPython
3.12 on 64-bit systems; the tests compare them with tracemalloc. The header of the garbage collector is included.
"""

from __future__ import annotations

import math
from typing import Any

from .folding import MISSING
from .quantities import Quantity, constant

REFERENCE = 8.0
MOST_SHARED = 256  # CPython keeps one object for each small number
_EMPTY = {"list": 56.0, "tuple": 56.0, "set": 216.0, "frozenset": 216.0, "dict": 64.0, "deque": 760.0}
_TEXT = {"str": 41.0, "bytes": 33.0, "bytearray": 57.0}
_DEQUE_BLOCK = 64
DICT_ENTRY = 50.0  # of a dictionary's table, averaged over sizes
ARRAY_HEADER = 80.0  # of array.array
TEXT_HEADER = 49.0  # of a text of ASCII characters, with the one behind its end and its share of alignment
# A generator, its frame, and what it iterates over.
GENERATOR = constant(440.0)
KINDS = frozenset({*_EMPTY, *_TEXT})


def container(kind: str, size: Quantity, *, grown: bool = False) -> Quantity:
    """Bytes of a container or text with ``size`` items or characters, without the items.

    ``grown`` containers were built item by item: a list then reserves up to an eighth more, and a set or dictionary has
    its old table next to the new one while it grows. For a size that is not known the average over sizes is meant.
    """
    if kind == "dictionary" or kind in ("Counter", "defaultdict", "OrderedDict"):
        kind = "dict"
    fixed = size.exact
    if fixed is not None:
        return constant(_exact(kind, max(fixed, 0.0), grown))
    each = _average(kind, grown)
    return constant(_EMPTY.get(kind, _TEXT.get(kind, 56.0))) + size.times(each)


def _exact(kind: str, size: float, grown: bool) -> float:
    if size == math.inf:
        return size
    if kind in _TEXT:
        return _TEXT[kind] + size
    if kind in ("list", "tuple"):
        return _EMPTY[kind] + REFERENCE * (_reserved(size) if grown and kind == "list" else size)
    if kind in ("set", "frozenset"):
        return _EMPTY["set"] + _set_table(size, grown)
    if kind == "dict":
        return _EMPTY["dict"] + _dict_table(size, grown)
    if kind == "deque":
        return 232.0 + 528.0 * (math.floor(size / _DEQUE_BLOCK) + 1)
    return 56.0 + REFERENCE * size


def _average(kind: str, grown: bool) -> float:
    """Bytes per item, averaged over sizes that are uniform in the logarithm."""
    if kind in _TEXT:
        return 1.0
    if kind in ("set", "frozenset"):
        return 48.0 if grown else 45.0
    if kind == "dict":
        return 75.0 if grown else DICT_ENTRY
    return REFERENCE * (1.06 if grown and kind == "list" else 1.0)


def _reserved(size: float) -> float:
    """Places that a list has after ``size`` appends (``list_resize``)."""
    if size <= 0:
        return 0.0
    if size > 200:
        # The last reallocation was at most an eighth below: iterate from a place that the sequence reaches.
        return _geometric(size)
    places = 0
    while places < size:
        needed = places + 1
        places = (needed + (needed >> 3) + 6) & ~3
    return float(places)


def _geometric(size: float) -> float:
    places = 0
    while places < size and places < 1 << 60:
        needed = places + 1
        places = (needed + (needed >> 3) + 6) & ~3
    return float(max(places, size))


def _set_table(size: float, grown: bool) -> float:
    """A set grows by four (by two above 50,000 entries) when three fifths of its table are in use."""
    if size < 5:
        return 0.0
    slots, before = 8.0, 0.0
    used = 5.0
    while used <= size and slots < 2**60:
        before = slots
        wanted = used * (2.0 if used > 50_000 else 4.0)
        slots = 8.0
        while slots <= wanted:
            slots *= 2
        used = math.floor((slots - 1) * 3 / 5) + 1
    return 16.0 * (slots + (before if grown and before > 8 else 0.0))


def _dict_table(size: float, grown: bool) -> float:
    """A dictionary's table is a power of two of which two thirds are usable; indexes take 1, 2, 4 or 8 bytes."""
    if size <= 0:
        return 0.0
    slots = 8.0
    while slots * 2 // 3 < size and slots < 2**60:
        slots *= 2
    total = _dict_keys(slots)
    return total + (_dict_keys(slots / 2) if grown and slots > 8 else 0.0)


def _dict_keys(slots: float) -> float:
    width = 1 if slots <= 256 else 2 if slots <= 65536 else 4 if slots <= 2**32 else 8
    return 32.0 + slots * width + math.floor(slots * 2 / 3) * 24.0


def scalar(kind: str, value: Any = MISSING) -> float:
    """Bytes of a number or text; 0 for what CPython shares: small integers, None, booleans, short constants."""
    if kind in ("none", "bool"):
        return 0.0
    if kind == "int":
        if isinstance(value, int):
            return 0.0 if -5 <= value <= 256 else 24.0 + 4.0 * max(1, math.ceil(value.bit_length() / 30))
        return 32.0
    if kind == "float":
        return 24.0
    if kind == "complex":
        return 32.0
    if kind == "str":
        return text(value) if isinstance(value, str) else 50.0
    if kind == "bytes":
        return 33.0 + len(value) if isinstance(value, bytes) else 40.0
    return 48.0


def text(value: str) -> float:
    """Bytes of a text: 1, 2 or 4 per character, by its widest character; one character of Latin-1 is shared."""
    widest = ord(max(value)) if value else 0
    if len(value) <= 1 and widest < 256:
        return 0.0
    if widest < 128:
        return 41.0 + len(value)
    return 57.0 + len(value) * (1 if widest < 256 else 2 if widest < 65536 else 4)


def instance(attributes: int) -> float:
    """Bytes of an instance of a class without ``__slots__``, its attributes' values not included."""
    return 48.0 + 8.0 * max(attributes, 1)
