"""Which measurement applies to a unit: by text, file, machine, Python and date; from the store and from the project."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.measurement import Measurement, Store, source_hash
from rlm_core.measurement.committed import FOLDER, export_committed
from rlm_core.measurement.known import OLD_DAYS, Here, KnownMeasurements, cost_here, python_of
from rlm_core.measurement.types import measured_text
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import FoundCost, MeasurementMark, SizedCalls, SizeSpread, Unit

from .test_store import NOW, measurement

pytestmark = pytest.mark.timeout(60)

HERE = Here("a processor")
TEXT = "def f(n: int) -> list[int]:\n    rows = sorted(range(n))\n    return rows\n"
PLAIN = "def f(n: int) -> list[int]:\n\trows = sorted(range(n))\n\treturn rows"


def unit_of(text: str) -> Unit:
    return Analyser().analyse(ParsedSource(text.encode(), "python"))[0].unit


def known(store: Store, *roots: Path, here: Here = HERE) -> KnownMeasurements:
    return KnownMeasurements(store, roots, here=lambda: here)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store" / "m.sqlite3")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "project" / "shapes" / "area.py"


def of(path: Path, text: str = TEXT, **changes: object) -> Measurement:
    plain = PLAIN if text == TEXT else text
    return measurement(source_hash=source_hash(text), text=plain, path=str(path), **changes)


def test_sizes_come_along_and_calls_by_size_are_scaled_like_the_rest() -> None:
    spread, calls = SizeSpread(3, 12, 40), SizedCalls({"items": 12.0}, 2e-5, 7)
    one = measurement(device="another", cpu_score=0.5, sizes={"items": spread}, sized=(calls,))
    cost = cost_here(one, Here("a processor", 1.0, 0.1), None)
    assert cost.sizes == (("items", spread),)
    assert cost.cpu_ratio == 0.5
    assert cost.sized == (replace(calls, median=1e-5),)
    here = cost_here(replace(one, device="a processor"), Here("a processor", 1.0, 0.1), None)
    assert here.sized == (calls,)


def test_a_unit_without_measurements_has_none(store: Store, path: Path) -> None:
    assert known(store).find(unit_of(TEXT), path) == ()
    store.add([of(path, qualname="g")])
    assert known(store).find(unit_of(TEXT), path) == ()


def test_the_measured_functions_of_a_folder_are_found_by_file(store: Store, path: Path) -> None:
    other = path.parent / "volume.py"
    store.add(
        [
            of(path),
            of(path, metric="memory", median=800.0),
            of(path, text="def g():\n\treturn 1", qualname="g", device="another processor", median=1e-3),
            of(path, text="def g():\n\treturn 2", qualname="g", median=1e-4),
            of(other, text="def h():\n\treturn 3", qualname="h"),
            of(other, text="", qualname="no_text"),
            of(other, text="def i():\n\treturn 4", qualname="i", ok=False),
            of(path.parent.with_name("shapes2") / "area.py", text="def j():\n\treturn 5", qualname="j"),
        ]
    )
    found = known(store).functions_in(path.parent)
    assert set(found) == {path, other}
    texts = {one.text: [(cost.metric, cost.median) for cost in one.known] for one in found[path]}
    assert texts == {PLAIN: [("latency", 2e-6), ("memory", 800.0)], "def g():\n\treturn 2": [("latency", 1e-4)]}
    assert [one.text for one in found[other]] == ["def h():\n\treturn 3"]
    assert known(store).functions_in(path.parent / "none") == {}


def test_committed_measurements_of_a_folder_are_found_too(store: Store, path: Path) -> None:
    root = path.parent.parent
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    store.add([of(path)])
    export_committed(store.all(), root / FOLDER, root, pytest.fail)
    nothing = Store(root / "empty.sqlite3")
    [one] = known(nothing, root).functions_in(path.parent)[path]
    assert one.text == PLAIN
    assert [cost.median for cost in one.known] == [2e-6]


@pytest.mark.parametrize(
    "edit",
    [
        TEXT.replace("rows", "values"),
        TEXT.replace("    rows =", "    # a comment\n    rows =").replace("range(n)", "range( n )"),
        TEXT.replace(": int", "").replace(" -> list[int]", ""),
        TEXT.replace(":\n    rows", ':\n    """Documented."""\n    rows'),
    ],
    ids=["a renamed local", "comments and layout", "type hints", "a docstring"],
)
def test_an_edit_that_cannot_change_the_cost_leaves_the_unit_measured(store: Store, path: Path, edit: str) -> None:
    assert edit != TEXT
    store.add([of(path)])
    [found] = known(store).find(unit_of(edit), path)
    assert found.before is None
    assert found.cost.median == 2e-6


def test_a_changed_unit_comes_with_the_text_that_was_measured(store: Store, path: Path) -> None:
    store.add([of(path)])
    edited = unit_of(TEXT.replace("sorted", "list"))
    assert [one.before for one in known(store).find(edited, path)] == [PLAIN]
    # In another file it is another function.
    assert known(store).find(edited, path.with_name("other.py")) == ()


SHARED = """
class A:
    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, n):
        self._x = sorted(n)

    @property
    def y(self):
        return sorted(self._x)

    @y.setter
    def y(self, n):
        self._x = n

