"""The formats of ``rlm-lsp check``: text, JSON, Markdown, SARIF 2.1.0, GitHub workflow commands and JUnit XML.

Input: findings one by one, each with its location in characters. Output: pieces of text, written as they come where
the format allows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import TextWrapper
from typing import Any, Literal, get_args
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from rlm_core.types import SI_UNIT, Span

from rlm_lsp import __version__
from rlm_lsp.rendering.console import PROGRAM
from rlm_lsp.rendering.escaping import code_span, markdown, printable
from rlm_lsp.rendering.finding_messages import COMMENT_FOOT, COMMENT_HEAD, NO_FINDINGS, committed_note
from rlm_lsp.rendering.json_rows import growth_fields, work_fields
from rlm_lsp.settings.model import Severity

from .finding import CODES, SEVERITIES, Code, Finding, docs_link, rests_on_committed

Format = Literal["text", "json", "markdown", "sarif", "github", "junit"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True, slots=True)
class TextRegion:
    """A half-open range of a text: 1-based lines, 1-based columns in Unicode characters."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Location:
    """A region of a file: ``file`` as the user named it, ``name`` relative to the project's folder, with ``/``.

    In a notebook, ``region`` is in the text of the cell with the number ``cell``.
    """

    file: str
    name: str
    region: TextRegion
    cell: int | None = None

    @property
    def in_file(self) -> str:
        """``cell 3:5``, the cell and the line, or the line alone."""
        return f"cell {self.cell}:{self.region.line}" if self.cell is not None else str(self.region.line)

    def said(self, message: str) -> str:
        """A message for a format that has no cells: lines of its files are not those of a notebook's cells."""
        return f"cell {self.cell}, line {self.region.line}: {message}" if self.cell is not None else message


@dataclass(frozen=True, slots=True)
class LocatedFinding:
    """A finding with its location, related locations with their messages, and the fingerprint for baselines."""

    finding: Finding
    location: Location
    related: tuple[tuple[str, Location], ...]
    fingerprint: str


def region_of(source: bytes, span: Span) -> TextRegion:
    """A span of a UTF-8 text in characters."""
    return TextRegion(
        span.start_line + 1,
        _characters(source, span.start_byte, span.start_column) + 1,
        span.end_line + 1,
        _characters(source, span.end_byte, span.end_column) + 1,
    )


def fails(finding: Finding, fail_on: Severity) -> bool:
    """Return whether a finding is at least as severe as ``fail_on``."""
    return SEVERITIES.index(finding.severity) >= SEVERITIES.index(fail_on)


def _characters(source: bytes, offset: int, column: int) -> int:
    return len(source[offset - column : offset].decode("utf-8", errors="replace"))


# Words are not cut, so that paths can be copied; a number stays with its unit, since that space does not break.
_WRAPPER = TextWrapper(95, break_long_words=False, break_on_hyphens=False)


def _text(findings: Iterable[LocatedFinding], fail_on: Severity) -> Iterator[str]:
    """``file:line:column: severity: message [code]``, with the rest of a long message on indented lines."""
    for located in findings:
        finding, location = located.finding, located.location
        others = [f"{other.file}:{other.in_file}" for _, other in located.related if other.file != location.file]
        at = f" (budget at {', '.join(others)})" if others else ""
        where = f"{location.file}:{location.in_file}:{location.region.column}"
        text = f"{where}: {finding.severity}: {' '.join(finding.message.split())}{at} [{finding.code}]"
        yield "\n    ".join(_WRAPPER.wrap(printable(text))) + "\n"


def _json(findings: Iterable[LocatedFinding], fail_on: Severity) -> Iterator[str]:
    """One array with one object per finding and line."""
    separator = "[\n"
    for located in findings:
        yield f"{separator}{json.dumps(_json_row(located))}"
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _json_row(located: LocatedFinding) -> dict[str, Any]:
    finding = located.finding
    prediction, change = finding.prediction, finding.change
    source = prediction or change
    band = source.bands[0] if source is not None and source.bands else None
    return {
        **_json_location(located.location),
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "qualname": finding.qualname,
        "metric": finding.metric,
        "unit": SI_UNIT[finding.metric] if prediction is not None and finding.metric is not None else None,
        "budget": finding.budget_text,
        "probability": finding.probability,
        "median": prediction.median if prediction is not None else None,
        "ratio": change.ratio if change is not None else None,
        "low": band.low if band else None,
        "high": band.high if band else None,
        "coverage": band.coverage if band else None,
        "source": prediction.source if prediction is not None else None,
        "committed": rests_on_committed(prediction) if prediction is not None else None,
        "device": source.device if source is not None else None,
        "model": source.model if source is not None else None,
        **_work(finding),
        "related": [{**_json_location(other), "message": message} for message, other in located.related],
        "docs": docs_link(finding.code),
        "fingerprint": located.fingerprint,
    }


