"""Timings become measurements of functions as they are in the project, unless the file has changed since."""

from __future__ import annotations

import marshal
import os
import time
from pathlib import Path

import pytest
from rlm_core.measurement.imported.places import import_result, kind_of
from rlm_core.measurement.types import source_hash

SOURCE = """import functools


@functools.cache
def total(n):
    return sum([i * i for i in range(n)])


class Box:
    def fill(self, n):
        return [total(n + i) for i in range(20)]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a profile as Python 3.12 writes it."""
    root = tmp_path.resolve()
    path = root / "work.py"
    path.write_text(SOURCE)
    past = time.time() - 60
    os.utime(path, (past, past))
    fill, standard = (str(path), 10, "fill"), ("/usr/lib/python3.12/runpy.py", 1, "run_path")
    profile = {
        standard: (1, 1, 1e-3, 0.1, {}),
        fill: (1, 1, 1e-3, 0.09, {standard: (1, 1, 1e-3, 0.09)}),
        (str(path), 4, "total"): (20, 20, 0.08, 0.08, {fill: (20, 20, 0.08, 0.08)}),
        ("~", 0, "<built-in method builtins.sum>"): (20, 20, 0.01, 0.01, {}),
    }
    (root / "work.prof").write_bytes(marshal.dumps(profile))
    return root


def test_a_profile_measures_methods_and_decorated_functions(project: Path) -> None:
    result = import_result(project / "work.prof", project)
    assert result is not None
    by_name = {one.qualname: one for one in result.measurements}
    box = by_name["Box.fill"]
    assert (box.line, box.last_line, box.file, box.module) == (10, 11, "work.py", "work")
    assert box.source_hash == source_hash("def fill(self, n):\n    return [total(n + i) for i in range(20)]")
    assert (box.workload["tool"], box.asked, box.calls, box.kind) == ("cProfile", {}, 1, "function")
    assert by_name.keys() == {"Box.fill", "total"}
    assert by_name["total"].workload["runtime"] == "cpython-3.12"


def test_importing_again_replaces(project: Path) -> None:
    first, second = (import_result(project / "work.prof", project) for _ in range(2))
    assert first is not None
    assert first == second


def test_a_file_that_has_changed_is_left_out(project: Path) -> None:
    future = time.time() + 60
    os.utime(project / "work.py", (future, future))
    result = import_result(project / "work.prof", project)
    assert result is not None
    assert not result.measurements
    assert result.left_out["the file has changed since"] >= 1


def test_other_projects_are_not_measured(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    result = import_result(project / "work.prof", tmp_path_factory.mktemp("other"))
    assert result is not None
    assert not result.measurements


def test_rows_of_an_export_are_no_results_of_a_tool(project: Path) -> None:
    (project / "rows.jsonl").write_text('{"text": "\\"benchmarks\\""}\n')
    assert import_result(project / "rows.jsonl", project) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("def f():\n    return 1", "function"),
        ("def f():\n    yield 1", "generator"),
        ("def f():\n    def g():\n        yield 1\n    return g", "function"),
        ("async def f():\n    pass", "coroutine"),
        ("async def f():\n    yield 1", "async generator"),
        ("    def f(self):\n        yield 1", "generator"),
    ],
)
def test_kinds(text: str, kind: str) -> None:
    assert kind_of(text) == kind
