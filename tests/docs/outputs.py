"""Compares the output that a page shows with the output of a command, and updates the lines of the page.

Numbers with a unit and long numbers in JSON may differ by 20 %: the model computes with 8-bit integers, which
processors round differently. Spaces and the duration of a command are ignored.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

ELISION = "..."
_TOLERANCE = 0.2
_SCALES = {
    "ns": 1e-9,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "B": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "mJ": 1e-3,
}
_UNIT = r"(?P<unit>ns|µs|ms|s|B|KiB|MiB|GiB|mJ|%|×)(?![\w/])"
_QUANTITY = re.compile(rf"(?<![\w.:=-])(?:(?P<low>\d[\d.]*)–)?(?P<high>\d[\d.]*) ?{_UNIT}")
_FIGURE = re.compile(r"(?<![\w.:=-])\d+\.\d{5,}(?:e-\d+)?(?![\w.])")  # of JSON
_TIMES = ((re.compile(r" in [\d.]+ s \([\d,]+ units/s\)"), " in TIME"), (re.compile(r"; [\d.]+ s$"), "; TIME"))
NOTE = "rlm-lsp: "  # the start of the program's lines on stderr


def agrees(shown: Sequence[str], printed: Sequence[str], *, excerpt: bool = False) -> str | None:
    """None if the shown lines match the printed ones, otherwise the first shown line that does not.

    In an ``excerpt``, lines may be omitted everywhere.
    """
    place, may_skip = 0, excerpt
    for line in shown:
        if line.strip() == ELISION:
            may_skip = True
            continue
        while may_skip and place < len(printed) and not same(line, printed[place]):
            place += 1
        if place == len(printed) or not same(line, printed[place]):
            return line
        place, may_skip = place + 1, excerpt
    return None if may_skip or place == len(printed) else f"nothing more, where `{printed[place]}` is printed"


def begins_alike(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether all lines begin with the same words; a continuation line has none."""
    return [_first_word(line) for line in shown] == [_first_word(line) for line in printed]


def same(shown: str, printed: str) -> bool:
    """Whether two lines are equal, with numbers with units within the tolerance."""
    (left, those), (right, others) = _parts(shown), _parts(printed)
    return left == right and all(
        abs(one - other) <= _TOLERANCE * max(abs(one), abs(other)) for one, other in zip(those, others, strict=True)
    )


def renewed(shown: Sequence[str], printed: Sequence[str], *, excerpt: bool = False) -> list[str]:
    """The lines to show: all printed lines, or if some were omitted, those that match the old lines best."""
    if not excerpt and ELISION not in (line.strip() for line in shown):
        return list(printed)
    rest = list(printed)
    found = []
    for line in shown:
        if line.strip() != ELISION:
            near = difflib.get_close_matches(line, rest, n=1, cutoff=0.0)
            line = near[0] if near else line
            rest = rest[rest.index(line) + 1 :] if near else rest
        found.append(line)
    return found


def _parts(line: str) -> tuple[str, list[float]]:
    """A line with placeholders for its quantities, and the quantities in SI units."""
    if line.startswith(NOTE):
        for pattern, word in _TIMES:
            line = pattern.sub(word, line)
    values: list[float] = []

    def take(found: re.Match[str]) -> str:
        scale = _SCALES.get(found["unit"], 1.0)
        ends = [float(end) * scale for end in (found["low"], found["high"]) if end]
        values.extend(ends)
        return f"{len(ends)} {'value' if found['unit'] in _SCALES else found['unit']}"

    def take_figure(found: re.Match[str]) -> str:
        values.append(float(found[0]))
        return "figure"

    return " ".join(_FIGURE.sub(take_figure, _QUANTITY.sub(take, line)).split()), values


def _first_word(line: str) -> str:
    return "" if line.startswith(" ") else line.partition(" ")[0]
