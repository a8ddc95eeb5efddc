"""Byte offsets of a source text -> positions in the client's encoding (UTF-8, UTF-16 or UTF-32).

Lines end as the protocol says: at LF, CR LF or CR and nowhere else. ``str.splitlines`` would break at a form feed too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from lsprotocol import types
from pygls.workspace import PositionCodec

_LINE_END = re.compile(rb"\r\n|\n|\r")


class Lines:
    """The line starts of one UTF-8 text; converts byte offsets into it to client positions."""

    def __init__(self, source: bytes, codec: PositionCodec) -> None:
        self._source, self._codec = source, codec
        self._starts = _starts(source)

    def position(self, offset: int) -> types.Position:
        """The client position of a byte offset (0 <= offset <= length of the text)."""
        line = self.line_of(offset)
        prefix = self._source[self._starts[line] : offset].decode("utf-8", errors="replace")
        return types.Position(line=line, character=self._codec.client_num_units(prefix))

    def line_of(self, offset: int) -> int:
        """The 0-based line that holds a byte offset."""
        return bisect_right(self._starts, offset) - 1

    def end_of_line(self, offset: int) -> int:
        """The byte offset where the text of the line that holds ``offset`` ends, without trailing spaces."""
        match = _LINE_END.search(self._source, offset)
        end = match.start() if match else len(self._source)
        start = self._starts[self.line_of(offset)]
        return start + len(self._source[start:end].rstrip())


def _starts(source: bytes) -> list[int]:
    if b"\r" in source:
        return [0, *(match.end() for match in _LINE_END.finditer(source))]
    return [0, *accumulate(len(line) + 1 for line in source.split(b"\n"))][:-1]
