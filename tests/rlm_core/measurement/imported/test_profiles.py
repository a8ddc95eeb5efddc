"""Profiles that cProfile writes are read as mean latencies of the project's functions."""

from __future__ import annotations

import marshal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rlm_core import DataError
from rlm_core.measurement.imported.profiles import is_profile, read_profile
from rlm_core.measurement.imported.timings import ToolResult

SOURCE = """
import json
import math


def total(n):
    return math.fsum(range(n))


def twice(n):
    return total(n) + total(n)


def small():
    return 1


def tree(depth, n):
    return total(n) if not depth else tree(depth - 1, n) + tree(depth - 1, n)


def main():
    twice(200_000)
    tree(3, 100_000)
    for _ in range(1000):
        small()
    json.dumps([1])


main()
"""


Profile = dict[tuple[str, int, str], tuple[Any, ...]]
STANDARD: Profile = {("/usr/lib/python3.12/math.py", 1, "f"): (1, 1, 1e-6, 1e-6, {})}
AT = ("/p/a.py", 1, "f")


def read(stats: Profile) -> ToolResult:
    """What is read of a profile of a project in ``/p``."""
    content = marshal.dumps(stats | STANDARD)
    return read_profile(Path("p.prof"), content, Path("/p"), 0)


def profiled(root: Path) -> ToolResult:
    """What is read of a real profile."""
    (root / "work.py").write_text(SOURCE)
    subprocess.run([sys.executable, "-m", "cProfile", "-o", "work.prof", "work.py"], cwd=root, check=True)
    content = (root / "work.prof").read_bytes()
    assert is_profile(content)
    return read_profile(root / "work.prof", content, root, 1e9)


def test_a_real_profile(tmp_path: Path) -> None:
    if sys.version_info < (3, 12):
        with pytest.raises(DataError, match=r"work\.prof: made with Python 3\.11; import profiles of Python 3\.12 or"):
            profiled(tmp_path.resolve())
        return
    result = profiled(tmp_path.resolve())
    calls = {timing.name: timing.calls for timing in result.timings}
    assert calls == {"total": 10, "twice": 1, "tree": 1, "main": 1}
    assert result.left_out == {"profiling took too much of the time of the function": 1}  # small
    assert result.runtime == f"cpython-3.{sys.version_info.minor}"
    by_name = {timing.name: timing for timing in result.timings}
    assert by_name["tree"].is_recursive
    assert not by_name["twice"].is_recursive
    for timing in result.timings:
        assert 0 < timing.low <= timing.median <= timing.high
    assert by_name["twice"].median < by_name["main"].median


def test_the_cost_of_profiling_is_subtracted_at_each_level() -> None:
    inner, outer = ("/p/a.py", 1, "inner"), ("/p/a.py", 5, "outer")
    result = read(
        {
            inner: (1000, 1000, 0.01, 0.01, {outer: (1000, 1000, 0.01, 0.01)}),
            outer: (1, 1, 0.001, 0.011, {}),
        }
    )
    by_name = {timing.name: timing for timing in result.timings}
    assert by_name["inner"].median == pytest.approx(1e-5 - 200e-9)
    assert by_name["outer"].median == pytest.approx(0.011 - 1001 * 200e-9)
    assert (by_name["outer"].low, by_name["outer"].high) == pytest.approx((0.011 - 1001 * 340e-9, 0.011))


def test_calls_in_a_recursion_count_for_what_leads_to_it() -> None:
    # In a copy of nested data the calls of three functions that call each other take most of the time.
    top, copy, copy_dict = AT, ("/p/a.py", 5, "copy"), ("/p/a.py", 9, "copy_dict")
    stats: Profile = {
        top: (1, 1, 1e-6, 3e-3, {}),
        copy: (1, 9000, 2e-3, 3e-3, {top: (1, 1, 1e-6, 3e-3), copy_dict: (8999, 8999, 1e-3, 2e-3)}),
        copy_dict: (1, 4000, 1e-3, 3e-3, {copy: (4000, 4000, 1e-3, 2e-3)}),
    }
    result = read(stats)
    assert not result.timings
    assert result.left_out == {"profiling took too much of the time of the function": 3}


@pytest.mark.parametrize(("version", "is_read"), [("3.12", True), ("3.11", False), (None, False)])
def test_a_profile_without_the_standard_library_is_that_of_the_projects_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, is_read: bool
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    if version is not None:
        (tmp_path / ".venv").mkdir()
        (tmp_path / ".venv" / "pyvenv.cfg").write_text(f"version = {version}.4\n")
    content = marshal.dumps({(str(tmp_path / "a.py"), 1, "f"): (1, 1, 1.0, 1.0, {})})
    if is_read:
        assert len(read_profile(Path("p.prof"), content, tmp_path, 0).timings) == 1
        return
    made = r"made with Python 3\.11" if version else "does not show which Python made it"
    with pytest.raises(DataError, match=rf"^p\.prof: {made}; import profiles of Python 3\.12 or later"):
        read_profile(Path("p.prof"), content, tmp_path, 0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{(",
        marshal.dumps({"f": 1}),
        marshal.dumps({("f.py", 1, "f"): (0, 1, 0.0, 0.0, {})}),
        marshal.dumps({("f.py", 1, "f"): (1, 1, 0.0, float("inf"), {})}),
        marshal.dumps({("f.py", 1, "f"): (1, 1, 0.0)}),
        marshal.dumps([1]),
    ],
)
def test_other_data_is_one_line(content: bytes) -> None:
    with pytest.raises(DataError, match=r"p\.prof: not a profile of cProfile \(.+\); write one with") as caught:
        read_profile(Path("p.prof"), content, Path("/p"), 0)
    assert "\n" not in str(caught.value)
