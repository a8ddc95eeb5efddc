"""The comparison of facts between two commits: what differs, of which kind, and how the facts of a file are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.experiments import facts_snapshot
from tools.experiments.facts_snapshot import REPOSITORY, compare, facts_of, places, report

TEXT = (
    "def double(items):\n    return [2 * item for item in items]\n\ndef wait():\n    import time\n    time.sleep(2)\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "unit.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_facts_of_a_file_are_those_of_its_units(file: Path) -> None:
    facts = facts_of(file)
    assert [place.rpartition(" ")[2] for place in facts] == ["double", "wait"]
    waiting = facts[f"{file}:4 wait"]
    assert waiting is not None
    assert waiting["waits"][0]["seconds"]["likely"] == 2.0


def test_equal_facts_have_no_difference(file: Path) -> None:
    assert not compare(facts_of(file), facts_of(file))


def test_differences_are_of_kinds(file: Path) -> None:
    before, after = facts_of(file), facts_of(file)
    place, waiting = f"{file}:1 double", f"{file}:4 wait"
    double = after[place]
    assert double is not None
    double["latency"]["typical"] *= 3
    double["memory"]["typical"] *= 1 + 1e-12  # a sum in another order
    after[waiting] = None
    found = compare(before, after)
    assert [(difference.kind, difference.place) for difference in found] == [
        ("latency.typical: larger over 2 times", place),
        ("no facts any more", waiting),
    ]
    assert next(reversed([*report(before, after, found, 1)])) == "2 units, 2 with differences, 2 differences"


def test_units_that_only_one_side_has_are_differences() -> None:
    found = compare({"a": None}, {"b": None})
    assert {(difference.kind, difference.place) for difference in found} == {
        ("no unit any more", "a"),
        ("a unit that was not there", "b"),
    }


def test_the_chosen_files_are_the_same_each_time() -> None:
    few, more = places(200), places(2_000)
    assert few == places(200)
    assert more[: len(few)] == few


def test_a_commit_equals_itself(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"]
    if subprocess.run(inside, capture_output=True, check=False).returncode:
        pytest.skip("not a checkout of git")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = facts_snapshot.snapshot("HEAD", [file])
    assert first.keys() == facts_of(file).keys()
    [kept] = (tmp_path / "cache").rglob("facts-*.gz")
    assert facts_snapshot.snapshot("HEAD", [file]) == first
    file.write_text(TEXT.replace("2 *", "3 *"), encoding="utf-8")
    facts_snapshot.snapshot("HEAD", [file])
    assert len([*kept.parent.iterdir()]) == 2, "facts of a file that has changed are found again"


def test_it_asks_for_a_commit() -> None:
    command = [sys.executable, "-m", "tools.experiments.facts_snapshot"]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "name the commit to compare with" in ended.stderr
