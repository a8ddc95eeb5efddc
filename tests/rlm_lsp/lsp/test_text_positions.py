"""Byte offsets become positions in the client's units, with the protocol's line ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position
from pygls.workspace import PositionCodec
from rlm_lsp.lsp.text_positions import Lines

pytestmark = pytest.mark.timeout(60)

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
