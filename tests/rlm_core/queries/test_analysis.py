"""Analysis of a file: its units with the callees that its package holds, on disk or in the editor."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rlm_core.cost.domain.context import Context
from rlm_core.cost.domain.values import Value
from rlm_core.cost.evaluate import expressions
from rlm_core.cost.evaluate.operations import binary_operation
from rlm_core.errors import AnalysisError, TooComplexError
from rlm_core.queries import analysis, kernel_sizes, package_files, unit_facts
from rlm_core.queries.analysis import AnalysedUnit, Analyser, OutdatedError
from rlm_core.source import module_index
from rlm_core.source import parsed as parsing
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES
from rlm_core.types import BASIS_OF_KIND, CalledFunction, CodeText, FoundCost, MeasuredCost, Unit
from tree_sitter import Language, Parser

CALLER = b"from .callee import work\n\ndef run(n):\n    return work(n)\n"
CELL_HELPER = b"def helper(n):\n    return [n * i for i in range(n)]\n"
CELL_CALLER = b"# \xc3\xa4\nlimit = 3\ndef caller(n):\n    return helper(n)"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a module that calls another one."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "caller.py").write_bytes(CALLER)
    (folder / "callee.py").write_text("def work(n):\n    return n\n")
    return folder


def callees_of_run(analyser: Analyser, path: Path | None, source: bytes = CALLER) -> list[str]:
    [unit] = analyser.analyse(ParsedSource(source, "python"), path)
    return [callee.text for callee in unit.code.callees]


def test_a_callee_is_found_in_the_package_on_disk(package: Path) -> None:
    assert callees_of_run(Analyser(), package / "caller.py") == ["def work(n):\n    return n"]


def test_the_folder_above_the_package_is_its_root(package: Path) -> None:
    source = b"from package.callee import work\n\ndef run(n):\n    return work(n)\n"
    deep = package / "deep"
    deep.mkdir()
    (deep / "__init__.py").touch()
    assert callees_of_run(Analyser(), deep / "caller.py", source) == ["def work(n):\n    return n"]


@pytest.mark.parametrize("language", ["python", "", None])
def test_the_text_in_the_editor_hides_the_one_on_disk(package: Path, language: str | None) -> None:
    text = b"def work(n):\n    return n * n\n"
    edited = {package / "callee.py": text if language is None else ParsedSource(text, language)}
    assert callees_of_run(Analyser(edited.get), package / "caller.py") == ["def work(n):\n    return n * n"]


def test_a_file_that_is_analysed_and_called_is_parsed_once(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caller, callee = ParsedSource(CALLER, "python"), ParsedSource(b"def work(n):\n    return 2 * n\n", "python")
    parsers: list[Parser] = []

    def counted(grammar: Language) -> Parser:
        parsers.append(Parser(grammar))
        return parsers[-1]

    monkeypatch.setattr(parsing, "Parser", counted)
    analyser = Analyser({package / "callee.py": callee}.get)
    [run] = analyser.analyse(caller, package / "caller.py", "caller")
    assert [work.unit.text for work in analyser.analyse(callee, package / "callee.py", "callee")] == [
        run_callee.text for run_callee in run.code.callees
    ]
    assert len(parsers) == 2


def test_a_change_on_disk_is_seen(package: Path) -> None:
    analyser, callee = Analyser(), package / "callee.py"
    assert callees_of_run(analyser, package / "caller.py") == ["def work(n):\n    return n"]
    callee.write_text("def work(n):\n    return -n\n")
    os.utime(callee, ns=(1, 1))
    assert callees_of_run(analyser, package / "caller.py") == ["def work(n):\n    return -n"]


def test_a_file_that_comes_or_goes_is_seen(package: Path) -> None:
    analyser, callee = Analyser(), package / "callee.py"
    text = callee.read_bytes()
    callee.unlink()
    assert callees_of_run(analyser, package / "caller.py") == []
    callee.write_bytes(text)
    assert callees_of_run(analyser, package / "caller.py") == ["def work(n):\n    return n"]
    callee.unlink()
    assert callees_of_run(analyser, package / "caller.py") == []


def test_other_packages_are_not_looked_up(package: Path) -> None:
    (package.parent / "other.py").write_text("def work(n): pass\n")
    source = b"from other import work\n\ndef run(n):\n    return work(n)\n"
    assert callees_of_run(Analyser(), package / "caller.py", source) == []


def test_a_text_without_a_path_has_the_callees_of_its_own_file() -> None:
    source = b"def run(n):\n    return work(n)\n\ndef work(n):\n    return n\n"
    units = Analyser().analyse(ParsedSource(source, "python"))
    assert [len(unit.code.callees) for unit in units] == [1, 0]


def test_a_module_of_more_than_the_limit_is_left_out(package: Path) -> None:
    with (package / "callee.py").open("ab") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert callees_of_run(Analyser(), package / "caller.py") == []


def test_a_callee_that_does_not_parse_does_no_harm(package: Path) -> None:
    (package / "callee.py").write_bytes(b"def work(n:\n\xff\xfe(((")
    assert callees_of_run(Analyser(), package / "caller.py") in ([], ["def work(n:"])


def test_only_functions_have_callees() -> None:
    source = b"class Solution:\n    def f(self):\n        return g()\n\ndef g():\n    return 1\n"
    found = {
        unit.unit.kind: unit.code.callees
        for unit in Analyser().analyse(ParsedSource(source, "python"))
        if "f" in unit.code.text
    }
    assert found["program"] == ()


@pytest.mark.parametrize(("language", "source"), [("go", b"package a\nfunc f() {}\n"), ("python", CALLER)])
def test_the_basis_of_what_the_model_reads_is_that_of_the_unit(language: str, source: bytes) -> None:
    for unit in Analyser().analyse(ParsedSource(source, language)):
        assert unit.code.basis == BASIS_OF_KIND[unit.unit.kind]
        assert unit.code.text == unit.unit.text
        assert unit.code.language == language


def test_init_files_import_relative_to_themselves(package: Path) -> None:
    source = b"from .callee import work\n\ndef run(n):\n    return work(n)\n"
    assert callees_of_run(Analyser(), package / "__init__.py", source) == ["def work(n):\n    return n"]


def test_a_unit_is_placed_in_its_cell_and_calls_those_of_others() -> None:
    [nothing, [helper], empty, [caller]] = Analyser().analyse_cells([b"%load_ext x", CELL_HELPER, b"", CELL_CALLER])
    assert nothing == empty == []
    assert [helper] == Analyser().analyse(ParsedSource(CELL_HELPER, "python"))
    [alone] = Analyser().analyse(ParsedSource(CELL_CALLER, "python"))
    assert caller.unit == alone.unit
    assert alone.code.callees == ()
    assert [callee.text for callee in caller.code.callees] == [helper.unit.text]


def test_the_newest_definition_of_a_name_is_the_one_that_is_called() -> None:
    again = b"def helper(n):\n    return n\n"
    [_, [caller], [newest]] = Analyser().analyse_cells([CELL_HELPER, CELL_CALLER, again])
    assert [callee.text for callee in caller.code.callees] == [newest.unit.text]


def test_a_half_written_cell_leaves_the_others_alone() -> None:
    analyser = Analyser()
    whole = analyser.analyse_cells([CELL_HELPER, b"f(1)", CELL_CALLER])
    broken = analyser.analyse_cells([CELL_HELPER, b'f(("""', CELL_CALLER])
    assert broken == whole


