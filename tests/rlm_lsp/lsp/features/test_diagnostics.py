"""Findings in the client's terms, and which configured budgets hold in an editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec
from rlm_core.queries.kernel_sizes import sizes_of
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_lsp.budgets.comments import read_comments
from rlm_lsp.findings.finding import Finding, RelatedLocation
from rlm_lsp.findings.judge import malformed
from rlm_lsp.lsp.document_findings import DocumentFindings
from rlm_lsp.lsp.features.diagnostics import MALFORMED_SIZES, DiagnosticForm, DiagnosticReport, diagnostics

pytestmark = pytest.mark.timeout(30)

SOURCE = "'😀\x0c'; x = 1\n# rlm: latency < 1 parsec\ndef ä𝒙(n): return n\n".encode()
URI = "file:///a.py"


def findings() -> DocumentFindings:
    [unit] = find_units(ParsedSource(SOURCE, "python"))
    wrong = malformed(read_comments(ParsedSource(SOURCE, "python"), [unit]).malformed)
    elsewhere = RelatedLocation("the budget", wrong[0].span, Path("/config.toml"))
    here = RelatedLocation("also here", unit.name)
    finding = Finding("over-budget", "warning", "too dear", unit.name, unit.qualname, related=(here, elsewhere))
    return DocumentFindings((*wrong, finding), sources={Path("/config.toml"): SOURCE})


@pytest.mark.parametrize(("encoding", "width"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_places_are_in_the_clients_units(encoding: str, width: int) -> None:
    wrong, over = diagnostics(findings(), URI, SOURCE, DiagnosticForm(PositionCodec(encoding)))
    assert wrong.range == types.Range(types.Position(1, 19), types.Position(1, 25))
    assert over.range == types.Range(types.Position(2, 4), types.Position(2, 4 + width))
    assert (wrong.severity, over.severity) == (types.DiagnosticSeverity.Error, types.DiagnosticSeverity.Warning)
    assert (wrong.code, over.code, over.source) == ("malformed-budget", "over-budget", "rlm-lsp")


def test_only_what_the_client_can_show_is_sent() -> None:
    plain = diagnostics(findings(), URI, SOURCE, DiagnosticForm(PositionCodec()))[1]
    assert (plain.code_description, plain.related_information) == (None, None)
    rich = diagnostics(findings(), URI, SOURCE, DiagnosticForm(PositionCodec(), related=True, links=True))[1]
    assert rich.related_information is not None
    assert [(entry.location.uri, entry.message) for entry in rich.related_information] == [
        (URI, "also here"),
        ("file:///config.toml", "the budget"),
    ]
    assert rich.code_description is not None
    assert rich.code_description.href.endswith("docs/ci.md#over-budget")


def test_sizes_that_cannot_be_read_are_diagnostics() -> None:
    source = b"# rlm: sizes M=\ndef f(n): return n\n"
    problems = sizes_of(ParsedSource(source, "python"), find_units(ParsedSource(source, "python"))).problems
    [found] = diagnostics(DocumentFindings((), problems), URI, source, DiagnosticForm(PositionCodec()))
    assert found.code == MALFORMED_SIZES
    assert found.range.start == types.Position(0, 13)
    assert found.message.startswith("malformed sizes: ")


def test_a_result_id_identifies_the_reported_items_and_not_the_version() -> None:
    items = tuple(diagnostics(findings(), URI, SOURCE, DiagnosticForm(PositionCodec())))
    assert DiagnosticReport(URI, 1, items).result_id == DiagnosticReport(URI, 2, items).result_id
    assert DiagnosticReport(URI, 1, items).result_id != DiagnosticReport(URI, 1, items[:1]).result_id
    assert DiagnosticReport(URI, 1).result_id == DiagnosticReport(URI, None).result_id