def _work(finding: Finding) -> dict[str, Any]:
    """The growth before and after, and what the text of the unit says; lines count from 1."""
    rise, prediction = finding.rise, finding.prediction
    growth = growth_fields(rise.after if rise is not None else prediction.growth if prediction is not None else None)
    return {
        "growth": growth,
        "growth_before": growth_fields(rise.before) if rise is not None else None,
        **work_fields(finding.work, finding.metric or "latency", prediction, finding.first_line + 1),
    }


def _json_location(location: Location) -> dict[str, Any]:
    return {"file": location.file, "cell": location.cell, **asdict(location.region)}


def _markdown(findings: Iterable[LocatedFinding], fail_on: Severity) -> Iterator[str]:
    """A table for a comment on a pull request, after a mark by which the comment is found again."""
    is_empty = True
    for located in findings:
        if is_empty:
            yield f"{COMMENT_HEAD}| | where | finding |\n|---|---|---|\n"
        is_empty = False
        finding, location = located.finding, located.location
        where = code_span(f"{location.name}:{location.in_file}")
        message = markdown(" ".join(finding.message.split()))
        yield f"| {finding.severity} | {where} | {message} ({finding.code}) |\n"
    yield f"{COMMENT_HEAD}{NO_FINDINGS}\n" if is_empty else f"\n{COMMENT_FOOT}\n"


_GITHUB_COMMANDS: dict[Severity, str] = {"information": "notice", "warning": "warning", "error": "error"}
_GITHUB_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_GITHUB_PROPERTY = _GITHUB_DATA | str.maketrans({":": "%3A", ",": "%2C"})


def _github(findings: Iterable[LocatedFinding], fail_on: Severity) -> Iterator[str]:
    """``::error file=...,line=...::message``, which GitHub shows as annotations in a pull request."""
    for located in findings:
        finding, location = located.finding, located.location
        region = location.region if location.cell is None else TextRegion(1, 1, 1, 1)
        # GitHub refuses columns of a range over several lines; its columns end with the last character.
        last = max(region.column, region.end_column - 1)
        columns = {"col": region.column, "endColumn": last} if region.line == region.end_line else {}
        properties = {
            "file": location.name,
            "line": region.line,
            "endLine": region.end_line,
            **columns,
            "title": f"{PROGRAM} {finding.code}",
        }
        parameters = ",".join(f"{name}={str(value).translate(_GITHUB_PROPERTY)}" for name, value in properties.items())
        message = location.said(finding.message).translate(_GITHUB_DATA)
        line = f"::{_GITHUB_COMMANDS[finding.severity]} {parameters}::{message}"
        yield f"{printable(line)}\n"


