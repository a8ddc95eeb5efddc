"""Settings over a real connection: requested from the client, read from files, changed while the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pytest_lsp import make_test_lsp_client

from tests.warm_server import warm_command

from .conftest import SERVE, Session, read_all_kinds

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Begin = Callable[..., Awaitable[Session]]
FUNCTION = "def work(values):\n    return sorted(values)[0] + sum(range(len(values)))\n"


@asynccontextmanager
async def _session(folders: Sequence[Path], configuration: Any, options: Any, *, asks: bool) -> AsyncIterator[Session]:
    client = make_test_lsp_client()
    session = Session(client)
    client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)(lambda params: session.refreshes.put_nowait(None))

    def on_register(params: types.RegistrationParams) -> None:
        session.registered.extend(registration.method for registration in params.registrations)

    client.feature(types.CLIENT_REGISTER_CAPABILITY)(on_register)
    client.set_configuration({"rlm-lsp": configuration})
    await client.start_io(*warm_command(), *SERVE)
    capabilities = types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(
            configuration=asks,
            workspace_folders=True,
            did_change_configuration=types.DidChangeConfigurationClientCapabilities(dynamic_registration=True),
            inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
        )
    )
    await client.initialize_session(
        types.InitializeParams(
            capabilities,
            initialization_options=options,
            workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders],
        )
    )
    try:
        yield session
        await client.shutdown_session()
    finally:
        await client.stop()  # type: ignore[no-untyped-call]


@pytest_asyncio.fixture
async def begin() -> AsyncIterator[Begin]:
    """Starts servers for workspace folders and a client's configuration; they end with the test."""
    async with AsyncExitStack() as stack:

        async def one(*folders: Path, configuration: Any = None, options: Any = None, asks: bool = True) -> Session:
            # The functions of the tests cost too little for a hint by default.
            options = {"hintsShown": "all"} if options is None else options
            return await stack.enter_async_context(_session(folders, configuration, options, asks=asks))

        yield one


async def logged(session: Session, part: str, count: int = 1) -> list[str]:
    """The lines of the client's log with ``part`` in them, once there are ``count``."""
    while len(found := [m.message for m in session.client.log_messages if part in m.message]) < count:
        await session.client.wait_for_notification(types.WINDOW_LOG_MESSAGE)
    return found


async def shown(session: Session, count: int) -> list[types.ShowMessageParams]:
    """The messages that the client has shown, once there are ``count``."""
    while len(session.client.messages) < count:
        await session.client.wait_for_notification(types.WINDOW_SHOW_MESSAGE)
    return list(session.client.messages)


def configure(session: Session, values: Any) -> None:
    """The user changes the client's configuration."""
    session.client.set_configuration({"rlm-lsp": values})
    params = types.DidChangeConfigurationParams({"rlm-lsp": values})
    session.client.workspace_did_change_configuration(params)


def file_changed(session: Session, path: Path) -> None:
    """The client has seen a file change on disk."""
    change = types.FileEvent(path.as_uri(), types.FileChangeType.Changed)
    session.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))


async def label_with(session: Session, uri: str, admits: Callable[[str], bool]) -> str:
    """Ask for the first hint, and again after each refresh, until its label is as wanted."""
    while True:
        hints = await session.hints(uri)
        if hints and admits(label := str(hints[0].label)):
            return label
        await session.refreshes.get()


async def no_hints(session: Session, uri: str) -> None:
    """Ask for hints, and again after each refresh, until there are none."""
    while await session.hints(uri):
        await session.refreshes.get()


async def test_a_bad_key_of_the_clients_configuration_is_reported_once_by_name_and_place(
    begin: Begin, tmp_path: Path
) -> None:
    session = await begin(tmp_path, configuration={"colour": 1, "trace": {"server": "off"}})
    assert await logged(session, "colour") == [
        "workspace/configuration: unknown setting `colour`; see docs/settings.md for all settings"
    ]
    configure(session, {"colour": 1, "threads": -1})
    await logged(session, "`threads` must be an integer from 0 to 256")
    assert len(await logged(session, "colour")) == 1
    start = "rlm-lsp ignores a setting that is not valid, in the editor's settings: "
    assert [message.message.removeprefix(start) for message in await shown(session, 2)] == [
        'unknown setting "colour"; see docs/settings.md for all settings.',
        'setting "threads" must be an integer from 0 to 256.',
    ]