@size.register
def _(n: int):
    return n.bit_length()

@size.register
def _(n: list):
    return sum(n)

if FAST:
    def f(n):
        return n
else:
    def f(n):
        return sorted(n)
"""
# The costs of the units of the text in their order; those without one were not measured.
SHARED_COSTS = (1e-6, 2e-6, 3e-6, None, 5e-6, 6e-6, 7e-6, None)


def of_shared(path: Path, **changes: object) -> list[Measurement]:
    """One run's measurements of the units of ``SHARED``."""
    units = find_units(ParsedSource(SHARED.encode(), "python"))
    return [
        of(path, measured_text(unit.text), qualname=unit.qualname, median=cost, line=unit.span.start_line, **changes)
        for unit, cost in zip(units, SHARED_COSTS, strict=True)
        if cost is not None
    ]


def anchors_of(measurements: KnownMeasurements, source: str, path: Path) -> list[tuple[float, bool] | None]:
    """Of each unit of a text: the cost that it is given, and whether it is that of its present text."""
    units = Analyser(measured=measurements).analyse(ParsedSource(source.encode(), "python"), path)
    anchors = [unit.code.measured for unit in units]
    return [(one[0].cost.median, one[0].before is None) if one else None for one in anchors]


@pytest.mark.parametrize("committed", [False, True], ids=["store", "committed"])
def test_units_that_share_a_name_are_matched_by_text_or_accessor(store: Store, path: Path, committed: bool) -> None:
    root = path.parent.parent
    if committed:
        path.parent.mkdir(parents=True)
        export_committed(of_shared(path), root / FOLDER, root, pytest.fail)
    else:
        store.add(of_shared(path))
    same = [(cost, True) if cost is not None else None for cost in SHARED_COSTS]
    measurements = known(store, root)
    assert anchors_of(measurements, SHARED, path) == same
    for number, (before, after, expected) in enumerate(
        [
            ("return self._x\n", "return self._x or 0\n", (1e-6, False)),
            ("self._x = sorted(n)", "self._x = list(n)", (2e-6, False)),
            ("return sorted(self._x)", "return list(self._x)", (3e-6, False)),
            ("self._x = n\n", "self._x = n or 0\n", None),
            ("n.bit_length()", "n.bit_count()", None),
            ("sum(n)", "max(n)", None),
            ("return n\n", "return n + n\n", None),
            ("        return sorted(n)", "        return list(n)", None),
        ]
    ):
        assert SHARED.count(before) == 1
        edited = SHARED.replace(before, after)
        assert anchors_of(measurements, edited, path) == [*same[:number], expected, *same[number + 1 :]], before


def test_a_changed_unit_is_not_matched_where_units_of_its_name_were_measured_in_one_run(
    store: Store, path: Path
) -> None:
    store.add(of_shared(path))
    later = (NOW + timedelta(hours=1)).isoformat()
    # Which of the two a later run of some tests has measured is not known either.
    store.add(of_shared(path, run="run-2", measured_at=later)[4:5])
    alone = "@size.register\ndef _(n: list):\n    return max(n)\n"
    assert anchors_of(known(store), alone, path) == [None]
    assert anchors_of(known(store), alone.replace("max", "sum"), path) == [(6e-6, True)]


def test_a_changed_unit_is_not_matched_where_the_file_has_several_of_its_name(store: Store, path: Path) -> None:
    store.add([of(path)])
    edited = TEXT.replace("sorted", "list")
    assert anchors_of(known(store), edited, path) == [(2e-6, False)]
    assert anchors_of(known(store), TEXT + edited, path) == [(2e-6, True), None]
    assert anchors_of(known(store), edited + edited.replace("list", "max"), path) == [None, None]


