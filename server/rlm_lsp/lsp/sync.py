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
    first = _line_start(text, 0, place.start.line)
    last = _line_start(text, first, place.end.line - place.start.line)
    start = _offset_in_line(text, first, place.start.character, codec)
    end = max(start, _offset_in_line(text, last, place.end.character, codec))
    return f"{text[:start]}{new}{text[end:]}"


def offset_of(text: str, position: types.Position, codec: PositionCodec) -> int:
    """The index of a client's position; one behind a line's end is that end, one behind the last line the text's."""
    return _offset_in_line(text, _line_start(text, 0, position.line), position.character, codec)


def _line_start(text: str, start: int, lines: int) -> int:
    """The index of a line so many lines behind the one at ``start``; behind the last line the text's end."""
    if "\r" in text:
        for _ in range(lines):
            found = _LINE_END.search(text, start)
            if found is None:
                return len(text)
            start = found.end()
        return start
    # With each edit of a long file tens of thousands of lines are passed over.
    for _ in range(lines):
        start = text.find("\n", start) + 1
        if not start:
            return len(text)
    return start


def _offset_in_line(text: str, start: int, character: int, codec: PositionCodec) -> int:
    found = _LINE_END.search(text, start)
    end = found.start() if found is not None else len(text)
    line = text[start:end]
    if line.isascii() or codec.encoding == types.PositionEncodingKind.Utf32:
        return start + min(character, len(line))
    units = 0
    for index, one in enumerate(line):
        if units >= character:
            return start + index
        units += codec.client_num_units(one)
    return end