async def test_invalid_settings_of_all_sources_are_one_notification(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "rlm-lsp.toml").write_text('label = "bands"\n')
    session = await begin(tmp_path, configuration={"threads": -1}, options={"colour": 1})
    await logged(session, "`label`")
    [message] = await shown(session, 1)
    assert message.type == types.MessageType.Warning
    assert message.message.startswith("rlm-lsp ignores 3 settings that are not valid. The first, in ")
    await session.hints(session.open(tmp_path / "a.py", FUNCTION))
    assert len(session.client.messages) == 1


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("rlm-lsp.toml", '# Ours.\nlabel = "bands"\n', 1),
        ("rlm-lsp.toml", 'label = "band"\n\n[severity]\nfatal = 1\n', 2),
        ("rlm-lsp.toml", 'label = "band"\nlabel\n', 1),
        ("pyproject.toml", '[tool.other]\nlabel = 1\n\n[tool.rlm-lsp]\nexclude = []\nlabel = "bands"\n', 5),
        ("pyproject.toml", '[tool.rlm-lsp]\nlabel = "band"\n\n[tool.rlm-lsp.budgets]\n"a.py" = "fast"\n', 3),
    ],
)
async def test_a_client_with_a_button_is_sent_the_places_to_open(
    begin: Begin, tmp_path: Path, name: str, text: str, line: int
) -> None:
    file = tmp_path / name
    file.write_text(text)
    session = await begin(tmp_path, configuration={"threads": -1}, options={"invalidSettings": True})
    notification = await session.client.wait_for_notification("rlm-lsp/invalidSettings")
    assert notification.message.startswith("rlm-lsp ignores 2 settings that are not valid.")
    assert {place.uri: place.line for place in notification.places} == {None: 0, file.as_uri(): line}
    assert [place.setting for place in notification.places if place.uri is None] == ["threads"]
    assert session.client.messages == []


async def test_the_client_is_requested_to_report_changes(begin: Begin, tmp_path: Path) -> None:
    session = await begin(tmp_path, configuration={"colour": 1})
    await logged(session, "colour")
    assert types.WORKSPACE_DID_CHANGE_CONFIGURATION in session.registered


async def test_a_client_without_configuration_requests_may_send_its_configuration(begin: Begin, tmp_path: Path) -> None:
    session = await begin(tmp_path, asks=False)
    configure(session, {"colour": 1})
    assert len(await logged(session, "workspace/configuration: unknown setting `colour`")) == 1


async def test_files_are_read_again_when_they_change(begin: Begin, tmp_path: Path) -> None:
    file = tmp_path / "rlm-lsp.toml"
    session = await begin(tmp_path)
    file.write_text('label = "bands"\n')
    file_changed(session, file)
    [line] = await logged(session, "`label`")
    assert line == f"{file}: setting `label` must be one of band, median, median±"
    file.write_text("label =\n")
    file_changed(session, file)
    await logged(session, f"{file}: is not valid TOML: ")


async def test_a_workspace_chooses_no_model(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "rlm-lsp.toml").write_text(f'model = "{tmp_path / "evil"}"\n')
    session = await begin(tmp_path, configuration={"tokenFile": "secret"})
    await logged(session, "setting `model` cannot be set by a workspace")
    await logged(session, "workspace/configuration: setting `tokenFile` cannot be set by a workspace")
    await session.hints(session.open(tmp_path / "a.py", FUNCTION))
    assert not any("evil" in message.message for message in session.client.messages)


async def test_a_trusted_configuration_chooses_the_model_while_the_server_runs(begin: Begin, tmp_path: Path) -> None:
    session = await begin(tmp_path, options={"trusted": True}, configuration={})
    configure(session, {"model": str(tmp_path / "nothing-here")})
    while not any("nothing-here" in message.message for message in session.client.messages):
        await session.client.wait_for_notification(types.WINDOW_SHOW_MESSAGE)
    assert session.client.messages[-1].type == types.MessageType.Error


async def test_the_log_level_holds_back_what_is_less_important(begin: Begin, tmp_path: Path) -> None:
    session = await begin(tmp_path, configuration={"colour": 1, "logLevel": "error"}, options={"logLevel": "error"})
    configure(session, {"flavour": 1, "logLevel": "warning"})
    await logged(session, "flavour")
    assert not any("colour" in message.message for message in session.client.log_messages)


