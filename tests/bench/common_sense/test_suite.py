"""The suite is whole: every case has its truth, every text parses, every name is unique, and the counts suffice."""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import GROWTH_CLASSES, Band, Growth, Prediction, WaitKind

from . import measure, suite
from .judging import FLOORS, Answer, analysed, class_of, function_verdicts, glue_is_glue
from .measure import TRUTH, cases, digest, smaller, truth_of
from .report import Figure, markdown
from .suite import ENDLESS, LITERAL, NEUTRAL, Case, edits, functions, growth

_TRUTHS = json.loads(TRUTH.read_text(encoding="utf-8"))["values"]


def test_the_suite_is_large_enough() -> None:
    kinds = Counter(edit.kind for edit in edits())
    judged = Counter(line for case in functions() for line in case.judged)
    assert len(functions()) >= 180
    assert sum(kinds.values()) >= 120
    assert kinds[NEUTRAL] >= 40
    assert kinds[LITERAL] >= 20
    assert judged["glue"] >= 40
    assert len(growth()) >= 40


def test_names_are_unique() -> None:
    for names in (
        [case.name for case in functions()],
        [case.unit for case in functions()],
        [edit.name for edit in edits()],
        [case.name for case in growth()],
    ):
        assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_case_has_its_truth_and_no_truth_is_left_over() -> None:
    assert _TRUTHS.keys() == {case.name for case, _ in cases()}
    for case in functions():
        needed = {"memory" if line == "memory" else "latency" for line in case.judged}
        assert needed <= _TRUTHS[case.name].keys(), case.name
        assert _TRUTHS[case.name].get("stated", False) == case.by_statement, case.name
    changed = [case.name for case, _ in cases() if not case.by_statement and _TRUTHS[case.name]["text"] != digest(case)]
    assert changed == [], "measure these again"
    for edit in edits():
        for case in (edit.before, edit.after) if edit.kind != NEUTRAL else ():
            assert _TRUTHS[case.name][edit.metric] >= 0


def test_glue_code_is_as_cheap_as_the_suite_says() -> None:
    assert [case.name for case in functions() if not glue_is_glue(case, _TRUTHS[case.name])] == []


def test_waits_are_of_known_kinds() -> None:
    kinds = {*WaitKind, ENDLESS}
    assert [case.name for case in functions() if not kinds.issuperset(case.waits)] == []
    # A wait for a database is told from others on the network in loops only, whose waits are not judged here.
    assert kinds - {WaitKind.DATABASE} == {kind for case in functions() for kind in case.waits}


def test_every_function_is_a_unit() -> None:
    for path in sorted((suite.FOLDER / "functions").glob("*.py")):
        names = {unit.qualname for unit in find_units(ParsedSource(path.read_bytes(), "python"), path)}
        assert {case.unit for case in functions() if case.path == path} <= names


@pytest.mark.parametrize("edit", edits(), ids=lambda edit: edit.name)
def test_both_sides_of_an_edit_parse_and_differ(edit: suite.Edit) -> None:
    assert edit.before.source != edit.after.source
    for case in (edit.before, edit.after):
        ast.parse(case.source)
        assert analysed(case).unit.qualname == case.unit


@pytest.mark.parametrize("case", growth(), ids=lambda case: case.name)
def test_solutions_parse_and_have_a_class(case: suite.GrowthCase) -> None:
    assert case.growth_class in GROWTH_CLASSES
    assert "growth:" not in case.text
    assert not ParsedSource(case.text.encode(), "python").root.has_error


def _case(source: str, call: str, **options: object) -> Case:
    return Case("example.f", "f", source, Path("example.py"), call, **options)  # type: ignore[arg-type]


def test_a_measurement_has_seconds_and_peak_bytes() -> None:
    source = "def f(n):\n    return bytes(n)\n"
    truth = truth_of(_case(source, "f(1_000_000)"), True, Path(sys.executable))
    assert truth["memory"] == pytest.approx(1_000_000, rel=0.01)
    assert 0 < truth["latency"] < 0.1


def test_a_scaled_measurement_follows_its_factor_and_is_marked() -> None:
    source = "def f():\n    return sum(range(10**12))\n"
    scale = suite.Scale("10**12", "10**4", 1e8)
    truth = truth_of(_case(source, "f()", scale=scale), False, Path(sys.executable))
    assert truth["scaled"]
    assert 1e3 < truth["latency"] < 1e6


def test_the_smaller_latency_of_two_runs_of_one_text_is_kept() -> None:
    truth = {"latency": 2.0, "memory": 5.0, "text": "a"}
    assert smaller(truth, None) == truth
    assert smaller(truth, {"latency": 1.0, "memory": 9.0, "text": "a"}) == {"latency": 1.0, "memory": 5.0, "text": "a"}
    assert smaller(truth, {"latency": 1.0, "text": "b"}) == truth


