"""``# rlm:`` directives: which comment lines have one, and which characters it spans."""

from __future__ import annotations

import pytest
from rlm_core.source.directives import Directives, find_directives
from rlm_core.source.parsed import ParsedSource


def directives_of(text: str, language: str = "python") -> Directives:
    source = text.encode()
    return find_directives(ParsedSource(source, language))


def test_lines_that_hold_only_a_comment_are_separate_from_trailing_comments() -> None:
    found = directives_of("# rlm: sizes M=4\n# plain\nx = 1  # rlm: ignore\n")
    assert {row: directive and directive.keyword for row, directive in found.rows.items()} == {0: "sizes", 1: None}
    assert [directive.text for directive in found.trailing] == ["ignore"]
    assert [directive.row for directive in found] == [0, 2]


@pytest.mark.parametrize(
    "text",
    ['s = "# rlm: ignore"\n', '"""\n# rlm: ignore\n"""\n', "# see rlm: ignore\n", "x = 1\n"],
)
def test_strings_and_other_comments_are_not_directives(text: str) -> None:
    assert list(directives_of(text)) == []


def test_spans_are_in_bytes_and_agree_with_lines_and_columns() -> None:
    text = "/* µ\n   * rlm: latency < 1 µs, memory */\nint f(void) { return 0; }\n"
    [directive] = directives_of(text, "c")
    assert directive.text == "latency < 1 µs, memory"
    source = text.encode()
    for span, expected in (
        (directive.span(), "latency < 1 µs, memory"),
        (directive.span(16), "memory"),
        (directive.whole, "* rlm: latency < 1 µs, memory"),
    ):
        assert source[span.start_byte : span.end_byte].decode() == expected
        line = source.split(b"\n")[span.start_line]
        assert line[span.start_column : span.end_column].decode() == expected


def test_an_empty_directive_has_an_empty_keyword() -> None:
    [directive] = directives_of("# rlm:\n")
    assert (directive.keyword, directive.text) == ("", "")
