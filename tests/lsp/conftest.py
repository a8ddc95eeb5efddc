"""A real client over stdio: starts ``rlm-lsp serve``, waits for refreshes, compares with ``rlm-lsp predict``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest
import pytest_asyncio
from click.testing import CliRunner
from lsprotocol import types
from pygls.client import JsonRPCClient
from pytest_lsp import LanguageClient, make_test_lsp_client
from rlm_core import Band, Prediction
from rlm_core.types import GrowthEstimate
from rlm_lsp.cli.app import app
from rlm_lsp.findings.relevance import grows_fast
from rlm_lsp.lsp.features.inlay_hints import PADDING
from rlm_lsp.rendering import hint_label
from rlm_lsp.settings.model import MAX_LABEL, Settings

from tests.warm_server import COLD, warm_command

from .clients import capabilities as capabilities_of

SERVE = ("serve", "--stdio")
COMMAND = (*COLD, *SERVE)
EVERYWHERE = types.Range(types.Position(0, 0), types.Position(100_000, 0))


@dataclass
class Session:
    """An initialized client, with the refreshes that no test has waited for yet."""

    client: LanguageClient
    refreshes: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    versions: dict[str, int] = field(default_factory=dict)
    registered: list[str] = field(default_factory=list)
    content_refreshes: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    def open(self, path: Path, text: str | None = None, language: str = "python") -> str:
        """Open a file, with another text than on disk when ``text`` is given."""
        uri = path.as_uri()
        self.versions[uri] = 1
        item = types.TextDocumentItem(uri, language, 1, path.read_text() if text is None else text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, text: str) -> None:
        """Replace the text of an open file."""
        self.versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def hints(self, uri: str, wanted: types.Range = EVERYWHERE) -> list[types.InlayHint]:
        """Ask for hints once."""
        params = types.InlayHintParams(types.TextDocumentIdentifier(uri), wanted)
        return list(await self.client.text_document_inlay_hint_async(params) or [])

    async def lenses(self, uri: str) -> list[types.CodeLens]:
        """Ask for code lenses once."""
        params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
        return list(await self.client.text_document_code_lens_async(params) or [])

    async def labels(self, uri: str, count: int) -> dict[int, str]:
        """Ask for hints, and again after each refresh, until there are ``count``: label by line."""
        while True:
            hints = await self.hints(uri)
            if len(hints) >= count:
                return {hint.position.line: str(hint.label) for hint in hints}
            await self.refreshes.get()

    def forget_refreshes(self) -> None:
        """Wait from now on only for refreshes that are still to come."""
        while not self.refreshes.empty():
            self.refreshes.get_nowait()

    async def hover(self, uri: str, line: int, character: int = 0) -> str | None:
        """The text of a hover."""
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        found = await self.client.text_document_hover_async(params)
        assert found is None or isinstance(found.contents, types.MarkupContent)
        return found.contents.value if found is not None else None  # type: ignore[union-attr]


def read_all_kinds(client: JsonRPCClient) -> None:
    """Let a client read filters of notebooks and code actions with commands, whose kinds lsprotocol mixes up."""
    converter = client.protocol._converter
    converter.register_structure_hook_func(
        lambda kind: types.NotebookDocumentFilterNotebookType in get_args(kind), lambda value, kind: value
    )

    def code_action(value: Any, kind: Any) -> types.Command | types.CodeAction:
        is_command = isinstance(value.get("command"), str)
        return converter.structure(value, types.Command) if is_command else converter.structure(value, types.CodeAction)

    converter.register_structure_hook_func(
        lambda kind: {*get_args(kind)} == {types.Command, types.CodeAction}, code_action
    )


Start = Callable[..., Awaitable[Session]]


@asynccontextmanager
async def _session(
    command: tuple[str, ...],
    refresh: bool,
    encoding: str,
    markup: str,
    options: Any,
    editor: str | None,
    folder: Path | None,
) -> AsyncIterator[Session]:
    client = make_test_lsp_client()
    read_all_kinds(client)
    session = Session(client)

    def on_refresh(params: None) -> None:
        session.refreshes.put_nowait(None)

    def on_register(params: types.RegistrationParams) -> None:
        session.registered.extend(registration.method for registration in params.registrations)

    client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)(on_refresh)
    client.feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda params: None)
    client.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH)(
        lambda params: session.content_refreshes.put_nowait(params.uri)
    )
    client.feature(types.CLIENT_REGISTER_CAPABILITY)(on_register)

    await client.start_io(*command)
    capabilities = types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind(encoding)]),
        workspace=types.WorkspaceClientCapabilities(
            inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=refresh),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
        ),
        text_document=types.TextDocumentClientCapabilities(
            hover=types.HoverClientCapabilities(content_format=[types.MarkupKind(markup)])
        ),
    )
    if editor is not None:
        capabilities = capabilities_of(editor)
    folders = [types.WorkspaceFolder(folder.as_uri(), folder.name)] if folder is not None else None
    await client.initialize_session(
        types.InitializeParams(capabilities, initialization_options=options, workspace_folders=folders)
    )
    try:
        yield session
        await client.shutdown_session()
    finally:
        await client.stop()  # type: ignore[no-untyped-call]


@pytest.fixture
def command() -> tuple[str, ...]:
    """The command that starts a server; a module about starting and ending replaces it with ``COMMAND``."""
    return (*warm_command(), *SERVE)


@pytest_asyncio.fixture
async def start(command: tuple[str, ...]) -> AsyncIterator[Start]:
    """Starts servers with the wanted client capabilities, or an editor's, and settings; they end with the test."""
    async with AsyncExitStack() as stack:

        async def begin(
            *,
            refresh: bool = True,
            encoding: str = "utf-16",
            markup: str = "markdown",
            options: Any = None,
            editor: str | None = None,
            folder: Path | None = None,
            shown: str = "all",
        ) -> Session:
            # Most tests are about hints of short functions.
            if options is None or isinstance(options, dict):
                options = {"hintsShown": shown, **(options or {})}
            return await stack.enter_async_context(
                _session(command, refresh, encoding, markup, options, editor, folder)
            )

        yield begin