# What XML 1.0 does not allow, not even escaped, and the other control characters.
_NOT_XML = re.compile("[^\t\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _junit(findings: Iterable[LocatedFinding], fail_on: Severity) -> Iterator[str]:
    """One test case per finding, failed where the finding fails the check; one that passes when there is none.

    The counts come first, so the document is written when all findings are known.
    """
    cases: list[str] = []
    failed = 0
    for located in findings:
        failed += fails(located.finding, fail_on)
        cases.append(_junit_case(located, fail_on))
    if not cases:
        cases.append(f'  <testcase classname="{PROGRAM}" name="check" time="0"/>\n')
    counts = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="0" time="0"'
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="{PROGRAM}" {counts}>\n <testsuite name="{PROGRAM} check" {counts}>\n'
    yield from cases
    yield " </testsuite>\n</testsuites>\n"


def _junit_case(located: LocatedFinding, fail_on: Severity) -> str:
    finding, location = located.finding, located.location
    name = " ".join(word for word in (finding.qualname, finding.metric, finding.code) if word)
    where = f"{location.name}:{location.in_file}:{location.region.column}"
    text = f"{where}: {finding.severity}: {finding.message}"
    file = _xml_attribute(location.name)
    start = f"  <testcase classname={file} name={_xml_attribute(name)} file={file}"
    start += f' line="{location.region.line}" time="0">\n'
    if fails(finding, fail_on):
        kind, message = _xml_attribute(finding.code), _xml_attribute(finding.message)
        return f"{start}   <failure type={kind} message={message}>{_xml_text(text)}</failure>\n  </testcase>\n"
    return f"{start}   <system-out>{_xml_text(text)}</system-out>\n  </testcase>\n"


def _xml_text(value: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", value))


def _xml_attribute(value: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", value))


_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SARIF_LEVELS: dict[Severity, str] = {"information": "note", "warning": "warning", "error": "error"}
_SARIF_RULES: dict[Code, tuple[str, str]] = {
    "over-budget": ("OverBudget", "A unit is predicted to exceed its budget."),
    "malformed-budget": ("MalformedBudget", "A budget is malformed, so it is not checked."),
    "regression": ("Regression", "A unit is predicted to cost more than it did at an earlier revision."),
    "growth": ("Growth", "The cost of a unit is predicted to grow faster with its inputs than at an earlier revision."),
    "wait": ("Wait", "A unit waits for something that it did not wait for before, or that its budget does not cover."),
    "wait-in-loop": ("WaitInLoop", "A unit waits for a database, the network or a process for each item of an input."),
    "row-by-row": ("RowByRow", "A unit works on a table one row at a time where whole columns cost far less."),
    "blocking-sleep": ("BlockingSleep", "A coroutine sleeps without await, which stops all other tasks."),
}


def _sarif(findings: Iterable[LocatedFinding], fail_on: Severity) -> Iterator[str]:
    """A log with one run, one result per line (OASIS Standard, 2023 errata); paths start at the project's folder."""
    driver = {"name": PROGRAM, "version": __version__, "rules": [_sarif_rule(code) for code in CODES]}
    head = json.dumps({"driver": driver})
    yield f'{{"$schema": "{_SARIF_SCHEMA}",\n "version": "2.1.0",\n "runs": [{{"tool": '
    yield f'{head},\n  "columnKind": "unicodeCodePoints",\n  "results": ['
    separator = "\n"
    for located in findings:
        yield f"{separator}   {json.dumps(_sarif_result(located))}"
        separator = ",\n"
    yield "]}]}\n"


def _sarif_rule(code: Code) -> dict[str, Any]:
    name, text = _SARIF_RULES[code]
    return {
        "id": code,
        "name": name,
        "shortDescription": {"text": text},
        "help": {"text": f"{text} See {docs_link(code)}."},
        "defaultConfiguration": {"level": "error" if code == "malformed-budget" else "warning"},
    }


def _sarif_result(located: LocatedFinding) -> dict[str, Any]:
    finding = located.finding
    location: dict[str, Any] = {"physicalLocation": _sarif_location(located.location)}
    if finding.qualname:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.qualname}]
    properties = {"metric": finding.metric, "budget": finding.budget_text, "probability": finding.probability}
    properties |= {name: value for name, value in _work(finding).items() if value != []}
    result = {
        "ruleId": finding.code,
        "ruleIndex": CODES.index(finding.code),
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": located.location.said(finding.message)},
        "locations": [location],
        "partialFingerprints": {"rlmLspFinding/v1": located.fingerprint},
        "properties": {name: value for name, value in properties.items() if value is not None},
    }
    if located.related:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _sarif_location(other), "message": {"text": other.said(message)}}
            for number, (message, other) in enumerate(located.related, 1)
        ]
    return result


def _sarif_location(location: Location) -> dict[str, Any]:
    region, path = location.region, Path(location.name)
    # A file outside the project has its whole path.
    absolute = {"uri": path.as_uri()} if path.is_absolute() else None
    artifact = absolute or {"uri": quote(location.name, errors="surrogateescape"), "uriBaseId": "%SRCROOT%"}
    if location.cell is not None:
        return {"artifactLocation": artifact}
    return {
        "artifactLocation": artifact,
        "region": {
            "startLine": region.line,
            "startColumn": region.column,
            "endLine": region.end_line,
            "endColumn": region.end_column,
        },
    }


def committed_foot(form: Format, count: int) -> str:
    """Return the note after the findings if budgets were judged by committed measurements, in formats for reviewers."""
    if not count:
        return ""
    return {"github": f"::notice::{committed_note(count)}\n", "markdown": f"\n{committed_note(count)}.\n"}.get(form, "")


Writer = Callable[[Iterable[LocatedFinding], Severity], Iterator[str]]

WRITERS: dict[Format, Writer] = {
    "text": _text,
    "json": _json,
    "markdown": _markdown,
    "sarif": _sarif,
    "github": _github,
    "junit": _junit,
}
