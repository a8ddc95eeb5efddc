"""A version of an open document, and its units with the places where a client shows things about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText

from .text_positions import Lines


@dataclass(frozen=True, slots=True)
class Document:
    """A version of an open document; ``path`` is None outside the file system, ``language`` if it is not supported."""

    uri: str
    path: Path | None
    language: str | None
    version: int
    source: bytes
    parsed: ParsedSource = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed", ParsedSource(self.source, self.language or "", may_leave_out=True))


@dataclass(frozen=True, slots=True)
class LocatedUnit:
    """A unit, the position of its hint, and the lines of its header."""

    analysed: AnalysedUnit
    hint: types.Position
    header_lines: range


@dataclass(frozen=True, slots=True)
class Analysis:
    """The units of one version of a document, in the order in which they start.

    Where it is not ``settled``, units whose own text has not changed are as they were before the last edits, and units
    of a text that was just opened may be missing.
    """

    document: Document
    units: tuple[LocatedUnit, ...]
    settled: bool = True

    def codes(self) -> set[CodeText]:
        """The texts of the units as the model reads them."""
        return {unit.analysed.code for unit in self.units}

    def unit_at(self, line: int) -> LocatedUnit | None:
        """The innermost unit with a 0-based line in its header."""
        return min((unit for unit in self.units if line in unit.header_lines), key=_length, default=None)

    def unit_around(self, line: int) -> LocatedUnit | None:
        """The innermost unit that a 0-based line belongs to."""
        spans = ((unit.analysed.unit.span, unit) for unit in self.units)
        return min(
            (unit for span, unit in spans if span.start_line <= line <= span.end_line), key=_length, default=None
        )


def located(document: Document, units: Sequence[AnalysedUnit], codec: PositionCodec, *, settled: bool) -> Analysis:
    """The analysis of a document that found these units."""
    lines = Lines(document.source, codec)
    return Analysis(document, tuple(locate(unit, lines) for unit in units), settled)


def locate(analysed: AnalysedUnit, lines: Lines) -> LocatedUnit:
    """A unit with its positions: the hint is after the signature, or after the first line of a program."""
    unit = analysed.unit
    is_program = unit.kind == "program"
    hint = lines.position(lines.end_of_line(unit.name.start_byte)) if is_program else lines.end_of(unit.header)
    first, last = lines.first_and_last(unit.name, unit.header)
    return LocatedUnit(analysed, hint, range(first, max(first, last) + 1))


def _length(located: LocatedUnit) -> int:
    span = located.analysed.unit.span
    return span.end_byte - span.start_byte
