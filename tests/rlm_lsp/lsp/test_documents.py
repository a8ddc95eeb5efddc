"""Open documents: languages, positions, and callees as they stand in the editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from pygls.workspace import PositionCodec, TextDocument
from rlm_lsp.lsp.documents import Analysis, Documents

pytestmark = [pytest.mark.timeout(30), pytest.mark.asyncio]

CODEC = PositionCodec("utf-16")


def opened(documents: Documents, path: Path, text: str, version: int = 1, language_id: str = "python") -> str:
    document = TextDocument(path.as_uri(), text, version, language_id)
    return documents.put(document).uri


async def analysed(documents: Documents, uri: str) -> Analysis:
    analysis = await documents.analysis(uri, CODEC)
    assert analysis is not None
    return analysis


@pytest.mark.parametrize(
    ("name", "language_id", "language"),
    [
        ("a.py", "python", "python"),
        ("a.tsx", "typescriptreact", "typescript"),
        ("a.jsx", "javascriptreact", "javascript"),
        ("a.txt", "cpp", "cpp"),
        ("a.py", "", "python"),
        ("a.py", "unheard-of", "python"),
        ("a.txt", "plaintext", None),
    ],
)
async def test_the_language_is_the_clients_else_the_suffixs(
    tmp_path: Path, name: str, language_id: str, language: str | None
) -> None:
    documents = Documents()
    assert documents.put(TextDocument((tmp_path / name).as_uri(), "x", 1, language_id)).language == language
    documents.close()


async def test_a_document_outside_the_file_system_is_analysed() -> None:
    documents = Documents()
    uri = documents.put(TextDocument("untitled:Untitled-1", "def f():\n    pass\n", 1, "python")).uri
    assert [unit.analysed.unit.qualname for unit in (await analysed(documents, uri)).units] == ["f"]
    documents.close()


async def test_hints_stand_after_the_signature(tmp_path: Path) -> None:
    documents = Documents()
    uri = opened(documents, tmp_path / "a.py", "def näme😀(\n    a: str = '😀',\n) -> None:\n    pass\n")
    assert (await analysed(documents, uri)).units[0].header_lines == range(3)
    uri = opened(documents, tmp_path / "b.py", "x = '''\x0c'''\ndef f(a='😀'): return a\n")
    hint = (await analysed(documents, uri)).units[0].hint
    assert (hint.line, hint.character) == (1, len("def f(a='xx'):"))
    uri = opened(documents, tmp_path / "a.java", "// 😀\nclass Solution {  // here\n}\n", language_id="java")
    hint = (await analysed(documents, uri)).units[0].hint
    assert (hint.line, hint.character) == (1, len("class Solution {  // here"))
    documents.close()


async def test_an_analysis_is_shared_until_a_document_changes(tmp_path: Path) -> None:
    documents = Documents()
    uri = opened(documents, tmp_path / "a.py", "def f(): pass\n")
    first = await analysed(documents, uri)
    assert await analysed(documents, uri) is first
    opened(documents, tmp_path / "a.py", "def g(): pass\n", version=2)
    assert (await analysed(documents, uri)).document.version == 2
    documents.close()


async def test_a_callee_counts_as_it_stands_in_the_editor(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for name, text in (
        ("__init__", ""),
        ("a", "from .b import g\ndef f(): return g()\n"),
        ("b", "def g(): return 1\n"),
    ):
        (package / f"{name}.py").write_text(text)
    documents = Documents()
    caller = opened(documents, package / "a.py", (package / "a.py").read_text())
    assert (await analysed(documents, caller)).units[0].analysed.code.callees[0].text == "def g(): return 1"
    callee = opened(documents, package / "b.py", "def g(): return 1\n")
    assert not await documents.dependents_changed(callee, CODEC)
    opened(documents, package / "b.py", "def g(): return sum(range(10))\n", version=2)
    assert await documents.dependents_changed(callee, CODEC)
    assert (await analysed(documents, caller)).units[0].analysed.code.callees[
        0
    ].text == "def g(): return sum(range(10))"
    documents.remove(callee)
    assert (await analysed(documents, caller)).units[0].analysed.code.callees[0].text == "def g(): return 1"
    documents.close()


async def test_closed_unknown_and_huge_documents_have_no_units(tmp_path: Path) -> None:
    documents = Documents()
    assert await documents.analysis("file:///nowhere.py", CODEC) is None
    text = opened(documents, tmp_path / "a.txt", "x", language_id="plaintext")
    assert await documents.analysis(text, CODEC) is None
    huge = opened(documents, tmp_path / "huge.py", "x = 1\n" * 500_000)
    assert await documents.analysis(huge, CODEC) is None
    documents.close()
