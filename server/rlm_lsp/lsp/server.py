"""The language server: what it knows of its client, and which handler answers what.

Handlers are asynchronous; analysis and the model run on threads of their own, so the event loop is never blocked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from rlm_core.inference.query_selection import QuerySelection
from rlm_core.types import CodeText, Prediction

from rlm_lsp import __version__
from rlm_lsp.history.comparison import HeadUnits
from rlm_lsp.settings.model import Settings
from rlm_lsp.settings.store import SettingsStore

from .documents import Analysis, Documents
from .engine import Engine
from .features import code_lens, commands, configuration, diagnostics, lifecycle, networks, notebooks
from .features.code_actions import KINDS, code_actions
from .features.head_diff import Changes
from .features.hover import hover
from .features.inlay_hints import HiddenHints, Hints, inlay_hints, resolve_inlay_hint
from .features.notice import Notice
from .features.overview import OVERVIEW, Overview, overview
from .features.progress import DocumentProgress
from .features.status import STATUS, status
from .log_tail import LogTail
from .scheduler import Scheduler

_log = logging.getLogger(__name__)


class Server(LanguageServer):
    """One client's session."""

    engine: Engine
    scheduler: Scheduler

    def __init__(self) -> None:
        super().__init__(
            "rlm-lsp",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=notebooks.SYNC,
        )
        self.configuring = 0
        self.documents = Documents(lambda path: self.settings_store.settings_of(path).default_sizes)
        self.revisions = HeadUnits(lambda path: self.settings_store.settings_of(path).default_sizes)
        self.changes = Changes(self)
        self.overview = Overview(self)
        self.network_texts = networks.Texts()
        self.hints = Hints()
        self.hints_hidden = HiddenHints()
        self.notice = Notice()
        self.log_tail = LogTail()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._logged: set[str] = set()
        self._has_popped_up = False
        self._dependents: asyncio.Task[None] | None = None
        self.configure(SettingsStore())

    @property
    def settings(self) -> Settings:
        """What holds for the whole session; what may differ by folder is in :meth:`settings_for`."""
        return self.settings_store.session

    def settings_for(self, uri: str) -> Settings:
        """The settings of a document; those of a cell are its notebook's."""
        return self.settings_store.settings_for(self.documents.notebooks.of(uri) or uri)

    def configure(self, store: SettingsStore) -> None:
        """Begin a session with these settings; the model is not loaded yet."""
        self.settings_store = store
        settings = store.session
        self.engine = Engine(settings)
        self.engine.ask(configuration.asked(store))
        self.scheduler = Scheduler(
            self.engine.predict,
            self.documents.version_of,
            lambda uri: self.refresh_hints(),
            self.log_error,
            settings.debounce_ms / 1000,
            DocumentProgress(self).tell,
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
        if analysis is None or analysis.document.language not in self.settings_for(uri).languages:
            return None
        return None if self.settings_store.excludes(analysis.document.path) else analysis

    def cached(self, uri: str, code: CodeText) -> tuple[Prediction, ...] | None:
        """The known predictions for a unit of a document, as far as its folder's settings want them."""
        if len(self.settings_store.by_folder) == 1:
            return self.engine.cached(code)
        settings = self.settings_for(uri)
        return self.engine.cached(code, QuerySelection(settings.metrics, settings.devices))

    def watch_files(self) -> None:
        """Ask the client to tell when files change on disk: Python, which open documents may call, and settings."""
        workspace = self.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        if watching is None or not watching.dynamic_registration:
            return
        watchers = [types.FileSystemWatcher("**/*.py"), *configuration.watchers()]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        self.client_register_capability(types.RegistrationParams([types.Registration(method, method, options)]))

    def refresh_hints(self) -> None:
        """Ask the client to ask for hints and code lenses again."""
        if self.client_refreshes:
            self.workspace_inlay_hint_refresh(None)
        if code_lens.refreshes(self):
            self.workspace_code_lens_refresh(None)

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
            diagnostics.refresh(self)

    def forget(self, uri: str) -> None:
        """Nothing is known or shown any more about a document."""
        self.documents.remove(uri)
        self.scheduler.closed(uri)
        self.changes.forget(uri)
        self.hints.forget(uri)
        diagnostics.gone(self, uri)

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Do something in the background; what was under way by this name is dropped."""
        self.drop(name)
        task = self._tasks[name] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._log_failure)
        task.add_done_callback(lambda task: self._tasks.pop(name) if self._tasks.get(name) is task else None)

    def drop(self, name: str) -> None:
        """Give up what is under way in the background by this name."""
        if (task := self._tasks.pop(name, None)) is not None:
            task.cancel()

    def log_error(self, error: BaseException) -> None:
        """Log an internal error for the client and, with its traceback, on stderr; the first one pops up too."""
        _log.error("internal error", exc_info=error)
        self.log(f"internal error: {error!r}", types.MessageType.Error)
        self._pop_up(repr(error))

    def log(self, text: str, kind: types.MessageType) -> None:
        """Write a line to the client's log of this server, if the settings let lines of its kind through."""
        self.log_tail.add(kind.name.lower(), text)
        if configuration.is_logged(self.settings, kind):
            self.window_log_message(types.LogMessageParams(kind, text))

    def log_once(self, text: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Write a line to the client's log the first time that there is reason to."""
        if text not in self._logged:
            self._logged.add(text)
            self.log(text, kind)

    def show_failure(self, failure: str) -> None:
        """Tell the user why there are no predictions, or none of another model than before."""
        told = f"the model stays as it was: {failure}" if self.engine.ready else f"no predictions: {failure}"
        self.log(told, types.MessageType.Error)
        self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"rlm-lsp: {told}"))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log uncaught errors; pygls would pop them all up. A message that we cannot read is the client's error."""
        self.log(f"{source.__name__}: {error}", types.MessageType.Error)
        if isinstance(error, JsonRpcInternalError) or not isinstance(error, JsonRpcException):
            self._pop_up(str(error))

    def _pop_up(self, error: str) -> None:
        if not self._has_popped_up:
            self._has_popped_up = True
            text = f"rlm-lsp: internal error: {error}; more is in the log, further ones do not pop up"
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, text))

    @property
    def shut_down(self) -> bool:
        """Whether the client has asked for the end."""
        return self.protocol._shutdown

    def shutdown(self) -> None:
        """End the session. From Python 3.12 on, a TCP server would wait for its connection to close."""
        if isinstance(self.protocol.writer, asyncio.StreamWriter):
            self.protocol.writer.close()
        super().shutdown()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Drop what waits for a thread: the client has gone."""
        self.engine.close()
        self.documents.close()
        self.revisions.close()
        self.overview.close()
        logging.getLogger("rlm_lsp").removeHandler(self.log_tail)


def create_server() -> Server:
    """A server with all its features, ready to be started."""
    server = Server()
    server.feature(types.INITIALIZE)(lifecycle.initialize)
    server.feature(types.INITIALIZED)(lifecycle.initialized)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(lifecycle.did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(lifecycle.did_change)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(lifecycle.did_close)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(notebooks.did_open)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(notebooks.did_change)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(notebooks.did_close)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(lifecycle.did_change_files)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(configuration.did_change_configuration)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(configuration.did_change_folders)
    server.feature(types.TEXT_DOCUMENT_INLAY_HINT)(inlay_hints)
    server.feature(types.INLAY_HINT_RESOLVE)(resolve_inlay_hint)
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(code_lens.code_lenses)
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(list(KINDS)))(code_actions)
    commands.register(server)
    server.feature(STATUS)(status)
    server.feature(OVERVIEW)(overview)
    server.feature(networks.NETWORK)(networks.network)
    server.feature(networks.NETWORKS)(networks.networks)
    everything = types.FileOperationRegistrationOptions(
        [types.FileOperationFilter(types.FileOperationPattern("**/*"), scheme="file")]
    )
    server.feature(types.WORKSPACE_DID_RENAME_FILES, everything)(lifecycle.did_rename_files)
    server.feature(types.WORKSPACE_DID_DELETE_FILES, everything)(lifecycle.did_delete_files)
    options = types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=True, identifier="rlm-lsp")
    server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)(diagnostics.document_diagnostic)
    server.feature(types.WORKSPACE_DIAGNOSTIC)(diagnostics.workspace_diagnostic)
    logging.getLogger("rlm_lsp").addHandler(server.log_tail)
    return server
