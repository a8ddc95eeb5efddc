"""SARIF 2.1.0, the format of code scanning (OASIS Standard, 2023 errata), written result by result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rlm_lsp import __version__
from rlm_lsp.findings.finding import CODES, Code, Severity, docs_link
from rlm_lsp.rendering.console import PROGRAM

from .report import Place, Reported

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"information": "note", "warning": "warning", "error": "error"}
_RULES: dict[Code, tuple[str, str]] = {
    "over-budget": ("OverBudget", "A unit is predicted to be over its budget."),
    "malformed-budget": ("MalformedBudget", "A budget cannot be read, so it is not checked."),
    "regression": ("Regression", "A unit is predicted to cost more than it did at an earlier revision."),
}


def write(found: Iterable[Reported], fail_on: Severity) -> Iterator[str]:
    """A log with one run; a result a line. Columns count Unicode characters, paths start at the project's folder."""
    driver = {"name": PROGRAM, "version": __version__, "rules": [_rule(code) for code in CODES]}
    head = json.dumps({"driver": driver})
    yield f'{{"$schema": "{_SCHEMA}",\n "version": "2.1.0",\n "runs": [{{"tool": '
    yield f'{head},\n  "columnKind": "unicodeCodePoints",\n  "results": ['
    separator = "\n"
    for reported in found:
        yield f"{separator}   {json.dumps(_result(reported))}"
        separator = ",\n"
    yield "]}]}\n"


def _rule(code: Code) -> dict[str, Any]:
    name, text = _RULES[code]
    return {
        "id": code,
        "name": name,
        "shortDescription": {"text": text},
        "help": {"text": f"{text} See {docs_link(code)}."},
        "defaultConfiguration": {"level": "error" if code == "malformed-budget" else "warning"},
    }


def _result(reported: Reported) -> dict[str, Any]:
    finding = reported.finding
    location: dict[str, Any] = {"physicalLocation": _physical(reported.place)}
    if finding.qualname:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.qualname}]
    told = {"metric": finding.metric, "budget": finding.budget, "probability": finding.probability}
    result = {
        "ruleId": finding.code,
        "ruleIndex": CODES.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [location],
        "partialFingerprints": {"rlmLspFinding/v1": reported.fingerprint},
        "properties": {name: value for name, value in told.items() if value is not None},
    }
    if reported.related:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _physical(place), "message": {"text": message}}
            for number, (message, place) in enumerate(reported.related, 1)
        ]
    return result


def _physical(place: Place) -> dict[str, Any]:
    region, path = place.region, Path(place.name)
    # A file outside the project has its whole path.
    absolute = {"uri": path.as_uri()} if path.is_absolute() else None
    return {
        "artifactLocation": absolute or {"uri": quote(place.name, errors="surrogateescape"), "uriBaseId": "%SRCROOT%"},
        "region": {
            "startLine": region.line,
            "startColumn": region.column,
            "endLine": region.end_line,
            "endColumn": region.end_column,
        },
    }
