"""Workflow commands, which GitHub shows as annotations beside the code of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rlm_lsp.findings.finding import Severity
from rlm_lsp.rendering.console import PROGRAM

from .report import Reported

_COMMANDS: dict[Severity, str] = {"information": "notice", "warning": "warning", "error": "error"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def write(found: Iterable[Reported], fail_on: Severity) -> Iterator[str]:
    """``::error file=...,line=...::message``, a line a finding."""
    for reported in found:
        finding, region = reported.finding, reported.place.region
        properties = {
            "file": reported.place.name,
            "line": region.line,
            "endLine": region.end_line,
            # GitHub refuses columns of a range over several lines; its columns end with the last character.
            **({"col": region.column, "endColumn": _last(region.column, region.end_column)} if _flat(reported) else {}),
            "title": f"{PROGRAM} {finding.code}",
        }
        said = ",".join(f"{name}={str(value).translate(_PROPERTY)}" for name, value in properties.items())
        yield f"::{_COMMANDS[finding.severity]} {said}::{finding.message.translate(_DATA)}\n"


def _flat(reported: Reported) -> bool:
    return reported.place.region.line == reported.place.region.end_line


def _last(column: int, end_column: int) -> int:
    return max(column, end_column - 1)
