"""Texts kept equal to the client's by edits of ranges."""

from __future__ import annotations

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
