"""Facts on the disk: equal to those of an analysis, whatever has changed, and never an error."""

from __future__ import annotations

import math
import sqlite3
import sys
from pathlib import Path

import pytest
from rlm_core.queries import entry_store, facts_cache, unit_facts
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.entry_store import VARIABLE
from rlm_core.queries.facts_cache import FILE, Entry, FactsCache
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Amount, CostFacts, WorkFacts

_CALLER = """from .callee import work, SIZE
from . import settings

STEP = 3

class Base:
    depth = 4

    def run(self, n):
        return work(n) + STEP

class Child(Base):
    def again(self, n):
        return self.run(n) + self.depth

def use(n):
    return [work(SIZE) for _ in range(settings.TIMES)]
"""
_FILES = {
    "__init__": "",
    "settings": "TIMES = 10\n",
    "callee": "SIZE = 1000\n\ndef work(n):\n    return helper(n)\n\ndef helper(n):\n    return sum(range(n))\n",
    "caller": _CALLER,
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "package"
    folder.mkdir()
    for name, text in _FILES.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / FILE


def analysed(package: Path, name: str = "caller") -> list[AnalysedUnit]:
    path = package / f"{name}.py"
    return Analyser().analyse(ParsedSource(path.read_bytes(), "python"), path)


def without_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("facts that are known are not found again")

    monkeypatch.setattr(unit_facts, "analyse", refuse)


@pytest.mark.usefixtures("cache")
def test_another_analyser_takes_the_same_facts_from_the_disk(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = analysed(package)
    assert any(unit.code.work for unit in first)
    without_analysis(monkeypatch)
    assert analysed(package) == first


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("callee", "sum(range(n))", "sorted(range(n * n))"),
        ("callee", "SIZE = 1000", "SIZE = 2_000_000"),
        ("callee", "return helper(n)", "return n"),
        ("callee", "def work(n)", "def other(n)"),
        ("caller", "depth = 4", "depth = 'four' * 1_000_000"),
        ("caller", "STEP = 3", "STEP = [3] * 1_000_000"),
        ("caller", "class Child(Base)", "class Child(dict)"),
        ("caller", "from .callee import work, SIZE", "from time import sleep as work\nSIZE = 2"),
        ("settings", "TIMES = 10", "TIMES = 100_000"),
    ],
)
def test_facts_are_found_again_where_what_they_depend_on_has_changed(
    package: Path, monkeypatch: pytest.MonkeyPatch, name: str, before: str, after: str
) -> None:
    analysed(package)
    path = package / f"{name}.py"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    changed = analysed(package)
    monkeypatch.setenv(VARIABLE, "off")
    assert changed == analysed(package)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_other_users_cannot_read_it(package: Path, cache: Path) -> None:
    analysed(package)
    assert [path.name for path in cache.parent.iterdir() if path.stat().st_mode & 0o077] == []


def test_the_cache_can_be_turned_off(package: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    analysed(package)
    assert not cache.exists()


@pytest.mark.usefixtures("cache")
def test_another_version_of_the_analysis_reads_none_of_it(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysed(package)
    monkeypatch.setattr(facts_cache, "_version", lambda: "other")
    without_analysis(monkeypatch)
    with pytest.raises(AssertionError):
        analysed(package)


@pytest.mark.parametrize("damage", ["UPDATE entries SET entry = substr(entry, 2)", "UPDATE entries SET entry = 1"])
def test_a_damaged_entry_is_found_again(package: Path, cache: Path, damage: str) -> None:
    first = analysed(package)
    with sqlite3.connect(cache) as connection:
        assert connection.execute(damage).rowcount > 0
    assert analysed(package) == first


def test_an_entry_that_says_something_else_is_a_miss(tmp_path: Path) -> None:
    store = FactsCache(tmp_path)
    store.put(Entry(WorkFacts(nodes=7)), "a")
    store.put(Entry(WorkFacts(nodes=8)), "b")
    store.save()
    with sqlite3.connect(tmp_path / FILE) as connection:
        [[first], [second]] = connection.execute("SELECT entry FROM entries")
        connection.execute("UPDATE entries SET entry = CASE entry WHEN ? THEN ? ELSE ? END", (first, second, first))
    assert (store.get("a"), store.get("b")) == (None, None)


@pytest.mark.parametrize("content", [b"", b"not a database" * 1000], ids=["empty", "broken"])
def test_a_broken_file_is_begun_again(
    package: Path, cache: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.mkdir()
    cache.write_bytes(content)
    first = analysed(package)
    assert analysed(package) == first
    without_analysis(monkeypatch)
    assert analysed(package) == first


def test_a_folder_that_cannot_be_used_does_no_harm(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = analysed(package)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "cache"))
    assert analysed(package) == expected
    (tmp_path / "folder" / FILE).mkdir(parents=True)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "folder"))
    assert analysed(package) == expected


def test_another_process_that_writes_does_no_harm(package: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_store, "_WAIT_SECONDS", 0.0)
    first = analysed(package)
    other = sqlite3.connect(cache, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM entries")
    (package / "caller.py").write_text(_CALLER.replace("STEP = 3", "STEP = 4"))
    analysed(package)  # its new facts are not kept
    (package / "caller.py").write_text(_CALLER)
    assert analysed(package) == first
    other.execute("COMMIT")
    other.close()
    assert analysed(package) == first
    without_analysis(monkeypatch)
    assert analysed(package) == first


def test_what_was_not_used_for_the_longest_time_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_cache, "_MOST_ENTRIES", 10)
    store, day = FactsCache(tmp_path), 1
    monkeypatch.setattr(entry_store, "_today", lambda: day)
    for day in range(1, 15):
        store.put(Entry(WorkFacts(nodes=day)), str(day))
        assert store.get("1") is not None or day == 1
        store.save()
    assert [number for number in range(1, 15) if store.get(str(number))] == [1, *range(6, 15)]
    store.put(Entry(WorkFacts()), "much", "x" * 10)
    assert store.get("much") is None


def test_only_texts_of_a_reasonable_size_are_kept(tmp_path: Path) -> None:
    store = FactsCache(tmp_path)
    store.put(Entry(WorkFacts(), (("a", "constant", ("x" * 100_000,)),)), "long")
    store.put(Entry(WorkFacts()), "short")
    store.save()
    assert (store.get("long"), store.get("short")) == (None, Entry(WorkFacts()))


def test_a_bound_may_be_infinite_and_what_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    store, unbounded = FactsCache(tmp_path), WorkFacts(latency=CostFacts(Amount(0.0, 1.0, math.inf)))
    store.put(Entry(unbounded), "unbounded")
    store.put(Entry(WorkFacts(nodes=2**70)), "number")
    store.put(Entry(WorkFacts(), (("a", "constant", ("\ud800",)),)), "surrogate")
    store.save()
    assert store.get("unbounded") == Entry(unbounded)
    assert (store.get("number"), store.get("surrogate")) == (None, None)
