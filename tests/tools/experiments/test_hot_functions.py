"""Profiles of programs against predictions: functions are found by file, line and name."""

from __future__ import annotations

import cProfile
import pstats
import tomllib
from pathlib import Path

import rlm_core

from tools.experiments.hot_functions import PROGRAMS, judge, predicted

TEXT = """
import functools


@functools.lru_cache
def cached(n):
    return n


class Table:
    def rows(self, n):
        def inner(k):
            return sorted(range(k))

        return [inner(n) for _ in range(n)]


def main():
    cached(1)
    return Table().rows(60)
"""


def test_the_hottest_functions_of_a_profile_are_found_among_the_predicted_ones(tmp_path: Path) -> None:
    package = tmp_path / "toolbox"
    package.mkdir()
    file = package / "table.py"
    file.write_text(TEXT)
    scope: dict[str, object] = {}
    exec(compile(TEXT, str(file), "exec"), scope)
    profile = cProfile.Profile()
    profile.runcall(scope["main"])  # type: ignore[arg-type]
    program = judge("toolbox", pstats.Stats(profile), predicted(rlm_core.load(threads=1), package))
    assert program.functions == 4
    assert program.cumulative[0].name == "main"
    names = [one.name for one in program.own]
    assert set(names) == {"cached", "Table.rows", "Table.rows.<locals>.inner", "main"}
    assert all(one.rank is None or 0 <= one.rank < 1 for one in program.own)


def test_there_are_twenty_programs_with_all_that_a_run_needs() -> None:
    programs = tomllib.loads(PROGRAMS.read_text(encoding="utf-8"))
    assert len(programs) == 20
    for name, entry in programs.items():
        assert set(entry) == {"requires", "package", "program"}
        assert "==" in entry["requires"]
        compile(entry["program"], name, "exec")
