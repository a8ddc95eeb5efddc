"""The store of measurements: what goes in comes out, also with several processes, broken files and full disks."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import DataError
from rlm_core.files import read_json_lines
from rlm_core.measurement import Measurement, Store, source_hash
from rlm_core.measurement.functions.collect import RunLeader, collect, import_left_runs, new_run
from rlm_core.measurement.functions.sources import FunctionFile
from rlm_core.measurement.labels import from_labels, newest, to_labels, with_source
from rlm_core.measurement.store import KEPT_DAYS, KEPT_RUNS
from rlm_core.measurement.types import SizedCalls, SizeSpread, measured_text

pytestmark = pytest.mark.timeout(120)

NOW = datetime.now(UTC).replace(microsecond=0)


def _at(days: float) -> str:
    return (NOW + timedelta(days=days)).isoformat(timespec="seconds")


def measurement(**changes: object) -> Measurement:
    one = Measurement(
        source_hash=source_hash("def f(n):\n    return n\n"),
        source_sha1="0" * 40,
        device="a processor",
        machine="x86-64",
        workload={"runtime": "cpython-3.12"},
        metric="latency",
        median=2e-6,
        low=1e-6,
        high=8e-6,
        calls=40,
        tests=8,
        exceptions=1,
        kind="function",
        recursive=False,
        threads=False,
        ok=True,
        package="shapes",
        version="1.0",
        module="shapes.area",
        qualname="f",
        file="shapes/area.py",
        line=3,
        last_line=4,
        measured_at=NOW.isoformat(timespec="seconds"),
        run="run-1",
        path="/home/me/src/shapes/area.py",
    )
    return replace(one, **changes)  # type: ignore[arg-type]


SIZED: dict[str, Any] = {
    "sizes": {"items": SizeSpread(1, 2.5, 40), "self.rows[]": SizeSpread(0, 0, 3)},
    "sized": (SizedCalls({"items": 1.5}, 1e-6, 4), SizedCalls({"items": 30.0}, 1e-5, 4, True)),
    "first": 1e-3,
}


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "m.sqlite3")
    assert store.all() == []
    assert store.summaries() == []
    assert not store.path.exists()
    one, other = measurement(), measurement(metric="memory", median=0.0, low=0.0, high=64.0, package="other")
    assert store.add([one, other]) == 2
    assert store.add([one]) == 1
    assert sorted(store.all(), key=lambda found: found.metric) == [one, other]
    assert store.all(["shapes"]) == [one, other]
    assert store.all(["nothing"]) == []
    assert [(found.package, found.metric, found.units) for found in store.summaries()] == [
        ("other", "memory", 1),
        ("shapes", "latency", 1),
    ]


def test_units_are_found_by_name_the_newest_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    later = (NOW + timedelta(hours=1)).isoformat()
    store.add([measurement(), measurement(run="run-2", measured_at=later), measurement(qualname="g")])
    store.add([measurement(qualname="h")])
    assert [one.run for one in store.of_names(["f"])] == ["run-2", "run-1"]
    assert {one.qualname for one in store.of_names(["g", "h", "none", *map(str, range(2000))])} == {"g", "h"}
    assert store.of_names([]) == []


def test_texts_are_kept_as_long_as_a_measurement_has_them(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    old = measurement(text="def f(n):\n\treturn n", metric="memory")
    store.add([old, replace(old, metric="latency")])
    assert {one.text for one in store.all()} == {old.text}
    # What is imported without its text does not remove it.
    store.add([replace(old, text="", run="run-2")])
    assert {one.text for one in store.all()} == {old.text}
    store.add([measurement(run=f"run-{number}", source_hash="f" * 32, text="new") for number in range(3)])
    with sqlite3.connect(store.path) as connection:
        connection.execute("DELETE FROM measurement WHERE source_hash = ?", (old.source_hash,))
    connection.close()
    store.add([measurement(qualname="g", source_hash="e" * 32)])
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT text FROM text").fetchall() == [("new",)]
    connection.close()


def test_a_store_of_the_second_version_is_upgraded(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    store.add([measurement()])
    with sqlite3.connect(store.path) as connection:
        connection.execute("DROP TABLE text")
        for name in ("cpu_score", "sizes", "sized", "first"):
            connection.execute(f"ALTER TABLE measurement DROP COLUMN {name}")
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    assert store.all() == [measurement()]
    later = measurement(run="run-2", text="def f(n):\n\treturn n", cpu_score=1.5)
    store.add([later])
    assert [one.text for one in store.all()] == [later.text] * 2
    assert {one.cpu_score for one in store.all()} == {0.0, 1.5}


def test_a_store_of_the_third_version_is_upgraded(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    store.add([measurement()])
    with sqlite3.connect(store.path) as connection:
        for name in ("sizes", "sized", "first"):
            connection.execute(f"ALTER TABLE measurement DROP COLUMN {name}")
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    assert store.all() == [measurement()]
    later = measurement(run="run-2", **SIZED)
    store.add([later])
    assert [one.sizes for one in store.all()] == [SIZED["sizes"], {}]


def test_sizes_go_round(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    rows = [measurement(path="", **SIZED), measurement(path="", metric="memory", median=64.0, high=64.0)]
    store.add(rows)
    assert sorted(store.all(), key=lambda one: one.metric) == rows
    labels = json.loads(json.dumps(to_labels(rows)))
    assert list(from_labels([("row 1", label) for label in labels])) == rows


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": {"latency": {"items": [3, 2, 1]}}},
        {"sizes": {"latency": {"items": [1, 2]}}},
        {"sizes": {"latency": {"items": [-1, 2, 3]}}},
        {"sizes": {"latency": {"items": [1, 2, float("inf")]}}},
        {"sizes": {"latency": {"`items`": [1, 2, 3]}}},
        {"sizes": {"latency": {f"x{number}": [1, 2, 3] for number in range(17)}}},
        {"sized": {"latency": [{"sizes": {"items": 1}, "median": float("nan"), "calls": 1, "scaled": False}]}},
        {"sized": {"latency": [{"median": 1.0}]}},
        {"first": {"latency": "soon"}},
    ],
)
def test_sizes_that_cannot_be_are_refused(change: dict[str, object]) -> None:
    [label] = to_labels([measurement()])
    with pytest.raises(DataError, match="row 1: not a row of"):
        list(from_labels([("row 1", {**label, **change})]))


def test_older_labels_have_no_sizes() -> None:
    [label] = to_labels([measurement(path="", **SIZED)])
    older = {name: value for name, value in label.items() if name not in ("sizes", "sized", "first")}
    for row in (older, {**older, "sizes": None, "sized": None, "first": None}):
        assert list(from_labels([("row 1", row)])) == [measurement(path="")]


def test_only_what_can_change_the_cost_changes_a_hash() -> None:
    text = "def f(n):\n    total = n\n    return total\n"
    same = 'def f(n: int) -> int:  # twice\n\n    """Doc."""\n    value = n\n    return value\n'
    assert source_hash(text) == source_hash(same) == source_hash("    " + text.replace("\n    ", "\n        "))
    assert source_hash(text) != source_hash(text.replace("return total", "return -total"))
    assert source_hash(text) == source_hash(measured_text(text))


def test_old_rows_are_pruned(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    days = [(NOW - timedelta(days=days)).isoformat(timespec="seconds") for days in (KEPT_DAYS + 1, 4, 3, 2, 1)]
    store.add([measurement(run=f"run-{number}", measured_at=day) for number, day in enumerate(days)])
    # Two functions of one run may share a text; an old run of another text stays.
    store.add([measurement(source_hash="f" * 32, run="run-1", measured_at=days[1])])
    assert [one.run for one in store.all()] == ["run-4", "run-3", "run-2", "run-1"]
    assert KEPT_RUNS == 3


def _add(path: Path, worker: int) -> None:
    for number in range(10):
        Store(path).add([measurement(run=f"run-{worker}", line=number, source_hash=f"{worker * 10 + number:032x}")])


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite3"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add, args=(path, worker)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(Store(path).all()) == 30


def test_a_file_that_is_locked_without_waiting_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "m.sqlite3")
    store.add([measurement()])
    other = sqlite3.connect(store.path, isolation_level=None)
    # While this transaction lasts, SQLite refuses at once to go back to write-ahead mode.
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN IMMEDIATE")
    waits: list[float] = []

    def end(seconds: float) -> None:
        waits.append(seconds)
        other.execute("COMMIT")

    monkeypatch.setattr("time.sleep", end)
    assert store.add([measurement(run="run-2")]) == 1
    other.close()
    assert len(waits) == 1
    assert len(store.all()) == 2


@pytest.mark.parametrize("broken", ["garbage", "torn"])
def test_a_broken_file_is_set_aside_with_a_message(tmp_path: Path, broken: str) -> None:
    notes: list[str] = []
    store = Store(tmp_path / "m.sqlite3", notes.append)
    store.add([measurement(run=f"run-{number}", source_hash=f"{number:032x}") for number in range(200)])
    data = store.path.read_bytes()
    torn = data[:4096] + os.urandom(len(data) - 4096)
    store.path.write_bytes(b"not a database\n" * 400 if broken == "garbage" else torn)
    assert store.add([measurement()]) == 1
    assert store.all() == [measurement()]
    [note] = notes
    [aside] = tmp_path.glob("m.sqlite3.broken-*")
    assert aside.name in note
    assert aside.stat().st_size > 4096


def test_a_file_that_another_process_has_replaced_stays(tmp_path: Path) -> None:
    notes: list[str] = []
    store = Store(tmp_path / "m.sqlite3", notes.append)
    store.add([measurement()])
    store._set_aside()
    assert store.all() == [measurement()]
    assert notes == []


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(DataError, match="is a database of something else"):
        Store(path).add([measurement()])
    newer = Store(tmp_path / "newer.sqlite3")
    newer.add([measurement()])
    with sqlite3.connect(newer.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DataError, match="newer rlm-lsp"):
        newer.all()


def test_a_full_disk_is_an_error_of_one_line_and_loses_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    store.add([measurement()])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (store.path.stat().st_size, before[1]))
    try:
        with pytest.raises(DataError, match="free some space") as caught:
            store.add([measurement(run="run-2", source_hash=f"{number:032x}") for number in range(2000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(caught.value)
    assert store.all() == [measurement()]
    assert store.add([measurement(run="run-2")]) == 1


def test_abandoned_runs_are_imported_unless_their_leader_is_alive(tmp_path: Path) -> None:
    store, notes = Store(tmp_path / "m.sqlite3"), list[str]()
    code = tmp_path / "shapes.py"
    code.write_text("def f(n):\n    return n\n")
    os.utime(code, (1, 1))
    led, left, strange = new_run(store), new_run(store), new_run(store)
    run = RunLeader.read(left)
    # A number above all that processes may have.
    replace(run, pid=1 << 30).write(left)
    (strange / "run.json").write_text("{}")
    for folder in (led, left):
        (folder / "1-1.jsonl").write_text(
            '["start",{"format":"rlm-spool-1","metric":"latency","pid":1073741824,"python":"3.12.1","worker":""}]\n'
            f'["function",0,"shapes","f","{code}",1,"function"]\n["test","t"]\n'
            '["seen",[[0,0,0,0,[100,300,200]]]]\n["test","cut o'
        )
    import_left_runs(store, notes.append)
    [one] = store.all()
    assert (one.run, one.calls, one.file) == (run.name, 3, "shapes.py")
    assert one.median == pytest.approx(2e-7)
    assert led.exists()
    assert not left.exists()
    assert {note.partition(": ")[0] for note in notes} == {"an interrupted run was taken in", str(strange / "run.json")}


def test_a_file_that_changed_since_is_not_taken_for_what_ran(tmp_path: Path) -> None:
    store, notes = Store(tmp_path / "m.sqlite3"), list[str]()
    folder = new_run(store)
    replace(RunLeader.read(folder), pid=1 << 30).write(folder)
    code = tmp_path / "shapes.py"
    code.write_text("def f(n):\n    return n\n")
    os.utime(code, (4e9, 4e9))
    (folder / "1-1.jsonl").write_text(
        '["start",{"format":"rlm-spool-1","metric":"latency","pid":1073741824}]\n'
        f'["function",0,"shapes","f","{code}",1,"function"]\n["test","t"]\n["seen",[[0,0,0,0,[100]]]]\n'
    )
    import_left_runs(store, notes.append)
    assert store.all() == []


def test_no_latency_is_less_than_nothing(tmp_path: Path) -> None:
    code = tmp_path / "shapes.py"
    code.write_text("def f(n):\n    return n\n\n\ndef g(n):\n    return n\n")
    os.utime(code, (1e9, 1e9))
    folder = new_run(Store(tmp_path / "m.sqlite3"))
    (folder / "1-1.jsonl").write_text(
        '["start",{"format":"rlm-spool-1","metric":"latency"}]\n'
        f'["function",0,"shapes","f","{code}",1,"function"]\n["function",1,"shapes","g","{code}",5,"function"]\n'
        '["test","t"]\n["seen",[[0,0,0,0,[-80,-60,-40,70,90]],[1,0,0,0,[-9000,-400,-400]]]]\n'
    )
    found = collect(folder, "a processor")
    [one] = found.measurements
    assert (one.qualname, one.low, one.median) == ("f", 0, 0)
    assert one.high == pytest.approx(82e-9)
    assert found.left_out == {"hidden by the cost of measuring": 1}


def test_labels_round_trip_and_carry_no_text_unless_requested(tmp_path: Path) -> None:
    code = tmp_path / "area.py"
    code.write_text("def g(n):\n    return n\n\n\n@property\ndef f(n):\n    return g(n)  # twice\n")
    source = FunctionFile(code).function("f", 5)
    assert source is not None
    mine = measurement(source_hash=source.hash, source_sha1=source.sha1, line=5, last_line=7, path=str(code))
    gone = measurement(qualname="gone", path=str(tmp_path / "gone.py"))
    memory = replace(mine, metric="memory", median=96.0, low=0.0, high=128.0, ok=True)
    measurements = [mine, memory, gone]
    labels = to_labels(measurements)
    assert len(labels) == 2
    assert not any("text" in row or "path" in row for row in labels)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in labels))
    found = sorted(from_labels(read_json_lines(path)), key=lambda one: (one.qualname, one.metric))
    assert [replace(one, path="") for one in measurements] == found
    assert with_source(labels, measurements) == 1
    [row] = [row for row in labels if "text" in row]
    assert row["text"] == "@property\ndef f(n):\n    return g(n)  # twice\n"
    assert [callee["text"] for callee in row["callees"]] == ["def g(n):\n    return n"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"source_hash": "x"}, "hexadecimal"),
        ({"latency_us": {"p10": 2, "p50": 1, "p90": 3}}, "rise"),
        ({"kind": "class"}, "kind must be one of"),
        ({"device": 3}, "must be text"),
        ({"measured_at": "yesterday"}, "isoformat"),
        ({"workload": None}, "items"),
    ],
)
def test_a_row_that_is_no_measurement_is_reported_with_its_place(change: dict[str, object], reason: str) -> None:
    [row] = to_labels([measurement()])
    with pytest.raises(DataError, match=f"rows:7: not a row.*{reason}"):
        list(from_labels([("rows:7", {**row, **change})]))


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1e9)).map(sorted), min_size=1, max_size=4))
def test_rounding_of_labels_keeps_their_order(spreads: list[list[float]]) -> None:
    rows = [
        measurement(metric="memory", low=low, median=median, high=high, run=f"run-{number}")
        for number, (low, median, high) in enumerate(spreads)
    ]
    found = list(from_labels(("", row) for row in to_labels(rows)))
    assert [one.median for one in found] == pytest.approx([one.median for one in rows], abs=1e-5)


def test_of_several_runs_the_newest_counts() -> None:
    later = (NOW + timedelta(seconds=1)).isoformat()
    rows = [measurement(run="b", measured_at=later), measurement(), measurement(metric="memory")]
    assert {(one.metric, one.run) for one in newest(rows)} == {("latency", "b"), ("memory", "run-1")}


def test_a_clock_that_jumps_ahead_loses_no_unit(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    store.add([measurement(), measurement(qualname="g")])
    # The clock shows a date in two years, then the right one again; seen from then, today is long ago.
    old = [measurement(measured_at=_at(-800)), measurement(qualname="g", measured_at=_at(-800))]
    aged = Store(tmp_path / "aged.sqlite3")
    aged.add(old)
    aged.add([measurement(run="run-2")])
    assert {(one.qualname, one.run) for one in aged.all()} == {("f", "run-2"), ("g", "run-1")}
    for run in ("run-2", "run-3", "run-4"):
        store.add([measurement(run=run, measured_at=_at(730), median=9e-6, high=9e-6)])
    store.add([measurement(run="run-5", median=5e-6)])
    assert store.of_names(["f"])[0].run == "run-5"
    assert len(store.of_names(["f"])) == KEPT_RUNS
    assert store.of_names(["g"])
