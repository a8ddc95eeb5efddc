"""Notifications about documents, notebooks and files: opened, changed, closed, renamed, deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from rlm_lsp.lsp.notebooks import python_cells
from rlm_lsp.lsp.session import Session

from .configuration import Configuration, is_configuration


def register(server: LanguageServer, session: Session, settings: Configuration) -> None:
    """Follow the client's documents, notebooks and files."""
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(partial(did_open, session))
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(partial(did_change, session))
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(partial(did_close, session))
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(partial(did_open_notebook, session))
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(partial(did_change_notebook, session))
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(partial(did_close_notebook, session))
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(partial(did_change_files, session, settings))
    files = types.FileOperationRegistrationOptions(
        [types.FileOperationFilter(types.FileOperationPattern("**/*"), scheme="file")]
    )
    server.feature(types.WORKSPACE_DID_RENAME_FILES, files)(partial(did_rename_files, session))
    server.feature(types.WORKSPACE_DID_DELETE_FILES, files)(partial(did_delete_files, session))


def did_open(session: Session, params: types.DidOpenTextDocumentParams) -> None:
    """A document is open."""
    session.opened(session.client.workspace.get_text_document(params.text_document.uri))


def did_change(session: Session, params: types.DidChangeTextDocumentParams) -> None:
    """A document has changed."""
    session.edited(session.client.workspace.get_text_document(params.text_document.uri))


def did_close(session: Session, params: types.DidCloseTextDocumentParams) -> None:
    """A document is closed."""
    session.closed(params.text_document.uri)


def did_open_notebook(session: Session, params: types.DidOpenNotebookDocumentParams) -> None:
    """A notebook has been opened, with its cells."""
    _sync_cells(session, params.notebook_document.uri, [cell.uri for cell in params.cell_text_documents])


def did_change_notebook(session: Session, params: types.DidChangeNotebookDocumentParams) -> None:
    """Cells were added, removed, moved, or edited."""
    changes = params.change.cells
    if changes is None:
        return
    opened = changes.structure.did_open or () if changes.structure is not None else ()
    edited = [change.document.uri for change in changes.text_content or ()]
    _sync_cells(session, params.notebook_document.uri, [*(cell.uri for cell in opened), *edited])


def did_close_notebook(session: Session, params: types.DidCloseNotebookDocumentParams) -> None:
    """A notebook has been closed."""
    for cell in session.documents.notebooks.put(params.notebook_document.uri, ()):
        session.closed(cell)
    session.on_files.fire()


async def did_change_files(
    session: Session, settings: Configuration, params: types.DidChangeWatchedFilesParams
) -> None:
    """Files have changed on disk, perhaps configuration files."""
    has_configuration = any(is_configuration(change.uri) for change in params.changes)
    if has_configuration or any(change.uri.endswith(".py") for change in params.changes):
        session.files_changed()
    session.on_files.fire()
    if has_configuration:
        await settings.refresh()
        session.on_refresh.fire()


def did_rename_files(session: Session, params: types.RenameFilesParams) -> None:
    """Files or folders have new names."""
    _remove(session, [file.old_uri for file in params.files])


def did_delete_files(session: Session, params: types.DeleteFilesParams) -> None:
    """Files or folders were deleted."""
    _remove(session, [file.uri for file in params.files])


def _remove(session: Session, uris: Sequence[str]) -> None:
    """Close what is open of files or folders that were removed; not all clients do."""
    for uri in session.documents.uris:
        if any(uri == removed or uri.startswith(f"{removed}/") for removed in uris):
            session.closed(uri)
    session.files_changed()
    session.on_files.fire()


def _sync_cells(session: Session, uri: str, changed: Iterable[str]) -> None:
    """Take over the order of a notebook's cells and the texts of the changed ones."""
    workspace = session.client.workspace
    cells = python_cells(workspace, uri)
    for removed in session.documents.notebooks.put(uri, cells):
        session.closed(removed)
    for cell in changed:
        if cell in cells:
            session.edited(workspace.get_text_document(cell))
    # No other notification reports a cell that has only moved.
    session.files_changed()
