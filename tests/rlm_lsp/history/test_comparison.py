"""Units before and after an edit: which is which; the units of documents at HEAD, from real repositories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Prediction
from rlm_core.inference.adaptation.predictor import AdaptedPredictor
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import (
    GROWTH_CLASSES,
    Amount,
    Basis,
    CodeText,
    CostFacts,
    GrowthClass,
    GrowthEstimate,
    Query,
    Wait,
    WaitKind,
    WorkFacts,
)
from rlm_lsp.history.comparison import (
    COMMIT_SECONDS,
    NEW,
    HeadUnits,
    UnitDiff,
    WaitChange,
    growth_rise,
    unit_diffs,
    wait_change,
    work_change,
)

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


MakePrediction = Callable[..., Prediction]
CLASSES = st.sampled_from(GROWTH_CLASSES)
NOTHING = WorkFacts()
NETWORK = Wait(WaitKind.NETWORK, 2, "requests.get")
THREAD = Wait(WaitKind.THREAD, 2, "requests.get")


CALLS = "input()\n\nrequests.get(url)\n"


def text_with(work: WorkFacts | None, basis: Basis = "call", text: str = CALLS) -> CodeText:
    """A text with these facts."""
    return CodeText(text, "python", basis, work=work)


def sleeping(seconds: float, share: float = 1.0) -> WorkFacts:
    return WorkFacts(waits=(Wait(WaitKind.TIME, 1, "time.sleep", Amount(seconds, seconds, seconds), share),))


@pytest.mark.parametrize(
    ("before", "after", "rises"),
    [
        ("1", "log n", True),
        ("log n", "sqrt n", True),
        ("sqrt n", "n", True),
        ("n", "n log n", True),
        ("n log n", "mn", True),
        ("n log n", "n^2", True),
        ("mn", "n^2", False),
        ("n^2", "mn", False),
        ("n^2", "n^3", True),
        ("n^3", "2^n", True),
        ("n^2", "n", False),
        ("other", "2^n", False),
        ("1", "other", False),
    ],
)
def test_classes_are_ordered(
    make_prediction: MakePrediction, before: GrowthClass, after: GrowthClass, rises: bool
) -> None:
    old, new = (make_prediction(growth=GrowthEstimate(name, 1.0)) for name in (before, after))
    assert (growth_rise(old, new) is not None) is rises


@given(CLASSES, CLASSES, CLASSES)
def test_the_order_has_no_cycle(
    make_prediction: MakePrediction, a: GrowthClass, b: GrowthClass, c: GrowthClass
) -> None:
    first, second, third = (make_prediction(growth=GrowthEstimate(name, 1.0)) for name in (a, b, c))
    assert growth_rise(first, second) is None or growth_rise(second, first) is None
    if growth_rise(first, second) and growth_rise(second, third):
        assert growth_rise(first, third)


def test_a_rise_is_as_likely_as_its_less_certain_side(make_prediction: MakePrediction) -> None:
    before, after = GrowthEstimate("n", 0.85), GrowthEstimate("n^2", 0.9, ("values",))
    rise = growth_rise(make_prediction(growth=before), make_prediction(growth=after))
    assert rise is not None
    assert (rise.before, rise.after, rise.metric, rise.probability) == (before, after, "latency", 0.85)
    unsure = replace(before, probability=0.79)
    assert growth_rise(make_prediction(growth=unsure), make_prediction(growth=after)) is None


def test_unknown_growth_and_fixed_sizes_do_not_rise(make_prediction: MakePrediction) -> None:
    grown = make_prediction(growth=GrowthEstimate("n^2", 1.0))
    assert growth_rise(make_prediction(), grown) is None
    assert growth_rise(grown, make_prediction()) is None
    constant = make_prediction(growth=GrowthEstimate("1", 1.0), basis="kernel")
    assert growth_rise(constant, make_prediction(growth=GrowthEstimate("n^2", 1.0), basis="kernel")) is None


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (NOTHING, WorkFacts(waits=(NETWORK,)), WaitChange((NETWORK,))),
        (WorkFacts(waits=(NETWORK,)), WorkFacts(waits=(NETWORK, NETWORK)), None),
        (WorkFacts(waits=(NETWORK,)), NOTHING, None),
        (NOTHING, WorkFacts(waits=(Wait(WaitKind.NETWORK, 2, "get", None, 0.1),)), None),
        (NOTHING, WorkFacts(endless=3), WaitChange(endless=3)),
        (WorkFacts(endless=1), WorkFacts(endless=3), None),
        (NOTHING, sleeping(1.0), WaitChange(seconds=(0.0, 1.0))),
        (sleeping(0.001), sleeping(10.0), WaitChange(seconds=(0.001, 10.0))),
        (sleeping(10.0), sleeping(0.001), None),
        (sleeping(1.0), sleeping(1.1), None),
        (NOTHING, sleeping(1e-6), None),
        (sleeping(1.0), WorkFacts(waits=(Wait(WaitKind.TIME, 1, "sleep"),)), None),  # which may be shorter
        (None, sleeping(1.0), None),
        (NOTHING, WorkFacts(waits=(Wait(WaitKind.THREAD, 2, "self.lock.acquire"),)), None),
        (NOTHING, WorkFacts(waits=(THREAD,)), WaitChange((THREAD,))),
        (WorkFacts(waits=(NETWORK,)), WorkFacts(waits=(THREAD,)), None),  # which may wait for the network
    ],
)
def test_what_is_waited_for_and_was_not(before: WorkFacts | None, after: WorkFacts, change: WaitChange | None) -> None:
    assert wait_change(text_with(before, text="pass"), text_with(after)) == change


def test_a_sleep_that_does_not_matter_is_not_reported() -> None:
    assert wait_change(text_with(NOTHING), text_with(sleeping(0.01)), cost=1.0) is None
    assert wait_change(text_with(NOTHING), text_with(sleeping(0.5)), cost=1.0) is not None


def test_a_program_has_its_input_before_it_starts() -> None:
    reading = WorkFacts(waits=(Wait(WaitKind.USER, 0, "input"),))
    assert wait_change(text_with(NOTHING, text="pass"), text_with(reading)) is not None
    assert wait_change(text_with(NOTHING, "program"), text_with(reading, "program")) is None


FETCH = "import requests\n\n\ndef f(url, store):\n    {}\n"


@pytest.mark.parametrize(
    ("before", "after", "waits"),
    [
        ("return url", "return requests.get(url)", True),
        ("return store.load(url)", "return store.load(requests.get(url))", True),
        ("return store.load(url)", "return requests.get(url)", False),  # which may have waited for the same
        ("return store.get(url)", "return requests.get(url)", False),
    ],
)
def test_a_wait_is_new_where_the_edit_adds_its_call(before: str, after: str, waits: bool) -> None:
    [old], [new] = analysed(FETCH.format(before)), analysed(FETCH.format(after))
    assert new.code.work is not None
    assert new.code.work.waits
    assert (wait_change(old.code, new.code) is not None) is waits


OPENER = "import urllib.request\n\n\ndef send(opener{}, x):\n    return opener.open(x)\n\n\ndef f(opener, x):\n    {}\n"


def test_a_type_hint_that_shows_a_wait_adds_none() -> None:
    hint = ": urllib.request.OpenerDirector"
    before = analysed(OPENER.format("", "return send(opener, x)"))
    after = analysed(OPENER.format(hint, "return send(opener, x)"))
    assert [bool(entry.code.work and entry.code.work.waits) for entry in before + after] == [False, False, True, True]
    assert [wait_change(old.code, new.code) for old, new in zip(before, after, strict=True)] == [None, None]


def test_a_new_call_of_a_function_that_waits_is_a_new_wait() -> None:
    hint = ": urllib.request.OpenerDirector"
    before, after = (analysed(OPENER.format(hint, body)) for body in ("return x", "return send(opener, x)"))
    change = wait_change(before[1].code, after[1].code)
    assert change is not None
    assert [wait.call for wait in change.waits] == ["opener.open"]


ONCE = "def f(values):\n    return [value + 1 for value in values]\n"
PAIRS = "def f(values):\n    return [value + other for value in values for other in values]\n"


def test_texts_are_compared_metric_by_metric(make_prediction: MakePrediction) -> None:
    linear, quadratic = GrowthEstimate("n", 1.0), GrowthEstimate("n^2", 1.0)
    before = [make_prediction(growth=linear), make_prediction(metric="memory", growth=linear)]
    after = [make_prediction(metric="memory", growth=quadratic), make_prediction(growth=linear, median=1.0)]
    [old], [new] = analysed(ONCE), analysed(PAIRS)
    change = work_change(old.code, new.code, (before, after))
    assert [(rise.metric, rise.after) for rise in change.growth] == [("memory", quadratic)]
    slower = replace(new.code, work=sleeping(1.0))
    change = work_change(old.code, slower, (before, after))
    assert change.wait == WaitChange(seconds=(0.0, 1.0))
    assert change.wait.is_new


def test_a_rise_that_the_texts_do_not_show_is_not_reported(make_prediction: MakePrediction) -> None:
    before, after = ([make_prediction(growth=GrowthEstimate(name, 1.0), metric="latency")] for name in ("n", "n^2"))
    [old], [renamed] = analysed(PAIRS), analysed(PAIRS.replace("other", "second"))
    assert work_change(old.code, renamed.code, (before, after)).growth == ()
    [old], [new] = analysed(ONCE), analysed(PAIRS)
    assert work_change(old.code, new.code, (before, after)).growth


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        (WaitChange((NETWORK,)), True),
        (WaitChange(endless=0), True),
        (WaitChange(seconds=(0.0, 1.0)), True),
        (WaitChange(seconds=(0.1, 1.0)), False),
    ],
)
def test_a_longer_wait_is_not_a_new_one(change: WaitChange, is_new: bool) -> None:
    assert change.is_new is is_new


UNIQUE = """def unique(names):
    known = {made}
    for name in names:
        if name in known:
            name += "'"
        known.{add}(name)
    return {result}
