"""A plain client over stdio that keeps what the server sends in its order, for tests of what is sent when."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.warm_server import warm_command

from .conftest import SERVE, read_all_kinds

NOTIFICATIONS = (
    types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS,
    types.WINDOW_LOG_MESSAGE,
    types.WINDOW_SHOW_MESSAGE,
    types.PROGRESS,
    "rlm-lsp/overviewChanged",
)
REQUESTS = (
    types.WORKSPACE_DIAGNOSTIC_REFRESH,
    types.WORKSPACE_INLAY_HINT_REFRESH,
    types.CLIENT_REGISTER_CAPABILITY,
    types.WINDOW_WORK_DONE_PROGRESS_CREATE,
)


class Recording:
    """An initialized client and everything that the server has sent: method and parameters."""

    def __init__(self) -> None:
        self.client = LanguageClient("recording", "1")
        read_all_kinds(self.client)
        self.received: list[tuple[str, Any]] = []
        self.versions: dict[str, int] = {}
        self._news = asyncio.Event()
        for method in (*NOTIFICATIONS, *REQUESTS):
            self.client.feature(method)(self._recorder(method))
        self.shown: list[tuple[str, types.Position]] = []
        self.client.feature(types.WINDOW_SHOW_DOCUMENT)(partial(Recording._show, self))

    def _show(self, params: types.ShowDocumentParams) -> types.ShowDocumentResult:
        """Like an editor that moves its cursor."""
        assert params.selection is not None
        self.shown.append((params.uri, params.selection.start))
        return types.ShowDocumentResult(True)

    def _recorder(self, method: str) -> Callable[[Any], None]:
        def record(params: Any) -> None:
            self.received.append((method, params))
            self._news.set()

        return record

    def sent(self, method: str) -> list[Any]:
        """The parameters of all messages of a method so far."""
        return [params for name, params in self.received if name == method]

    async def wait(self, method: str, admits: Callable[[Any], bool] = lambda params: True) -> Any:
        """The first message of a method that is as wanted, also one that has come already."""
        while True:
            found = [params for params in self.sent(method) if admits(params)]
            if found:
                return found[0]
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 30)

    async def published(self, uri: str, version: int | None) -> list[types.Diagnostic]:
        """The newest diagnostics that were pushed for a version of a document."""

        def admits(params: types.PublishDiagnosticsParams) -> bool:
            return params.uri == uri and params.version == version

        await self.wait(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, admits)
        return list([p for p in self.sent(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS) if admits(p)][-1].diagnostics)

    def open(self, path: Path, text: str | None = None, language: str = "python") -> str:
        """Open a file, with another text than on disk when ``text`` is given."""
        uri = path.as_uri()
        self.versions[uri] = 1
        item = types.TextDocumentItem(uri, language, 1, path.read_text() if text is None else text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, *changes: types.TextDocumentContentChangeEvent | str) -> int:
        """Edit an open file, by ranges or with a whole text; its new version."""
        self.versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        events = [
            types.TextDocumentContentChangeWholeDocument(change) if isinstance(change, str) else change
            for change in changes
        ]
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, events))
        return self.versions[uri]

    def close(self, uri: str) -> None:
        """Close a file."""
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    async def pull(self, uri: str, previous: str | None = None) -> Any:
        """Ask for the diagnostics of a file."""
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri), previous_result_id=previous)
        return await self.client.text_document_diagnostic_async(params)

    async def pull_all(self, *known: types.PreviousResultId) -> list[Any]:
        """Ask for the diagnostics of the workspace."""
        params = types.WorkspaceDiagnosticParams(list(known))
        return list((await self.client.workspace_diagnostic_async(params)).items)

    async def command(self, name: str, *arguments: Any) -> Any:
        """Run a command of the server."""
        params = types.ExecuteCommandParams(name, list(arguments))
        return await self.client.workspace_execute_command_async(params)

    async def handled(self) -> None:
        """Wait until the server has read everything that was sent before."""
        params = types.HoverParams(types.TextDocumentIdentifier("untitled:none"), types.Position(0, 0))
        await self.client.text_document_hover_async(params)


@asynccontextmanager
async def recording(
    capabilities: types.ClientCapabilities, *folders: Path, options: Any = None
) -> AsyncIterator[Recording]:
    """A session with a real server that shows all hints; it ends in order."""
    if options is None or isinstance(options, dict):
        options = {"hintsShown": "all", **(options or {})}
    session = Recording()
    await session.client.start_io(*warm_command(), *SERVE)
    workspace_folders = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders]
    params = types.InitializeParams(capabilities, initialization_options=options, workspace_folders=workspace_folders)
    await session.client.initialize_async(params)
    session.client.initialized(types.InitializedParams())
    try:
        yield session
        await session.client.shutdown_async(None)
        session.client.exit(None)
    except BaseException:
        # pygls would wait for a server that was not shut down.
        assert session.client._server is not None
        session.client._server.kill()
        raise
    finally:
        await session.client.stop()  # type: ignore[no-untyped-call]


def commit(folder: Path, files: Sequence[Path]) -> None:
    """Commit files to the repository in a folder, which is made if there is none."""
    git = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@example.org"]
    if not (folder / ".git").exists():
        subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "--", *map(str, files)], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "test"], check=True)
