"""The server's copy of each open text, kept equal to the client's by edits of ranges.

pygls would split lines where ``str.splitlines`` does, at form feeds and U+2028 too, and apply an edit below one to a
wrong line; here lines end as the protocol says: at LF, CR LF or CR.
"""

from __future__ import annotations

import re

from lsprotocol import types
from pygls.workspace import PositionCodec, TextDocument, Workspace

_LINE_END = re.compile(r"\r\n|\n|\r")


class SyncedDocument(TextDocument):
    """A text that is edited where the client says."""

    def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        """Replace a range, or the whole text."""
        if isinstance(change, types.TextDocumentContentChangePartial):
            self._source = replaced(self.source, change.range, change.text, self.position_codec)
        else:
            self._source = change.text


class SyncedWorkspace(Workspace):
    """A workspace of such documents, in place of the one that pygls makes for a session."""

    @classmethod
    def like(cls, workspace: Workspace) -> SyncedWorkspace:
        """A workspace with the root, the folders and the encoding of another one, whose documents are still to come."""
        folders = list(workspace.folders.values())
        kind = types.TextDocumentSyncKind.Incremental
        return cls(workspace.root_uri, kind, folders, workspace.position_encoding)

    def _create_text_document(
        self, doc_uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
    ) -> TextDocument:
        return SyncedDocument(doc_uri, source, version, language_id, position_codec=self.position_codec)


def replaced(text: str, place: types.Range, new: str, codec: PositionCodec) -> str:
    """``text`` with ``new`` in a range of it."""
    start = offset_of(text, place.start, codec)
    end = max(start, offset_of(text, place.end, codec))
    return f"{text[:start]}{new}{text[end:]}"


def offset_of(text: str, position: types.Position, codec: PositionCodec) -> int:
    """The index of a client's position; one behind a line's end is that end, one behind the last line the text's."""
    start, found = 0, _LINE_END.search(text)
    for _ in range(position.line):
        if found is None:
            return len(text)
        start = found.end()
        found = _LINE_END.search(text, start)
    end = found.start() if found is not None else len(text)
    line = text[start:end]
    if line.isascii() or codec.encoding == types.PositionEncodingKind.Utf32:
        return start + min(position.character, len(line))
    units = 0
    for index, character in enumerate(line):
        if units >= position.character:
            return start + index
        units += codec.client_num_units(character)
    return end
