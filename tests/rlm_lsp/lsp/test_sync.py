"""The server's copy of a text stays the client's, whatever is typed and in whatever units positions are counted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from pygls.workspace import PositionCodec, Workspace
from rlm_lsp.lsp.sync import SyncedDocument, SyncedWorkspace, offset_of
from rlm_lsp.lsp.text_positions import Lines

pytestmark = pytest.mark.timeout(60)

PIECES = ["a", "bc ", "ä", "日", "😀", "\t", "\n", "\r\n", "\r", "\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\u2029"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])
UNITS = {
    "utf-8": lambda text: len(text.encode()),
    "utf-16": lambda text: len(text.encode("utf-16-le")) // 2,
    "utf-32": len,
}
EDITS = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 6), TEXTS), min_size=1, max_size=12)


def position(text: str, offset: int, encoding: str) -> types.Position:
    """Where a client says that an offset is; written for clarity, not for speed."""
    lines = re.split(r"\r\n|\n|\r", text[:offset])
    return types.Position(len(lines) - 1, UNITS[encoding](lines[-1]))


def is_place(text: str, offset: int) -> bool:
    """Whether an editor can have its cursor there: not inside a CR LF."""
    return text[offset - 1 : offset + 1] != "\r\n" if offset else True


def document(text: str, encoding: str) -> SyncedDocument:
    return SyncedDocument("file:///a.py", text, 1, "python", position_codec=PositionCodec(encoding))


@given(TEXTS, EDITS, ENCODINGS)
@settings(max_examples=300)
def test_edits_of_ranges_keep_the_servers_copy_equal(
    text: str, edits: list[tuple[int, int, str]], encoding: str
) -> None:
    synced = document(text, encoding)
    for where, length, new in edits:
        places = [offset for offset in range(len(text) + 1) if is_place(text, offset)]
        first = where % len(places)
        start, end = places[first], places[min(first + length, len(places) - 1)]
        place = types.Range(position(text, start, encoding), position(text, end, encoding))
        text = text[:start] + new + text[end:]
        synced.apply_change(types.TextDocumentContentChangePartial(place, new))
        assert synced.source == text


@given(TEXTS, ENCODINGS)
def test_positions_go_there_and_back(text: str, encoding: str) -> None:
    codec = PositionCodec(encoding)
    lines = Lines(text.encode(), codec)
    for offset in (offset for offset in range(len(text) + 1) if is_place(text, offset)):
        sent = lines.position(len(text[:offset].encode()))
        assert sent == position(text, offset, encoding)
        assert offset_of(text, sent, codec) == offset


def test_positions_behind_an_end_are_that_end() -> None:
    codec = PositionCodec("utf-16")
    assert offset_of("ab\r\ncd", types.Position(0, 99), codec) == 2
    assert offset_of("ä\r\ncd", types.Position(0, 99), codec) == 1
    assert offset_of("ab\r\ncd", types.Position(1, 99), codec) == 6
    assert offset_of("ab\r\ncd", types.Position(9, 0), codec) == 6


def test_a_whole_text_takes_the_place_of_the_one_before() -> None:
    synced = document("a\nb", "utf-16")
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
