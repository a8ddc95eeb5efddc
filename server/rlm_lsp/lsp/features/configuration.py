"""Settings of a running session: asked of the client, read again when something changes, and put to use at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.uris import to_fs_path
from rlm_core.inference.query_selection import QuerySelection

from rlm_lsp.settings.files import FILE_NAMES
from rlm_lsp.settings.model import Settings
from rlm_lsp.settings.store import SECTION, SettingsStore

from . import diagnostics

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

_KINDS = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
    "debug": types.MessageType.Debug,
}


def begin(ls: Server, params: types.InitializeParams) -> SettingsStore:
    """The settings as far as they are known before the client can be asked."""
    return SettingsStore(params.initialization_options, _folders(ls))


def watchers() -> list[types.FileSystemWatcher]:
    """The configuration files that a client should watch."""
    return [types.FileSystemWatcher(f"**/{name}") for name in FILE_NAMES]


def is_configuration(uri: str) -> bool:
    """Whether a file that has changed may hold settings."""
    return uri.rpartition("/")[2] in FILE_NAMES


def register(ls: Server) -> None:
    """Ask the client to tell when its configuration changes; some do so only then."""
    workspace = ls.client_capabilities.workspace
    told = workspace.did_change_configuration if workspace else None
    if told is None or not told.dynamic_registration:
        return
    method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
    registration = types.Registration(method, method, {"section": SECTION})
    ls.client_register_capability(types.RegistrationParams([registration]))


async def did_change_configuration(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """Ask for the settings anew; a client that cannot be asked sends them along."""
    sent = params.settings
    if isinstance(sent, dict) and SECTION in sent and not _can_ask(ls):
        ls.settings_store.set_client({None: sent[SECTION]})
    await refresh(ls)


async def did_change_folders(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Each folder has settings of its own."""
    await refresh(ls)


async def refresh(ls: Server) -> None:
    """Read all sources anew and use what has changed. Where several run at once, the newest wins."""
    ls.configuring += 1
    turn = ls.configuring
    store = ls.settings_store
    folders = _folders(ls)
    answers = await _ask(ls, folders) if _can_ask(ls) else None
    files = await asyncio.to_thread(store.read_files, folders)
    if turn != ls.configuring:
        return
    if answers is not None:
        store.set_client(answers)
    before, before_all = ls.settings, store.by_folder
    store.use(files)
    report(ls)
    if store.by_folder != before_all:
        await _apply(ls, before)


async def _apply(ls: Server, before: Settings) -> None:
    """Put new settings to use; the model is loaded anew only where it must be."""
    now = ls.settings
    ls.scheduler.debounce = now.debounce_ms / 1000
    ls.engine.ask(asked(ls.settings_store))
    # Sizes of kernels come from settings too.
    ls.documents.files_changed()
    ls.revisions.forget()
    ls.refresh_hints()
    diagnostics.refresh(ls)
    if (now.model, now.threads, now.token_file) == (before.model, before.threads, before.token_file):
        return
    failure = await ls.engine.reload(now)
    if failure is not None:
        ls.show_failure(failure)
    ls.refresh_hints()
    diagnostics.refresh(ls)


def asked(store: SettingsStore) -> QuerySelection:
    """What the model is asked so that every folder's settings can be shown."""
    of_folders = list(store.by_folder.values())
    metrics = dict.fromkeys(metric for settings in of_folders for metric in settings.metrics)
    # None stands for the model's own device, which a folder without devices shows.
    devices = dict.fromkeys(device for settings in of_folders for device in settings.devices or (None,))
    return QuerySelection(tuple(metrics), () if tuple(devices) == (None,) else tuple(devices))


def report(ls: Server) -> None:
    """Log each problem with the settings once."""
    for problem in ls.settings_store.unreported():
        ls.log(str(problem), types.MessageType.Warning)


def is_logged(settings: Settings, kind: types.MessageType) -> bool:
    """Whether a message of this kind is important enough for the client's log."""
    return kind.value <= _KINDS[settings.log_level].value


def _can_ask(ls: Server) -> bool:
    workspace = ls.client_capabilities.workspace
    return bool(workspace and workspace.configuration)


async def _ask(ls: Server, folders: Sequence[Path]) -> dict[Path | None, Any] | None:
    """The client's answer for each folder; None when it gives none."""
    scopes: list[Path | None] = [None, *folders]
    items = [types.ConfigurationItem(folder.as_uri() if folder else None, SECTION) for folder in scopes]
    try:
        answers = await ls.workspace_configuration_async(types.ConfigurationParams(items))
    except Exception as error:
        ls.log(f"the client does not tell its configuration: {error}", types.MessageType.Warning)
        return None
    return dict(zip(scopes, answers, strict=False))


def _folders(ls: Server) -> list[Path]:
    uris = list(ls.workspace.folders) or [uri for uri in (ls.workspace.root_uri,) if uri]
    return [Path(name) for name in (to_fs_path(uri) for uri in uris) if name]
