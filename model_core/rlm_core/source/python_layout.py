"""The layout of Python source: one logical line per line, with fixed spaces, quotes and numbers.

Statements separated by semicolons and suites in the line of their header get separate lines. Spaces depend on the
tokens alone. ``lay_out`` leaves out given spans and replaces given names on the way. One pass, linear in the text;
broken code is laid out too: a statement that cannot be inside brackets closes those that are open.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from .python_repair import NEVER_IN_BRACKETS

# The end of a string may be missing: it then ends with the line, or with the text. Every alternative is decided by its
# first characters, so no text is scanned more than a few times.
_TOKEN = re.compile(
    rb"""
    [ \t\f\v]*(?:\\\r?\n[ \t\f\v]*)*
    (?:(?P<string>[rRbBuUfFtT]{0,2}(?:
          \"\"\"[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*(?:\"\"\"|\Z)
        |'''[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*(?:'''|\Z)
        |"[^\\"\n]*(?:\\.[^\\"\n]*)*(?:"|(?=\n)|\Z)
        |'[^\\'\n]*(?:\\.[^\\'\n]*)*(?:'|(?=\n)|\Z)))
    |(?P<number>(?:0[xXbBoO][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?)[jJlL]?)
    |(?P<word>[A-Za-z_\x80-\xff][\w\x80-\xff]*|\.\.\.)
    |(?P<newline>[\r\n][ \t\f\v]*)
    |(?P<comment>\#[^\r\n]*)
    |(?P<sign>\*\*=|//=|>>=|<<=|->|:=|[=!<>]=|<>|\*\*|//|>>|<<|[-+*/%&|^@]=|.))
    """,
    re.VERBOSE | re.DOTALL,
)
_STRING, _NUMBER, _WORD, _NEWLINE, _COMMENT, _SIGN = range(1, _TOKEN.groups + 1)
_KEYWORDS = frozenset(
    b"""and as assert async await break class continue def del elif else except finally for from global if import in is
    lambda nonlocal not or pass raise return try while with yield""".split()
)
_COMPOUND = frozenset(b"if elif else for while def class with try except finally async match case".split())
_CLOSING_OF = {b"(": b")", b"[": b"]", b"{": b"}"}
_CLOSING = frozenset(_CLOSING_OF.values())
_UNARY = frozenset((b"+", b"-", b"~", b"*", b"**", b"@"))
_SPACES = re.compile(rb"\s+")
_PLAIN_STRING = re.compile(rb"""([a-z]*)(["'])(?!\2\2)(.*)\2""", re.DOTALL)
_BRACES = re.compile(rb"\{[^{}]*\}")
_NAME = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPE_OR_QUOTE = {quote: re.compile(rb"\\.|" + quote, re.DOTALL) for quote in (b'"', b"'")}

# What the last token was, as far as the space after it depends on it.
_START, _OPEN, _TIGHT, _OPERATOR, _KEYWORD, _COMMA, _OPERAND = range(7)
_NO_SPAN = (sys.maxsize, sys.maxsize)
_NO_SPACE_AFTER = (_START, _OPEN, _TIGHT)


class _Lines:
    """The lines that are written, the tokens of the current one, and the widths of the open blocks."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.tokens: list[bytes] = []
        self.widths = [0]
        self.suites = 0  # that began in the line of their header

    def end(self) -> None:
        """End the current line; an empty one leaves nothing."""
        if self.tokens:
            self.lines.append(b"\t" * (len(self.widths) - 1 + self.suites) + b"".join(self.tokens))
            self.tokens.clear()

    def indent(self, line_end: bytes) -> None:
        """Close and open blocks up to the line that follows a line end, which includes its indentation."""
        indentation = line_end.lstrip(b"\r\n")
        width = len(indentation) if b"\t" not in indentation else len(indentation.expandtabs(8))
        while len(self.widths) > 1 and width < self.widths[-1]:
            self.widths.pop()
        if width > self.widths[-1]:
            self.widths.append(width)


@dataclass(slots=True)
class _Bracket:
    """An open bracket: what closes it, the commas in it, and whether a single item needs one to be a tuple."""

    closing: bytes
    is_tuple: bool
    commas: int = 0


_MOST_JOINED = 4_096  # bytes of a string that another is joined to: each of many is read again with the next


def lay_out(
    source: bytes,
    skipped: Sequence[tuple[int, int]] = (),
    redundant: Set[int] = frozenset(),
    names: Mapping[int, bytes] | None = None,
) -> bytes:
    """The source with its tokens in the canonical layout.

    Args:
        source: the text in UTF-8, unindented.
        skipped: spans to leave out, ascending.
        redundant: offsets of brackets to leave out; line ends between them are still inside brackets.
        names: the new names of identifiers, by offset.
    """
    names = names or {}
    out = _Lines()
    write = out.tokens.append
    brackets: list[_Bracket] = []
    last, lambdas = _START, 0
    has_comma = is_compound = False  # a comma is written with what follows it
    is_line_start, indentation = True, b""
    until, spans = 0, iter(skipped)
    span = next(spans, _NO_SPAN)

    for found in _TOKEN.finditer(source.rstrip()):
        kind = found.lastindex or 0
        start = found.start(kind)
        while start >= span[0]:
            until = max(until, span[1])
            span = next(spans, _NO_SPAN)
        if start < until or kind == _COMMENT:
            continue
        token = found[kind]
        is_line_end = kind == _NEWLINE
        if is_line_start and brackets and token in NEVER_IN_BRACKETS:
            brackets.clear()  # broken code: they were never closed
            has_comma, is_line_end = False, True
        if is_line_end:
            if not brackets:
                if has_comma:
                    write(b",")
                out.end()
                out.suites, last, lambdas = 0, _START, 0
                has_comma = is_compound = False
            if kind == _NEWLINE:
                is_line_start, indentation = True, token
                continue
        if is_line_start:
            is_line_start = False
            if not brackets:
                out.indent(indentation)
        if last == _START:
            is_compound = token in _COMPOUND
        elif has_comma and token not in _CLOSING:
            write(b",")
            has_comma = False
        if kind == _WORD:
            is_keyword = token in _KEYWORDS and (last != _TIGHT or token == b"import")
            if is_keyword:
                write(b" " + token if last != _START and last != _OPEN else token)
                last = _KEYWORD
                lambdas += token == b"lambda"
            else:
                if start in names:
                    token = names[start]
                write(token if last in _NO_SPACE_AFTER else b" " + token)
                last = _OPERAND
        elif kind == _STRING:
            token = _string(token, start, names)
            joined = _joined(out.tokens[-1], token) if last == _OPERAND else None
            if joined is not None:
                out.tokens[-1] = joined
                continue
            if last not in _NO_SPACE_AFTER:
                write(b" ")
            write(token)
            last = _OPERAND
        elif kind == _NUMBER:
            write(_number(token) if last in _NO_SPACE_AFTER else b" " + _number(token))
            last = _OPERAND
        elif token in _CLOSING_OF:
            is_redundant = start in redundant
            follows_operand = last == _OPERAND
            is_tuple = token == b"(" and not follows_operand and not is_redundant
            brackets.append(_Bracket(_CLOSING_OF[token], is_tuple))
            if not is_redundant:
                write(token if follows_operand or last in _NO_SPACE_AFTER else b" " + token)
                last = _OPEN
        elif token in _CLOSING:
            bracket = brackets.pop() if brackets else None
            if has_comma and bracket is not None and bracket.is_tuple and bracket.commas == 1:
                write(b",")
            has_comma = False
            if start not in redundant:
                write(token)
            last = _OPERAND
        elif token == b",":
            has_comma, last = True, _COMMA
            if brackets:
                brackets[-1].commas += 1
        elif token == b".":
            write(b" ." if last == _KEYWORD else token)
            last = _TIGHT
        elif token == b"=" and (brackets or lambdas):
            write(token)
            last = _TIGHT
        elif token == b":":
            write(token)
            last = _OPERATOR
            if lambdas:
                lambdas -= 1
            elif brackets:
                last = _TIGHT if brackets[-1].closing == b"]" else _OPERATOR
            elif is_compound:
                out.end()  # what follows in this line is the suite
                last, is_compound, out.suites = _START, False, out.suites + 1
        elif token == b";" and not brackets:
            out.end()
            last, lambdas, is_compound = _START, 0, False
        elif token == b"~" or (token in _UNARY and last != _OPERAND):
            write(token if last in _NO_SPACE_AFTER else b" " + token)
            last = _TIGHT
        else:
            write(token if last == _START else b" " + token)
            last = _OPERATOR
    if has_comma:
        write(b",")
    out.end()
    return b"\n".join(out.lines)


def _number(token: bytes) -> bytes:
    """A number in lower case, without separators, with digits on both sides of its point."""
    token = token.replace(b"_", b"").lower()
    whole, point, rest = token.partition(b".")
    return (whole or b"0") + point + (rest if rest[:1].isdigit() else b"0" + rest) if point else token


def _joined(first: bytes, second: bytes) -> bytes | None:
    """Two neighbouring strings as one; None if they are not alike, one is long, or the first token is not a string."""
    if len(first) > _MOST_JOINED:
        return None
    before, after = _PLAIN_STRING.fullmatch(first), _PLAIN_STRING.fullmatch(second)
    if before is None or after is None:
        return None
    prefixes = {before[1], after[1]}
    if prefixes in ({b""}, {b"b"}):
        return before[1] + _requoted(_unescaped(before[3]) + _unescaped(after[3]))
    if before[2] != after[2]:
        return None
    if prefixes == {b"", b"f"}:
        literal = before[3] if after[1] else after[3]
        if b"{" in literal or b"}" in literal:
            return None
    elif len(prefixes) > 1:
        return None
    return max(prefixes) + before[2] + before[3] + after[3] + after[2]


def _unescaped(inner: bytes) -> bytes:
    """The inside of a string without backslashes in front of quotes."""
    return _ESCAPE.sub(lambda escape: escape[1] if escape[1] in b"\"'" else escape[0], inner)


def _requoted(plain: bytes) -> bytes:
    """A string from its inside without escaped quotes, in the quotes that take fewer escapes."""
    quote = b'"' if plain.count(b'"') <= plain.count(b"'") else b"'"
    escaped = _ESCAPE_OR_QUOTE[quote].sub(lambda part: part[0] if len(part[0]) > 1 else b"\\" + part[0], plain)
    return quote + escaped + quote


def _string(token: bytes, start: int, names: Mapping[int, bytes]) -> bytes:
    """A string in double quotes unless that takes more escapes, with a lower-case prefix and single spaces."""
    opening = 0
    while token[opening] not in b"\"'":
        opening += 1
    prefix, body = bytes(sorted(token[:opening].lower().replace(b"u", b""))), token[opening:]
    if b"f" in prefix and names:
        # The expressions in braces have names too.
        first = start + opening
        body = _NAME.sub(lambda word: names.get(first + word.start(), word[0]), body)
    quote = body[:1]
    is_triple = len(body) >= 6 and body[:3] == quote * 3
    size = 3 if is_triple else 1
    if len(body) < 2 * size or body[-size:] != quote * size:
        return prefix + _SPACES.sub(b" ", body)  # broken code: the string does not end
    inner = _SPACES.sub(b" ", body[size:-size])
    if is_triple and ((b"r" not in prefix and b"f" not in prefix) or (b"'" not in inner and b'"' not in inner)):
        is_triple, size = False, 1
    if b"'" not in inner and b'"' not in inner:
        quote = b'"'
    elif not is_triple and b"f" in prefix:
        # Quotes inside the braces differ from those around the string: both are swapped.
        if quote == b"'" and b"\\" not in inner and b'"' not in _BRACES.sub(b"", inner):
            quote, inner = b'"', inner.replace(b'"', b"'")
    elif not is_triple and b"r" not in prefix:
        return prefix + _requoted(_unescaped(inner))
    return prefix + quote * size + inner + quote * size
