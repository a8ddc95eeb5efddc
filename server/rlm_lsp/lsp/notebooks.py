"""The notebooks that the client has open, and their Python cells.

Each Python cell of a notebook is a document with its own hints, hovers and findings; its settings are the notebook's.
Notebooks on disk are read by :mod:`rlm_core.source.notebooks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from lsprotocol import types
from pygls.workspace import TextDocument, Workspace

SYNCED = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithCells(cells=[types.NotebookCellLanguage("python")])]
)


class Notebooks:
    """The open notebooks and the Python cells of each in order; lives on the event loop."""

    def __init__(self) -> None:
        self._cells: dict[str, tuple[str, ...]] = {}
        self._notebooks: dict[str, str] = {}

    def put(self, notebook: str, cells: Sequence[str]) -> list[str]:
        """Set the cells of a notebook; returns the cells that it no longer has."""
        removed = [cell for cell in self._cells.get(notebook, ()) if cell not in cells]
        for cell in removed:
            del self._notebooks[cell]
        self._cells[notebook] = tuple(cells)
        self._notebooks.update(dict.fromkeys(cells, notebook))
        if not cells:
            del self._cells[notebook]
        return removed

    @property
    def cells(self) -> Mapping[str, tuple[str, ...]]:
        """The cells of each notebook in order."""
        return self._cells

    def of(self, cell: str) -> str | None:
        """The notebook of a cell; None for any other document."""
        return self._notebooks.get(cell)

    def around(self, cell: str) -> tuple[str, ...]:
        """All cells of a cell's notebook."""
        return self._cells[self._notebooks[cell]]


def python_cells(workspace: Workspace, uri: str) -> list[str]:
    """The URIs of an open notebook's Python cells in order."""
    notebook = workspace.get_notebook_document(notebook_uri=uri)
    assert notebook is not None, "pygls has handled the notification"
    known = workspace.text_documents
    return [cell.document for cell in notebook.cells if _is_python(known.get(unquote(cell.document)))]


def _is_python(document: TextDocument | None) -> bool:
    return document is not None and document.language_id == "python"
