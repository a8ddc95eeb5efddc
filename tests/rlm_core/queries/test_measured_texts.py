"""A package in the texts that were measured: what a changed function is compared with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.measured_texts import MeasuredTexts
from rlm_core.source.module_index import index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CalledFunction, CodeText, FoundCost, KnownCost, MeasuredCost, Unit

COST = MeasuredCost("latency", 2e-6, 1e-6, 8e-6, 40, 8, "function", "cpu", "cpython-3.12", "2026-11-01")
NOW = {
    "__init__": "",
    "main": "from .other import Table, helper\n\n\ndef f(n):\n    return helper(n) + near(n) + Table().rows(n)\n"
    "\n\ndef near(n):\n    return n\n",
    "other": "def helper(n):\n    return n\n\n\nclass Table:\n    def rows(self, n):\n        return n\n",
}
MEASURED = {
    "f": "def f(n):\n    return helper(n) + near(n) + Table().rows(n) + 1",
    "near": "def near(n):\n    return sorted(range(1000))",
    "helper": "def helper(n):\n    return sum(range(2000))",
    "Table.rows": None,  # unchanged
}


class Measurements:
    """What was measured: the same cost of every function, of the texts in ``before``; None for the present one."""

    def __init__(self, before: dict[str, str | None]) -> None:
        self.before = before

    def prepare(self, qualnames: Iterable[str]) -> None:
        """Nothing to read."""

    def find(self, unit: Unit, path: Path | None, *, is_shared: bool = False) -> tuple[FoundCost, ...]:
        """The cost."""
        before = self.before.get(unit.qualname, "")
        is_same = before is None or before == unit.text
        return (FoundCost(COST, None if is_same else before),) if unit.qualname in self.before else ()

    def functions_in(self, folder: Path) -> dict[Path, list[CalledFunction]]:
        """Nothing around the functions."""
        return {}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pkg"
    folder.mkdir()
    for name, text in NOW.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def code_of(analyser: Analyser, path: Path, qualname: str = "f") -> CodeText:
    units = analyser.analyse(ParsedSource(path.read_bytes(), "python"), path, str(path))
    return next(unit.code for unit in units if unit.unit.qualname == qualname)


def called(code: CodeText) -> dict[str, tuple[KnownCost, ...]]:
    assert code.calls is not None
    return {function.text: function.known for function in code.calls.functions()}


def test_a_changed_function_is_compared_with_what_it_called_when_it_was_measured(package: Path) -> None:
    code = code_of(Analyser(measured=Measurements(MEASURED)), package / "main.py")
    [anchor] = code.measured
    before = anchor.before
    assert before is not None
    known = (KnownCost("latency", 2e-6, 1e-6, 8e-6),)
    rows = "    def rows(self, n):\n        return n"
    # What was measured of a text that has changed is known on neither side.
    assert called(before) == {MEASURED["near"]: (), MEASURED["helper"]: (), rows: known}
    assert called(code) == {"def near(n):\n    return n": (), "def helper(n):\n    return n": (), rows: known}
    assert {callee.text for callee in before.callees} >= {MEASURED["near"], MEASURED["helper"]}
    assert before.work is not None
    assert code.work is not None
    assert before.work.of("latency").typical > 5 * code.work.of("latency").typical


def test_an_unchanged_function_is_compared_only_if_what_it_calls_has_changed(package: Path) -> None:
    analyser = Analyser(measured=Measurements(MEASURED | {"f": None}))
    code = code_of(analyser, package / "main.py")
    [anchor] = code.measured
    assert anchor.before is not None
    assert anchor.before.text == code.text
    assert set(called(anchor.before)) >= {MEASURED["near"], MEASURED["helper"]}
    [anchor] = code_of(Analyser(measured=Measurements(dict.fromkeys(MEASURED))), package / "main.py").measured
    assert anchor.before is None


def test_an_edit_of_a_callee_back_to_its_measured_text_makes_both_sides_the_same(package: Path) -> None:
    analyser = Analyser(measured=Measurements(MEASURED))
    code_of(analyser, package / "main.py")
    for name, place in (("near", "main"), ("helper", "other")):
        path = package / f"{place}.py"
        path.write_text(path.read_text().replace(f"def {name}(n):\n    return n", str(MEASURED[name])))
    analyser.refresh()
    code = code_of(analyser, package / "main.py")
    [anchor] = code.measured
    assert anchor.before is not None
    assert called(anchor.before) == called(code)


def test_a_module_without_changes_is_the_same_and_a_changed_one_is_made_once() -> None:
    source = ParsedSource(b"def f(n):\n    return n\n\n\ndef g(n):\n    return f(n)\n", "python")
    index, texts = index_module(source, "m"), {"f": "def f(n):\n    return h(n)"}
    asked: list[str] = []

    def measured_text(path: Path | None, unit: Unit) -> str | None:
        asked.append(unit.qualname)
        return texts.get(unit.qualname)

    measured = MeasuredTexts(measured_text)
    earlier = measured.of(index, None)
    assert measured.of(index, None) is earlier
    assert asked == ["f", "g"]
    assert (earlier.units["f"].text, earlier.units["g"]) == (texts["f"], index.units["g"])
    assert [call.name for call in earlier.calls[texts["f"]]] == ["h"]
    assert texts["f"] not in index.calls
    _, view = measured.package(index, lambda module: None, lambda name: None, lambda module: None)
    assert view.unmeasured == {texts["f"]}
    texts.clear()
    measured.refresh()
    assert measured.of(index, None) is index
    _, view = measured.package(index, lambda module: None, lambda name: None, lambda module: None)
    assert view.unmeasured == set()


def test_callers_of_a_changed_function_are_kept_until_an_analysis_that_is_not_provisional(package: Path) -> None:
    path = package / "main.py"
    text = path.read_text()
    changed = text.replace("def near(n):\n    return n", "def near(n):\n    return sorted(range(n))")
    analyser = Analyser(measured=Measurements(dict.fromkeys(["f", "helper"]) | {"near": "def near(n):\n    return n"}))

    def anchors(text: str, *, provisional: bool) -> list[CodeText | None]:
        units = analyser.analyse(ParsedSource(text.encode(), "python"), path, "main", provisional=provisional)
        code = next(unit.code for unit in units if unit.unit.qualname == "f")
        return [anchor.before for anchor in code.measured]

    assert anchors(text, provisional=False) == [None]
    assert anchors(changed, provisional=True) == [None]
    [before] = anchors(changed, provisional=False)
    assert before is not None
    assert "def near(n):\n    return n" in called(before)
    # What was read is kept by the next edit, too.
    [kept] = anchors(f"{changed}\n\ndef other(n):\n    return n\n", provisional=True)
    assert kept == before
