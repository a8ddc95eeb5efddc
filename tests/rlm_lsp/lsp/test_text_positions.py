"""Offsets become positions in the client's units and back, and ranges are replaced, with the protocol's line ends."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types
from lsprotocol.types import Position
from pygls.workspace import PositionCodec
from rlm_lsp.lsp.text_positions import Lines, offset_of, replace_range

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
TEXT = "x = '😀é'  # µ\nsecond"


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 12), ("utf-16", 9), ("utf-32", 8)])
def test_columns_count_in_the_clients_units(encoding: str, character: int) -> None:
    offset = TEXT.encode().index(b"  #")
    assert Lines(TEXT.encode(), PositionCodec(encoding)).position(offset) == Position(0, character)


def test_only_the_protocols_line_ends_end_a_line() -> None:
    source = "a\x0cb\u2028c\r\nd\re\nf".encode()
    lines = Lines(source, PositionCodec("utf-8"))
    assert [lines.line_of(source.index(letter)) for letter in (b"a", b"b", b"c", b"d", b"e", b"f")] == [
        0,
        0,
        0,
        1,
        2,
        3,
    ]


def test_the_end_of_a_line_leaves_out_trailing_spaces_and_line_ends() -> None:
    source = b"class A {  \r\n}\n"
    assert Lines(source, PositionCodec("utf-8")).end_of_line(3) == 9
    assert Lines(b"abc", PositionCodec("utf-8")).end_of_line(1) == 3


@given(st.text(max_size=60).map(lambda text: text.replace("\r", "").replace("\0", "")))
def test_utf32_positions_are_character_indices(text: str) -> None:
    source = text.encode(errors="replace")
    lines = Lines(source, PositionCodec("utf-32"))
    decoded = source.decode()
    for index in range(len(decoded) + 1):
        before = decoded[:index]
        expected = Position(before.count("\n"), len(before.rsplit("\n", 1)[-1]))
        assert lines.position(len(before.encode())) == expected


def position(text: str, offset: int, encoding: str) -> types.Position:
    """Where a client says that an offset is; written for clarity, not for speed."""
    lines = re.split(r"\r\n|\n|\r", text[:offset])
    return types.Position(len(lines) - 1, UNITS[encoding](lines[-1]))


def is_place(text: str, offset: int) -> bool:
    """Whether an editor can have its cursor there: not inside a CR LF."""
    return text[offset - 1 : offset + 1] != "\r\n" if offset else True


@given(TEXTS, EDITS, ENCODINGS)
@settings(max_examples=300)
def test_replaced_ranges_keep_the_servers_copy_equal(
    text: str, edits: list[tuple[int, int, str]], encoding: str
) -> None:
    codec, copy = PositionCodec(encoding), text
    for where, length, new in edits:
        places = [offset for offset in range(len(text) + 1) if is_place(text, offset)]
        first = where % len(places)
        start, end = places[first], places[min(first + length, len(places) - 1)]
        place = types.Range(position(text, start, encoding), position(text, end, encoding))
        text = text[:start] + new + text[end:]
        copy = replace_range(copy, place, new, codec)
        assert copy == text


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
