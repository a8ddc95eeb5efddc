"""Costs of two releases that are measured in turn: real packages in folders, real processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tools.experiments import paired_costs
from tools.experiments.paired_costs import compared, driver_names, measure

pytestmark = pytest.mark.timeout(120)

DRIVERS = """
def drive_total(factor):
    from released import total
    values = list(range(int(100 * factor)))
    return lambda: total(values)


def drive_fill(factor):
    from released import fill
    return list, (lambda rows: fill(rows, int(1000 * factor)))


def drive_printing(factor):
    import atexit
    atexit.register(print, "the end")
    print("{}")
    return lambda: None


def drive_missing(factor):
    from released import absent
    return absent
"""
OLD = """
def total(values):
    return sum(values)


def fill(rows, count):
    rows += range(count)
"""
NEW = """
def total(values):
    return sum(a for a in values for b in values if a == b)


def fill(rows, count):
    rows += [bytes(100) for _ in range(count)]
"""


@pytest.fixture
def releases(tmp_path: Path) -> tuple[Path, Path, Path]:
    drivers = tmp_path / "drivers.py"
    drivers.write_text(DRIVERS, encoding="utf-8")
    for side, text in (("old", OLD), ("new", NEW)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "released.py").write_text(text, encoding="utf-8")
    return tmp_path / "old", tmp_path / "new", drivers


def test_both_releases_are_measured_with_the_same_inputs(
    releases: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paired_costs, "ROUNDS", 1)
    monkeypatch.setattr(sys, "argv", ["paired_costs", *map(str, releases), "--sizes", "1"])
    paired_costs.main()
    rows = {row["driver"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(rows) == driver_names(releases[2]) == ["drive_total", "drive_fill", "drive_printing", "drive_missing"]
    assert rows["drive_total"]["seconds_ratio"] > 5
    assert rows["drive_fill"]["bytes_ratio"] > 2
    assert rows["drive_printing"]["bytes_ratio"] == 1
    assert "absent" in rows["drive_missing"]["error"]


def test_a_driver_that_takes_too_long_is_an_error(releases: tuple[Path, Path, Path]) -> None:
    old, _, drivers = releases
    assert measure(sys.executable, old, drivers, "drive_total", 1.0, 0.001) == {"error": "no result within 0.001 s"}


def test_the_least_cost_of_each_side_counts_and_small_ones_are_the_same() -> None:
    def run(seconds: float, size: float) -> dict[str, float]:
        return {"seconds": seconds, "bytes": size}

    row = compared([(run(1e-3, 100.0), run(3e-3, 300.0)), (run(2e-3, 100.0), run(2e-3, 400.0))])
    assert row["seconds"] == [1e-3, 2e-3]
    assert (row["seconds_ratio"], row["bytes_ratio"]) == (2.0, 1.0)
    assert compared([({"error": "no"}, run(1.0, 1.0))]) == {"error": "no"}
