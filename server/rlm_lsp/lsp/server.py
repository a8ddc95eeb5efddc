"""The wiring of the language server: pygls, one session, and the features that answer its requests.

To add a feature, write a module with ``register(server, session)`` and call it in :func:`create_server`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Generator
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeGuard

from cattrs import transform_error
from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage, MsgId
from rlm_core import RlmError, boundary

from rlm_lsp import __version__

from .features import (
    code_actions,
    code_lens,
    commands,
    comparison,
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
from .notebooks import SYNCED
from .session import Session
from .stdio import watch_process
from .synced_texts import SyncedWorkspace
from .unit_rules import UnitRules

# Clients ask these again after each edit, so they must not wait for answers about the text before it. Code lenses are
# not among them: VS Code would show none until it asks again.
_ENDED_BY_EDITS = {
    method: types.ResponseError(types.LSPErrorCodes.ContentModified.value, "the document has changed since the request")
    for method in (types.TEXT_DOCUMENT_INLAY_HINT, types.TEXT_DOCUMENT_HOVER, types.TEXT_DOCUMENT_CODE_ACTION)
} | {
    # For diagnostics the protocol has this error, with which a client keeps what it shows.
    types.TEXT_DOCUMENT_DIAGNOSTIC: types.ResponseError(
        types.LSPErrorCodes.ServerCancelled.value,
        "the document has changed since the request",
        types.DiagnosticServerCancellationData(retrigger_request=True),
    )
}


_MOST_REASONS = 300  # characters


class _Futures(dict[str | int, Future[Any]]):
    """Futures by the id of their message. They can be walked through while they end, as ``shutdown`` makes them."""

    def items(self) -> list[tuple[str | int, Future[Any]]]:  # type: ignore[override]
        """The futures of this moment."""
        return list(super().items())


class Protocol(LanguageServerProtocol):
    """The protocol of pygls 2.1 without three faults, and with an end for requests about texts that have changed.

    It keeps the future of each notification for ever; here finished ones go when the next message arrives. Its
    ``shutdown`` fails if requests wait for a thread, since each one that it cancels leaves the futures that it walks
    through. And it drops requests that it cannot read, or that come before ``initialize`` or after ``shutdown``; here
    each request has an answer.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._request_futures = _Futures()
        self._waiting: dict[str, dict[MsgId, str]] = {}  # by document: requests without answer, and their methods
        self._outdated: dict[MsgId, str] = {}

    def edited(self, uri: str) -> None:
        """End the requests that wait for an answer about the previous version of a document."""
        for request, method in self._waiting.pop(uri, {}).items():
            future = self._request_futures.get(request)
            if future is not None and future.cancel():
                self._outdated[request] = method

    def structure_message(self, data: dict[str, Any]) -> dict[str, Any]:
        """Leave the message for :meth:`handle_message`: pygls calls this for each object in it."""
        return data

    def handle_message(self, message: object) -> None:
        """Handle any JSON value that the client sent; a request that cannot be handled is answered with an error."""
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            number = message.get("id") if isinstance(message, dict) else None
            self.refuse(types.ErrorCodes.InvalidRequest, "not a JSON-RPC 2.0 message", number)
            return
        method, number = message.get("method"), message.get("id")
        if ("id" in message and not _is_id(number)) or not ("method" not in message or isinstance(method, str)):
            self.refuse(types.ErrorCodes.InvalidRequest, "`id` and `method` must be texts or numbers", number)
            return
        if isinstance(method, str) and not self._admits(method, number):
            return
        if method is None and number not in self._result_types:
            return  # an answer without a request
        try:
            structured = self._structured(message)
        except Exception as error:
            # cattrs raises groups of errors, and any error that a wrong value causes in its hooks.
            text = f"{method or 'answer'}: {'; '.join(transform_error(error, path='message'))[:_MOST_REASONS]}"
            is_request = method is not None and number is not None
            self.refuse(types.ErrorCodes.InvalidParams, text, number, is_answer=is_request)
            return
        super().handle_message(structured)

    def refuse(
        self, code: types.ErrorCodes | types.LSPErrorCodes, text: str, number: Any = None, *, is_answer: bool = True
    ) -> None:
        """Log what is wrong with a message, and answer it unless it is a notification."""
        self._server.report_server_error(JsonRpcException(f"refused: {text}"), JsonRpcException)
        if is_answer:
            # Where the id cannot be read, JSON-RPC wants null; a message without an id would be left out by lsprotocol.
            known = number if _is_id(number) else None
            answer = {"jsonrpc": self.VERSION, "id": known, "error": types.ResponseError(code.value, text)}
            self._send_data(answer)

    def _admits(self, method: str, number: MsgId | None) -> bool:
        """Return whether a message may come now; if not, it is refused."""
        is_request = number is not None
        if self._shutdown and method != types.EXIT:
            self.refuse(
                types.ErrorCodes.InvalidRequest, f"{method}: the session is shut down", number, is_answer=is_request
            )
            return False
        is_first = method == types.INITIALIZE
        if self._workspace is None and not is_first and method != types.EXIT:
            code, text = types.ErrorCodes.ServerNotInitialized, f"{method}: `initialize` must come first"
            self.refuse(code, text, number, is_answer=is_request)
            return False
        if self._workspace is not None and is_first:
            text = "initialize: the session has begun"
            self.refuse(types.ErrorCodes.InvalidRequest, text, number, is_answer=is_request)
            return False
        if is_request and method in types.METHOD_TO_TYPES and types.METHOD_TO_TYPES[method][1] is None:
            self.refuse(types.ErrorCodes.MethodNotFound, f"{method} is a notification", number)
            return False
        return True

    def _structured(self, message: dict[str, Any]) -> Any:
        """A message with typed parameters. Where pygls does this, it prints a traceback for each wrong one."""
        kind: Any
        if "method" in message:
            kind = self.get_message_type(message["method"])
            if kind is None:
                message = {"params": None, **message}
                kind = JsonRPCRequestMessage if "id" in message else JsonRPCNotification
        else:
            result = self._result_types.pop(message["id"]) or JsonRPCResponseMessage
            kind = types.ResponseErrorMessage if "error" in message else result
        return self._converter.structure(message, kind)

    def _handle_request(self, msg_id: MsgId, method_name: str, params: Any) -> None:
        super()._handle_request(msg_id, method_name, params)
        document = getattr(params, "text_document", None)
        if document is not None and method_name in _ENDED_BY_EDITS and msg_id in self._request_futures:
            self._waiting.setdefault(document.uri, {})[msg_id] = method_name

    def _send_handler_result(self, future: Future[Any], *, msg_id: MsgId) -> None:
        for waiting in self._waiting.values():
            waiting.pop(msg_id, None)
        method = self._outdated.pop(msg_id, None)
        error = future.exception() if not future.cancelled() else None
        if isinstance(error, JsonRpcException):
            # pygls would print a traceback for what the client got wrong.
            self._request_futures.pop(msg_id, None)
            self._send_response(msg_id, error=error.to_response_error())
            self._server.report_server_error(error, FeatureRequestError)
        elif isinstance(error, RlmError):
            self._request_futures.pop(msg_id, None)
            self.refuse(types.LSPErrorCodes.RequestFailed, str(error), msg_id)
        elif method is None:
            super()._send_handler_result(future, msg_id=msg_id)
        else:
            self._request_futures.pop(msg_id, None)
            self._send_response(msg_id, error=_ENDED_BY_EDITS[method])

    def _send_response(self, msg_id: MsgId, result: Any = None, error: types.ResponseError | None = None) -> None:
        """Send an answer; pygls would send the traceback of an internal error, and the exception's text."""
        failure = sys.exception()
        if error is not None and error.code == types.ErrorCodes.InternalError.value and failure is not None:
            self._server.report_server_error(JsonRpcInternalError(), FeatureRequestError)
            error = types.ResponseError(error.code, f"internal error ({type(failure).__name__}); see the log")
        super()._send_response(msg_id, result, error)

    def _run_generator(
        self, future: Future[Any] | None, *, gen: Generator[Any, Any, Any], result_future: Future[Any]
    ) -> None:
        """Go on with a handler of pygls; it prints a traceback for one whose own part was cancelled at the end."""
        if future is not None and future.cancelled():
            result_future.cancel()
        else:
            super()._run_generator(future, gen=gen, result_future=result_future)

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


