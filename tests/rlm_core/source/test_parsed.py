"""A parsed version of a text: parsed once, and after an edit the same tree for less work."""

from __future__ import annotations

import contextlib
import gc
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import TooComplexError
from rlm_core.source import languages
from rlm_core.source import parsed as parsing
from rlm_core.source.parsed import ParsedSource, imported_names, name_text
from tree_sitter import Language, Node, Parser

PIECES = (
    "def f(x):\n    return g(x)\n",
    "class A(B):\n    def m(self):\n        return f'{self!r:>{3}}' + f(1)\n\n    x = 'ä'\n",
    "match x:\n    case [1, *rest]:\n        pass\n",
    "if x:\n    # a comment\n    y = (1,\n  2)\nelif y:\n\tz = 3\n",
    '"""A text\nof lines"""\n',
    "x = 1; y = \\\n  2\n",
)
EDITS = (*PIECES, "(", ")", '"""', "    ", "else:\n", "ü", "\r\n", "\n", "# ", "", "b", " = 1")


def nodes(node: Node) -> list[object]:
    """A tree with all its positions."""
    return [node.type, node.start_byte, node.end_byte, node.start_point, node.end_point, *map(nodes, node.children)]


@given(st.data())
def test_the_tree_after_an_edit_is_that_of_a_text_parsed_from_scratch(data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(PIECES), max_size=5)))
    previous = ParsedSource(text.encode(), "python")
    assert previous.root is not None
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, len(text)))
        last = data.draw(st.integers(first, min(len(text), first + 20)))
        text = text[:first] + data.draw(st.sampled_from(EDITS)) + text[last:]
        version = ParsedSource(text.encode(), "python")
        version.follow(previous)
        assert nodes(version.root) == nodes(ParsedSource(text.encode(), "python").root)
        previous = version


def test_a_version_is_parsed_once_and_only_when_its_tree_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsers: list[Parser] = []

    def counted(grammar: Language) -> Parser:
        parsers.append(Parser(grammar))
        return parsers[-1]

    monkeypatch.setattr(parsing, "Parser", counted)
    first, second = ParsedSource(b"x = 1\n", "python"), ParsedSource(b"x = 12\n", "python")
    second.follow(first)
    assert len(parsers) == 0
    assert first.root == first.root
    assert len(first.comments()) == 0
    assert len(parsers) == 1
    second.follow(first)
    assert second.root.end_byte == 7
    assert len(parsers) == 2


def test_a_tree_of_another_grammar_is_not_reused() -> None:
    tagged, plain = ParsedSource(b"<?php f(); ?>", "php"), ParsedSource(b"f();", "php")
    assert tagged.root.type == "program"
    plain.follow(tagged)
    assert nodes(plain.root) == nodes(ParsedSource(b"f();", "php").root)


def test_imports_have_their_module_name_and_alias() -> None:
    source = b"import a.b, c as d\nif x:\n    from .e import f as g, h\ndef i():\n    import j\n"
    assert sorted(imported_names(ParsedSource(source, "python").root)) == [
        ("", "a.b", "a.b"),
        ("", "c", "d"),
        (".e", "f", "g"),
        (".e", "h", "h"),
    ]


@pytest.mark.parametrize(
    ("language", "text"), [("kotlin", "/*" * 20_000), ("kotlin", "$" * 40_000), ("python", "(" * 10**6)]
)
def test_no_text_is_parsed_for_long(language: str, text: str) -> None:
    began = time.process_time()
    parsed = ParsedSource(text.encode(), language)
    with contextlib.suppress(TooComplexError):
        assert parsed.root.end_byte == len(text)
    assert isinstance(parsed.comments(), list)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", ["x=a" + ".b" * 20_000, "x=a" + ".b()" * 20_000])
def test_a_text_whose_tree_takes_long_to_read_is_too_complex(text: str) -> None:
    parsed = ParsedSource(text.encode(), "python")
    with pytest.raises(TooComplexError, match="too complex to analyse: thousands of signs without operands"):
        parsed.root  # noqa: B018
    assert parsed.comments() == []


def test_a_statement_that_is_too_complex_is_left_out_of_a_file() -> None:
    text = "x=a" + ".b()" * 20_000
    source = f"def f(n):\n    {text}\n\ndef g(n):\n    return n\n".encode()
    file = ParsedSource(source, "python", may_leave_out=True)
    assert [name_text(node.child_by_field_name("name")) for node in file.root.children] == ["f", "g"]
    assert file.has_error
    assert not file.root.has_error


@pytest.mark.parametrize(
    "text",
    ["x = [" + "1, " * 40_000 + "]", "x = " + "-" * 20_000 + "1", "x = a" + ".b(1)" * 2_000, "#" + "-" * 40_000],
)
def test_long_literals_and_comments_have_a_tree(text: str) -> None:
    assert not ParsedSource(text.encode(), "python").root.has_error


def test_a_text_that_is_too_complex_stays_so() -> None:
    parsed = ParsedSource(b"/*" * 20_000, "kotlin")
    for _ in range(2):
        with pytest.raises(TooComplexError, match=r"too complex to analyse: parsing takes more than 1\.1 s"):
            parsed.root  # noqa: B018
    assert parsed.comments() == []
    later = ParsedSource(b"fun f() = 1\n", "kotlin")
    later.follow(parsed)
    assert not later.root.has_error


def test_the_nodes_of_a_long_text_have_their_texts() -> None:
    source = "def fµ(x):\n    return 'é'\n".encode() * 2_000
    root = ParsedSource(source, "python").root
    assert root.text == source
    assert {name_text(node.child_by_field_name("name")) for node in root.named_children} == {"fµ"}


def long_text(number: int) -> bytes:
    """A Python text of many pieces."""
    return b"".join(b"def f%d_%d(items):\n    return %r\n" % (number, i, "\u00e4" * (i % 300)) for i in range(200))


def test_a_long_text_has_the_tree_and_the_texts_of_its_nodes() -> None:
    source = long_text(0)
    root = ParsedSource(source, "python").root
    assert str(root) == str(Parser(languages.grammar("python")).parse(source).root_node)
    for node in root.children:
        assert node.text == source[node.start_byte : node.end_byte]
    assert root.text == source


def test_threads_parse_long_texts_at_the_same_time() -> None:
    texts = [long_text(number) for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda source: ParsedSource(source, "python").root, texts * 4))
    for source, root in zip(texts * 4, found, strict=True):
        assert root.children[-1].text == source[root.children[-1].start_byte :].rstrip(b"\n")
        assert len(root.children) == 200


def test_a_long_text_that_is_gone_leaves_nothing_in_memory() -> None:
    texts = [long_text(number) for number in range(30)]
    assert ParsedSource(texts[0], "python").root.end_byte
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for source in texts:
            assert ParsedSource(source, "python").root.end_byte
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < len(texts[0]) < sum(map(len, texts)) / 20


def test_parsing_a_long_text_again_and_again_leaves_no_object() -> None:
    def parse(times: int) -> None:
        for number in range(times):
            parsed = ParsedSource(long_text(number % 7), "python")
            assert parsed.root.children[3].text

    parse(20)
    gc.collect()
    before = sys.getallocatedblocks()
    parse(100)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100
