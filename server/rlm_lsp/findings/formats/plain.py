"""Text for people, a line a finding, and JSON in SI units."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rlm_core.types import SI_UNIT

from rlm_lsp.findings.finding import Severity, docs_link

from .report import Place, Reported


def write_text(found: Iterable[Reported], fail_on: Severity) -> Iterator[str]:
    """``file:line:column: severity: message [code]``."""
    for reported in found:
        finding, place = reported.finding, reported.place
        others = [f"{other.file}:{other.region.line}" for _, other in reported.related if other.file != place.file]
        at = f" (budget at {', '.join(others)})" if others else ""
        where = f"{place.file}:{place.region.line}:{place.region.column}"
        yield f"{where}: {finding.severity}: {' '.join(finding.message.split())}{at} [{finding.code}]\n"


def write_json(found: Iterable[Reported], fail_on: Severity) -> Iterator[str]:
    """One array with an object for each finding, a line each."""
    separator = "[\n"
    for reported in found:
        yield f"{separator}{json.dumps(_row(reported))}"
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _row(reported: Reported) -> dict[str, Any]:
    finding = reported.finding
    prediction, change = finding.prediction, finding.change
    source = prediction or change
    band = source.bands[0] if source is not None and source.bands else None
    return {
        **_place(reported.place),
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "qualname": finding.qualname,
        "metric": finding.metric,
        "unit": SI_UNIT[finding.metric] if prediction is not None and finding.metric is not None else None,
        "budget": finding.budget,
        "probability": finding.probability,
        "median": prediction.median if prediction is not None else None,
        "ratio": change.ratio if change is not None else None,
        "low": band.low if band else None,
        "high": band.high if band else None,
        "coverage": band.coverage if band else None,
        "device": source.device if source is not None else None,
        "model": source.model if source is not None else None,
        "related": [{**_place(place), "message": message} for message, place in reported.related],
        "docs": docs_link(finding.code),
        "fingerprint": reported.fingerprint,
    }


def _place(place: Place) -> dict[str, Any]:
    region = place.region
    return {
        "file": place.file,
        "line": region.line,
        "column": region.column,
        "end_line": region.end_line,
        "end_column": region.end_column,
    }
