"""Text from a workspace says what it says and does nothing: in a terminal and in Markdown."""

from __future__ import annotations

import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rlm_lsp.rendering.escaping import code_span, markdown, message, printable

HOSTILE = [
    "x](http://a) ![p](https://evil.invalid/p.png)",
    "<img src=https://evil.invalid/p.png>",
    "a` ![p](https://evil.invalid/p.png) `b",
    "``` ![p](https://evil.invalid/p.png)",
    "https://evil.invalid",
    "www.evil.invalid",
    "mail@evil.invalid",
    "a | b | **c** | _d_ | ~~e~~ | &lt; | \\",
    "line\n# heading\n- item",
]
_LINKED = re.compile(r"(?i)(?:https?|ftp)://|mailto:|www\.|\w@\w")
_TEXTS = st.text("ab `|*_[]()<>!&#~\\\n:/.-+\t\x1b\u202e") | st.sampled_from(HOSTILE)


class _Shown(HTMLParser):
    """The text and the tags of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags = "", set[str]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(source: str) -> _Shown:
    return _Shown(MarkdownIt("gfm-like", {"linkify": False}).render(source))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain µ → 1\u202fms 日本", "plain µ → 1\u202fms 日本"),
        ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
        ("a\r\nb\tc", r"a\x0d\x0ab\x09c"),
        ("\x9b2J", r"\x9b2J"),
        ("exe\u202etxt\u2066", r"exe\u202etxt\u2066"),
        ("a\u2028b", r"a\u2028b"),
        ("\udcff\ud800", r"\xff\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_characters_that_control_a_terminal_are_written_out(text: str, expected: str) -> None:
    assert printable(text) == expected


@given(st.text())
def test_every_text_can_be_printed_on_one_line(text: str) -> None:
    result = printable(text)
    result.encode()
    assert not {unicodedata.category(c) for c in result} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert printable(result) == result


@given(_TEXTS)
def test_markdown_shows_the_text_as_it_is(text: str) -> None:
    page = shown(f"x {markdown(text)} x")
    assert page.tags <= {"p"}
    assert " ".join(page.text.split()) == " ".join(f"x {printable(text)} x".split())


@given(_TEXTS)
@example("\\|")
def test_a_code_span_shows_the_text_as_it_is(text: str) -> None:
    page = shown(f"x {code_span(text)} x")
    assert page.tags <= {"p", "code"}
    # Outside a table a code span shows the backslash before a vertical bar.
    text_of_page = page.text.replace("\\|", "|") if "code" in page.tags else page.text
    assert " ".join(text_of_page.split()) == " ".join(f"x {printable(text).strip()} x".split())


@given(_TEXTS)
def test_a_cell_of_a_table_stays_one_cell(text: str) -> None:
    for cell in (markdown(text), code_span(text)):
        page = shown(f"| a | b |\n|---|---|\n| {cell} | end |")
        assert page.tags <= {"table", "thead", "tbody", "tr", "th", "td", "code"}
        assert [part.strip() for part in page.text.split("\n") if part.strip()][-1] == "end"


def is_inert(source: str) -> bool:
    """Whether Markdown has neither a link, an image, HTML nor text that editors make a link."""
    # What an escape yields stays a token of its own, so that text alone is what an editor would look for links in.
    blocks = MarkdownIt("gfm-like", {"linkify": False}).disable("text_join").parse(source)
    tokens = [token for block in blocks for token in (block, *(block.children or ()))]
    types = {token.type for token in tokens}
    texts = [token.content for token in tokens if token.type == "text"]
    return types.isdisjoint({"link_open", "image", "html_inline", "html_block"}) and not any(map(_LINKED.search, texts))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_is_made_a_link_an_image_or_html(text: str) -> None:
    assert is_inert(f"x {markdown(text)} {code_span(text)} x")


@pytest.mark.parametrize("text", [*HOSTILE[4:7], "[x](http://a)", "![p](a.png)", "x <b>"])
def test_what_is_not_escaped_is_seen_to_be_active(text: str) -> None:
    assert not is_inert(text)


@pytest.mark.parametrize(
    "statement", ["a | b", r"re.match(r'\|![p](https://evil.invalid/p.png)', s)", r"a\\|b", "\\|`x`"]
)
def test_a_bar_ends_no_cell_whether_or_not_a_parser_counts_backslashes(statement: str) -> None:
    span = code_span(statement)
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", span)


def test_a_message_that_pops_up_has_no_link() -> None:
    assert message("unknown [Fix](command:quit)\x1b[2J\n") == r"unknown [Fix] (command:quit)\x1b[2J\x0a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("https://a.b", r"https\://a.b"), ("see WWW.a.b", r"see WWW\.a.b"), ("me@a.b", r"me\@a.b")],
)
def test_an_address_is_not_made_a_link(text: str, expected: str) -> None:
    assert markdown(text) == expected
