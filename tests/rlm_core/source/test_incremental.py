"""Files read anew after an edit: always what a fresh reader finds, for less work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.source import incremental as reader
from rlm_core.source.call_graph import CallGraph, index_module
from rlm_core.source.incremental import Read, Reader
from rlm_core.source.units import find_units
from rlm_core.source.units.python import find_python
from rlm_core.types import Unit
from tree_sitter import Node

PIECES = (
    "def f(x):\n    return g(x)\n",
    "@cache\ndef g(x):\n    def inner():\n        return f(x)\n    return inner\n",
    "class A(B):\n    def m(self):\n        return self.n() + f(1)\n\n    def n(self):\n        return 'ä'\n",
    "if x:\n    def f(y):\n        return y\nelse:\n    import os as o\n",
    "from .other import g as h\n",
    "x = 1; y = 'é\\n'\n",
    "# a comment\n\n",
    '"""A text\nof lines"""\n',
    "async def late():\n    await h()\n",
)
BROKEN = ("def broken(:\n", "(", '"""', "    ", "else:\n", "\tx = 1\n", "ü", "\r\n", "")
TORCH = "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


def told(read: Read) -> object:
    """All that others use; where a unit stands matters for ``units`` alone."""
    index = read.index
    texts = {name: unit.text for name, unit in index.units.items()}
    return read.units, texts, index.bases, index.imports, index.calls, index.by_name


@given(st.data())
def test_after_any_edits_a_text_is_read_as_by_a_fresh_reader(data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(PIECES), max_size=6)))
    kept = Reader()
    for _ in range(data.draw(st.integers(1, 6))):
        assert told(kept.read(text.encode(), "a.b", name="n")) == told(Reader().read(text.encode(), "a.b"))
        first = data.draw(st.integers(0, len(text)))
        last = data.draw(st.integers(first, min(len(text), first + 20)))
        text = text[:first] + data.draw(st.sampled_from(PIECES + BROKEN)) + text[last:]


@given(st.lists(st.sampled_from((*PIECES, *BROKEN, TORCH)), max_size=6))
def test_units_and_index_are_those_of_the_whole_file(pieces: list[str]) -> None:
    source = "".join(pieces).encode()
    found = Reader().read(source, "a.b", is_package=True)
    assert found.units == find_units(source, "python")
    assert found.index == index_module(source, "a.b", is_package=True)


def test_only_the_statement_that_changed_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    parsed: list[bytes] = []
    parse = reader._parse

    def counted(source: bytes) -> Node:
        parsed.append(source)
        return parse(source)

    def watched(source: bytes, root: Node) -> list[Unit]:
        read.append(source[root.start_byte : root.end_byte].decode())
        return find_python(source, root)

    monkeypatch.setattr(reader, "find_python", watched)
    monkeypatch.setattr(reader, "_parse", counted)
    text = "".join(f"def f{number}():\n    return {number}\n" for number in range(20))
    kept = Reader()
    kept.read(text.encode(), name="n")
    read.clear()
    kept.read(text.replace("return 7", "return (7").encode(), name="n")
    read.clear()
    parsed.clear()
    # The mistake between is forgotten.
    kept.read(text.replace("return 7", "return 'ß' * 7").encode(), name="n")
    assert read == ["def f7():\n    return 'ß' * 7"]
    assert parsed == ["def f7():\n    return 'ß' * 7\n".encode()]


def test_equal_functions_in_two_places_are_both_there() -> None:
    source = (PIECES[0] * 2).encode()
    first, second = Reader().read(source).units
    assert (first.span.start_line, second.span.start_line) == (0, 2)
    assert first.text == second.text


def test_what_is_called_is_found_in_the_index() -> None:
    found = Reader().read("".join(PIECES[:3]).encode())
    graph = CallGraph()
    called = {
        unit.qualname: [callee.text.split("(")[0] for callee in graph.callees(found.index, unit)]
        for unit in found.units
    }
    assert called["f"] == ["@cache\ndef g"]
    assert called["A.m"] == ["    def n", "def f", "@cache\ndef g"]


def test_no_more_versions_are_kept_than_need_be() -> None:
    kept = Reader()
    for number in range(30):
        kept.read(b"x = 1\n", name=number)
    assert len(kept._files) == reader._REMEMBERED
