"""Units of a text, and where they are in it."""

from __future__ import annotations

from dataclasses import dataclass

from .vocabulary import BASIS_OF_KIND, Basis, UnitKind


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of a source text: 0-based lines, columns in UTF-8 bytes, and byte offsets."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
    start_byte: int
    end_byte: int


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a source file that gets predictions.

    ``text`` is what the model reads, with the indentation of its first line removed; ``span`` covers it in the file,
    ``name`` covers the identifier and ``header`` ends where the signature ends (an inlay hint goes there).
    """

    kind: UnitKind
    language: str
    qualname: str
    text: str
    span: Span
    name: Span
    header: Span

    @property
    def basis(self) -> Basis:
        """The kind of measurement that predictions for this unit are about."""
        return BASIS_OF_KIND[self.kind]
