"""Which measurement a unit is shown with, how a hover tells it, and the command that makes one."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core import Prediction
from rlm_core.measurement import Measurement, Store, source_hash
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_lsp.history.measurements import StoredMeasurement, _quoted, command_for, measurements_of
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.hover import MOST_MEASURED, hover_text

from tests.fakes import NO_NUMBER, unpadded
from tests.rlm_core.measurement.test_store import measurement

pytestmark = pytest.mark.timeout(30)

MakePrediction = Callable[..., Prediction]
UNIT = Analyser().analyse(ParsedSource(b"def f(n):\n    return n\n", "python"))[0]
PATH = Path("/home/me/src/shapes/area.py")


def test_a_text_that_was_measured_goes_before_one_that_was_changed_since(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    assert measurements_of(store, UNIT.unit, PATH, "a processor") == ()
    fresh = measurement(measured_at="2026-01-01T00:00:00+00:00")
    before = measurement(source_hash="f" * 32, run="run-2", measured_at="2026-02-01T00:00:00+00:00")
    store.add([before])
    assert measurements_of(store, UNIT.unit, PATH, "a processor") == (StoredMeasurement(before, stale=True),)
    assert measurements_of(store, UNIT.unit, Path("/other/file.py"), "a processor") == ()
    store.add([fresh])
    assert measurements_of(store, UNIT.unit, PATH, "a processor") == (StoredMeasurement(fresh, stale=False),)


def test_this_device_and_calibrated_times_are_preferred(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    mine, other = measurement(), measurement(device="another", run="run-2", measured_at="2099-01-01T00:00:00+00:00")
    disturbed = measurement(ok=False, run="run-3", measured_at="2099-01-02T00:00:00+00:00")
    memory = measurement(metric="memory", median=128.0, low=0.0, high=256.0)
    store.add([mine, other, disturbed, memory])
    assert [one.measurement for one in measurements_of(store, UNIT.unit, PATH, "a processor")] == [mine, memory]
    assert [one.measurement for one in measurements_of(store, UNIT.unit, PATH, "a third")] == [other, memory]


def test_of_a_program_the_dearest_input_of_the_newest_run_is_shown(
    tmp_path: Path, make_prediction: MakePrediction
) -> None:
    unit = Analyser().analyse(ParsedSource(b"// rlm: program\nint main(void) { return 0; }\n", "c"))[0]
    store = Store(tmp_path / "m.sqlite3")
    one = measurement(
        source_hash=source_hash(unit.unit.text, "c"),
        kind="program",
        language="c",
        qualname="main",
        calls=5,
        median=0.01,
        low=0.01,
        high=0.02,
        workload={"runtime": "gcc-12.2.0 -O2", "input": "small.txt"},
    )
    dear = replace(one, median=0.5, low=0.4, high=0.6, workload={**one.workload, "input": "big.txt"})
    before = replace(dear, median=2.0, run="run-0", measured_at="2026-01-01T00:00:00+00:00")
    store.add([one, dear, before, replace(dear, kind="function", run="run-2")])
    [found] = measurements_of(store, unit.unit, PATH, "a processor")
    assert found == StoredMeasurement(dear, stale=False)
    text = hover_text(unit, [make_prediction()], markdown=False, measured=[found])
    assert "measured on a processor, gcc-12.2.0 -O2" in text
    assert "latency (5 runs on big.txt, 400–600 ms)" in text


def test_a_measurement_stands_beside_units_of_its_own_basis_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.sqlite3")
    store.add([measurement()])
    assert measurements_of(store, replace(UNIT.unit, kind="kernel"), PATH, "a processor") == ()


def of_kernel(device: str = "nvidia-h100-sxm", n: str = "1024", **changes: object) -> Measurement:
    workload = {"n": n, "dtype": "fp16", "runtime": "triton-3.7.1"}
    told = {"kind": "kernel", "language": "triton", "run": f"{device}-{n}", "tests": 1, "machine": ""}
    return measurement(**{"device": device, "workload": workload, **told, **changes})


def test_a_kernel_has_a_measurement_for_each_device_and_size(tmp_path: Path, make_prediction: MakePrediction) -> None:
    unit = replace(UNIT.unit, kind="kernel", language="triton")
    text_hash = source_hash(unit.text, "triton")
    here, large = of_kernel(source_hash=text_hash), of_kernel(n="4096", source_hash=text_hash, median=4e-6)
    before = replace(here, run="run-0", median=3e-6, measured_at="2026-01-01T00:00:00+00:00")
    changed = of_kernel(device="nvidia-l4", source_hash="f" * 32)
    store = Store(tmp_path / "m.sqlite3")
    store.add([here, large, before, changed])
    found = measurements_of(store, unit, PATH, "a processor")
    assert found == (
        StoredMeasurement(here, stale=False),
        StoredMeasurement(large, stale=False),
        StoredMeasurement(changed, stale=True),
    )
    predictions = [
        make_prediction(basis="kernel", device=device, workload={"n": "1024", "dtype": "fp16"})
        for device in ("nvidia-h100-sxm", "nvidia-a100-sxm4-80gb")
    ]
    text = hover_text(replace(UNIT, unit=unit), predictions, markdown=False, measured=found)
    [on_h100, on_a100] = [line for line in text.splitlines() if ": median " in line]
    assert "measured 2 µs" in on_h100
    assert "measured" not in on_a100
    assert "measured on nvidia-h100-sxm at dtype fp16, n 1024, triton-3.7.1, " in text
    assert "at dtype fp16, n 4096, triton-3.7.1" in text
    assert ": latency 4 µs (40 runs, 1–8 µs)" in text
    assert "measured on nvidia-l4" in text
    assert ": latency 2 µs (stale) (40 runs, 1–8 µs)" in text
    assert text.count("stale: the code has changed since it was measured") == 1


def test_of_many_sizes_a_hover_shows_some_and_says_how_many_there_are(make_prediction: MakePrediction) -> None:
    measured = [StoredMeasurement(of_kernel(n=str(n)), stale=False) for n in range(1, MOST_MEASURED + 4)]
    text = hover_text(UNIT, [make_prediction(abstained=NO_NUMBER)], markdown=False, measured=measured)
    assert text.count("measured on nvidia-h100-sxm") == MOST_MEASURED
    assert "3 more measurements: rlm-lsp measure list --functions" in text


@pytest.mark.parametrize("markdown", [True, False])
def test_the_hover_tells_measured_beside_predicted(make_prediction: MakePrediction, markdown: bool) -> None:
    one = measurement(measured_at="2026-01-02T03:04:05+00:00")
    text = hover_text(UNIT, [make_prediction()], markdown=markdown, measured=[StoredMeasurement(one, stale=False)])
    told = "| latency | 85 µs | 2 µs | 10–160 µs | 10–320 µs |" if markdown else "median 85 µs, measured 2 µs, 80 %"
    assert told in unpadded(text)
    assert "measured on a processor, cpython-3.12, 2026-01-02: latency (40 calls in 8 tests, 1–8 µs)" in text
    assert "stale" not in text


def test_the_hover_marks_what_is_stale(make_prediction: MakePrediction) -> None:
    one = StoredMeasurement(measurement(kind="generator"), stale=True)
    text = hover_text(UNIT, [make_prediction()], markdown=True, measured=[one])
    assert "| 2 µs (stale) |" in unpadded(text)
    assert "- stale: the code has changed since it was measured\n" in text
    assert "40 resumes in 8 tests" in text


def test_what_was_measured_is_told_where_the_model_abstains(make_prediction: MakePrediction) -> None:
    text = hover_text(
        UNIT,
        [make_prediction(abstained=NO_NUMBER)],
        markdown=False,
        measured=[StoredMeasurement(measurement(), stale=False)],
    )
    assert ": latency 2 µs (40 calls in 8 tests, 1–8 µs)\n" in text


@pytest.mark.parametrize(
    ("metric", "median", "text"),
    [
        ("latency", -3e-8, "≤50 ns"),
        ("latency", 5.1e-8, "51 ns"),
        ("memory", 0.0, "0 B"),
        ("memory", 3072.0, "3 KiB"),
    ],
)
def test_a_measurement_is_told_in_its_unit(metric: str, median: float, text: str) -> None:
    one: Measurement = measurement(metric=metric, median=median)
    assert render.measured(one) == text


def test_the_command_names_the_package_and_its_project(tmp_path: Path) -> None:
    inner = tmp_path / "my project" / "src" / "shapes" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    assert command_for(None) is None
    assert command_for(tmp_path / "alone.py") is None
    (tmp_path / "my project" / "pyproject.toml").touch()
    command = command_for(inner / "area.py")
    assert command is not None
    assert shlex.split(command) == [
        "cd",
        str(tmp_path / "my project"),
        "&&",
        "rlm-lsp",
        "measure",
        "tests",
        "--package",
        "shapes",
    ]


@pytest.mark.parametrize(
    "name",
    ["x;curl evil|sh;#", "$(id)", "`id`", "a b", "a\nid\n", "--help", "a&b", "a'b", 'a"b', "1a", "a-b", "\x1b[2J"],
)
def test_a_package_that_is_not_named_by_an_identifier_has_no_command(tmp_path: Path, name: str) -> None:
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").touch()
    assert command_for(package / "area.py") is None


@pytest.mark.parametrize("name", ["x;id;#", "$(id)", "`id`", "a b", "a'b", 'a"b', "a&b", "-x", "é"])
def test_the_name_of_the_folder_is_one_word(tmp_path: Path, name: str) -> None:
    package = tmp_path / name / "shapes"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    command = command_for(package / "area.py")
    assert command is not None
    script = command.replace("rlm-lsp measure tests --package shapes", "pwd")
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{package.parent}\n"


@pytest.mark.parametrize("name", ["a\nid\n", "a\x1b[2J", "a\rid", "a\u202eb"])
def test_a_folder_whose_name_controls_the_terminal_has_no_command(tmp_path: Path, name: str) -> None:
    package = tmp_path / name / "shapes"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    assert command_for(package / "area.py") is None


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (r"C:\a & b", r'"C:\a & b"'),
        (r"C:\%PATH%", None),
        (r"C:\$(id)", None),
        ("C:\\a`b", None),
        (r"C:\a!b", None),
        ("C:\\a\nb", None),
    ],
)
def test_a_folder_on_windows_is_quoted_for_both_shells(word: str, expected: str | None) -> None:
    assert _quoted(word, windows=True) == expected
