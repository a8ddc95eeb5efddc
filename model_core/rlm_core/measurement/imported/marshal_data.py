"""Plain data in Python's marshal format, as ``pstats`` writes it: numbers, texts, tuples, lists and dicts.

Python's ``marshal.load`` trusts its input and may crash. Here damaged input is an error, code objects are refused, and
nothing is larger than the input. Source of the format: ``Python/marshal.c`` of CPython, versions 0 to 4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

_REF = 0x80
_DEEPEST = 64
_NULL = object()  # ends a dict


class MarshalError(ValueError):
    """Bytes that are not plain data in marshal format."""


def plain_data(content: bytes) -> Any:
    """Decode the object at the start of ``content``.

    Raises:
        MarshalError: the content is damaged or contains something other than plain data.
    """
    try:
        value = _Reader(content).read(0)
    except (struct.error, IndexError, UnicodeError, ValueError, TypeError, OverflowError) as error:
        raise MarshalError(str(error) or type(error).__name__) from None
    if value is _NULL:
        raise MarshalError("ends early")
    return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0
        self._refs: list[Any] = []
        self._readers: dict[str, Callable[[int], Any]] = {
            "0": lambda depth: _NULL,
            "N": lambda depth: None,
            "T": lambda depth: True,
            "F": lambda depth: False,
            "i": lambda depth: self._number("<i"),
            "I": lambda depth: self._number("<q"),
            "l": lambda depth: self._long(),
            "g": lambda depth: self._number("<d"),
            "f": lambda depth: float(self._take(self._take(1)[0])),
            "s": lambda depth: self._take(self._count()),
            "r": lambda depth: self._refs[self._count()],
            "[": lambda depth: self._items(self._count(), depth),
            "{": self._dict,
            **dict.fromkeys("ut", lambda depth: self._take(self._count()).decode("utf-8", "surrogatepass")),
            **dict.fromkeys("aA", lambda depth: self._take(self._count()).decode("ascii")),
            **dict.fromkeys("zZ", lambda depth: self._take(self._take(1)[0]).decode("ascii")),
            "(": lambda depth: tuple(self._items(self._count(), depth)),
            ")": lambda depth: tuple(self._items(self._take(1)[0], depth)),
        }

    def read(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise MarshalError(f"more than {_DEEPEST} levels")
        code = self._take(1)[0]
        kind = chr(code & ~_REF)
        reader = self._readers.get(kind)
        if reader is None:
            raise MarshalError(f"an object of type {kind!r}, where a profile has plain data")
        if not code & _REF:
            return reader(depth)
        place = len(self._refs)
        self._refs.append(None)
        value = self._refs[place] = reader(depth)
        return value

    def _take(self, count: int) -> bytes:
        found = self._content[self._at : self._at + count]
        if len(found) < count:
            raise MarshalError("ends early")
        self._at += count
        return found

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _count(self) -> int:
        """Read the number of items or bytes that follow, or of an earlier object; each item takes at least a byte."""
        count = int(self._number("<i"))
        if not 0 <= count <= len(self._content):
            raise MarshalError(f"a length of {count}")
        return count

    def _long(self) -> int:
        count = int(self._number("<i"))
        digits = struct.unpack(f"<{abs(count)}H", self._take(2 * abs(count)))
        value = int(sum(digit << 15 * place for place, digit in enumerate(digits)))
        return -value if count < 0 else value

    def _items(self, count: int, depth: int) -> list[Any]:
        items = [self.read(depth + 1) for _ in range(count)]
        if any(item is _NULL for item in items):
            raise MarshalError("an item is missing")
        return items

    def _dict(self, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        while (key := self.read(depth + 1)) is not _NULL:
            value = self.read(depth + 1)
            if value is _NULL:
                raise MarshalError("a value is missing")
            found[key] = value
        return found