def test_equal_cells_have_equal_units() -> None:
    first, second = Analyser().analyse_cells([CELL_HELPER, CELL_HELPER])
    assert first == second


def test_a_notebook_is_limited_as_a_whole() -> None:
    cells = [b"".join(b"def f%d_%d(): pass\n" % (cell, number) for number in range(2_000)) for cell in range(3)]
    for refused in (cells, [b"".join(cells)]):
        with pytest.raises(TooComplexError, match="too complex to analyse: more than 5000 functions"):
            Analyser().analyse_cells(refused)


def test_a_short_loop_waits_at_one_place() -> None:
    source = b"import time\ndef f():\n    for _ in range(10):\n        time.sleep(0.1)\n"
    [unit] = Analyser().analyse(ParsedSource(source, "python"))
    assert unit.code.work is not None
    [wait] = unit.code.work.waits
    assert (wait.line, wait.call) == (2, "time.sleep")
    assert wait.seconds is not None
    assert wait.seconds.least == pytest.approx(1.0)
    assert wait.seconds.most == pytest.approx(1.0)


class _Measured:
    """Measurements of `f`, made on the text ``before``; None for its present text."""

    def __init__(self, before: str | None) -> None:
        self.before = before

    def prepare(self, qualnames: Iterable[str]) -> None:
        assert "f" in list(qualnames)

    def find(self, unit: Unit, path: Path | None, *, is_shared: bool = False) -> tuple[FoundCost, ...]:
        cost = MeasuredCost("latency", 2e-6, 1e-6, 8e-6, 40, 8, "function", "cpu", "cpython-3.12", "2026-11-01")
        return (FoundCost(cost, self.before),) if unit.qualname == "f" else ()

    def functions_in(self, folder: Path) -> dict[Path, list[CalledFunction]]:
        raise AssertionError("a text without a path is in no package")


