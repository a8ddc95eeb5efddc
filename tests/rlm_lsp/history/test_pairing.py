"""Units before and after an edit: which is which."""

from __future__ import annotations

from rlm_core.inference.adaptation import AdaptedPredictor
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_lsp.history.pairing import comparing, earlier, same

from tests.rlm_lsp.findings.support import LengthPredictor


def analysed(text: str, language: str = "python") -> list[AnalysedUnit]:
    return Analyser().analyse(ParsedSource(text.encode(), language))


def texts(before: str, after: str, language: str = "python") -> list[str | None]:
    found = earlier(analysed(before, language), analysed(after, language))
    return [entry.unit.text if entry is not None else None for entry in found]


def test_units_are_matched_by_kind_and_qualified_name() -> None:
    before = "class A:\n    def f(self): return 1\n\ndef f(): return 2\n"
    after = "def f(): return 3\n\nclass A:\n    def f(self): return 1\n    def g(self): return 4\n"
    assert texts(before, after) == ["def f(): return 2", "    def f(self): return 1", None]


def test_of_several_with_one_name_the_unchanged_ones_are_paired_first() -> None:
    before = "def f(): return 1\ndef f(): return 2\n"
    assert texts(before, "def f(): return 0\ndef f(): return 1\n") == ["def f(): return 2", "def f(): return 1"]
    assert texts(before, before + "def f(): return 3\n")[2] is None


def test_a_files_only_program_is_itself_by_any_name() -> None:
    assert texts("package p\nfunc f() {}\n", "package p\nfunc g() {}\n", "go") == ["package p\nfunc f() {}"]


def test_a_change_of_what_a_unit_calls_is_a_change_and_line_ends_are_none() -> None:
    text = "def g(): return 1\ndef f(): return g()\n"
    [_, before], [_, after] = analysed(text), analysed(text.replace("1", "2"))
    assert not same(before.code, after.code)
    [_, windows] = analysed(text.replace("\n", "\r\n"))
    assert same(before.code, windows.code)


def test_the_model_that_compares_is_found_below_what_was_measured_here() -> None:
    base = LengthPredictor()
    assert comparing(AdaptedPredictor(base, [])) is base
    assert comparing(object()) is None
