"""Open documents: languages, positions, and callees as they are in the editor."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec, TextDocument
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.unit_facts import UnitFacts
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Unit
from rlm_lsp.lsp import urgent_lines
from rlm_lsp.lsp.document import Analysis, Document, locate
from rlm_lsp.lsp.documents import Documents
from rlm_lsp.lsp.text_positions import Lines

pytestmark = pytest.mark.timeout(30)

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
@pytest.mark.asyncio
async def test_the_language_is_the_clients_else_the_suffixs(
    tmp_path: Path, name: str, language_id: str, language: str | None
) -> None:
    documents = Documents()
    assert documents.put(TextDocument((tmp_path / name).as_uri(), "x", 1, language_id)).language == language
    documents.close()


@pytest.mark.asyncio
async def test_a_document_outside_the_file_system_is_analysed() -> None:
    documents = Documents()
    uri = documents.put(TextDocument("untitled:Untitled-1", "def f():\n    pass\n", 1, "python")).uri
    assert [unit.analysed.unit.qualname for unit in (await analysed(documents, uri)).units] == ["f"]
    documents.close()


@pytest.mark.asyncio
async def test_hints_are_after_the_signature(tmp_path: Path) -> None:
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


@pytest.mark.asyncio
async def test_an_analysis_is_shared_until_a_document_changes(tmp_path: Path) -> None:
    documents = Documents()
    uri = opened(documents, tmp_path / "a.py", "def f(): pass\n")
    first = await analysed(documents, uri)
    assert await analysed(documents, uri) is first
    opened(documents, tmp_path / "a.py", "def g(): pass\n", version=2)
    assert (await analysed(documents, uri)).document.version == 2
    documents.close()


@pytest.mark.asyncio
async def test_a_callee_counts_as_it_is_in_the_editor(tmp_path: Path) -> None:
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
    assert not await documents.settle(CODEC)
    opened(documents, package / "b.py", "def g(): return sum(range(10))\n", version=2)
    assert await documents.settle(CODEC) == {caller}
    assert not await documents.settle(CODEC)
    assert (await analysed(documents, caller)).units[0].analysed.code.callees[
        0
    ].text == "def g(): return sum(range(10))"
    documents.remove(callee)
    assert (await analysed(documents, caller)).units[0].analysed.code.callees[0].text == "def g(): return 1"
    documents.close()


@pytest.mark.asyncio
async def test_a_provisional_analysis_is_settled_later(tmp_path: Path) -> None:
    documents, text = Documents(), "def f(n):\n    return g(n)\n\n\ndef g(n):\n    return [n] * n\n"
    uri = opened(documents, tmp_path / "a.py", text)
    unsettled = await documents.analysis(uri, CODEC, provisional=True)
    assert unsettled is not None
    # Other files of the project may call the functions with sizes; they are read after the first hints.
    assert not unsettled.settled
    first = await analysed(documents, uri)
    assert first.settled
    assert first.codes() == unsettled.codes()
    assert await documents.analysis(uri, CODEC, provisional=True) is first
    opened(documents, tmp_path / "a.py", text.replace("[n]", "[n, n]"), version=2)
    second = await documents.analysis(uri, CODEC, provisional=True)
    assert second is not None
    assert not second.settled
    assert second.units[0].analysed.code is first.units[0].analysed.code
    assert "[n, n]" in second.units[1].analysed.code.text
    assert await documents.analysis(uri, CODEC, provisional=True) is second
    assert await documents.settle(CODEC) == {uri}
    third = await documents.analysis(uri, CODEC, provisional=True)
    assert third is await analysed(documents, uri)
    assert third.settled
    assert third.units[0].analysed.code != first.units[0].analysed.code
    assert third.units[1].analysed.code == second.units[1].analysed.code
    documents.close()


@pytest.mark.asyncio
async def test_closed_unknown_and_huge_documents_have_no_units(tmp_path: Path) -> None:
    documents = Documents()
    assert await documents.analysis("file:///nowhere.py", CODEC) is None
    text = opened(documents, tmp_path / "a.txt", "x", language_id="plaintext")
    assert await documents.analysis(text, CODEC) is None
    huge = opened(documents, tmp_path / "huge.py", "x = 1\n" * 500_000)
    assert await documents.analysis(huge, CODEC) is None
    documents.close()


NESTED = b"def outer(\n    a,\n):\n    def inner(): return a\n    return inner\n\n"


@pytest.mark.parametrize(
    ("line", "header", "around"),
    [
        (0, "outer", "outer"),
        (1, "outer", "outer"),
        (2, "outer", "outer"),
        (3, "outer.<locals>.inner", "outer.<locals>.inner"),
        (4, None, "outer"),
        (5, None, None),
    ],
)
def test_the_innermost_unit_at_a_line(line: int, header: str | None, around: str | None) -> None:
    lines = Lines(NESTED, PositionCodec())
    units = tuple(locate(unit, lines) for unit in Analyser().analyse(ParsedSource(NESTED, "python")))
    analysis = Analysis(Document("file:///a.py", None, "python", 1, NESTED), units)
    found = [analysis.unit_at(line), analysis.unit_around(line)]
    assert [unit.analysed.unit.qualname if unit is not None else None for unit in found] == [header, around]
    assert found[0] is None or found[0].hint >= types.Position(line, 0)


@pytest.mark.asyncio
async def test_nothing_is_kept_of_a_closed_document(tmp_path: Path) -> None:
    documents = Documents()
    uri = opened(documents, tmp_path / "a.py", "def f(n):\n    return n\n")
    parsed = weakref.ref((await analysed(documents, uri)).document.parsed)
    documents.remove(uri)
    # After it on the same thread.
    await analysed(documents, opened(documents, tmp_path / "b.py", "def g(n):\n    return n\n"))
    gc.collect()
    assert parsed() is None
    documents.close()


def slow_program() -> str:
    return "// rlm: program\nclass A { public static void main(String[] a) { int x = 0" + " + 1" * 60_000 + "; } }"


@pytest.mark.asyncio
async def test_a_long_text_does_not_delay_a_short_one(tmp_path: Path) -> None:
    documents = Documents()
    slow = asyncio.ensure_future(analysed(documents, opened(documents, tmp_path / "A.java", slow_program(), 1, "java")))
    await asyncio.sleep(0)
    quick = await analysed(documents, opened(documents, tmp_path / "a.py", "def f(n):\n    return n\n"))
    assert len(quick.units) == 1
    assert not slow.done()
    assert len((await slow).units) == 1
    documents.close()


@pytest.mark.asyncio
async def test_a_text_that_took_long_does_not_delay_others_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = Documents()
    monkeypatch.setattr("rlm_lsp.lsp.documents._QUICK_SECONDS", 0.0)
    uri = opened(documents, tmp_path / "a.py", "def f(n):\n    return n\n")
    await analysed(documents, uri)
    monkeypatch.undo()
    # The other thread is busy with something that is even longer.
    opened(documents, tmp_path / "A.java", slow_program(), 1, "java")
    longest = asyncio.ensure_future(analysed(documents, (tmp_path / "A.java").as_uri()))
    await asyncio.sleep(0)
    opened(documents, tmp_path / "a.py", "def f(n):\n    return n + 1\n", 2)
    again = asyncio.ensure_future(analysed(documents, uri))
    await asyncio.sleep(0)
    await analysed(documents, opened(documents, tmp_path / "b.py", "def g(n):\n    return n\n"))
    assert not longest.done()
    assert not again.done()
    assert len((await again).units) == 1
    documents.close()


@pytest.mark.asyncio
async def test_a_short_text_whose_modules_take_long_does_not_delay_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_lsp.lsp.documents._QUICK_SECONDS", 0.05)
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    names = [f"m{number}" for number in range(40)]
    for name in names:
        functions = (f"def {name}_{number}(n):\n    return [n * i for i in range(n)]\n" for number in range(300))
        (package / f"{name}.py").write_text("".join(functions))
    text = "".join(f"from .{name} import {name}_1\n" for name in names)
    text += "def f(n):\n" + "".join(f"    {name}_1(n)\n" for name in names)
    documents = Documents()
    uris = opened(documents, package / "a.py", text), opened(documents, tmp_path / "b.py", "def g(n):\n    return n\n")
    slow = asyncio.ensure_future(analysed(documents, uris[0]))
    await asyncio.sleep(0)
    quick = await analysed(documents, uris[1])
    assert len(quick.units) == 1
    assert not slow.done()
    assert len((await slow).units) == 1
    documents.close()


@pytest.mark.asyncio
async def test_an_analysis_of_another_language_holds_while_other_documents_are_edited(tmp_path: Path) -> None:
    documents = Documents()
    uri = opened(
        documents,
        tmp_path / "A.java",
        "// rlm: program\nclass A { public static void main(String[] a) { } }",
        1,
        "java",
    )
    before = await analysed(documents, uri)
    opened(documents, tmp_path / "a.py", "def f(n):\n    return n\n")
    assert await analysed(documents, uri) is before
    documents.invalidate()
    assert await analysed(documents, uri) is not before
    documents.close()


@pytest.mark.parametrize("lines", [None, range(1)], ids=["all units", "the units of some lines"])
@pytest.mark.parametrize("repeated", [300, 900], ids=["short", "long"])
@pytest.mark.asyncio
async def test_edits_of_other_documents_cannot_hold_an_analysis_up_for_ever(
    tmp_path: Path, lines: range | None, repeated: int
) -> None:
    documents = Documents()
    uri = opened(documents, tmp_path / "a.py", "def f(n):\n    return [n] * n\n" * repeated)
    waiting = asyncio.ensure_future(documents.analysis(uri, CODEC, provisional=lines is not None, lines=lines))
    version = 1
    while not waiting.done():
        version += 1
        opened(documents, tmp_path / "b.py", f"x = {version}\n", version)
        await asyncio.sleep(0)
    analysis = await waiting
    assert analysis is not None
    assert lines is not None or len(analysis.units) == repeated
    documents.close()


@pytest.mark.asyncio
async def test_edits_of_other_documents_cannot_hold_a_text_up_that_is_too_complex(tmp_path: Path) -> None:
    documents = Documents()
    uri = opened(documents, tmp_path / "a.py", "def f(n):\n    return n\n" * 5_001)
    waiting = asyncio.ensure_future(documents.analysis(uri, CODEC, provisional=True, lines=range(1)))
    version = 1
    while not waiting.done():
        version += 1
        opened(documents, tmp_path / "b.py", f"x = {version}\n", version)
        await asyncio.sleep(0)
    analysis = await waiting
    assert analysis is not None
    assert not analysis.units
    documents.close()


@pytest.mark.asyncio
async def test_lines_may_end_with_cr_alone(tmp_path: Path) -> None:
    documents = Documents()
    text = "def f(n):\r    # one\r    return [n] * n\r\rdef g(n):\r    return n\r"
    analysis = await analysed(documents, opened(documents, tmp_path / "a.py", text))
    assert [(unit.analysed.unit.qualname, unit.hint) for unit in analysis.units] == [
        ("f", types.Position(0, 9)),
        ("g", types.Position(4, 9)),
    ]
    documents.close()


@pytest.mark.asyncio
async def test_lines_that_a_request_waits_for_come_first_in_a_new_long_document_and_the_rest_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, gates = ({name: Event() for name in ("f0", "f1")} for _ in range(2))
    of_python = UnitFacts.of_python

    def gated(facts: UnitFacts, unit: Unit, *rest: Any) -> object:
        if unit.qualname in gates:
            reached[unit.qualname].set()
            assert gates[unit.qualname].wait(20)
        return of_python(facts, unit, *rest)

    monkeypatch.setattr(UnitFacts, "of_python", gated)
    documents = Documents()
    function = "def f{0}(items):\n    return sorted(items, key=lambda item: item[{0}])  # as in most long files\n\n\n"
    uri = opened(documents, tmp_path / "a.py", "".join(map(function.format, range(300))))
    whole = asyncio.ensure_future(analysed(documents, uri))

    def asked(function: int) -> asyncio.Task[Analysis | None]:
        lines = range(4 * function, 4 * function + 1)
        return asyncio.ensure_future(documents.analysis(uri, CODEC, provisional=True, lines=lines))

    names: list[list[str]] = []
    parts: list[Analysis] = []
    assert await asyncio.to_thread(reached["f0"].wait, 20)
    for function_asked in (150, 200):
        task = asked(function_asked)
        await asyncio.sleep(0)
        gates["f0"].set()
        part = await task  # the gate of f1 is closed
        assert part is not None
        assert not part.settled
        parts.append(part)
        names.append([unit.analysed.unit.qualname for unit in part.units])
    assert names == [["f0", "f150"], ["f0", "f150", "f200"]]
    assert not reached["f1"].is_set()
    gates["f1"].set()
    documents.resume(uri)
    found = await whole
    assert len(found.units) == 300
    assert parts[-1].codes() <= found.codes()
    assert await documents.settle(CODEC) == {uri}
    assert await asked(250) is found
    documents.close()


@pytest.mark.asyncio
async def test_a_request_that_is_repeated_before_the_rest_is_analysed_has_the_same_units(tmp_path: Path) -> None:
    documents = Documents()
    uri = opened(documents, tmp_path / "a.py", "def f(a):\n    return a\n\n\n" * 1000)
    whole, other = range(4000), range(3000, 3001)
    first = await documents.analysis(uri, CODEC, provisional=True, lines=whole)
    assert first is not None
    assert 0 < len(first.units) < 100
    assert await documents.analysis(uri, CODEC, provisional=True, lines=whole) is first
    second = await documents.analysis(uri, CODEC, provisional=True, lines=other)
    assert second is not None
    assert len(second.units) == len(first.units) + 1
    documents.close()


@pytest.mark.asyncio
async def test_a_provisional_analysis_can_be_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, analyse = Event(), Analyser.analyse

    def gated(*arguments: Any, **options: Any) -> list[AnalysedUnit]:
        assert gate.wait(20)
        return analyse(*arguments, **options)

    monkeypatch.setattr(Analyser, "analyse", gated)
    documents = Documents()
    uri = opened(documents, tmp_path / "a.py", "def f(a):\n    return a\n")
    await documents.provisional(uri)  # none was asked for
    analysis = asyncio.ensure_future(documents.analysis(uri, CODEC, provisional=True))
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(documents.provisional(uri))
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    gate.set()
    await waiting
    await asyncio.sleep(0)
    assert analysis.done()
    documents.close()


@pytest.mark.parametrize("end", ["edit", "close the document", "close"])
@pytest.mark.asyncio
async def test_what_ends_a_document_or_its_version_ends_the_wait_of_its_analysis(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urgent_lines, "_PAUSE_SECONDS", 3600.0)
    before = set(threading.enumerate())
    documents = Documents()
    text = "def f(a):\n    return a\n\n\n" * 1000
    uri = opened(documents, tmp_path / "a.py", text)
    part = await documents.analysis(uri, CODEC, provisional=True, lines=range(10))
    assert part is not None
    assert not part.settled
    if end == "edit":
        opened(documents, tmp_path / "a.py", text + "x = 1\n", 2)
        assert (await analysed(documents, uri)).settled
    elif end == "close the document":
        documents.remove(uri)
    documents.close()
    for thread in set(threading.enumerate()) - before:
        await asyncio.to_thread(thread.join, 20)
        assert not thread.is_alive() or "analysis" not in thread.name


@pytest.mark.asyncio
async def test_an_error_in_a_new_long_document_is_raised_for_all_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(facts: UnitFacts, unit: Unit, *rest: Any) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(UnitFacts, "of_python", fail)
    documents = Documents()
    uri = opened(documents, tmp_path / "a.py", "def f(a):\n    return a\n\n\n" * 1000)
    with pytest.raises(ZeroDivisionError):
        await documents.analysis(uri, CODEC, provisional=True, lines=range(10))
    documents.close()