"""
SLOW, FAST = (
    UNIQUE.format(made="[]", add="append", result="known"),
    UNIQUE.format(made="set()", add="add", result="len(known)"),
)
SORTED = "def unique(names):\n    return [name for name in names if name in sorted(names)]\n"


@pytest.mark.parametrize(
    ("before", "after", "rises"),
    [
        (FAST, SLOW, True),
        (SLOW, FAST, False),
        (SLOW, SLOW.replace('"\'"', '"+"'), False),
        (SORTED, SLOW, False),  # grew like that before
        ("def unique(names):\n    return load(names)\n", SLOW, False),  # a call that is gone may have grown like that
    ],
)
def test_a_place_that_makes_a_latency_grow_shows_a_rise(
    make_prediction: MakePrediction, before: str, after: str, rises: bool
) -> None:
    [old], [new] = (Analyser().analyse(ParsedSource(text.encode(), "python")) for text in (before, after))
    earlier = make_prediction(growth=GrowthEstimate("n", 0.7, ("names",)))  # too uncertain to be stated
    now = make_prediction(growth=GrowthEstimate("n^2", 0.8, ("names",)))
    found = work_change(old.code, new.code, ([earlier], [now])).growth
    assert [(rise.after.growth_class, rise.probability) for rise in found] == ([("n^2", 0.8)] if rises else [])