def _is_id(value: object) -> TypeGuard[MsgId]:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


class Server(LanguageServer):
    """The connection to one client, and its session; ``on_gone`` is called when the client's process has ended."""

    def __init__(self, on_gone: Callable[[], None] = lambda: None) -> None:
        super().__init__(
            "rlm-lsp",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=SYNCED,
            protocol_cls=Protocol,
        )
        self.session, self.on_gone = Session(self), on_gone
        assert isinstance(self.protocol, Protocol)
        self.session.on_edit(self.protocol.edited)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log uncaught errors; pygls would pop them all up. A message that we cannot read is the client's error."""
        if source is JsonRpcException and isinstance(error, (ValueError, RecursionError)):
            assert isinstance(self.protocol, Protocol)
            self.protocol.refuse(types.ErrorCodes.ParseError, f"a message is not JSON in UTF-8: {error}")
            return
        if isinstance(error, JsonRpcInternalError):
            # pygls makes one while it handles what went wrong.
            failure = sys.exception() or error
            is_internal = not isinstance(failure, JsonRpcException) or failure is error
        else:
            failure, is_internal = error, not isinstance(error, JsonRpcException)
        if is_internal:
            self.session.log_error(failure, "a request" if source is FeatureRequestError else "a notification")
        else:
            self.session.log(f"{source.__name__}: {failure}", types.MessageType.Error)

    @property
    def shut_down(self) -> bool:
        """Return whether the client has requested the end."""
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
        logging.getLogger(boundary.LOGGER).removeHandler(self.session.failure_log)

    def use_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Log failures of other threads on this event loop, and its own ones too."""
        self.session.failure_log.loop = loop
        loop.set_exception_handler(self._log_lost)

    def _log_lost(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an exception that nothing waits for; asyncio would print it with its text."""
        error = context.get("exception")
        if isinstance(error, Exception):
            self.session.log_error(error)
        else:
            loop.default_exception_handler(context)


