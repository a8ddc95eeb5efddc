"""A screen as a picture: text with SGR colours, as tmux captures it, drawn with a monospaced font."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from . import get_editors

SIZE = 16
Colour = tuple[int, int, int]
_PAPER, _INK = (24, 26, 31), (215, 218, 224)
# The sixteen colours of xterm.
_NAMED = (
    "000000 cd0000 00cd00 cdcd00 5c5cff cd00cd 00cdcd e5e5e5 7f7f7f ff0000 00ff00 ffff00 8c8cff ff00ff 00ffff ffffff"
)
_SIXTEEN = tuple((int(one[:2], 16), int(one[2:4], 16), int(one[4:], 16)) for one in _NAMED.split())
_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
_OTHER = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b[()][A-Z0-9]|\x1b\][^\x1b]*\x1b\\|[\x0e\x0f]")


@dataclass(frozen=True)
class Style:
    """How a piece of text looks."""

    ink: Colour | None = None
    paper: Colour | None = None
    bold: bool = False
    dim: bool = False
    reverse: bool = False
    underline: bool = False

    @property
    def colours(self) -> tuple[Colour, Colour]:
        """Ink and paper as they are drawn."""
        ink, paper = self.ink or _INK, self.paper or _PAPER
        if self.dim:
            ink = ((ink[0] + paper[0]) // 2, (ink[1] + paper[1]) // 2, (ink[2] + paper[2]) // 2)
        return (paper, ink) if self.reverse else (ink, paper)


def write(captured: str, file: Path) -> None:
    """Draw a captured screen."""
    font = get_editors.TERMINAL.root / "usr/share/fonts/truetype/dejavu"
    plain, bold = (ImageFont.truetype(font / f"DejaVuSansMono{name}.ttf", SIZE) for name in ("", "-Bold"))
    wide, high = round(plain.getlength("M")), sum(plain.getmetrics())
    rows = [list(pieces(line)) for line in captured.removesuffix("\n").split("\n")]
    columns = max(sum(width(text) for text, _ in row) for row in rows)
    # tmux does not say how cells look in which nothing was ever written: like most others.
    papers = Counter({_PAPER: 1})
    for text, style in (piece for row in rows for piece in row):
        papers[style.paper or _PAPER] += width(text)
    image = Image.new("RGB", (columns * wide, len(rows) * high), papers.most_common(1)[0][0])
    draw = ImageDraw.Draw(image)
    for number, row in enumerate(rows):
        column, top = 0, number * high
        for text, style in row:
            ink, paper = style.colours
            draw.rectangle((column * wide, top, (column + width(text)) * wide - 1, top + high - 1), fill=paper)
            if style.underline:
                draw.line((column * wide, top + high - 2, (column + width(text)) * wide - 1, top + high - 2), fill=ink)
            for sign in text:
                draw.text((column * wide, top), sign, fill=ink, font=bold if style.bold else plain)
                column += width(sign)
    image.save(file)


def pieces(line: str) -> Iterator[tuple[str, Style]]:
    """The pieces of a line with the style of each."""
    style, position = Style(), 0
    line = _OTHER.sub("", line)
    for mark in _SGR.finditer(line):
        if mark.start() > position:
            yield line[position : mark.start()], style
        style, position = styled(style, mark[1]), mark.end()
    if position < len(line):
        yield line[position:], style


def styled(style: Style, codes: str) -> Style:
    """The style after an SGR sequence."""
    rest = iter(codes.split(";"))
    for code in rest:
        number, *parts = (int(part or 0) for part in code.split(":"))
        match number:
            case 0:
                style = Style()
            case 1:
                style = replace(style, bold=True)
            case 2:
                style = replace(style, dim=True)
            case 22:
                style = replace(style, bold=False, dim=False)
            case 4 | 24:
                style = replace(style, underline=number == 4 and parts != [0])
            case 7 | 27:
                style = replace(style, reverse=number == 7)
            case 38:
                style = replace(style, ink=_extended([int(part) for part in rest]))
            case 48:
                style = replace(style, paper=_extended([int(part) for part in rest]))
            case 39:
                style = replace(style, ink=None)
            case 49:
                style = replace(style, paper=None)
            case _ if 30 <= number <= 37 or 90 <= number <= 97:
                style = replace(style, ink=_SIXTEEN[number - 30 if number < 40 else number - 82])
            case _ if 40 <= number <= 47 or 100 <= number <= 107:
                style = replace(style, paper=_SIXTEEN[number - 40 if number < 50 else number - 92])
    return style


def _extended(codes: list[int]) -> Colour:
    """A colour of the 256, or one by its parts; tmux captures each in a separate sequence."""
    if codes[0] == 2:
        return codes[1], codes[2], codes[3]
    number = codes[1]
    if number < 16:
        return _SIXTEEN[number]
    if number > 231:
        return (8 + 10 * (number - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    return levels[(number - 16) // 36], levels[(number - 16) // 6 % 6], levels[(number - 16) % 6]


def width(text: str) -> int:
    """The columns that a text takes."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