def test_the_text_that_was_measured_is_read_in_the_present_context() -> None:
    source = b"N = 1000\n\n\ndef g():\n    return sum(range(N))\n\n\ndef f():\n    return g() + g()\n"
    now = {one.unit.qualname: one.code for one in Analyser().analyse(ParsedSource(source, "python"))}
    earlier = source.replace(b"g() + g()", b"g()")
    before = {one.unit.qualname: one.code for one in Analyser().analyse(ParsedSource(earlier, "python"))}
    units = Analyser(measured=_Measured(before["f"].text)).analyse(ParsedSource(source, "python"))
    [f, g] = sorted(units, key=lambda one: one.unit.qualname)
    [anchor] = f.code.measured
    assert anchor.before is not None
    assert (anchor.before.text, anchor.before.work) == (before["f"].text, before["f"].work)
    assert anchor.before.callees == before["f"].callees
    assert replace(f.code, measured=()) == now["f"]
    assert g.code == now["g"]


@pytest.mark.parametrize("before", [None, ""], ids=["unchanged", "its text is not known"])
def test_a_text_that_is_unchanged_or_not_known_is_not_read(before: str | None) -> None:
    [unit] = Analyser(measured=_Measured(before)).analyse(ParsedSource(b"def f(n):\n    return n\n", "python"))
    [anchor] = unit.code.measured
    assert (anchor.before.text if anchor.before is not None else None) == before


def callees_of_caller(package: Path) -> list[str]:
    path = package / "caller.py"
    [caller] = Analyser().analyse(ParsedSource(path.read_bytes(), "python"), path)
    return [callee.text for callee in caller.code.callees]


def test_a_callee_in_a_regular_file_of_the_package_is_read(package: Path) -> None:
    (package / "helpers.py").write_text("def work(n):\n    return n\n")
    (package / "callee.py").unlink()
    (package / "callee.py").symlink_to(package / "helpers.py")
    assert callees_of_caller(package) == ["def work(n):\n    return n"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["endless device", "pipe", "own input", "outside", "too long"])
def test_a_module_that_is_no_regular_file_of_the_package_is_passed_over(
    package: Path, tmp_path: Path, kind: str
) -> None:
    callee, text = package / "callee.py", "def work(n):\n    return n\n"
    callee.unlink()
    if kind == "endless device":
        callee.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(callee)
    elif kind == "own input":
        callee.symlink_to("/proc/self/fd/0")
    elif kind == "outside":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "callee.py").write_text(text)
        nested = tmp_path / "workspace"
        nested.mkdir()
        package = package.rename(nested / "package")
        (package / "callee.py").symlink_to(tmp_path / "elsewhere" / "callee.py")
    else:
        callee.write_text(text + "#" * MAX_FILE_BYTES)
    assert callees_of_caller(package) == []


EDITS = (
    ("    return step(n)\n", "    return step(n) + 1\n"),  # a callee two calls away
    ("self.items = []", "self.items = [0] * 100"),  # what a method reads of its class
    ("for i in range(n)", "for i in range(LIMIT)"),  # a unit itself
    ("LIMIT = 3", "LIMIT = 300"),  # a constant
    ("def step(n):", "def stride(n):"),  # a callee is gone
    ("def stride(n):", "def step(n):"),
    ("work(n)\n", "work(n) + helper(n)\n"),  # another callee
    ("helper(n):\n", "helper(n, m=2):\n"),
)


