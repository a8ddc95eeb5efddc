"""The language server: what it knows of its client, and which handler answers what.

Handlers are asynchronous; analysis and the model run on threads of their own, so the event loop is never blocked.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from . import __version__
from .documents import Analysis, Documents
from .engine import Engine
from .features.hover import hover
from .features.inlay_hints import inlay_hints
from .scheduler import Scheduler
from .settings import Settings

_log = logging.getLogger(__name__)


class Server(LanguageServer):
    """One client's session."""

    engine: Engine
    scheduler: Scheduler

    def __init__(self) -> None:
        # Whole texts: pygls splits lines at form feeds too and would apply an edit below one to a wrong line.
        super().__init__("rlm-lsp", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.documents = Documents()
        self.settings_problems: list[str] = []
        self._dependents: asyncio.Task[None] | None = None
        self.configure(Settings())

    def configure(self, settings: Settings) -> None:
        """Begin a session with these settings; the model is not loaded yet."""
        self.settings = settings
        self.engine = Engine(settings)
        self.scheduler = Scheduler(
            self.engine.predict,
            self.documents.version_of,
            lambda uri: self.refresh_hints(),
            self.log_error,
            settings.debounce_ms / 1000,
        )

    @property
    def client_refreshes(self) -> bool:
        """Whether the client asks for hints again when told to."""
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support)

    @property
    def markup(self) -> types.MarkupKind:
        """The format in which the client wants hovers, the first that it names."""
        text_document = self.client_capabilities.text_document
        wanted = text_document.hover.content_format if text_document and text_document.hover else None
        return types.MarkupKind(wanted[0]) if wanted else types.MarkupKind.PlainText

    async def analysis(self, uri: str) -> Analysis | None:
        """The units of an open document, None when it is not in a language that the settings name."""
        analysis = await self.documents.analysis(uri, self.workspace.position_codec)
        if analysis is None or analysis.document.language not in self.settings.languages:
            return None
        return analysis

    def watch_files(self) -> None:
        """Ask the client to tell when Python files change on disk: open documents may call what is in them."""
        workspace = self.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        if watching is None or not watching.dynamic_registration:
            return
        options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher("**/*.py")])
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        self.client_register_capability(types.RegistrationParams([types.Registration(method, method, options)]))

    def refresh_hints(self) -> None:
        """Ask the client to ask for hints again."""
        if self.client_refreshes:
            self.workspace_inlay_hint_refresh(None)

    def check_dependents(self, uri: str | None = None) -> None:
        """Something has changed, in an open document or on disk: once it is quiet, see whether others call it."""
        if self._dependents is not None:
            self._dependents.cancel()
        self._dependents = asyncio.get_running_loop().create_task(self._refresh_dependents(uri))
        self._dependents.add_done_callback(self._log_failure)

    def _log_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log_error(error)

    async def _refresh_dependents(self, uri: str | None) -> None:
        await asyncio.sleep(self.settings.debounce_ms / 1000)
        if await self.documents.dependents_changed(uri, self.workspace.position_codec):
            self.refresh_hints()

    def log_error(self, error: BaseException) -> None:
        """Log an internal error for the client and, with its traceback, on stderr."""
        _log.error("internal error", exc_info=error)
        self.log(f"internal error: {error!r}", types.MessageType.Error)

    def log(self, text: str, kind: types.MessageType) -> None:
        """Write a line to the client's log of this server."""
        self.window_log_message(types.LogMessageParams(kind, text))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log uncaught errors; pygls would pop them up."""
        self.log(f"{source.__name__}: {error}", types.MessageType.Error)

    def shutdown(self) -> None:
        """End the session. From Python 3.12 on, a TCP server would wait for its connection to close."""
        if isinstance(self.protocol.writer, asyncio.StreamWriter):
            self.protocol.writer.close()
        super().shutdown()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Drop what waits for a thread: the client has gone."""
        self.engine.close()
        self.documents.close()


def create_server() -> Server:
    """A server with all its features, ready to be started."""
    server = Server()
    server.feature(types.INITIALIZE)(_initialize)
    server.feature(types.INITIALIZED)(_initialized)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(_did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_did_change)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_did_close)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_did_change_files)
    server.feature(types.TEXT_DOCUMENT_INLAY_HINT)(inlay_hints)
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
    return server


def _initialize(ls: Server, params: types.InitializeParams) -> None:
    settings, ls.settings_problems = Settings.from_options(params.initialization_options)
    ls.configure(settings)


async def _initialized(ls: Server, params: types.InitializedParams) -> None:
    for problem in ls.settings_problems:
        ls.log(problem, types.MessageType.Warning)
    ls.watch_files()
    failure = await ls.engine.load()
    if failure is not None:
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"rlm-lsp: no predictions: {failure}"))
    else:
        ls.refresh_hints()


def _did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    ls.documents.put(ls.workspace.get_text_document(params.text_document.uri))


def _did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    document = ls.documents.put(ls.workspace.get_text_document(params.text_document.uri))
    ls.scheduler.edited(document.uri)
    ls.check_dependents(document.uri)


def _did_change_files(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
    ls.documents.files_changed()
    ls.check_dependents()


def _did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    ls.documents.remove(params.text_document.uri)
    ls.scheduler.closed(params.text_document.uri)
