"""Text from a workspace, made harmless where it is shown: in a terminal and in Markdown.

Input: any text, such as a file name, a name in the code or a setting. Output: text that says the same and cannot be
read as an instruction to what shows it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Control and format characters, lone surrogates, line and paragraph separators.
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNDECODED = range(0xDC80, 0xDD00)  # how Python keeps bytes of a file name that are not UTF-8
_MARKDOWN = re.compile(r"([\\`*\[\]<>#|~&@]|(?<![^\W_])_|_(?![^\W_]))")
_LINK = re.compile(r"(?i)(https?|ftp|mailto|www)([:.])")
_BACKTICKS = re.compile("`+")


class _Escapes(dict[int, str]):
    """The replacement of each character; filled on use."""

    def __missing__(self, code: int) -> str:
        text = chr(code)
        if unicodedata.category(text) in _UNPRINTABLE:
            number = code - 0xDC00 if code in _UNDECODED else code
            text = (
                f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
            )
        self[code] = text
        return text


_ESCAPES = _Escapes()


def printable(text: str) -> str:
    r"""The text on one line; what controls a terminal or reorders the text is replaced by ``\xNN`` or ``\uNNNN``."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


def markdown(text: str) -> str:
    """The text as inline Markdown that is shown as it is: no emphasis, link, image, HTML or table cell."""
    return _LINK.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\1", printable(text)))


def code_span(text: str) -> str:
    """The text as an inline code span; in a table it cannot end its cell."""
    shown = printable(text).strip()
    if "\\|" in shown:
        # Some parsers would end the cell at ``\\\\|``, and a code span has no other way to write it.
        return markdown(shown)
    shown = shown.replace("|", "\\|")
    if "`" not in shown:
        return f"`{shown}`" if shown else ""
    ticks = "`" * (max(map(len, _BACKTICKS.findall(shown))) + 1)
    return f"{ticks} {shown} {ticks}"


def message(text: str) -> str:
    """The text of a message that pops up; VS Code would make ``[name](command:id)`` a link that runs the command."""
    return printable(text).replace("](", "] (")


def table(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table of cells that are Markdown already, its head first; padded: some editors show its source."""
    cells = [list(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in cells)