@pytest.fixture
def examples() -> Path:
    """The folder of our example files."""
    return Path(__file__).parents[2] / "examples"


Rows = list[dict[str, Any]]


@pytest.fixture
def unsized_module(tmp_path: Path, examples: Path) -> Path:
    """A file whose only unit is a module of unknown size."""
    path = tmp_path / "unsized.py"
    text = (examples / "module.py").read_text()
    path.write_text(text.replace("width: int = 512, hidden: int = 2048", "width: int, hidden: int"))
    return path


@pytest.fixture
def predict() -> Callable[[Path], Rows]:
    """The rows that ``rlm-lsp predict --format json`` prints for a file."""

    def run(path: Path) -> Rows:
        result = CliRunner().invoke(app, ["predict", str(path), "--format", "json"])
        assert result.exit_code == 0
        rows: Rows = json.loads(result.stdout)
        return rows

    return run


@pytest.fixture
def labels_of() -> Callable[[Rows], dict[int, str]]:
    """The hint labels of rows, by 0-based line; units on which the model abstains have none."""

    def labels(rows: Rows) -> dict[int, str]:
        by_line: dict[int, list[Prediction]] = {}
        for row in rows:
            if row["abstained"] is None:
                band, said = Band(row["low"], row["high"], row["coverage"]), row["growth"]
                growth = GrowthEstimate(said["class"], said["probability"], tuple(said["sizes"])) if said else None
                by_line.setdefault(row["line"] - 1, []).append(
                    Prediction(
                        row["basis"], row["metric"], None, {}, "", row["median"], (band,), 0.0, False, growth=growth
                    )
                )
        return {
            line: hint_label.label(
                predictions, width=MAX_LABEL - PADDING, with_growth=grows_fast(predictions, Settings())
            )
            for line, predictions in by_line.items()
        }

    return labels
