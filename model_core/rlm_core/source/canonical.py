"""Source text -> the canonical text that the model reads.

What carries no cost is removed, so editing it changes no prediction and takes no tokens. There are two forms, and a
model states in its card which one it reads (:class:`CanonicalForm`). Both are idempotent on code without syntax errors.
"""

from __future__ import annotations

import re
import textwrap
from enum import StrEnum
from hashlib import blake2b
from threading import Lock

from cachetools import LRUCache, cached

from . import languages
from .parsed import ParsedSource
from .python_neutral import neutral_python

# In Python a semicolon at the end of a line is what remains after a docstring.
_ENDS = {"tree_sitter_python:language": " ;"}
# Source locations in MLIR, of a line. Only where the line ends with a parenthesis may the last part search for it.
_LOCATION = re.compile(r"^#loc.*$| loc\(#?\w*\)")
_LOCATION_TO_END = re.compile(rf"{_LOCATION.pattern}| loc\(\".*\)$")
_OPENING_TAG = re.compile(r"\A\s*<\?php\b")
_SPACES = re.compile(r"[ \t\f\v\u00a0]+")
# More than a batch of predictions reads; an entry takes some bytes however short its text is.
_REMEMBERED_CHARACTERS, _LEAST_CHARACTERS = 2**20, 256


class CanonicalForm(StrEnum):
    """A canonical form. Its meaning never changes: models were trained with it.

    ``LINES``: no comments, docstrings and blank lines; one line per line of code, with tabs for indentation where it
    has a meaning and single spaces. ``NEUTRAL``: in Python also one layout per statement, no type hints, and ``p1``,
    ``v1`` ... for parameters and other local variables, see :mod:`rlm_core.source.python_neutral`; in other languages
    the same as ``LINES``.
    """

    LINES = "lines"
    NEUTRAL = "neutral"


def _key(text: str, language: str, form: CanonicalForm = CanonicalForm.LINES) -> tuple[bytes, str, CanonicalForm]:
    # A text is much longer than its canonical form where most of it is comments.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest(), language, form


@cached(LRUCache(_REMEMBERED_CHARACTERS, lambda found: len(found) + _LEAST_CHARACTERS), key=_key, lock=Lock())
def canonical(text: str, language: str, form: CanonicalForm = CanonicalForm.LINES) -> str:
    """The canonical form of one unit's source text. Several parts of a model read it, so recent ones are remembered.

    Raises:
        SourceError: the language is unknown.
    """
    entry = languages.by_name(language)
    if language in languages.TEXT_ONLY:
        return "\n".join(_lines(text, indented=True, ends=" "))
    if entry.grammar is None:
        lines = ((_LOCATION_TO_END if line.endswith(")") else _LOCATION).sub("", line) for line in text.split("\n"))
        return "\n".join(_lines("\n".join(lines), indented=True, ends=" "))
    # A method's text is indented to its class: the grammar needs it at the margin.
    parsed = ParsedSource(_untagged(dedent(text), language).encode("utf-8", errors="replace"), language)
    if form == CanonicalForm.NEUTRAL and language == "python":
        return neutral_python(parsed).decode("utf-8", errors="replace")
    kept = _without_comments(parsed).decode("utf-8", errors="replace")
    return "\n".join(_lines(kept, entry.indented, _ENDS.get(entry.grammar, " ")))


def _untagged(text: str, language: str) -> str:
    """The text without its opening tag: a file of PHP alone means the same with and without it."""
    rest = _OPENING_TAG.sub("", text) if language == "php" else text
    return text if "<?" in rest or "?>" in rest else rest


def dedent(text: str) -> str:
    """The text without the indentation of its first line, on every line that has it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")
    first = text[: len(text) - len(text.lstrip(" \t"))]
    if not first:
        return text
    if all(line.startswith(first) or not line.strip() for line in text.split("\n")):
        return "\n".join(line[len(first) :] for line in text.split("\n"))
    return textwrap.dedent(text).lstrip(" \t")


def _without_comments(parsed: ParsedSource) -> bytes:
    source, pieces, at = parsed.source, [], 0
    for node in sorted(parsed.comments(), key=lambda node: node.start_byte):
        if node.start_byte < at:
            continue
        pieces.append(source[at : node.start_byte])
        # A block comment between two words must not glue them; a line comment must not eat its line end.
        if source[node.start_byte : node.end_byte].endswith(b"\n"):
            pieces.append(b"\n")
        elif source[source.rfind(b"\n", 0, node.start_byte) + 1 : node.start_byte].strip():
            pieces.append(b" ")
        at = node.end_byte
    pieces.append(source[at:])
    return b"".join(pieces)


def _lines(text: str, indented: bool, ends: str) -> list[str]:
    lines: list[str] = []
    widths: list[int] = [0]
    for raw in re.split(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text):
        line = _SPACES.sub(" ", raw).strip(ends)
        if not line:
            continue
        if indented:
            expanded = raw.expandtabs(8)
            width = len(expanded) - len(expanded.lstrip())
            while widths and width < widths[-1]:
                widths.pop()
            if not widths or width > widths[-1]:
                widths.append(width)
            line = "\t" * (len(widths) - 1) + line
        lines.append(line)
    return lines