def test_the_truth_is_written_one_case_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "TRUTH", tmp_path / "truth.json")
    measure.write(json.loads(TRUTH.read_text(encoding="utf-8")))
    assert (tmp_path / "truth.json").read_text(encoding="utf-8") == TRUTH.read_text(encoding="utf-8")


def test_a_wait_is_not_run() -> None:
    case = _case("def f():\n    import time\n    time.sleep(1e6)\n", "f()", waits=("time",), seconds=1e6)
    assert truth_of(case, False, Path(sys.executable)) == {"stated": True, "latency": 1e6}


def test_a_failing_case_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        truth_of(_case("def f():\n    return 1 / 0\n", "f()"), False, Path(sys.executable))


def _write_edits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "edits").mkdir()
    (tmp_path / "edits" / "a.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(suite, "FOLDER", tmp_path)


def test_an_edit_replaces_text_or_is_the_whole_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = "--- literal a\n10 => 20\n--- structure b\ndef f(n):\n    return 2\n"
    text = f"=== f\n%call f(3)\ndef f(n):\n    return n + 10\n{changes}"
    _write_edits(tmp_path, monkeypatch, text)
    first, second = edits()
    assert first.name == "a.f.a"
    assert (first.before.call, first.after.call) == ("f(3)", "f(3)")
    assert first.after.source == "def f(n):\n    return n + 20\n"
    assert second.after.source == "def f(n):\n    return 2\n"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("--- literal a\nx => y\n", "does not contain"),
        ("--- odd a\nf => g\n", "kind"),
        ("--- wait a\n%no 1\n", "option"),
    ],
)
def test_a_file_of_edits_that_breaks_the_format_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, problem: str
) -> None:
    _write_edits(tmp_path, monkeypatch, f"=== f\ndef f():\n    return 1\n{change}")
    with pytest.raises(ValueError, match=problem):
        edits()


@pytest.mark.parametrize(
    ("growth_facts", "growth_class"),
    [
        ((), "1"),
        ((Growth("n"),), "n"),
        ((Growth("n", 1, 1),), "n log n"),
        ((Growth("n", 0, 1),), "log n"),
        ((Growth("n", 0.5),), "sqrt n"),
        ((Growth("rows"), Growth("columns")), "mn"),
        ((Growth("n", 2),), "n^2"),
        ((Growth("n", 3),), "n^3"),
        ((Growth("n", 0, 0, 1.6),), "2^n"),
        ((Growth("n", 2, 1),), "other"),
    ],
)
def test_growth_facts_have_a_class(growth_facts: tuple[Growth, ...], growth_class: str) -> None:
    assert class_of(growth_facts) == growth_class


def test_a_table_shows_figures_next_to_earlier_ones() -> None:
    figures = [Figure("memory", 0.93, 0.9, 100), Figure("error", 0.2, 0.25, 1200, at_most=True)]
    before = [{"title": "memory", "value": 0.2}, {"title": "error", "value": 2.7}]
    page = markdown(figures, before)
    assert page.startswith("# ")
    assert [line for line in page.splitlines() if line.startswith("|")] == [
        "| | before | now | goal | count |",
        "|---|---|---|---|---|",
        "| memory | 20 % | 93 % | 90 % | 100 |",
        "| error | 2.7 | 0.2 | at most 0.25 | 1,200 |",
    ]
    assert [figure.reached for figure in figures] == [True, True]


def test_floors_are_those_of_the_shipped_model() -> None:
    from rlm_core.loading import load
    from rlm_core.types import Query

    case = functions()[0]
    [line] = load().predict([analysed(case).code], [[Query("latency"), Query("memory")]])
    assert {prediction.metric: prediction.floor for prediction in line} == pytest.approx(FLOORS)


def test_a_stated_wait_is_covered_by_a_band_that_includes_the_call() -> None:
    case = _case("", "f()", waits=("time",), seconds=1.0, judged=("latency",))
    prediction = Prediction(
        "call", "latency", None, {}, "", 1.00001, (Band(1.00001, 1.00002, 0.8),), FLOORS["latency"], False
    )
    [unit] = Analyser().analyse(ParsedSource(b"def f():\n    pass\n", "python"))
    answer = Answer(unit, {"latency": prediction})
    for seconds, covered in ((1.0, True), (0.9, False), (1.1, False)):
        verdicts = function_verdicts(replace(case, seconds=seconds), answer, {"latency": seconds}, facts=False)
        assert [verdict.good for verdict in verdicts if verdict.line == "latency covered"] == [covered]
