"""Findings in the client's terms, and which configured budgets hold in an editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec
from rlm_core.queries.kernel_sizes import sizes_of
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_lsp.budgets import BudgetTables, read_comments, render
from rlm_lsp.findings.finding import Finding, Related, Severity, malformed
from rlm_lsp.lsp.document_findings import Told, confidence_of, configured
from rlm_lsp.lsp.features.diagnostics import MALFORMED_SIZES, Form, Report, diagnostics
from rlm_lsp.settings import Settings, SettingsStore

pytestmark = pytest.mark.timeout(30)

SOURCE = "'😀\x0c'; x = 1\n# rlm: latency < 1 parsec\ndef ä𝒙(n): return n\n".encode()
URI = "file:///a.py"


def told() -> Told:
    [unit] = find_units(ParsedSource(SOURCE, "python"))
    wrong = malformed(read_comments(ParsedSource(SOURCE, "python"), [unit]).malformed)
    elsewhere = Related("the budget", wrong[0].span, Path("/config.toml"))
    here = Related("also here", unit.name)
    finding = Finding("over-budget", "warning", "too dear", unit.name, unit.qualname, related=(here, elsewhere))
    return Told((*wrong, finding), sources={Path("/config.toml"): SOURCE})


@pytest.mark.parametrize(("encoding", "width"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_places_are_in_the_clients_units(encoding: str, width: int) -> None:
    wrong, over = diagnostics(told(), URI, SOURCE, Form(PositionCodec(encoding)))
    assert wrong.range == types.Range(types.Position(1, 19), types.Position(1, 25))
    assert over.range == types.Range(types.Position(2, 4), types.Position(2, 4 + width))
    assert (wrong.severity, over.severity) == (types.DiagnosticSeverity.Error, types.DiagnosticSeverity.Warning)
    assert (wrong.code, over.code, over.source) == ("malformed-budget", "over-budget", "rlm-lsp")


def test_only_what_the_client_can_show_is_sent() -> None:
    plain = diagnostics(told(), URI, SOURCE, Form(PositionCodec()))[1]
    assert (plain.code_description, plain.related_information) == (None, None)
    rich = diagnostics(told(), URI, SOURCE, Form(PositionCodec(), related=True, links=True))[1]
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
    [found] = diagnostics(Told((), problems), URI, source, Form(PositionCodec()))
    assert found.code == MALFORMED_SIZES
    assert found.range.start == types.Position(0, 0)
    assert found.message.startswith("malformed sizes: ")


def test_a_result_id_stands_for_what_is_told_and_not_for_the_version() -> None:
    items = tuple(diagnostics(told(), URI, SOURCE, Form(PositionCodec())))
    assert Report(URI, 1, items).result_id == Report(URI, 2, items).result_id
    assert Report(URI, 1, items).result_id != Report(URI, 1, items[:1]).result_id
    assert Report(URI, 1).result_id == Report(URI, None).result_id


def held(store: SettingsStore, path: Path) -> list[tuple[str, bool]]:
    entries = configured(path, store.settings_of(path), store, BudgetTables().above(path))
    return [(render([entry.budget]), entry.span is not None) for entry in entries]


def test_the_clients_budgets_go_before_the_projects_and_the_users_come_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (project / "deep").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    (home / "rlm-lsp").mkdir(parents=True)
    (home / "rlm-lsp" / "config.toml").write_text('[budgets]\n"**" = "latency < 3 s"\n"a.py" = "latency < 4 s"\n')
    (project / "rlm-lsp.toml").write_text('[budgets]\n"*.py" = "memory < 2 MiB"\n"a.py" = "latency < 2 s"\n')
    store = SettingsStore({"budgets": {"*.py": "latency < 1 s"}}, [project], {})
    expected = [("latency < 1 s", False), ("latency < 2 s", True), ("latency < 3 s", False)]
    assert held(store, project / "a.py") == expected
    (project / "deep" / "rlm-lsp.toml").write_text('[budgets]\n"*.py" = "latency < 5 s"\n"b.py" = "latency < 6 s"\n')
    deep = [("latency < 1 s", False), ("latency < 6 s", True), ("latency < 3 s", False), ("latency < 4 s", False)]
    assert held(store, project / "deep" / "b.py") == deep[:3]
    assert configured(None, Settings(), store, None) == []


def test_severities_come_from_the_settings() -> None:
    severity: dict[Severity, float] = {"information": 0.5, "warning": 0.7, "error": 1.0}
    confidence = confidence_of(Settings(budget_confidence=0.6, severity=severity))
    assert [confidence.severity(p) for p in (0.55, 0.65, 0.75, 0.999)] == [None, "information", "warning", "warning"]
