"""Diagnostics: findings where the editor underlines them, pulled by clients that can and pushed to the others.

A result belongs to the version that the document has when it is sent: an edit in between begins anew. Result ids are
digests of what is told, so that a client that has it already is told so.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import converters, types
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec
from rlm_core.types import Span

from rlm_lsp.findings.finding import DOCS, Finding, docs_link
from rlm_lsp.findings.judge import malformed
from rlm_lsp.lsp.document_findings import DocumentFindings, findings_of
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.settings.files import FILE_NAMES
from rlm_lsp.settings.project import read_budgets

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

SOURCE = "rlm-lsp"
MALFORMED_SIZES = "malformed-sizes"
# A workspace report covers the documents that were opened last.
MOST_DOCUMENTS = 100
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
}
_CONVERTER = converters.get_converter()


@dataclass(frozen=True, slots=True)
class Report:
    """The diagnostics of one version of a document; the version is None when the document is not open."""

    uri: str
    version: int | None
    items: tuple[types.Diagnostic, ...] = ()

    @property
    def result_id(self) -> str:
        """The same for reports that tell the same, whatever the version."""
        told = json.dumps([_CONVERTER.unstructure(item) for item in self.items], sort_keys=True)
        return hashlib.blake2b(told.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class Form:
    """What the client can show of a diagnostic."""

    codec: PositionCodec
    related: bool = False
    links: bool = False


def form_of(ls: Server) -> Form:
    """What this client can show."""
    text = ls.client_capabilities.text_document
    told = [one for one in (text.diagnostic, text.publish_diagnostics) if one is not None] if text else []
    return Form(
        ls.workspace.position_codec,
        any(one.related_information for one in told),
        any(one.code_description_support for one in told),
    )


def pulls(ls: Server) -> bool:
    """Whether the client asks for diagnostics itself."""
    text_document = ls.client_capabilities.text_document
    return bool(text_document and text_document.diagnostic)


async def document_diagnostic(
    ls: Server, params: types.DocumentDiagnosticParams
) -> types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport:
    """The diagnostics of a document as it is when this returns."""
    report = await report_of(ls, params.text_document.uri)
    if report.result_id == params.previous_result_id:
        return types.RelatedUnchangedDocumentDiagnosticReport(report.result_id)
    return types.RelatedFullDocumentDiagnosticReport(list(report.items), result_id=report.result_id)


async def workspace_diagnostic(ls: Server, params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
    """The diagnostics of the open documents and of the configuration files; nothing for what is closed."""
    known = {entry.uri: entry.value for entry in params.previous_result_ids}
    uris = [*ls.documents.uris[-MOST_DOCUMENTS:], *(path.as_uri() for path in await _configurations(ls))]
    items: list[types.WorkspaceFullDocumentDiagnosticReport | types.WorkspaceUnchangedDocumentDiagnosticReport] = []
    for uri in dict.fromkeys([*uris, *known]):
        report = await report_of(ls, uri) if uri in uris else Report(uri, None)
        if report.result_id == known.get(uri):
            items.append(types.WorkspaceUnchangedDocumentDiagnosticReport(uri, report.result_id, report.version))
        elif report.items or uri in known:
            items.append(
                types.WorkspaceFullDocumentDiagnosticReport(
                    uri, list(report.items), report.version, result_id=report.result_id
                )
            )
    return types.WorkspaceDiagnosticReport(items)


def refresh(ls: Server) -> None:
    """Something that all diagnostics depend on has changed: ask the client to ask again, or push anew."""
    workspace = ls.client_capabilities.workspace
    if pulls(ls):
        if workspace and workspace.diagnostics and workspace.diagnostics.refresh_support:
            ls.workspace_diagnostic_refresh(None)
        return
    for uri in ls.documents.uris:
        push(ls, uri)
    ls.spawn("configuration", _push_configurations(ls))


def push(ls: Server, uri: str) -> None:
    """Tell a client that does not ask about a document, soon; what was under way for an older version is dropped."""
    if not pulls(ls):
        ls.spawn(uri, _push(ls, uri))


def gone(ls: Server, uri: str) -> None:
    """A document is no longer there: nothing is shown for it."""
    if not pulls(ls):
        ls.drop(uri)
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


async def _push(ls: Server, uri: str) -> None:
    report = await report_of(ls, uri)
    # Nothing is awaited since the version was looked at.
    if report.version is not None:
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, list(report.items), report.version))


async def _push_configurations(ls: Server) -> None:
    for path in await _configurations(ls):
        if ls.documents.document(path.as_uri()) is None:
            report = await report_of(ls, path.as_uri())
            ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(report.uri, list(report.items)))


async def report_of(ls: Server, uri: str) -> Report:
    """The diagnostics of a document as it is when this returns; empty where there are none to tell."""
    if not ls.settings_for(uri).diagnostics:
        return Report(uri, ls.documents.version_of(uri))
    name = to_fs_path(uri)
    if name and Path(name).name in FILE_NAMES:
        return await _of_configuration(ls, uri, Path(name))
    if not _refreshes(ls):
        await ls.engine.wait_loaded()
    while True:
        analysis = await ls.analysis(uri)
        if analysis is None:
            return Report(uri, ls.documents.version_of(uri))
        told = await findings_of(ls, analysis)
        if told is not None:
            document = analysis.document
            return Report(uri, document.version, tuple(diagnostics(told, uri, document.source, form_of(ls))))


def diagnostics(told: DocumentFindings, uri: str, source: bytes, form: Form) -> list[types.Diagnostic]:
    """What is told about a UTF-8 text, in the client's terms."""
    lines = Lines(source, form.codec)
    others = {path: Lines(text, form.codec) for path, text in (told.sources or {}).items()}
    found = [
        types.Diagnostic(
            _range(lines, finding.span),
            finding.message,
            _SEVERITIES[finding.severity],
            finding.code,
            _link(docs_link(finding.code)) if form.links else None,
            SOURCE,
            related_information=_related(finding, uri, lines, others) if form.related else None,
        )
        for finding in told.findings
    ]
    found += [
        types.Diagnostic(
            _range(lines, problem.span),
            f"malformed sizes: {problem.text}",
            types.DiagnosticSeverity.Error,
            MALFORMED_SIZES,
            _link(f"{DOCS}#{MALFORMED_SIZES}") if form.links else None,
            SOURCE,
        )
        for problem in told.sizes
    ]
    return found