@pytest.mark.parametrize("provisional", [0, 1, 3], ids=["none", "each", "several"])
def test_after_each_edit_units_are_read_as_in_a_new_analysis(package: Path, provisional: int) -> None:
    source = (
        "from .callee import work\n\nLIMIT = 3\n\nclass Box:\n    def __init__(self):\n        self.items = []\n"
        "    def total(self):\n        return sum(self.items) + middle(3)\n\ndef step(n):\n    return [n] * n\n\n"
        "def middle(n):\n    return step(n)\n\ndef outer(n):\n    return [middle(n) for i in range(n)]\n\n"
        "def helper(n):\n    return work(n)\n\ndef run(n):\n    return work(n)\n"
    )
    path, kept = package / "caller.py", Analyser()
    for count, (before, after) in enumerate((("", ""), *EDITS)):
        assert before in source
        source = source.replace(before, after, 1)
        parsed = ParsedSource(source.encode(), "python")
        if provisional:
            units = kept.analyse(parsed, path, "caller", provisional=True)
            new = {entry.unit: entry.code.text for entry in Analyser().analyse(parsed, path)}
            assert {entry.unit: entry.code.text for entry in units} == new
            if count % provisional:
                continue
        units = kept.analyse(parsed, path, "caller")
        assert kept.is_settled("caller")
        assert units == Analyser().analyse(ParsedSource(source.encode(), "python"), path)
    (package / "callee.py").write_text("def work(n):\n    return sorted(range(n))\n")
    # A file that an analysis has read is looked at in the next one.
    units = kept.analyse(ParsedSource(source.encode(), "python"), path, "caller")
    assert units == Analyser().analyse(ParsedSource(source.encode(), "python"), path)


def test_a_unit_that_an_edit_does_not_concern_is_not_read_again() -> None:
    source = b"def f(n):\n    return g(n)\n\ndef g(n):\n    return n\n\ndef other(n):\n    return [n] * n\n"
    analyser = Analyser()
    first = {unit.unit.qualname: unit.code for unit in analyser.analyse(ParsedSource(source, "python"), None, "a")}
    edited = ParsedSource(source.replace(b"return n\n", b"return n + 1\n"), "python")
    second = {unit.unit.qualname: unit.code for unit in analyser.analyse(edited, None, "a")}
    assert second["other"] is first["other"]
    assert second["f"] != first["f"]


class Waiting:
    """Requests that wait for lines from the second unit on; None has the next unit analysed."""

    def __init__(self, *lines: range | None) -> None:
        self.lines: list[range | None] = [None, *lines]
        self.answers: list[list[AnalysedUnit]] = []

    def take(self) -> range | None:
        return self.lines.pop(0) if self.lines else None

    def answer(self, units: list[AnalysedUnit]) -> None:
        self.answers.append(units)


def test_units_of_urgent_lines_are_analysed_first_and_like_all_others() -> None:
    text = "".join(f"def f{number}(\n    n,\n):\n    return f{number - 1}(n)\n" for number in range(8))
    expected = Analyser().analyse(ParsedSource(text.encode(), "python"))
    waiting = Waiting(range(22, 25), None, range(1000, 1001))
    assert Analyser().analyse(ParsedSource(text.encode(), "python"), urgent=waiting) == expected
    # Of the function in whose signature the lines begin, and of the one in which they end.
    assert waiting.answers == [[expected[0], *expected[5:7]], [*expected[:2], *expected[5:7]]]


def test_of_many_units_on_urgent_lines_only_the_first_are_waited_for() -> None:
    text = "".join(f"def f{number}(n):\n    return n\n" for number in range(100))
    expected = Analyser().analyse(ParsedSource(text.encode(), "python"))
    waiting = Waiting(range(100, 200))
    assert Analyser().analyse(ParsedSource(text.encode(), "python"), urgent=waiting) == expected
    [answer] = waiting.answers
    assert answer == [expected[0], *expected[50 : 50 + len(answer) - 1]]
    assert 10 < len(answer) < 40


