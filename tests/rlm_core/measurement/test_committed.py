"""Measurements in a project's ``.rlm`` folder: text that merges, without traces of a user, read as untrusted data."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core import DataError
from rlm_core.measurement import Measurement, source_hash
from rlm_core.measurement import committed as room
from rlm_core.measurement.committed import FILE, FOLDER, CommittedIndex, export_committed, read_committed, read_units
from rlm_core.measurement.committed_units import CommittedUnit
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import Unit

from .test_store import NOW, SIZED, measurement

pytestmark = pytest.mark.timeout(60)

PLAIN = "def f(n):\n\treturn n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "shapes").mkdir(parents=True)
    (folder / "shapes" / "area.py").write_text("def f(n):\n    return n\n")
    return folder


def of(root: Path, **changes: object) -> Measurement:
    given = {"text": PLAIN, "path": str(root / "shapes" / "area.py"), **changes}
    return measurement(**given)


def export(root: Path, *measurements: Measurement) -> bytes:
    export_committed(measurements, root / FOLDER, root, pytest.fail)
    return (root / FOLDER / FILE).read_bytes()


def test_what_is_written_can_be_read(root: Path) -> None:
    memory = of(root, metric="memory", median=96.0, low=0.0, high=128.0, cpu_score=1.5)
    data = export(root, of(root), memory)
    [line] = data.splitlines()
    assert json.loads(line)["file"] == "shapes/area.py"
    latency, peak = read_committed(root, pytest.fail)
    assert (latency.median, latency.low, latency.high, latency.calls) == (2e-6, 1e-6, 8e-6, 40)
    assert (peak.median, peak.metric, peak.cpu_score) == (96.0, "memory", 1.5)
    assert (peak.package, peak.module) == ("shapes", "shapes.area")
    assert {(one.source_hash, one.text, one.path) for one in (latency, peak)} == {
        (source_hash(PLAIN), PLAIN, str(root / "shapes" / "area.py"))
    }


def test_sizes_are_committed_for_each_metric(root: Path) -> None:
    rows = [of(root, **SIZED), of(root, metric="memory", median=96.0, low=0.0, high=128.0)]
    data = export(root, *rows)
    latency, peak = read_committed(root, pytest.fail)
    assert {name: getattr(latency, name) for name in SIZED} == SIZED
    assert (peak.sizes, peak.sized, peak.first) == ({}, (), None)
    assert set(json.loads(data)["memory"]) == {"p10", "p50", "p90", "calls"}
    assert export(root, *rows) == data


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": {"items": [3, 2, 1]}},
        {"sizes": {"items": [1, 2]}},
        {"sizes": {"items": [1, 2, 1e300]}},
        {"sizes": {"[x](y)": [1, 2, 3]}},
        {"sizes": {"items\n": [1, 2, 3]}},
        {"sizes": {f"x{number}": [1, 2, 3] for number in range(17)}},
        {"sized": [{"sizes": {}, "p50": 1.0, "calls": 1}] * 25},
        {"sized": [{"sizes": {"items": -1}, "p50": 1.0, "calls": 1}]},
        {"first": -1},
    ],
)
def test_sizes_that_cannot_be_are_not_used(root: Path, change: dict[str, Any]) -> None:
    line = json.loads(export(root, of(root)))
    line["latency"] |= change
    (root / FOLDER / FILE).write_text(json.dumps(line))
    notes: list[str] = []
    assert read_committed(root, notes.append) == []
    assert len(notes) == 1


def test_a_line_names_no_user_and_no_folder_outside_the_project(root: Path) -> None:
    data = export(root, of(root, run="20261123-host-me"), of(root, path="/home/me/elsewhere.py"))
    assert len(data.splitlines()) == 1
    for trace in (str(root), "/home/me", "host", "me/"):
        assert trace.encode() not in data


def test_the_same_measurements_give_the_same_bytes_in_any_order(root: Path) -> None:
    rows = [of(root, qualname=name, median=1e-5 / 3) for name in ("b", "a", "c")]
    data = export(root, *rows)
    assert export(root, *reversed(rows)) == data
    modified = (root / FOLDER / FILE).stat().st_mtime_ns
    assert export(root, *rows) == data
    assert (root / FOLDER / FILE).stat().st_mtime_ns == modified
    assert [json.loads(line)["unit"] for line in data.splitlines()] == ["a", "b", "c"]


def test_lines_of_others_stay_and_the_newest_of_one_device_counts(root: Path) -> None:
    later = (NOW + timedelta(hours=1)).isoformat()
    export(root, of(root, device="theirs"), of(root, measured_at=later, median=5e-6))
    export(root, of(root))
    found = {one.device: one.median for one in read_committed(root, pytest.fail)}
    assert found == {"theirs": 2e-6, "a processor": 5e-6}


GETTER, SETTER = "@property\ndef x(self):\n\treturn self._x", "@x.setter\ndef x(self, n):\n\tself._x = sorted(n)"


def test_units_that_share_a_name_have_a_line_each_with_all_metrics(root: Path) -> None:
    texts = {"A.x": (GETTER, SETTER), "_": ("@size.register(int)\ndef _(n):\n\treturn 1", "def _(n):\n\treturn len(n)")}
    rows = [
        of(root, qualname=name, text=text, source_hash=source_hash(text), metric=metric, line=line)
        for name, of_name in texts.items()
        for line, text in enumerate(of_name)
        for metric in ("latency", "memory")
    ]
    data = export(root, *rows)
    assert len(data.splitlines()) == 4
    assert export(root, *reversed(rows)) == data
    found = {(one.qualname, one.text, one.metric) for one in read_committed(root, pytest.fail)}
    assert found == {(one.qualname, one.text, one.metric) for one in rows}


def test_a_newer_text_replaces_that_of_the_same_accessor_alone(root: Path) -> None:
    later = (NOW + timedelta(hours=1)).isoformat()
    edited = SETTER.replace("sorted", "list")
    export(root, *(of(root, qualname="A.x", text=text, source_hash=source_hash(text)) for text in (GETTER, SETTER)))
    export(root, of(root, qualname="A.x", text=edited, source_hash=source_hash(edited), measured_at=later))
    assert {one.text for one in read_committed(root, pytest.fail)} == {GETTER, edited}


def test_files_that_a_merge_has_left_are_joined(root: Path) -> None:
    export(root, of(root, qualname="a"))
    (root / FOLDER / FILE).rename(root / FOLDER / "theirs.jsonl")
    export(root, of(root, qualname="b"))
    assert [path.name for path in (root / FOLDER).iterdir()] == [FILE]
    assert [unit.unit for unit in read_units(root / FOLDER, pytest.fail)] == ["a", "b"]


def test_a_measurement_from_another_machine_is_of_the_file_that_it_is_imported_from(root: Path) -> None:
    data = export(root, of(root, path=""), of(root, path="", file="gone.py", qualname="g"))
    assert [json.loads(line)["unit"] for line in data.splitlines()] == ["f"]


@pytest.mark.parametrize(
    "change",
    [
        {"file": "/etc/passwd"},
        {"file": "../up.py"},
        {"file": "C:/up.py"},
        {"hash": "x"},
        {"date": "yesterday"},
        {"language": "klingon"},
        {"kind": "class"},
        {"latency": {"p10": 2, "p50": 1, "p90": 3, "calls": 1}},
        {"latency": {"p10": -1, "p50": 1, "p90": 3, "calls": 1}},
        {"unit": ""},
    ],
    ids=str,
)
def test_a_malformed_line_is_one_message_and_the_others_count(root: Path, change: dict[str, Any]) -> None:
    good = json.loads(export(root, of(root)))
    path = root / FOLDER / FILE
    path.write_text(f"{json.dumps(good)}\n{json.dumps({**good, 'unit': 'g', **change})}\nnot JSON\n")
    notes: list[str] = []
    assert [one.qualname for one in read_committed(root, notes.append)] == ["f"]
    assert [note.partition(": ")[0] for note in notes] == [f"{path}:2", f"{path}:3"]
    assert not any("\n" in note for note in notes)


def test_many_malformed_lines_do_not_flood_the_log(root: Path) -> None:
    (root / FOLDER).mkdir()
    (root / FOLDER / FILE).write_text("[]\n" * 1000)
    notes: list[str] = []
    assert read_committed(root, notes.append) == []
    assert len(notes) == 4
    assert notes[-1].endswith("997 more lines cannot be used")


def test_only_regular_files_within_the_limits_are_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(root, of(root))
    folder = root / FOLDER
    (folder / "link.jsonl").symlink_to(folder / FILE)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "folder.jsonl").mkdir()
    (folder / "notes.txt").write_text("not JSON")
    assert len(read_committed(root, pytest.fail)) == 1
    monkeypatch.setattr(room, "MOST_BYTES", 10)
    notes: list[str] = []
    assert read_committed(root, notes.append) == []
    assert len(notes) == 1


def test_a_folder_that_is_a_link_is_not_read(root: Path, tmp_path: Path) -> None:
    export(root, of(root))
    other = tmp_path / "other"
    other.mkdir()
    (other / FOLDER).symlink_to(root / FOLDER)
    assert read_committed(other, pytest.fail) == []


def test_a_file_that_is_a_link_is_not_replaced(root: Path, tmp_path: Path) -> None:
    (root / FOLDER).mkdir()
    (tmp_path / "target").write_text("")
    (root / FOLDER / FILE).symlink_to(tmp_path / "target")
    with pytest.raises(DataError, match="is a link"):
        export_committed([of(root)], root / FOLDER, root, pytest.fail)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.floats(1e-9, 1e3)), min_size=1, max_size=8))
def test_writing_what_was_read_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, int, float]]
) -> None:
    root = tmp_path_factory.mktemp("project")
    rows = [
        replace(
            of(root, qualname=name, median=value, low=value / 3, high=value * 7),
            measured_at=(NOW + timedelta(minutes=minute)).isoformat(),
        )
        for name, minute, value in drawn
    ]
    data = export(root, *rows)
    assert export(root, *read_committed(root, pytest.fail)) == data


def unit_of(text: str) -> Unit:
    [unit] = find_units(ParsedSource(text.encode(), "python"))
    return unit


def test_only_lines_about_what_is_looked_up_are_decoded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = root / "shapes" / 'größe "a".py'
    sizes.touch()
    export(
        root,
        *(of(root, qualname=f"f{number}", path=str(root / "shapes" / f"m{number}.py")) for number in range(50)),
        of(root, qualname="f", path=str(sizes)),
    )
    decoded: list[bytes] = []
    decode = room._unit

    def counted(line: bytes) -> CommittedUnit:
        decoded.append(line)
        return decode(line)

    monkeypatch.setattr(room, "_unit", counted)
    index = CommittedIndex(root, pytest.fail)
    assert decoded == []
    assert [one.qualname for one in index.of_file(unit_of("def f(n): pass"), sizes)] == ["f"]
    assert index.of_file(unit_of("def f1(n): pass"), root / "shapes" / "m10.py") == []
    assert len(decoded) == 2
    assert [one.path for one in index.of_text("f7", source_hash(PLAIN))] == [str(root / "shapes" / "m7.py")]
    assert index.of_text("f7", "0" * 32) == []
    assert {one.qualname for one in index.below(root / "shapes")} == {"f", *(f"f{number}" for number in range(50))}
    assert index.below(root / "other") == index.below(root.parent) == []


def test_a_line_may_be_written_by_other_programs(root: Path) -> None:
    line = json.loads(export(root, of(root, path=str(root / "größe.py"))))
    (root / FOLDER / FILE).write_text(json.dumps(dict(reversed(line.items())), ensure_ascii=True))
    index = CommittedIndex(root, pytest.fail)
    assert [one.qualname for one in index.of_file(unit_of("def f(n): pass"), root / "größe.py")] == ["f"]
    assert len(index.of_text("f", source_hash(PLAIN))) == 1


def test_lines_that_no_look_up_finds_are_reported_at_once_and_others_when_they_are_found(root: Path) -> None:
    good = json.loads(export(root, of(root)))
    path = root / FOLDER / FILE
    path.write_text("<<<<<<< ours\n" + json.dumps({**good, "date": "yesterday"}) + "\n=======\n\n>>>>>>> theirs\n[]\n")
    notes: list[str] = []
    index = CommittedIndex(root, notes.append)
    assert [note.partition(": ")[0] for note in notes] == [f"{path}:1", f"{path}:3", f"{path}:5", str(path)]
    notes.clear()
    path.write_text(json.dumps({**good, "date": "yesterday"}))
    index = CommittedIndex(root, notes.append)
    assert notes == []
    assert index.of_file(unit_of("def f(n): pass"), root / "shapes" / "area.py") == []
    assert [note.partition(": ")[0] for note in notes] == [f"{path}:1"]


def hostile(root: Path, count: int) -> None:
    """Many lines about one function, which differ only in their device."""
    line = json.loads(export(root, of(root)))
    (root / FOLDER / FILE).write_text("\n".join(json.dumps({**line, "device": f"d{n}"}) for n in range(count)))


def test_a_look_up_decodes_no_more_than_its_limits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_MOST_OF_FILE", 20)
    monkeypatch.setattr(room, "_MOST_OF_TEXT", 10)
    monkeypatch.setattr(room, "_SAMPLED", 5)
    hostile(root, 100)
    notes: list[str] = []
    index = CommittedIndex(root, notes.append)
    unit, path = unit_of("def f(n): pass"), root / "shapes" / "area.py"
    assert len(index.of_file(unit, path)) == 20
    assert notes == ["shapes/area.py: only the first 20 of its 100 committed lines are used"]
    assert len(index.of_text("f", source_hash(PLAIN))) == 10
    assert [one.device for one in index.below(root)] == ["d0", "d20", "d40", "d60", "d80"]
    monkeypatch.setattr(room, "_MOST_DECODED", 1000)
    assert 0 < len(CommittedIndex(root, notes.append).of_file(unit, path)) < 20
    assert notes[-1].startswith(f"{root / FOLDER / FILE}: only ")


def test_what_is_over_the_limits_of_a_project_is_one_line_and_the_rest_counts(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile(root, 100)
    size = (root / FOLDER / FILE).stat().st_size
    monkeypatch.setattr(room, "MOST_LINES", 40)
    notes: list[str] = []
    assert len(read_committed(root, notes.append)) == 40
    [note] = notes
    assert note.startswith(
        f"{root / FOLDER / FILE}: not read after line 40 of 99: 40 are the limit; export fewer packages"
    )
    with pytest.raises(DataError, match="not read after line 40"):
        export_committed([of(root)], root / FOLDER, root, pytest.fail)
    monkeypatch.setattr(room, "MOST_BYTES", size - 1)
    (root / FOLDER / "z.jsonl").write_text((root / FOLDER / FILE).read_text().partition("\n")[0])
    notes.clear()
    assert [one.device for one in read_committed(root, notes.append)] == ["d0"]
    [note] = notes
    assert "not read: it has 0 MiB, and 0 MiB are the limit of a project; export fewer packages" in note
    with pytest.raises(DataError, match="not read: it has"):
        export_committed([of(root)], root / FOLDER, root, pytest.fail)
    assert (root / FOLDER / FILE).stat().st_size == size


def test_no_more_is_written_than_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_LINES", 2)
    rows = [of(root, qualname=name) for name in "abc"]
    with pytest.raises(DataError, match=r"not written: 3 lines and 0 MiB are more than is read; export fewer packages"):
        export_committed(rows, root / FOLDER, root, pytest.fail)
    assert not (root / FOLDER / FILE).exists()
