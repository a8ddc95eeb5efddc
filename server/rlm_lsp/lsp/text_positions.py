"""Byte and character offsets of a text <-> positions in the client's encoding (UTF-8, UTF-16 or UTF-32).

Lines end where the protocol says: at LF, CR LF or CR and nowhere else. ``str.splitlines``, which pygls uses, would
break at a form feed or U+2028 too, and apply an edit below one to a wrong line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from lsprotocol import types
from pygls.workspace import PositionCodec
from rlm_core.types import Span

_BYTES_END = re.compile(rb"\r\n|\n|\r")
_TEXT_END = re.compile(r"\r\n|\n|\r")


class Lines:
    """The line starts of one UTF-8 text; converts byte offsets into it to client positions."""

    def __init__(self, source: bytes, codec: PositionCodec) -> None:
        self._source, self._codec = source, codec
        # Where no line ends at a CR, lines are rows of the syntax tree, and those of a long file need not be counted.
        self._are_rows = b"\r" not in source

    @cached_property
    def _starts(self) -> list[int]:
        return _starts(self._source)

    def end_of(self, span: Span) -> types.Position:
        """The client position of the end of a span."""
        prefix = self._source[span.end_byte - span.end_column : span.end_byte]
        if self._are_rows and prefix.isascii():
            return types.Position(span.end_line, span.end_column)
        return self.position(span.end_byte)

    def first_and_last(self, first: Span, last: Span) -> tuple[int, int]:
        """The 0-based lines at the start of one span and at the end of another."""
        if self._are_rows:
            return first.start_line, last.end_line
        return self.line_of(first.start_byte), self.line_of(last.end_byte)

    def position(self, offset: int) -> types.Position:
        """The client position of a byte offset (0 <= offset <= length of the text)."""
        line = self.line_of(offset)
        prefix = self._source[self._starts[line] : offset]
        # The codec counts letter by letter, which took a third of an analysis.
        if prefix.isascii():
            return types.Position(line=line, character=len(prefix))
        return types.Position(line, self._codec.client_num_units(prefix.decode("utf-8", errors="replace")))

    def line_of(self, offset: int) -> int:
        """The 0-based line that holds a byte offset."""
        return bisect_right(self._starts, offset) - 1

    def end_of_line(self, offset: int) -> int:
        """The byte offset where the text of the line that holds ``offset`` ends, without trailing spaces."""
        match = _BYTES_END.search(self._source, offset)
        end = match.start() if match else len(self._source)
        start = self._starts[self.line_of(offset)]
        return start + len(self._source[start:end].rstrip())


def replace_range(text: str, place: types.Range, new: str, codec: PositionCodec) -> str:
    """``text`` with ``new`` in place of a range of client positions."""
    first = _line_start(text, 0, place.start.line)
    last = _line_start(text, first, place.end.line - place.start.line)
    start = _offset_in_line(text, first, place.start.character, codec)
    end = max(start, _offset_in_line(text, last, place.end.character, codec))
    return f"{text[:start]}{new}{text[end:]}"


def offset_of(text: str, position: types.Position, codec: PositionCodec) -> int:
    """The character offset of a client position.

    A position after the end of a line is that end; one after the last line is the end of the text.
    """
    return _offset_in_line(text, _line_start(text, 0, position.line), position.character, codec)


def _starts(source: bytes) -> list[int]:
    # Unlike str.splitlines, bytes.splitlines breaks only where the protocol does.
    ends = list(accumulate(map(len, source.splitlines(keepends=True))))
    return [0, *(ends if source.endswith((b"\n", b"\r")) else ends[:-1])]


def _line_start(text: str, start: int, lines: int) -> int:
    """The offset of the line that is ``lines`` after the one at ``start``; after the last line, the end of the text."""
    if "\r" in text:
        for _ in range(lines):
            match = _TEXT_END.search(text, start)
            if match is None:
                return len(text)
            start = match.end()
        return start
    # Each edit of a long file passes over tens of thousands of lines: str.find is much faster than a regex.
    for _ in range(lines):
        start = text.find("\n", start) + 1
        if not start:
            return len(text)
    return start


def _offset_in_line(text: str, start: int, character: int, codec: PositionCodec) -> int:
    match = _TEXT_END.search(text, start)
    end = match.start() if match is not None else len(text)
    line = text[start:end]
    if line.isascii() or codec.encoding == types.PositionEncodingKind.Utf32:
        return start + min(character, len(line))
    units = 0
    for index, letter in enumerate(line):
        if units >= character:
            return start + index
        units += codec.client_num_units(letter)
    return end
