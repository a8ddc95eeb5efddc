"""Diagnostics: findings where the editor underlines them, pulled by clients that can, else pushed.

A result belongs to the version that the document has when it is sent: an edit in between starts again. Result ids are
digests of the content, so that a client that already has it gets only the word "unchanged".
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec
from rlm_core.types import Span

from rlm_lsp.findings.finding import DOCS, Code, Finding, docs_link
from rlm_lsp.findings.judge import malformed
from rlm_lsp.lsp.document_findings import DocumentFindings, findings_of
from rlm_lsp.lsp.session import Session
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.lsp.unit_rules import UnitRules
from rlm_lsp.rendering.work_words import plain
from rlm_lsp.settings.files import FILE_NAMES
from rlm_lsp.settings.project import read_budgets
from rlm_lsp.sources import path_of_uri

from .requests import protocol_converter

SOURCE = "rlm-lsp"
MALFORMED_SIZES = "malformed-sizes"
# A workspace report covers the documents that were opened last.
MAX_DOCUMENTS = 100
_REFRESH = "workspace.diagnostics.refresh_support"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
}
_OF_EDITS: frozenset[Code] = frozenset({"regression", "growth"})


@dataclass(frozen=True, slots=True)
class DiagnosticReport:
    """The diagnostics of one version of a document; the version is None when the document is not open."""

    uri: str
    version: int | None
    items: tuple[types.Diagnostic, ...] = ()

    @property
    def result_id(self) -> str:
        """A digest of the diagnostics, the same for all versions that have the same ones."""
        content = json.dumps([protocol_converter().unstructure(item) for item in self.items], sort_keys=True)
        return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class DiagnosticForm:
    """The parts of a diagnostic that the client can show."""

    codec: PositionCodec
    related: bool = False
    links: bool = False


class Diagnostics:
    """Reports the findings of the session's documents to one client."""

    def __init__(self, session: Session, unit_rules: UnitRules) -> None:
        self._session, self._rules = session, unit_rules

    async def of_document(
        self, params: types.DocumentDiagnosticParams
    ) -> types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport:
        """The diagnostics of a document as it is when this returns."""
        report = await self._report(params.text_document.uri)
        if report.result_id == params.previous_result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(report.result_id)
        return types.RelatedFullDocumentDiagnosticReport(list(report.items), result_id=report.result_id)

    async def of_workspace(self, params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
        """The diagnostics of the open documents and of the configuration files; none for closed documents."""
        known = {entry.uri: entry.value for entry in params.previous_result_ids}
        configurations = [path.as_uri() for path in await self._configurations()]
        uris = [*self._session.documents.uris[-MAX_DOCUMENTS:], *configurations]
        items: list[types.WorkspaceFullDocumentDiagnosticReport | types.WorkspaceUnchangedDocumentDiagnosticReport] = []
        for uri in dict.fromkeys([*uris, *known]):
            report = await self._report(uri) if uri in uris else DiagnosticReport(uri, None)
            if report.result_id == known.get(uri):
                items.append(types.WorkspaceUnchangedDocumentDiagnosticReport(uri, report.result_id, report.version))
            elif report.items or uri in known:
                items.append(
                    types.WorkspaceFullDocumentDiagnosticReport(
                        uri, list(report.items), report.version, result_id=report.result_id
                    )
                )
        return types.WorkspaceDiagnosticReport(items)

    def refresh(self) -> None:
        """Everything that diagnostics depend on has changed: have the client pull again, or push again."""
        session = self._session
        if self._client_pulls:
            if session.capability(_REFRESH):
                session.client.workspace_diagnostic_refresh(None)
            return
        for uri in session.documents.uris:
            self.push(uri)
        session.spawn("configuration", self._push_configurations())

    def push(self, uri: str) -> None:
        """Send the diagnostics of a document to a client that does not pull; cancels the report of an older version."""
        if not self._client_pulls:
            self._session.spawn(uri, self._push(uri))

    def remove(self, uri: str) -> None:
        """A document is closed: nothing is shown for it."""
        if not self._client_pulls:
            self._session.cancel(uri)
            self._publish(DiagnosticReport(uri, None))

    @property
    def _client_pulls(self) -> bool:
        return bool(self._session.capability("text_document.diagnostic"))

    def _publish(self, report: DiagnosticReport) -> None:
        params = types.PublishDiagnosticsParams(report.uri, list(report.items), report.version)
        self._session.client.text_document_publish_diagnostics(params)

    async def _push(self, uri: str) -> None:
        report = await self._report(uri)
        # Nothing was awaited since the version was read.
        if report.version is not None:
            self._publish(report)

    async def _push_configurations(self) -> None:
        for path in await self._configurations():
            if self._session.documents.document(path.as_uri()) is None:
                self._publish(await self._report(path.as_uri()))

    async def _report(self, uri: str) -> DiagnosticReport:
        """The diagnostics of a document as it is when this returns; empty where there are none."""
        session = self._session
        if not session.settings_for(uri).diagnostics:
            return DiagnosticReport(uri, session.documents.version_of(uri))
        path = path_of_uri(uri)
        if path is not None and path.name in FILE_NAMES:
            return await self._of_configuration(uri, path)
        if self._client_pulls and not session.capability(_REFRESH):
            # This client will not ask again when the model is loaded.
            await session.predictions.wait_loaded()
        while True:
            # The hints of the edited unit come first: they do not wait for the units that call it.
            await session.idle(uri)
            analysis = await session.analysis(uri)
            if analysis is None:
                return DiagnosticReport(uri, session.documents.version_of(uri))
            findings = await findings_of(session, self._rules, analysis)
            if findings is not None:
                document = analysis.document
                items = diagnostics(findings, uri, document.source, self._form())
                return DiagnosticReport(uri, document.version, tuple(items))

    async def _of_configuration(self, uri: str, path: Path) -> DiagnosticReport:
        """The malformed budgets of a configuration file; none while the editor has another text of it."""
        table = await asyncio.to_thread(read_budgets, path.parent)
        document = self._session.documents.document(uri)
        version = document.version if document is not None else None
        if table is None or table.path != path or (document is not None and document.source != table.source):
            return DiagnosticReport(uri, version)
        findings = DocumentFindings(tuple(malformed(table.malformed)))
        return DiagnosticReport(uri, version, tuple(diagnostics(findings, uri, table.source, self._form())))

    async def _configurations(self) -> list[Path]:
        """The configuration files of the workspace folders."""
        folders = [folder for folder in self._session.settings_store.by_folder if folder is not None]

        def find() -> list[Path]:
            return [path for folder in folders for name in FILE_NAMES if (path := folder / name).is_file()]

        return await asyncio.to_thread(find)

    def _form(self) -> DiagnosticForm:
        def shows(capability: str) -> bool:
            kinds = ("diagnostic", "publish_diagnostics")
            return any(self._session.capability(f"text_document.{kind}.{capability}") for kind in kinds)

        codec = self._session.client.workspace.position_codec
        return DiagnosticForm(codec, shows("related_information"), shows("code_description_support"))


def register(server: LanguageServer, session: Session, unit_rules: UnitRules) -> None:
    """Answer clients that pull diagnostics, and push to the others."""
    reports = Diagnostics(session, unit_rules)
    options = types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=True, identifier=SOURCE)
    server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)(partial(Diagnostics.of_document, reports))
    server.feature(types.WORKSPACE_DIAGNOSTIC)(partial(Diagnostics.of_workspace, reports))
    session.on_edit(reports.push)
    session.on_close(reports.remove)
    session.on_refresh(reports.refresh)


