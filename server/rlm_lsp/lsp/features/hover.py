"""Hover on a unit's header: what its costs are predicted to be, and behind "Details" what the numbers rest on.

The details are a document of the server where the client can show one (``workspace/textDocumentContent``), else the end
of the hover.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from functools import partial
from urllib.parse import quote as percent_encoded

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from rlm_core import RlmError
from rlm_core.boundary import guarded
from rlm_core.inference.size_table import SizeTable, size_table, texts_for_table
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.queries.network_sizes import commented_sizes
from rlm_core.source.network_calls import network_call
from rlm_core.types import CodeText, Prediction, Query

from rlm_lsp.budgets.rules import budget_of
from rlm_lsp.lsp.document import Analysis, Document, LocatedUnit
from rlm_lsp.lsp.session import Session
from rlm_lsp.lsp.text_positions import offset_of
from rlm_lsp.lsp.unit_rules import UnitRules
from rlm_lsp.rendering.abstentions import shown
from rlm_lsp.rendering.escaping import markdown, printable
from rlm_lsp.rendering.growth_words import rise_words
from rlm_lsp.rendering.hover import HoverText, head_words, hover_text
from rlm_lsp.rendering.network_words import network_hover
from rlm_lsp.rendering.work_words import wait_changes
from rlm_lsp.settings.model import Settings
from rlm_lsp.sources import path_of_uri

from .head_diff import HeadDiff, HeadDiffs, comparable, rises
from .networks import answers_about

SCHEME = "rlm-lsp"
_CAPABILITY = "workspace.text_document_content"


class Hovers:
    """Makes hovers, the tooltips of hints, and the documents with the details."""

    def __init__(self, session: Session, head_diffs: HeadDiffs, unit_rules: UnitRules) -> None:
        self._session, self._head_diffs, self._rules = session, head_diffs, unit_rules
        self._given: set[str] = set()  # documents that a client may show

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """The hover of the unit whose header is under the cursor; waits for the model if there is no prediction yet."""
        uri = params.text_document.uri
        analysis = await self._session.analysis(uri)
        if analysis is None:
            return None
        unit = analysis.unit_at(params.position.line)
        if unit is None:
            network = await self._network(analysis.document, params.position)
            return types.Hover(network) if network is not None else None
        self._head_diffs.update(analysis)
        content = await self.content_of(analysis, unit)
        return types.Hover(content) if content is not None else None

    async def content_of(self, analysis: Analysis, unit: LocatedUnit) -> types.MarkupContent | None:
        """The text of a hover, in the first format that the client names; None without a prediction."""
        session, kind = self._session, self._format()
        as_markdown = kind == types.MarkupKind.Markdown
        text = await self._text(analysis, unit, as_markdown=as_markdown)
        if text is None:
            return None
        if as_markdown and session.capability(_CAPABILITY):
            link = details_uri(analysis.document.uri, unit.analysed.unit.qualname, unit.header_lines.start)
            return types.MarkupContent(kind, f"{text.summary}\n\n[Details]({link})")
        return types.MarkupContent(kind, text.together(markdown=as_markdown))

    def _format(self) -> types.MarkupKind:
        formats = self._session.capability("text_document.hover.content_format")
        return types.MarkupKind(formats[0]) if formats else types.MarkupKind.PlainText

    async def _network(self, document: Document, position: types.Position) -> types.MarkupContent | None:
        """The hover of a call that names an ``.onnx`` file, such as ``InferenceSession("net.onnx")``; None elsewhere.

        A path is relative to the folder of the file or to the workspace folder.
        """
        session = self._session
        text = document.source.decode()
        characters = offset_of(text, position, session.client.workspace.position_codec)
        call = guarded(
            "the call under the cursor",
            lambda: network_call(document.parsed, len(text[:characters].encode())),
            lambda error: None,
        )
        home = path_of_uri(session.documents.notebooks.of(document.uri) or document.uri)
        if call is None or home is None:
            return None
        folders = [home.parent, *(folder for folder in session.settings_store.by_folder if folder is not None)]
        path = next((folder / call.path for folder in folders if (folder / call.path).is_file()), None)
        if path is None:
            return None
        kind = self._format()
        as_markdown = kind == types.MarkupKind.Markdown
        await session.predictions.wait_loaded()
        try:
            answers = await answers_about(session, path, commented_sizes(call.directives), all_devices=False)
            shown = network_hover(path.name, answers.predictions, markdown=as_markdown)
        except RlmError as error:
            shown = (markdown if as_markdown else printable)(str(error))
        return types.MarkupContent(kind, shown)

    async def document(self, params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        """The document behind a link to details, as the unit is now; it says so where the unit is gone.

        Raises:
            JsonRpcInvalidParams: it is not such a link, or the file of the unit is not open.
        """
        uri, qualname, line = unit_of(params.uri)
        analysis = await self._session.analysis(uri)
        if analysis is None:
            raise JsonRpcInvalidParams(f"{uri}: not open; open it and hover over {qualname} again")
        self._given.add(params.uri)
        units = [unit for unit in analysis.units if unit.analysed.unit.qualname == qualname]
        unit = min(units, key=lambda unit: abs(unit.header_lines.start - line), default=None)
        text = await self._text(analysis, unit, as_markdown=True) if unit is not None else None
        if text is None:
            return types.TextDocumentContentResult(f"{markdown(qualname)} has no prediction any more.\n")
        plots = self._session.settings_store.client_plots
        return types.TextDocumentContentResult(f"{text.together(markdown=True, plots=plots)}\n")

    def refresh(self) -> None:
        """Have the client ask again for the documents with details that it shows; those of closed files stay."""
        given = [link for link in self._given if self._session.documents.document(unit_of(link)[0]) is not None]
        # Those that it no longer shows are not asked for again.
        self._given.difference_update(given)
        for link in given:
            self._session.client.workspace_text_document_content_refresh(types.TextDocumentContentRefreshParams(link))

    async def _text(self, analysis: Analysis, unit: LocatedUnit, *, as_markdown: bool) -> HoverText | None:
        session, document, analysed = self._session, analysis.document, unit.analysed
        await session.predictions.wait_loaded()
        predictions = await session.predict(document.uri, analysed.code)
        if not predictions:
            return None
        table = await self._size_table(analysed.code, predictions)
        rules = (await self._rules.read(analysis)).rules[analysis.units.index(unit)]
        quote = markdown if as_markdown else printable

        def text(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> HoverText:
            diff = self._head_diffs.of(document.uri, analysed)
            share_below, language = session.predictions.share_below, analysed.unit.language
            shares = [(answer, share_below(answer, language)) for answer in predictions]
            applied = [(budget_of(answer, rules), answer) for answer in predictions]
            changes = comparable(diff.changes, predictions) if diff else []
            clauses = change_clauses(diff, analysed, session.settings_for(document.uri)) if diff else []
            if diff is not None and diff.changes and not (changes or clauses):
                clauses = ["changed, but its costs are too small for a ratio"]
            return hover_text(
                analysed,
                predictions,
                markdown=as_markdown,
                against_head=head_words(diff.state, changes, clauses, quote=quote) if diff else "",
                shares=[(answer, share) for answer, share in shares if share is not None],
                budgets=[(active.budget, answer) for active, answer in applied if active is not None],
                table=table,
            )

        return shown(analysed, predictions, text)

    async def _size_table(self, code: CodeText, predictions: Sequence[Prediction]) -> SizeTable | None:
        """The costs of a function at several sizes; None where nothing supports them, or the model fails."""
        texts = guarded("the table of sizes", lambda: texts_for_table(code, predictions), lambda error: [])
        if not texts:
            return None
        queries = [Query(answer.metric, answer.device, answer.workload) for answer in predictions]
        service = self._session.predictions
        answers = await service.run(lambda predictor: service.answer(predictor, [(text, queries) for text in texts]))
        return size_table(texts, answers) if answers is not None else None


def register(server: LanguageServer, session: Session, head_diffs: HeadDiffs, unit_rules: UnitRules) -> Hovers:
    """Answer requests for hovers and for the documents that they link to."""
    hovers = Hovers(session, head_diffs, unit_rules)
    server.feature(types.TEXT_DOCUMENT_HOVER)(partial(Hovers.hover, hovers))
    server.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)(partial(Hovers.document, hovers))
    session.on_results(hovers.refresh)
    return hovers


def register_documents(session: Session) -> None:
    """Offer the documents behind "Details" to a client that can show them."""
    if session.capability(f"{_CAPABILITY}.dynamic_registration"):
        method = types.WORKSPACE_TEXT_DOCUMENT_CONTENT
        options = types.TextDocumentContentRegistrationOptions([SCHEME])
        registration = types.Registration(method, method, options)
        session.client.client_register_capability(types.RegistrationParams([registration]))


def details_uri(uri: str, qualname: str, line: int) -> str:
    """The address of the details of a unit; editors encode an address again, so its query has letters and digits."""
    query = base64.urlsafe_b64encode(json.dumps([uri, qualname, line]).encode()).decode().rstrip("=")
    name = percent_encoded(qualname.rpartition(".")[2], safe="") or "file"
    return f"{SCHEME}:/details/{name}.md?{query}"


def unit_of(details: str) -> tuple[str, str, int]:
    """The document, the qualified name and the line of the unit that :func:`details_uri` was made for.

    Raises:
        JsonRpcInvalidParams: it was not.
    """
    query = details.partition("?")[2]
    try:
        uri, qualname, line = json.loads(base64.urlsafe_b64decode(query + "=" * (-len(query) % 4)))
    except (binascii.Error, ValueError, TypeError):
        uri = qualname = line = None
    if not isinstance(uri, str) or not isinstance(qualname, str) or not isinstance(line, int):
        raise JsonRpcInvalidParams(f"{details}: not a link of a hover")
    return uri, qualname, line


def change_clauses(diff: HeadDiff, analysed: AnalysedUnit, settings: Settings) -> list[str]:
    """How the growth and the waits of a unit have changed since ``HEAD``."""
    clauses = [rise_words(rise) for rise in rises(diff, settings)]
    return clauses + (wait_changes(analysed.unit, diff.work.wait) if diff.work.wait is not None else [])
