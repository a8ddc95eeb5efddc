"""Files analysed again after an edit: the result of a fresh reader, for less work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.source import incremental
from rlm_core.source.call_graph import CallGraph
from rlm_core.source.incremental import PythonFile, PythonReader
from rlm_core.source.module_index import index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_functions, find_units
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


def parsed(source: str) -> ParsedSource:
    return ParsedSource(source.encode(), "python")


def content(file: PythonFile) -> object:
    """All that others use; positions matter for ``units`` alone."""
    index = file.index
    texts = {name: unit.text for name, unit in index.units.items()}
    return file.units, texts, index.bases, index.imports, index.calls, index.by_name


@given(st.data())
def test_after_any_edits_a_text_is_read_as_by_a_fresh_reader(data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(PIECES), max_size=6)))
    reader = PythonReader()
    for _ in range(data.draw(st.integers(1, 6))):
        fresh = PythonReader().read(parsed(text), "a.b")
        assert content(reader.read(parsed(text), "a.b", name="n")) == content(fresh)
        first = data.draw(st.integers(0, len(text)))
        last = data.draw(st.integers(first, min(len(text), first + 20)))
        text = text[:first] + data.draw(st.sampled_from((*PIECES, *BROKEN, TORCH))) + text[last:]


@given(st.lists(st.sampled_from((*PIECES, *BROKEN, TORCH)), max_size=6))
def test_units_and_index_are_those_of_the_whole_file(pieces: list[str]) -> None:
    source = parsed("".join(pieces))
    file = PythonReader().read(source, "a.b", is_package=True)
    assert file.units == find_units(source)
    assert file.index == index_module(source, "a.b", is_package=True)


def test_only_the_statement_that_changed_is_analysed(monkeypatch: pytest.MonkeyPatch) -> None:
    analysed: list[str] = []

    def watched(source: bytes, root: Node) -> list[Unit]:
        analysed.append(source[root.start_byte : root.end_byte].decode())
        return find_functions(source, root)

    monkeypatch.setattr(incremental, "find_functions", watched)
    text = "".join(f"def f{number}():\n    return {number}\n" for number in range(20))
    reader = PythonReader()
    reader.read(parsed(text), name="n")
    # A version with a syntax error in between is forgotten.
    reader.read(parsed(text.replace("return 7", "return (7")), name="n")
    analysed.clear()
    reader.read(parsed(text.replace("return 7", "return 'ß' * 7")), name="n")
    assert analysed == ["def f7():\n    return 'ß' * 7"]


def test_an_indented_function_is_another_text() -> None:
    reader = PythonReader()
    text = PIECES[0] + 2 * PIECES[2]
    reader.read(parsed(text), "a.b", name="n")
    body = text.rindex("       return")
    text = f"{text[:body]} {PIECES[0]}{text[body + 4 :]}"
    assert content(reader.read(parsed(text), "a.b", name="n")) == content(PythonReader().read(parsed(text), "a.b"))


def test_equal_functions_in_two_places_are_both_there() -> None:
    first, second = PythonReader().read(parsed(PIECES[0] * 2)).units
    assert (first.span.start_line, second.span.start_line) == (0, 2)
    assert first.text == second.text


def test_what_is_called_is_found_in_the_index() -> None:
    file = PythonReader().read(parsed("".join(PIECES[:3])))
    graph = CallGraph()
    called = {
        unit.qualname: [callee.text.split("(")[0] for callee in graph.callees(file.index, unit)] for unit in file.units
    }
    assert called["f"] == ["@cache\ndef g"]
    assert called["A.m"] == ["    def n", "def f", "@cache\ndef g"]


def test_only_the_latest_files_are_remembered() -> None:
    reader = PythonReader()
    for number in range(30):
        reader.read(parsed("x = 1\n"), name=number)
    assert len(reader._versions) == incremental._REMEMBERED