def diagnostics(findings: DocumentFindings, uri: str, source: bytes, form: DiagnosticForm) -> list[types.Diagnostic]:
    """The findings of a UTF-8 text as LSP diagnostics."""
    lines = Lines(source, form.codec)
    others = {path: Lines(text, form.codec) for path, text in (findings.sources or {}).items()}
    items = [
        types.Diagnostic(
            _range(lines, finding.span),
            finding.message,
            # An edit that is not committed yet may not be finished.
            types.DiagnosticSeverity.Hint if finding.code in _OF_EDITS else _SEVERITIES[finding.severity],
            finding.code,
            _link(docs_link(finding.code)) if form.links else None,
            SOURCE,
            related_information=_related(finding, uri, lines, others) if form.related else None,
        )
        for finding in findings.findings
    ]
    items += [
        types.Diagnostic(
            _range(lines, problem.span),
            plain(f"malformed sizes: {problem.text}"),
            types.DiagnosticSeverity.Error,
            MALFORMED_SIZES,
            _link(f"{DOCS}#{MALFORMED_SIZES}") if form.links else None,
            SOURCE,
        )
        for problem in findings.sizes
    ]
    return items


def _range(lines: Lines, span: Span) -> types.Range:
    """The range of a span, cut at the end of its first line."""
    end = min(span.end_byte, max(lines.end_of_line(span.start_byte), span.start_byte))
    return types.Range(lines.position(span.start_byte), lines.position(end))


def _related(
    finding: Finding, uri: str, lines: Lines, others: dict[Path, Lines]
) -> list[types.DiagnosticRelatedInformation]:
    entries: Iterable[tuple[str, str, Lines | None, Span]] = (
        (entry.message, uri, lines, entry.span)
        if entry.path is None
        else (entry.message, entry.path.as_uri(), others.get(entry.path), entry.span)
        for entry in finding.related
    )
    return [
        types.DiagnosticRelatedInformation(types.Location(location, _range(its_lines, span)), message)
        for message, location, its_lines, span in entries
        if its_lines is not None
    ]


def _link(location: str) -> types.CodeDescription | None:
    """A link into the documentation, as the package has it or a source checkout; None without a file."""
    name, _, anchor = location.partition("#")
    here = Path(__file__)
    candidates: Sequence[Path] = [folder / name for folder in (here.parents[2], here.parents[4])]
    file = next((file for file in candidates if file.is_file()), None)
    return types.CodeDescription(f"{file.as_uri()}#{anchor}") if file is not None else None
