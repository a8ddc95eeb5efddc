"""How a session begins, and what happens to documents and files: opened, changed, closed, renamed, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from rlm_lsp.lsp.sync import SyncedWorkspace

from . import configuration, diagnostics
from .progress import progress

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Take over what the client says of itself and of its settings."""
    # pygls makes its own and has no other way to give it documents of ours.
    ls.protocol._workspace = SyncedWorkspace.like(ls.workspace)
    if params.client_info is not None and params.client_info.name == "Neovim":
        # Told to refresh, it would ask for the workspace alone, and throw away what is said of open files.
        ls.protocol.fm.feature_options[types.TEXT_DOCUMENT_DIAGNOSTIC].workspace_diagnostics = False
    ls.configure(configuration.begin(ls, params))


async def initialized(ls: Server, params: types.InitializedParams) -> None:
    """Register what is to be told, and load the model."""
    configuration.report(ls)
    configuration.register(ls)
    ls.watch_files()
    # The model is loaded while the client is asked, and whether it answers or not.
    await asyncio.gather(_load_model(ls), configuration.refresh(ls))


async def _load_model(ls: Server) -> None:
    with progress(ls, "rlm-lsp: loading the model", counted=False):
        failure = await ls.engine.load()
    if failure is not None:
        ls.show_failure(failure)
    else:
        ls.refresh_hints()
        diagnostics.refresh(ls)


def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """A document is open."""
    document = ls.documents.put(ls.workspace.get_text_document(params.text_document.uri))
    diagnostics.push(ls, document.uri)


def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """A document has changed: it is asked about when the typing pauses."""
    document = ls.documents.put(ls.workspace.get_text_document(params.text_document.uri))
    ls.scheduler.edited(document.uri)
    ls.check_dependents(document.uri)
    diagnostics.push(ls, document.uri)


async def did_change_files(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
    """Files have changed on disk, ours among them perhaps."""
    ls.documents.files_changed()
    ls.check_dependents()
    if any(configuration.is_configuration(change.uri) for change in params.changes):
        await configuration.refresh(ls)
        diagnostics.refresh(ls)


def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """A document is closed."""
    ls.forget(params.text_document.uri)


def did_rename_files(ls: Server, params: types.RenameFilesParams) -> None:
    """Files or folders have other names."""
    _did_go(ls, [file.old_uri for file in params.files])


def did_delete_files(ls: Server, params: types.DeleteFilesParams) -> None:
    """Files or folders are gone."""
    _did_go(ls, [file.uri for file in params.files])


def _did_go(ls: Server, uris: Sequence[str]) -> None:
    """Files or folders are no longer where they were; not all clients close what they had open of them."""
    for uri in ls.documents.uris:
        if any(uri == old or uri.startswith(f"{old}/") for old in uris):
            ls.forget(uri)
    ls.documents.files_changed()
    ls.check_dependents()
