"""Python text with its unfinished statements blanked out, so that what stands around them can be read.

While a line is being typed, a bracket or a quote is often open, and a grammar then takes the functions that follow for
a part of the expression. Layout is stronger than brackets and quotes: a line that begins with ``def``, ``return`` or
another keyword that no expression can hold begins a statement, and so does a line that is indented no further than the
statement with the open bracket. No offset changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# What may open, close or end a statement. The end of a string may be missing: it then ends with the line, or with the
# text. Every alternative is decided by its first characters, so no text is scanned more than a few times.
_MARK = re.compile(
    rb"""
    (?P<block>\"\"\"[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*(?:\"\"\"|\\?\Z)
        |'''[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*(?:'''|\\?\Z))
    |(?P<string>"[^\\"\r\n]*(?:\\(?:\r\n|.|\Z)[^\\"\r\n]*)*"?|'[^\\'\r\n]*(?:\\(?:\r\n|.|\Z)[^\\'\r\n]*)*'?)
    |(?P<comment>\#[^\r\n]*)
    |\\\r?\n
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<line>\r?\n[ \t\f]*(?P<word>[A-Za-z_]\w*)?)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK, _STRING, _COMMENT, _OPEN, _CLOSE, _LINE, _WORD = range(1, _MARK.groups + 1)
NEVER_IN_BRACKETS = frozenset(
    b"""assert break class continue def del elif except finally global import nonlocal pass raise return try while
    with""".split()
)
_OPENING_OF = {b")": b"(", b"]": b"[", b"}": b"{"}
_SPACES = re.compile(rb"[ \t\f]*")
_DEFINITION = re.compile(rb"\n([ \t\f]*)(?:async[ \t]+def|def|class)[ \t]+\w+[^\n]*")
_HEADER = re.compile(rb"[ \t\f]*(?:async[ \t]+)?(?:class|def|for|while|with|if|elif|else|try|except|finally)\b")
_NAMED_HEADER = re.compile(rb"(?:async[ \t]+)?(?:(?P<class>class)|def)[ \t]+\w+")
_VISIBLE = re.compile(rb"[^\r\n]")
# What an operand must follow, at the end of a statement; not `1.`, `...` or `import *`.
_WITHOUT_OPERAND = re.compile(
    rb"(?:[-+/%&|^=<>@~]|(?<!import )\*|(?<![\w.])\.|(?<=[A-Za-z_])\.|\b(?:and|as|else|from|if|in|is|not|or))\s*\Z"
)
_LAST = 24  # bytes of a statement in which it ends
_MOST_REREAD = 100_000  # marks of statements that do not end and are read again from their second line
_LONG_STATEMENT = 4_096  # bytes; no shorter one takes long to parse


def without_unfinished(source: bytes, is_too_complex: Callable[[bytes], bool] | None = None) -> bytes:
    """The text with blanks for statements that do not end; of the same length and lines.

    Their brackets or quotes do not match, or an operand or the colon of a header is missing. A blanked statement is a
    string of spaces, or the header of a block with the same name, if any. Valid text comes back unchanged.
    ``is_too_complex`` is asked about long statements, and may have them blanked, too.
    """
    as_written = _Reader(source, is_too_complex)
    as_written.read()
    if not as_written.blanked or not as_written.is_definition_in_block:
        return bytes(as_written.text)
    # A quote that was typed swaps strings and code down to some other quote. Or the string is a text of Python.
    as_laid_out = _Reader(source, is_too_complex, do_definitions_end_blocks=True)
    as_laid_out.read()
    return bytes(min(as_written, as_laid_out, key=lambda reader: reader.blanked).text)


class _Reader:
    """The pass over a text: the statement that it is in, the brackets that are open, and the text with its blanks."""

    def __init__(
        self, source: bytes, is_too_complex: Callable[[bytes], bool] | None, *, do_definitions_end_blocks: bool = False
    ) -> None:
        self.source, self.text = source, bytearray(source)
        self.blanked = 0  # bytes
        # Whether a string of three quotes holds a definition that is indented no further than its statement.
        self.is_definition_in_block = False
        self._is_too_complex = is_too_complex
        self._do_definitions_end_blocks = do_definitions_end_blocks
        self._reread = 0
        self._begin(0)

    def _begin(self, start: int) -> None:
        """Begin a statement at the start of a line."""
        self._start, self._width = start, _indentation(self.source, start)
        self._is_broken, self._marks = False, 0
        self._comment = -1  # where the comment begins that ends the statement
        self._second = -1  # where a line begins that may be the next statement, if the brackets do not end
        self._brackets: list[bytes] = []

    def read(self) -> None:
        """Read the text to its end."""
        position, size = 0, len(self.source)
        while True:
            for found in _MARK.finditer(self.source, position):
                position = self._take(found)
                if position >= 0:
                    break
            else:
                if not self._brackets:
                    self._end(size)
                    return
                position = self._give_up(size)
            if position >= size:
                return

    def _take(self, found: re.Match[bytes]) -> int:
        """Take in a mark; where to read on, or -1 to read on behind it."""
        kind, start = found.lastindex, found.start()
        self._marks += 1
        if kind != _LINE:
            self._comment = start if kind == _COMMENT else -1
        if kind == _LINE:
            line = self.source.index(b"\n", start) + 1
            if not self._brackets:
                self._end(line)
                self._begin(line)
            elif found["word"] in NEVER_IN_BRACKETS:
                return self._give_up(line)
            elif self._second < 0 and self._may_begin(line):
                self._second = line
        elif kind == _OPEN:
            self._brackets.append(found[0])
        elif kind == _CLOSE:
            opening = _OPENING_OF[found[0]]
            if not self._brackets or self._brackets[-1] != opening:
                self._is_broken = True
            if opening in self._brackets:
                while self._brackets.pop() != opening:
                    pass
        elif kind == _STRING:
            token = found[0]
            if len(token) < 2 or token[-1:] != token[:1]:
                self._is_broken = True
        elif kind == _BLOCK:
            return self._take_block(found)
        return -1

    def _take_block(self, found: re.Match[bytes]) -> int:
        token = found[0]
        for definition in _DEFINITION.finditer(token):
            if len(definition[1]) <= self._width:
                self.is_definition_in_block = True
                if not self._do_definitions_end_blocks:
                    break
                line = self.source.index(b"\n", found.start()) + 1
                self._blank(line)
                self._begin(line)
                return line
        if len(token) < 6 or token[-3:] != token[:3]:
            self._is_broken = True
        return -1

    def _end(self, end: int) -> None:
        """End the statement in front of an offset."""
        if (
            self._is_broken
            or self._lacks_end(end)
            or (
                self._is_too_complex is not None
                and end - self._start > _LONG_STATEMENT
                and self._is_too_complex(self.source[self._start : end])
            )
        ):
            self._blank(end)

    def _lacks_end(self, end: int) -> bool:
        """Return whether a statement lacks its last operand, or the colon of a header."""
        if _HEADER.match(self.source, self._start) and self.source.find(b":", self._start, end) < 0:
            return True
        last = self._comment if self._comment >= 0 else end
        return _WITHOUT_OPERAND.search(self.source[max(self._start, last - _LAST) : last]) is not None

    def _give_up(self, end: int) -> int:
        """End a statement whose brackets are open at the start of a line that cannot be in it; where to read on."""
        self._reread += self._marks
        if 0 <= self._second < end and self._reread < _MOST_REREAD:
            end = self._second
        self._blank(end)
        self._begin(end)
        return end

    def _may_begin(self, line: int) -> bool:
        """Return whether a line is indented no further than the statement and does not close a bracket."""
        width = _indentation(self.source, line)
        first = self.source[line + width : line + width + 1]
        return width <= self._width and first not in (b"", b")", b"]", b"}", b"#", b"\r", b"\n")

    def _blank(self, end: int) -> None:
        """Blank out the statement in front of an offset."""
        start = self._start + self._width
        if start >= end:
            return
        text = self.source[start:end].rstrip()
        line = text.split(b"\n", 1)[0].rstrip()
        is_string = len(text) >= 6 and min(len(line), len(text) - text.rfind(b"\n") - 1) >= 3
        named = _NAMED_HEADER.match(line)
        first = named[0] + (b":" if named["class"] else b"():") if named is not None else b""
        if not 0 < len(first) <= len(line):
            first = b"if 1:" if _HEADER.match(line) else b"'''" if is_string else b"0"
        blank = bytearray(_VISIBLE.sub(b" ", self.source[start:end]))
        if len(first) <= len(line):
            blank[: len(first)] = first
        if first == b"'''":
            blank[len(text) - 3 : len(text)] = first
        self.text[start:end] = blank
        self.blanked += end - start


def _indentation(source: bytes, line: int) -> int:
    spaces = _SPACES.match(source, line)
    return spaces.end() - line if spaces is not None else 0
