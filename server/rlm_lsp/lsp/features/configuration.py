"""Settings of a running session: read from the client and from files, and put to use when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from rlm_core.source import languages, notebooks

from rlm_lsp.lsp.session import Session, selection_of
from rlm_lsp.rendering.finding_messages import invalid_settings
from rlm_lsp.settings.files import FILE_NAMES, OF_CLIENT, SECTION, SettingsStore, read_config
from rlm_lsp.settings.model import Settings
from rlm_lsp.settings.resolve import SettingsProblem
from rlm_lsp.sources import path_of_uri

INVALID_SETTINGS_NOTIFICATION = "rlm-lsp/invalidSettings"


class Configuration:
    """Reads the settings of a session again whenever one of their sources changes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = 0

    def start(self, options: Any) -> None:
        """Start with the settings that are known before the client can be asked."""
        self._session.configure(SettingsStore(options, self._folders()))
        if not self._can_ask:
            self._session.settings_read.set()

    def watch(self) -> None:
        """Ask the client to notify about changes of its settings and of files."""
        session = self._session
        if session.capability("workspace.did_change_configuration.dynamic_registration"):
            self._register(types.WORKSPACE_DID_CHANGE_CONFIGURATION, {"section": SECTION})
        if session.capability("workspace.did_change_watched_files.dynamic_registration"):
            # Open documents may call functions of any Python file; the overview lists the other files.
            others = {suffix for language in languages.LANGUAGES.values() for suffix in language.suffixes} - {".py"}
            names = ("*.py", f"*{{{','.join(sorted(others | {notebooks.SUFFIX}))}}}", *FILE_NAMES)
            watchers = [types.FileSystemWatcher(f"**/{name}") for name in names]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            self._register(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)

    async def refresh(self) -> None:
        """Read all sources again and use what has changed. Of several concurrent calls, the newest wins."""
        self._turn += 1
        turn = self._turn
        session, store = self._session, self._session.settings_store
        folders = self._folders()
        answers = await self._ask_client(folders) if self._can_ask else None
        files = await asyncio.to_thread(store.read_files, folders)
        if turn != self._turn:
            return
        if answers is not None:
            store.set_client(answers)
        before, before_by_folder = session.settings, store.by_folder
        store.use(files)
        session.settings_read.set()
        self._report()
        if store.by_folder != before_by_folder:
            await self._apply(before)

    async def _apply(self, before: Settings) -> None:
        """Put new settings to use; the model is loaded again only if its settings have changed."""
        session, now = self._session, self._session.settings
        session.scheduler.debounce = now.debounce_ms / 1000
        session.predictions.select(selection_of(session.settings_store))
        # Default sizes of kernels are settings too.
        session.documents.invalidate()
        session.head_units.forget()
        session.refresh()
        if _model(now) != _model(before):
            await session.load_model(now)
            session.refresh()

    def _report(self) -> None:
        """Log what is not valid since the last time, and notify the user once of all of it."""
        problems = self._session.settings_store.unreported()
        for problem in problems:
            self._session.log(str(problem), types.MessageType.Warning)
        if problems:
            self._session.spawn(f"invalid settings {self._turn}", self._notify(problems))

    async def _notify(self, problems: Sequence[SettingsProblem]) -> None:
        session, message = self._session, invalid_settings(problems)
        if session.settings_store.client_reports:
            places = await asyncio.to_thread(_places, problems)
            session.client.protocol.notify(INVALID_SETTINGS_NOTIFICATION, {"message": message, "places": places})
        else:
            session.show(message, types.MessageType.Warning)

    def _register(self, method: str, options: Any) -> None:
        registration = types.Registration(method, method, options)
        self._session.client.client_register_capability(types.RegistrationParams([registration]))

    @property
    def _can_ask(self) -> bool:
        return bool(self._session.capability("workspace.configuration"))

    async def _ask_client(self, folders: Sequence[Path]) -> dict[Path | None, Any] | None:
        """The client's settings for each folder; None when it does not answer."""
        scopes: list[Path | None] = [None, *folders]
        items = [types.ConfigurationItem(folder.as_uri() if folder else None, SECTION) for folder in scopes]
        try:
            answers = await self._session.client.workspace_configuration_async(types.ConfigurationParams(items))
        except Exception as error:
            self._session.log(f"the client did not send its configuration: {error}", types.MessageType.Warning)
            return None
        return dict(zip(scopes, answers, strict=False))

    def _folders(self) -> list[Path]:
        workspace = self._session.client.workspace
        uris = list(workspace.folders) or [uri for uri in (workspace.root_uri,) if uri]
        return [path for path in map(path_of_uri, uris) if path is not None]


def register(server: LanguageServer, session: Session) -> Configuration:
    """Follow the client's notifications about settings and folders."""
    settings = Configuration(session)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(partial(_did_change_configuration, session, settings))
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(partial(_did_change_folders, settings))
    return settings


def _places(problems: Sequence[SettingsProblem]) -> list[dict[str, Any]]:
    """The places that a client can open, each once: a file (``uri``, ``line``) or its own configuration."""
    places: dict[str, dict[str, Any]] = {}
    for problem in problems:
        path = Path(problem.place)
        if problem.place == OF_CLIENT:
            places.setdefault(problem.place, {"uri": None, "setting": problem.setting, "line": 0})
        elif path.is_absolute() and problem.place not in places:
            config = read_config(path) if problem.setting and path.suffix == ".toml" else None
            line = config.line_of(problem.setting) if config is not None else problem.line
            places[problem.place] = {"uri": path.as_uri(), "setting": problem.setting, "line": line}
    return list(places.values())


def is_configuration(uri: str) -> bool:
    """Return whether a file may hold settings."""
    return uri.rpartition("/")[2] in FILE_NAMES


async def _did_change_configuration(
    session: Session, settings: Configuration, params: types.DidChangeConfigurationParams
) -> None:
    """Ask for the settings again; a client that cannot be asked sends them along."""
    sent = params.settings
    if isinstance(sent, dict) and SECTION in sent and not session.capability("workspace.configuration"):
        session.settings_store.set_client({None: sent[SECTION]})
    await settings.refresh()


async def _did_change_folders(settings: Configuration, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Each folder has its own settings."""
    await settings.refresh()


def _model(settings: Settings) -> tuple[object, ...]:
    """The settings that decide which model is loaded, and how."""
    return settings.model, settings.fallback, settings.threads, settings.token_file
