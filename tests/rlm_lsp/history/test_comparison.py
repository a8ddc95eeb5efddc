"""Units before and after an edit: which is which; the units of documents at HEAD, from real repositories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core.inference.adaptation.predictor import AdaptedPredictor
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Amount, CodeText, CostFacts, Query, WorkFacts
from rlm_lsp.history.comparison import COMMIT_SECONDS, NEW, HeadUnits, UnitDiff, unit_diffs

from tests.lsp.recording import commit
from tests.rlm_lsp.findings.support import LengthPredictor

pytestmark = pytest.mark.timeout(60)


def analysed(text: str, language: str = "python") -> list[AnalysedUnit]:
    return Analyser().analyse(ParsedSource(text.encode(), language))


def diffs(before: str, after: str, language: str = "python") -> list[UnitDiff]:
    return unit_diffs(analysed(before, language), analysed(after, language))


def states(before: str, after: str, language: str = "python") -> list[tuple[str, str | None]]:
    """The state of each unit of ``after``, and what it was where it has changed."""
    found = diffs(before, after, language)
    return [(diff.state, diff.before.text if diff.before is not None else None) for diff in found]


def test_units_are_matched_by_kind_and_qualified_name() -> None:
    before = "class A:\n    def f(self): return 1\n\ndef f(): return 2\n"
    after = "def f(): return 3\n\nclass A:\n    def f(self): return 1\n    def g(self): return 4\n"
    assert states(before, after) == [("changed", "def f(): return 2"), ("same", None), ("new", None)]
    assert unit_diffs([], analysed(after)) == [NEW] * 3


def test_of_several_with_one_name_the_unchanged_ones_are_paired_first() -> None:
    before = "def f(): return 1\ndef f(): return 2\n"
    after = "def f(): return 0\ndef f(): return 1\n"
    assert states(before, after) == [("changed", "def f(): return 2"), ("same", None)]
    assert diffs(before, before + "def f(): return 3\n")[2] == NEW


def test_a_files_only_program_is_itself_by_any_name() -> None:
    program = "package p\nfunc f() {}"
    mark = "// rlm: program\n"
    assert states(f"{mark}{program}\n", f"{mark}package p\nfunc g() {{}}\n", "go") == [("changed", program)]


def test_a_change_of_what_a_unit_calls_is_a_change_and_line_ends_are_none() -> None:
    text = "def g(): return 1\ndef f(): return g()\n"
    assert [diff.state for diff in diffs(text, text.replace("1", "2"))] == ["changed", "changed"]
    assert [diff.state for diff in diffs(text, text.replace("\n", "\r\n"))] == ["same", "same"]


def test_a_change_of_what_the_text_says_about_the_cost_is_a_change() -> None:
    before, after = analysed("def f(): return N\n"), analysed("def f(): return N\n")
    assert [diff.state for diff in unit_diffs(before, after)] == ["same"]
    slower = WorkFacts(CostFacts(Amount(1.0, 1.0, 1.0)))
    after = [replace(entry, code=replace(entry.code, work=slower)) for entry in after]
    assert unit_diffs(before, after) == [UnitDiff("changed", before[0].code)]


def test_an_edit_is_one_of_a_text_and_those_with_the_same_texts_are_paired_first() -> None:
    before = "N = 1\ndef f():\n    for i in range(N): pass\ndef f():\n    for j in range(N): pass\n"
    after = "N = 99\ndef f():\n    for j in range(N): pass\ndef f():\n    for k in range(N): pass\n"
    second, first = diffs(before, after)
    assert second.before is not None
    assert first.before is not None
    assert [" j " in second.before.text, " i " in first.before.text] == [True, True]
    assert [second.is_edit, first.is_edit] == [False, True]
    called = "def g(): return 1\ndef f(): return g()\n"
    assert [diff.is_edit for diff in diffs(called, called.replace("1", "2"))] == [True, True]


def test_corrections_for_this_machine_leave_ratios_as_they_are() -> None:
    base = LengthPredictor()
    pair = (CodeText("f" * 10, "python", "call"), CodeText("f" * 20, "python", "call"))
    ratios = base.compare([pair], [[Query("latency")]])
    assert ratios[0][0].ratio == 2
    assert AdaptedPredictor(base, []).compare([pair], [[Query("latency")]]) == ratios


async def texts(head: HeadUnits, path: Path) -> list[str] | None:
    units = await head.units(path, "python")
    return [unit.unit.text for unit in units] if units is not None else None


@pytest.mark.asyncio
async def test_the_units_are_those_of_the_newest_commit(tmp_path: Path) -> None:
    now = 0.0
    head = HeadUnits(clock=lambda: now)
    path = tmp_path / "a.py"
    path.write_text("def f(): return 1\n")
    assert await texts(head, path) is None
    commit(tmp_path, [path])
    now += COMMIT_SECONDS
    path.write_text("def f(): return 2\n")
    assert await texts(head, path) == ["def f(): return 1"]
    commit(tmp_path, [path])
    assert await texts(head, path) == ["def f(): return 1"]
    now += COMMIT_SECONDS
    assert await texts(head, path) == ["def f(): return 2"]
    head.close()


@pytest.mark.asyncio
async def test_new_files_and_empty_ones_were_nothing(tmp_path: Path) -> None:
    head = HeadUnits()
    empty, new = tmp_path / "empty.py", tmp_path / "new.py"
    empty.touch()
    commit(tmp_path, [empty])
    new.write_text("def f(): return 1\n")
    assert await texts(head, new) is None
    assert await texts(head, empty) is None
    head.close()


@pytest.mark.asyncio
async def test_what_is_called_is_read_at_head_too(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    caller, callee, late = package / "caller.py", package / "callee.py", package / "late.py"
    (package / "__init__.py").touch()
    caller.write_text("from .callee import work\nfrom .late import more\n\ndef run(n): return work(n) + more(n)\n")
    callee.write_text("def work(n): return n\n")
    commit(tmp_path, [package])
    callee.write_text("def work(n): return sorted(range(n))\n")
    late.write_text("def more(n): return n\n")
    head = HeadUnits()
    units = await head.units(caller, "python")
    assert units is not None
    assert [callee.text for callee in units[0].code.callees] == ["def work(n): return n"]
    head.close()


@pytest.mark.asyncio
async def test_no_more_texts_are_remembered_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_lsp.history.git._CACHE_BYTES", 200_000)
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    files = [package / f"m{number}.py" for number in range(10)]
    for file in files:
        file.write_text("#" * 50_000)
    (package / "a.py").write_text("def f(n):\n    return n.go()\n")
    commit(tmp_path, [package])
    for file in files:
        file.write_text("#")
    head = HeadUnits()
    assert await head.units(package / "a.py", "python") is not None
    assert sum(len(text or b"") for text in head._texts.values()) <= 200_000
    head.close()


@pytest.mark.asyncio
async def test_a_file_that_was_no_text_has_no_units(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"\0\1\2\xff")
    commit(tmp_path, [path])
    head = HeadUnits()
    assert await texts(head, path) == []
    head.close()
