"""A finding as it is reported: with the file's names and places in characters."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_core.types import Span

from rlm_lsp.findings.finding import SEVERITIES, Finding, Severity


@dataclass(frozen=True, slots=True)
class Region:
    """A half-open range of a text: 1-based lines, 1-based columns in Unicode characters."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Place:
    """A region of a file: ``file`` as the user named it, ``name`` from the project's folder, with ``/``."""

    file: str
    name: str
    region: Region


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding, its place, the places that belong to it, and what a baseline knows it by."""

    finding: Finding
    place: Place
    related: tuple[tuple[str, Place], ...]
    fingerprint: str


def region_of(source: bytes, span: Span) -> Region:
    """A span of a UTF-8 text in characters."""
    return Region(
        span.start_line + 1,
        _characters(source, span.start_byte, span.start_column) + 1,
        span.end_line + 1,
        _characters(source, span.end_byte, span.end_column) + 1,
    )


def fails(finding: Finding, fail_on: Severity) -> bool:
    """Whether a finding is as severe as ``fail_on`` or more."""
    return SEVERITIES.index(finding.severity) >= SEVERITIES.index(fail_on)


def _characters(source: bytes, offset: int, column: int) -> int:
    return len(source[offset - column : offset].decode("utf-8", errors="replace"))
