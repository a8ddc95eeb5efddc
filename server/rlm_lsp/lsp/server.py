"""The wiring of the language server: pygls, one session, and the features that answer its requests.

To add a feature, write a module with ``register(server, session)`` and call it in :func:`create_server`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from rlm_lsp import __version__

from .documents import SyncedWorkspace
from .features import (
    code_actions,
    code_lens,
    commands,
    configuration,
    diagnostics,
    document_sync,
    hover,
    inlay_hints,
    networks,
    overview,
    progress,
    status,
)
from .features.head_diff import HeadDiffs
from .session import Session


class _Futures(dict[str | int, Future[Any]]):
    """Futures by the id of their message. They can be walked through while they end, as ``shutdown`` makes them."""

    def items(self) -> list[tuple[str | int, Future[Any]]]:  # type: ignore[override]
        """The futures of this moment."""
        return list(super().items())


class _Protocol(LanguageServerProtocol):
    """The protocol of pygls 2.1 without two faults.

    It keeps the future of each notification for ever; here finished ones go when the next message arrives. And its
    ``shutdown`` fails if requests wait for a thread, since each one that it cancels leaves the futures that it walks
    through.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._request_futures = _Futures()

    def _execute_handler(
        self,
        msg_id: str | int,
        handler: Callable[..., Any],
        callback: Callable[[Future[Any]], None],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        for done in [number for number, future in self._request_futures.items() if future.done()]:
            self._request_futures.pop(done, None)
        super()._execute_handler(msg_id, handler, callback, args, kwargs)


class Server(LanguageServer):
    """The connection to one client, and its session."""

    def __init__(self) -> None:
        super().__init__(
            "rlm-lsp",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=document_sync.NOTEBOOKS,
            protocol_cls=_Protocol,
        )
        self.session = Session(self)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log uncaught errors; pygls would pop them all up. A message that we cannot read is the client's error."""
        self.session.log(f"{source.__name__}: {error}", types.MessageType.Error)
        if isinstance(error, JsonRpcInternalError) or not isinstance(error, JsonRpcException):
            self.session.pop_up(str(error))

    @property
    def shut_down(self) -> bool:
        """Whether the client has requested the end."""
        return self.protocol._shutdown

    def shutdown(self) -> None:
        """End the session. From Python 3.12 on, a TCP server would wait for its connection to close."""
        if isinstance(self.protocol.writer, asyncio.StreamWriter):
            self.protocol.writer.close()
        super().shutdown()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Drop all work that waits: the client has gone."""
        self.session.end()
        logging.getLogger("rlm_lsp").removeHandler(self.session.log_tail)


def create_server() -> Server:
    """A server with all its features, ready to be started."""
    server = Server()
    session = server.session
    settings = configuration.register(server, session)
    server.feature(types.INITIALIZE)(partial(_initialize, server, settings))
    server.feature(types.INITIALIZED)(partial(_initialized, session, settings))
    head_diffs = HeadDiffs(session)
    document_sync.register(server, session, settings)
    inlay_hints.register(server, session, head_diffs)
    code_lens.register(server, session, head_diffs)
    hover.register(server, session, head_diffs)
    diagnostics.register(server, session)
    code_actions.register(server, session)
    commands.register(server, session)
    status.register(server, session)
    overview.register(server, session)
    networks.register(server, session)
    progress.register(session)
    logging.getLogger("rlm_lsp").addHandler(session.log_tail)
    return server


def _initialize(server: Server, settings: configuration.Configuration, params: types.InitializeParams) -> None:
    """Take over the client's settings and the names of its folders."""
    # pygls creates its own workspace, and has no other way to give it documents of another class.
    server.protocol._workspace = SyncedWorkspace.like(server.workspace)
    if params.client_info is not None and params.client_info.name == "Neovim":
        # On a refresh, Neovim would pull for the workspace only, and discard the diagnostics of open files.
        server.protocol.fm.feature_options[types.TEXT_DOCUMENT_DIAGNOSTIC].workspace_diagnostics = False
    settings.start(params.initialization_options)


async def _initialized(
    session: Session, settings: configuration.Configuration, params: types.InitializedParams
) -> None:
    """Register for notifications, and load the model while the client is asked for its settings."""
    settings.watch()
    session.spawn("measurements", session.watch_measurements())
    await asyncio.gather(_load_model(session), settings.refresh())


async def _load_model(session: Session) -> None:
    with progress.progress(session, "rlm-lsp: loading the model", counted=False):
        failure = await session.load_model(session.settings)
    if failure is None:
        session.refresh()