def test_functions_of_a_folder_that_share_a_name_are_all_found(store: Store, path: Path) -> None:
    store.add([*of_shared(path), *of_shared(path, metric="memory")])
    found = known(store).functions_in(path.parent)[path]
    assert {one.text for one in found} == {one.text for one in store.all()}
    assert {len(one.known) for one in found} == {2}


def test_the_same_text_takes_precedence_over_the_same_file(store: Store, path: Path) -> None:
    later = (NOW + timedelta(hours=1)).isoformat()
    elsewhere = of(path.with_name("moved.py"), median=3e-6)
    store.add([of(path, TEXT.replace("sorted", "list"), run="run-2", measured_at=later), elsewhere])
    [found] = known(store).find(unit_of(TEXT), path)
    assert (found.before, found.cost.median) == (None, 3e-6)


def test_the_same_machine_and_python_go_before_the_newest(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = path.parents[1] / ".venv"
    environment.mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text("home = /usr\nversion_info = 3.12.1.final.0\n")
    rows = [
        of(path, run="1", median=1e-6),
        of(path, run="2", median=2e-6, device="another"),
        of(path, run="3", median=3e-6, workload={"runtime": "cpython-3.13"}),
        of(path, run="4", median=4e-6),
        of(path, run="5", median=5e-6, workload={"runtime": "cpython-3.13"}, device="another"),
    ]
    ages = [replace(row, measured_at=(NOW + timedelta(minutes=at)).isoformat()) for at, row in enumerate(rows)]
    for count, expected in ((5, 4e-6), (3, 1e-6)):
        store.path.unlink(missing_ok=True)
        store.add(ages[:count])
        [found] = known(store).find(unit_of(TEXT), path)
        assert found.cost.median == pytest.approx(expected)
        assert not found.cost.marks


def test_a_latency_that_was_disturbed_is_left_out(store: Store, path: Path) -> None:
    store.add([of(path, ok=False), of(path, metric="memory", median=64.0, low=64.0, high=64.0)])
    assert [one.cost.metric for one in known(store).find(unit_of(TEXT), path)] == ["memory"]


def test_of_a_programs_inputs_the_most_expensive_counts(store: Store, tmp_path: Path) -> None:
    text = "class Solution:\n    def f(self, n):\n        return n\n"
    [unit] = [
        one.unit for one in Analyser().analyse(ParsedSource(text.encode(), "python")) if one.unit.kind == "program"
    ]
    its = measurement(source_hash=source_hash(unit.text), kind="program", qualname=unit.qualname, text=unit.text)
    for name, median in (("a", 4e-6), ("b", 3e-6)):
        store.add([replace(its, workload={"runtime": "r", "input": name}, median=median)])
    [found] = known(store).find(unit, tmp_path / "x.py")
    assert dict(found.cost.workload)["input"] == "a"


def test_committed_measurements_count_below_their_folder_and_newer_ones_of_the_user_go_first(
    store: Store, path: Path
) -> None:
    root = path.parents[1]
    path.parent.mkdir(parents=True)
    export_committed([of(path, median=3e-6)], root / FOLDER, root, pytest.fail)
    [found] = known(store, root).find(unit_of(TEXT), path)
    assert (found.cost.median, found.cost.committed) == (3e-6, True)
    assert known(store).find(unit_of(TEXT), path) == ()
    assert known(store, root).find(unit_of(TEXT), root.parent / "other" / "area.py") == ()
    store.add([of(path, measured_at=(NOW + timedelta(hours=1)).isoformat())])
    [found] = known(store, root).find(unit_of(TEXT), path)
    assert (found.cost.median, found.cost.committed) == (2e-6, False)


def test_what_is_measured_or_committed_meanwhile_is_noticed_once(store: Store, path: Path) -> None:
    root = path.parents[1]
    path.parent.mkdir(parents=True)
    measurements = known(store, root)
    assert not measurements.changed()
    assert measurements.find(unit_of(TEXT), path) == ()
    store.add([of(path)])
    assert measurements.changed()
    assert [one.cost.median for one in measurements.find(unit_of(TEXT), path)] == [2e-6]
    # Reading is not a change.
    assert not measurements.changed()
    export_committed([of(path, metric="memory")], root / FOLDER, root, pytest.fail)
    assert measurements.changed()
    assert [one.cost.metric for one in measurements.find(unit_of(TEXT), path)] == ["latency", "memory"]


def test_committed_measurements_are_read_again_only_when_they_have_changed(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = path.parents[1]
    path.parent.mkdir(parents=True)
    export_committed([of(path)], root / FOLDER, root, pytest.fail)
    measurements = known(store, root)
    assert len(measurements.find(unit_of(TEXT), path)) == 1
    monkeypatch.setattr("rlm_core.measurement.known.CommittedIndex", lambda *arguments: pytest.fail("read again"))
    store.add([of(path, metric="memory")])
    assert measurements.changed()
    assert len(measurements.find(unit_of(TEXT), path)) == 2


def test_what_came_from_another_machine_is_of_the_file_that_ends_like_it(store: Store, path: Path) -> None:
    store.add([replace(of(path), path="", file="shapes/area.py")])
    edited = unit_of(TEXT.replace("sorted", "list"))
    assert len(known(store).find(edited, path)) == 1
    assert known(store).find(edited, path.with_name("other.py")) == ()


def test_other_folders_may_be_read_later(store: Store, path: Path) -> None:
    root = path.parents[1]
    path.parent.mkdir(parents=True)
    export_committed([of(path)], root / FOLDER, root, pytest.fail)
    measurements = known(store)
    assert measurements.find(unit_of(TEXT), path) == ()
    assert measurements.use_roots([root])
    assert not measurements.use_roots([root])
    assert len(measurements.find(unit_of(TEXT), path)) == 1


def test_a_store_that_cannot_be_read_is_one_message(tmp_path: Path, path: Path) -> None:
    notes: list[str] = []
    (tmp_path / "m.sqlite3").mkdir()
    measurements = KnownMeasurements(Store(tmp_path / "m.sqlite3"), (), notes.append, lambda: HERE)
    assert measurements.find(unit_of(TEXT), path) == ()
    measurements.prepare(["g", "h"])
    assert len(notes) == 1


def test_the_latency_of_a_slower_machine_is_scaled_where_both_were_scored() -> None:
    here = Here("mine", 2.0, 0.05)
    scaled = cost_here(measurement(cpu_score=0.5), here, None)
    assert scaled.median == pytest.approx(5e-7)
    assert scaled.cpu_ratio == 0.25
    assert not scaled.marks
    assert math.log10(scaled.high / scaled.median) > math.log10(4)
    unscaled = cost_here(measurement(), here, None)
    assert (unscaled.median, unscaled.cpu_ratio) == (2e-6, None)
    assert unscaled.marks == (MeasurementMark.OTHER_MACHINE,)
    # Allocations are the same on all machines.
    assert cost_here(measurement(metric="memory"), here, None).marks == ()


def test_another_python_and_age_are_marked() -> None:
    assert cost_here(measurement(), HERE, "cpython-3.12").marks == ()
    assert cost_here(measurement(), HERE, "cpython-3.13").marks == (MeasurementMark.OTHER_PYTHON,)
    later = NOW + timedelta(days=OLD_DAYS)
    assert cost_here(measurement(), HERE, None, later).marks == (MeasurementMark.OLD,)
    assert cost_here(measurement(), HERE, None, later - timedelta(days=1)).marks == ()


def test_the_python_of_a_project_is_that_of_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "src" / "a.py"
    assert python_of(tmp_path / "bare" / "a.py") is None
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("version = 3.11.9\n")
    assert python_of(file) == "cpython-3.11"
    (tmp_path / "active").mkdir()
    (tmp_path / "active" / "pyvenv.cfg").write_text("version_info = 3.13.0\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert python_of(file) == "cpython-3.13"


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1, max_size=6))
def test_nothing_that_matches_better_is_passed_over(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[bool, bool, int]]
) -> None:
    folder = tmp_path_factory.mktemp("known")
    path = folder / "area.py"
    rows = [
        replace(
            of(path, TEXT if same else TEXT.replace("sorted", "list")),
            device="a processor" if here else "another",
            measured_at=(NOW + timedelta(minutes=minute)).isoformat(),
            run=str(number),
        )
        for number, (same, here, minute) in enumerate(drawn)
    ]
    store = Store(folder / "m.sqlite3")
    store.add(rows)
    [found] = known(store).find(unit_of(TEXT), path)
    kept = {(one.source_hash == source_hash(TEXT), one.device == "a processor", one.measured_at) for one in store.all()}
    best = max(kept)
    assert (found.before is None, found.cost.device == "a processor") == best[:2]
    assert isinstance(found, FoundCost)
