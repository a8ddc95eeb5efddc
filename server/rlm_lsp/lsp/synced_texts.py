"""Texts kept equal to the client's by edits of ranges, and which of them are the cells of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lsprotocol import types
from pygls.workspace import TextDocument, Workspace

from .text_positions import replace_range


class SyncedDocument(TextDocument):
    """A text that is edited where the client says; pygls splits lines where the protocol does not."""

    def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        """Replace a range, or the whole text."""
        if isinstance(change, types.TextDocumentContentChangePartial):
            self._source = replace_range(self.source, change.range, change.text, self.position_codec)
        else:
            self._source = change.text


class SyncedWorkspace(Workspace):
    """A workspace of such documents, in place of the one that pygls creates."""

    @classmethod
    def like(cls, workspace: Workspace) -> SyncedWorkspace:
        """A workspace without documents, with the root, the folders and the encoding of another one."""
        folders = list(workspace.folders.values())
        kind = types.TextDocumentSyncKind.Incremental
        return cls(workspace.root_uri, kind, folders, workspace.position_encoding)

    def _create_text_document(
        self, doc_uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
    ) -> TextDocument:
        return SyncedDocument(doc_uri, source, version, language_id, position_codec=self.position_codec)


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
