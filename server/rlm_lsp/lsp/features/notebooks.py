"""Notebooks: each Python cell is a document with hints, hovers and findings of its own; settings are the notebook's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lsprotocol import types
from pygls.workspace import TextDocument

from . import diagnostics

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

SYNC = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithCells(cells=[types.NotebookCellLanguage("python")])]
)


def did_open(ls: Server, params: types.DidOpenNotebookDocumentParams) -> None:
    """A notebook has been opened, with its cells."""
    _synced(ls, params.notebook_document.uri, [cell.uri for cell in params.cell_text_documents])


def did_change(ls: Server, params: types.DidChangeNotebookDocumentParams) -> None:
    """Cells have come, gone, moved, or been edited."""
    changes = params.change.cells
    if changes is None:
        return
    opened = changes.structure.did_open or () if changes.structure is not None else ()
    edited = [change.document.uri for change in changes.text_content or ()]
    _synced(ls, params.notebook_document.uri, [*(cell.uri for cell in opened), *edited])


def did_close(ls: Server, params: types.DidCloseNotebookDocumentParams) -> None:
    """A notebook has been closed."""
    for cell in ls.documents.notebooks.put(params.notebook_document.uri, ()):
        ls.forget(cell)


def _synced(ls: Server, uri: str, changed: Iterable[str]) -> None:
    """Take over the order of a notebook's cells and the texts of those that have changed."""
    notebook = ls.workspace.get_notebook_document(notebook_uri=uri)
    assert notebook is not None, "pygls has handled the notification"
    known = ls.workspace.text_documents
    cells = [cell.document for cell in notebook.cells if _is_python(known.get(unquote(cell.document)))]
    for gone in ls.documents.notebooks.put(uri, cells):
        ls.forget(gone)
    for cell in changed:
        if cell in cells:
            ls.documents.put(ls.workspace.get_text_document(cell))
            ls.scheduler.edited(cell)
            diagnostics.push(ls, cell)
    # A cell that has only moved is told of nowhere else.
    ls.documents.files_changed()
    ls.check_dependents()


def _is_python(document: TextDocument | None) -> bool:
    return document is not None and document.language_id == "python"