def test_the_analysis_of_a_unit_whose_text_is_outdated_is_given_up() -> None:
    source = ParsedSource(
        b"LIMIT = 9\n\ndef f(n):\n    return g(n) + LIMIT\n\ndef g(n):\n    return [n] * n\n", "python"
    )
    analyser, is_outdated = Analyser(), iter([False, False, True])
    with pytest.raises(OutdatedError):
        analyser.analyse(source, None, "a", lambda: next(is_outdated))
    assert not list(is_outdated)
    assert analyser.analyse(source, None, "a") == Analyser().analyse(source)


def test_a_provisional_analysis_reads_only_units_whose_text_has_changed() -> None:
    source = b"def f(n):\n    return g(n)\n\ndef g(n):\n    return n\n\ndef other(n):\n    return [n] * n\n"
    analyser, once = Analyser(), iter([False])
    first = {
        unit.unit.qualname: unit.code
        for unit in analyser.analyse(ParsedSource(source, "python"), None, "a", provisional=True)
    }
    assert analyser.is_settled("a")
    edited = ParsedSource(source.replace(b"return n\n", b"return n + 1\n"), "python")
    units = analyser.analyse(edited, None, "a", lambda: next(once), provisional=True)
    second = {unit.unit.qualname: unit.code for unit in units}
    assert second["f"] is first["f"]
    assert second["g"].text.endswith("n + 1")
    assert not analyser.is_settled("a")


def test_an_analysis_of_an_outdated_text_ends() -> None:
    source = b"def f(n):\n    return n\n\ndef g(n):\n    return n\n"
    answers = iter([False, True])
    with pytest.raises(OutdatedError):
        Analyser().analyse(ParsedSource(source, "python"), None, "a", lambda: next(answers))


def test_an_analysis_of_an_outdated_text_reads_no_other_file(package: Path) -> None:
    answers = iter([False, True])
    (package / "callee.py").write_text("def work(n):\n    return n\n")
    with pytest.raises(OutdatedError):
        Analyser().analyse(ParsedSource(CALLER, "python"), package / "caller.py", "a", lambda: next(answers))
    assert next(answers, None) is None


def test_a_file_with_too_many_functions_is_too_complex() -> None:
    source = "".join(f"def f{number}(n): return n\n" for number in range(5_001))
    with pytest.raises(TooComplexError, match="more than 5000 functions"):
        Analyser().analyse(ParsedSource(source.encode(), "python"))


def test_a_huge_unit_costs_itself_alone() -> None:
    head = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, B: tl.constexpr):\n"
    kernel = head + "    a = tl.load(x + tl.arange(0, 64))\n" * 10_000
    function = "def g(n):\n" + "    n += 1\n" * 30_000
    found = Analyser().analyse(ParsedSource(f"{kernel}\n{function}\ndef f(n):\n    return n\n".encode(), "python"))
    assert {unit.unit.qualname: unit.failure for unit in found} == {
        "k": "TooComplexError",
        "g": "TooComplexError",
        "f": "",
    }


def test_no_program_is_analysed_that_is_far_longer_than_judges_accept() -> None:
    line = b"int x = 1;\n"
    Analyser().analyse(ParsedSource(line * 20_000, "c"))
    with pytest.raises(TooComplexError, match="too complex to analyse: longer than 256 KiB"):
        Analyser().analyse(ParsedSource(line * 40_000, "c"))


TWO_FUNCTIONS = (
    b"def good(n):\n    return helper(n)\n\ndef bad(n):\n    return helper(n)\n\ndef helper(n):\n    return n\n"
)


def fail_for(monkeypatch: pytest.MonkeyPatch, module: object, name: str, word: str) -> list[str]:
    """Have a function raise for a text with a word; returns the texts for which it did."""
    real, failed = getattr(module, name), list[str]()

    def failing(text: Any, *arguments: Any, **more: Any) -> Any:
        shown = text if isinstance(text, str) else repr(text)
        if word in shown:
            failed.append(shown)
            raise RecursionError(shown)
        return real(text, *arguments, **more)

    monkeypatch.setattr(module, name, failing)
    return failed