async def _of_configuration(ls: Server, uri: str, path: Path) -> Report:
    """What cannot be read as a budget in a configuration file; nothing while the editor holds another text of it."""
    table = await asyncio.to_thread(read_budgets, path.parent)
    document = ls.documents.document(uri)
    version = document.version if document is not None else None
    if table is None or table.path != path or (document is not None and document.source != table.source):
        return Report(uri, version)
    told = DocumentFindings(tuple(malformed(table.malformed)))
    return Report(uri, version, tuple(diagnostics(told, uri, table.source, form_of(ls))))


async def _configurations(ls: Server) -> list[Path]:
    """The configuration files of the workspace folders."""
    folders: Sequence[Path] = [folder for folder in ls.settings_store.by_folder if folder is not None]

    def find() -> list[Path]:
        return [path for folder in folders for name in FILE_NAMES if (path := folder / name).is_file()]

    return await asyncio.to_thread(find)


def _refreshes(ls: Server) -> bool:
    """Whether an answer may come before the model is there: it will be asked for, or pushed, again."""
    workspace = ls.client_capabilities.workspace
    return not pulls(ls) or bool(workspace and workspace.diagnostics and workspace.diagnostics.refresh_support)


def _range(lines: Lines, span: Span) -> types.Range:
    """A place on one line; one over several lines ends with its first."""
    end = min(span.end_byte, max(lines.end_of_line(span.start_byte), span.start_byte))
    return types.Range(lines.position(span.start_byte), lines.position(end))


def _related(
    finding: Finding, uri: str, lines: Lines, others: dict[Path, Lines]
) -> list[types.DiagnosticRelatedInformation]:
    places: Iterable[tuple[str, str, Lines | None, Span]] = (
        (entry.message, uri, lines, entry.span)
        if entry.path is None
        else (entry.message, entry.path.as_uri(), others.get(entry.path), entry.span)
        for entry in finding.related
    )
    return [
        types.DiagnosticRelatedInformation(types.Location(where, _range(its, span)), message)
        for message, where, its, span in places
        if its is not None
    ]


def _link(place: str) -> types.CodeDescription | None:
    """A link into the documentation, as the package holds it or a source checkout; None without a file."""
    name, _, anchor = place.partition("#")
    here = Path(__file__)
    found = (folder / name for folder in (here.parents[2], here.parents[4]))
    file = next((file for file in found if file.is_file()), None)
    return types.CodeDescription(f"{file.as_uri()}#{anchor}") if file is not None else None
