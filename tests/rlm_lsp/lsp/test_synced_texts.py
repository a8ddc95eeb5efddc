"""Texts of the client: edited where it says."""

from __future__ import annotations

from lsprotocol import types
from pygls.workspace import PositionCodec, Workspace
from rlm_lsp.lsp.synced_texts import SyncedDocument, SyncedWorkspace

CODEC = PositionCodec("utf-16")


def test_a_change_replaces_a_range_or_the_whole_text() -> None:
    synced = SyncedDocument("file:///a.py", "a\nb", 1, "python", position_codec=CODEC)
    place = types.Range(types.Position(1, 0), types.Position(1, 1))
    synced.apply_change(types.TextDocumentContentChangePartial(place, "d"))
    assert synced.source == "a\nd"
    synced.apply_change(types.TextDocumentContentChangeWholeDocument("c"))
    assert synced.source == "c"


def test_the_workspace_keeps_its_folders_and_its_encoding() -> None:
    folder = types.WorkspaceFolder("file:///one", "one")
    before = Workspace("file:///one", workspace_folders=[folder], position_encoding=types.PositionEncodingKind.Utf8)
    after = SyncedWorkspace.like(before)
    assert (after.root_uri, dict(after.folders)) == ("file:///one", {"file:///one": folder})
    after.put_text_document(types.TextDocumentItem("file:///one/a.py", "python", 1, "ä\x0cb\n"))
    place = types.Range(types.Position(0, 3), types.Position(0, 4))
    change = types.TextDocumentContentChangePartial(place, "x")
    after.update_text_document(types.VersionedTextDocumentIdentifier(2, "file:///one/a.py"), change)
    found = after.get_text_document("file:///one/a.py")
    assert (found.source, found.version) == ("ä\x0cx\n", 2)