@pytest.mark.usefixtures("lenient")
def test_a_unit_whose_analysis_fails_has_its_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {entry.unit.qualname: entry for entry in Analyser().analyse(ParsedSource(TWO_FUNCTIONS, "python"))}
    fail_for(monkeypatch, unit_facts, "analyse", "def bad")
    after = {entry.unit.qualname: entry for entry in Analyser().analyse(ParsedSource(TWO_FUNCTIONS, "python"))}
    assert after["bad"].failure == "RecursionError"
    assert after["bad"].code == CodeText(before["bad"].unit.text, "python", "call")
    assert before["bad"].code.callees
    del before["bad"], after["bad"]
    assert after == before


@pytest.mark.usefixtures("lenient")
def test_a_called_function_whose_analysis_fails_leaves_its_callers_their_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"def caller(items):\n    called(1)\n    return sorted(items)\n\n\ndef called(n):\n    return n @ n\n"
    real = binary_operation

    def failing(context: Context, op: ast.operator, left: Value, right: Value) -> Value:
        if isinstance(op, ast.MatMult):
            raise LookupError
        return real(context, op, left, right)

    monkeypatch.setattr(expressions, "binary_operation", failing)
    caller, called = Analyser().analyse(ParsedSource(text, "python"))
    assert called.failure == "LookupError"
    assert caller.failure == ""
    assert caller.code.work is not None
    assert caller.code.work.latency.growth[0].size == "items"
    assert caller.code.work.unknown_calls > 0


@pytest.mark.usefixtures("lenient")
def test_a_unit_whose_analysis_failed_is_read_again_with_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    analyser = Analyser()
    with monkeypatch.context() as patch:
        failed = fail_for(patch, unit_facts, "analyse", "def bad")
        for number in range(3):
            analyser.analyse(ParsedSource(TWO_FUNCTIONS + b"# %d\n" % number, "python"), name="a")
        assert len(failed) == 3
    units = analyser.analyse(ParsedSource(TWO_FUNCTIONS, "python"), name="a")
    assert [entry.failure for entry in units] == ["", "", ""]
    assert all(entry.code.work is not None for entry in units)


@pytest.mark.usefixtures("lenient")
def test_a_program_in_another_language_whose_analysis_fails_has_its_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_for(monkeypatch, unit_facts, "outline_facts", "package main")
    source = b"// rlm: program\npackage main\n\nfunc main() {\n\tprintln(1)\n}\n"
    [unit] = Analyser().analyse(ParsedSource(source, "go"))
    assert (unit.failure, unit.code.work) == ("RecursionError", None)


@pytest.mark.usefixtures("lenient")
def test_sizes_that_cannot_be_read_cost_their_kernel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    source = b"import triton\n" + b"".join(
        b"\n@triton.jit\ndef %s(x, n, BLOCK):\n    # rlm: sizes n=4096\n    pass\n" % name for name in (b"good", b"bad")
    )
    fail_for(monkeypatch, kernel_sizes, "kernel_arguments", "def bad")
    units = Analyser().analyse(ParsedSource(source, "python"))
    assert {entry.unit.qualname: entry.sizes is not None for entry in units} == {"good": True, "bad": False}


@pytest.mark.usefixtures("lenient")
def test_a_file_that_cannot_be_read_is_one_error_and_a_callees_file_costs_its_callees(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module_index.index_module

    def index(parsed: ParsedSource, *arguments: Any, **more: Any) -> Any:
        if b"def work" in parsed.source:
            raise KeyError(parsed.source)
        return real(parsed, *arguments, **more)

    monkeypatch.setattr(package_files, "index_module", index)
    assert callees_of_run(Analyser(), package / "caller.py") == []
    fail_for(monkeypatch, analysis, "find_units", "ParsedSource")
    with pytest.raises(AnalysisError, match=r"^the analysis failed \(RecursionError\); see the log$"):
        Analyser().analyse(ParsedSource(b"package main\n", "go"))


@pytest.mark.usefixtures("lenient")
def test_outdated_work_is_not_a_failure() -> None:
    with pytest.raises(OutdatedError):
        Analyser().analyse(ParsedSource(TWO_FUNCTIONS, "python"), name="a", is_outdated=lambda: True)