async def test_shown_metrics_change_while_the_server_runs(begin: Begin, tmp_path: Path) -> None:
    session = await begin(tmp_path, configuration={"metrics": ["latency"]})
    uri = session.open(tmp_path / "a.py", FUNCTION)
    latency = await label_with(session, uri, lambda label: label.rstrip().endswith("s"))
    memory = await _after(session, {"metrics": ["memory"]}, uri, lambda label: label.rstrip().endswith("B"))
    both = await _after(session, {}, uri, lambda label: " · " in label or label not in (latency, memory))
    assert both not in (latency, memory)
    assert session.client.messages == []


async def _after(session: Session, values: Any, uri: str, admits: Callable[[str], bool]) -> str:
    configure(session, values)
    return await label_with(session, uri, admits)


async def test_a_project_hides_languages_and_files_and_shows_them_again(begin: Begin, tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.rlm-lsp]\nlanguages = ["go"]\n')
    session = await begin(tmp_path)
    uri = session.open(tmp_path / "a.py", FUNCTION)
    assert await session.hints(uri) == []
    file.write_text("")
    file_changed(session, file)
    await label_with(session, uri, bool)
    file.write_text('[tool.rlm-lsp]\nexclude = ["a.py"]\n')
    file_changed(session, file)
    await no_hints(session, uri)


async def test_each_folder_of_a_workspace_has_its_settings(begin: Begin, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, metric in ((one, "latency"), (two, "memory")):
        folder.mkdir()
        (folder / "rlm-lsp.toml").write_text(f'metrics = ["{metric}"]\n')
    session = await begin(one, two)
    await label_with(session, session.open(one / "a.py", FUNCTION), lambda label: label.endswith("s"))
    await label_with(session, session.open(two / "a.py", FUNCTION), lambda label: label.endswith("B"))


async def test_folders_may_come_later(begin: Begin, tmp_path: Path) -> None:
    late = tmp_path / "late"
    late.mkdir()
    (late / "rlm-lsp.toml").write_text("colour = 1\n")
    session = await begin()
    event = types.WorkspaceFoldersChangeEvent(added=[types.WorkspaceFolder(late.as_uri(), "late")], removed=[])
    session.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
    assert len(await logged(session, f"{late / 'rlm-lsp.toml'}: unknown setting `colour`")) == 1


async def test_a_model_that_cannot_be_loaded_leaves_the_one_before(begin: Begin, tmp_path: Path) -> None:
    session = await begin(tmp_path, options={"trusted": True, "hintsShown": "all"}, configuration={})
    uri = session.open(tmp_path / "a.py", FUNCTION)
    before = await label_with(session, uri, bool)
    configure(session, {"model": str(tmp_path / "nothing-here")})
    await asyncio.wait_for(session.client.wait_for_notification(types.WINDOW_SHOW_MESSAGE), 30)
    [message] = session.client.messages
    assert "the model is unchanged: " in message.message
    assert await label_with(session, uri, bool) == before


async def test_sizes_of_kernels_are_settings_too(begin: Begin, tmp_path: Path, examples: Path) -> None:
    session = await begin(tmp_path, options={"defaultSizes": {"n_elements": 4096}})
    uri = session.open(tmp_path / "kernel.py", (examples / "kernel.py").read_text())
    assert "4096" in (await session.hover(uri, 7, 5) or "")
    configure(session, {"defaultSizes": {"n_elements": 8192}})
    while "8192" not in (await session.hover(uri, 7, 5) or ""):
        await session.refreshes.get()


async def test_the_first_answer_waits_for_the_settings_of_the_client(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f(n):\n    return sorted(range(n))\n")
    client = LanguageClient("late", "1")
    read_all_kinds(client)
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def configuration(params: types.ConfigurationParams) -> list[Any]:
        is_asked.set()
        await may_answer.wait()
        return [{"languages": ["cpp"]} for _ in params.items]

    client.feature(types.WORKSPACE_CONFIGURATION)(configuration)
    await client.start_io(*warm_command(), *SERVE)
    capabilities = types.ClientCapabilities(workspace=types.WorkspaceClientCapabilities(configuration=True))
    await client.initialize_async(types.InitializeParams(capabilities))
    client.initialized(types.InitializedParams())
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(path.as_uri(), "python", 1, path.read_text()))
    )
    place = types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), types.Position(0, 4))
    hover = asyncio.ensure_future(client.text_document_hover_async(place))
    await is_asked.wait()
    may_answer.set()
    assert await hover is None
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()  # type: ignore[no-untyped-call]