def create_server(on_gone: Callable[[], None] = lambda: None) -> Server:
    """A server with all its features, ready to be started; ``on_gone`` is called when the client's process ends."""
    server = Server(on_gone)
    session = server.session
    settings = configuration.register(server, session)
    server.feature(types.INITIALIZE)(partial(_initialize, server, settings))
    server.feature(types.INITIALIZED)(partial(_initialized, session, settings))
    head_diffs, unit_rules = HeadDiffs(session), UnitRules(session)
    document_sync.register(server, session, settings)
    lenses = code_lens.register(server, session, head_diffs)
    hovers = hover.register(server, session, head_diffs, unit_rules)
    inlay_hints.register(server, session, inlay_hints.InlayHints(session, head_diffs, unit_rules, lenses, hovers))
    diagnostics.register(server, session, unit_rules)
    code_actions.register(server, session, unit_rules)
    commands.register(server, session)
    comparison.register(server, session, head_diffs)
    status.register(server, session)
    overview.register(server, session)
    networks.register(server, session)
    progress.register(session)
    logging.getLogger("rlm_lsp").addHandler(session.log_tail)
    logging.getLogger(boundary.LOGGER).addHandler(session.failure_log)
    return server


def _initialize(server: Server, settings: configuration.Configuration, params: types.InitializeParams) -> None:
    """Take over the client's settings and the names of its folders."""
    # pygls creates its own workspace, and has no other way to give it documents of another class.
    server.protocol._workspace = SyncedWorkspace.like(server.workspace)
    server.use_loop(asyncio.get_running_loop())
    if params.process_id is not None:
        watch_process(params.process_id, server.on_gone)
    if params.client_info is not None and params.client_info.name == "Neovim":
        # On a refresh, Neovim would pull for the workspace only, and discard the diagnostics of open files.
        server.protocol.fm.feature_options[types.TEXT_DOCUMENT_DIAGNOSTIC].workspace_diagnostics = False
    settings.start(params.initialization_options)


async def _initialized(
    session: Session, settings: configuration.Configuration, params: types.InitializedParams
) -> None:
    """Register for notifications, and load the model while the client is asked for its settings."""
    settings.watch()
    hover.register_documents(session)
    session.spawn("measurements", session.watch_measurements())
    await asyncio.gather(_load_model(session), settings.refresh())


async def _load_model(session: Session) -> None:
    with progress.progress(session, "rlm-lsp: loading the model", counted=False):
        failure = await session.load_model(session.settings)
    if failure is None:
        session.refresh()
