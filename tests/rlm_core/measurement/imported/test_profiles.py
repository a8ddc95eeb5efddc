"""Profiles that cProfile writes are read as mean latencies of the project's functions."""

from __future__ import annotations

import cProfile
import marshal
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from rlm_core import DataError
from rlm_core.measurement.imported.profiles import is_profile, read_profile
from rlm_core.measurement.imported.timings import ToolResult

SOURCE = """
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
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> ToolResult:
    root = tmp_path_factory.mktemp("project").resolve()
    path = root / "work.py"
    path.write_text(SOURCE)
    module = ModuleType("work")
    exec(compile(SOURCE, str(path), "exec"), vars(module))
    main: Callable[[], None] = vars(module)["main"]
    profile = cProfile.Profile()
    profile.runcall(main)
    profile.dump_stats(root / "work.prof")
    content = (root / "work.prof").read_bytes()
    assert is_profile(content)
    return read_profile(root / "work.prof", content, root, 1e9)


def test_the_functions_of_the_project(result: ToolResult) -> None:
    calls = {timing.name: timing.calls for timing in result.timings}
    assert calls == {"total": 10, "twice": 1, "tree": 1, "main": 1}
    assert result.left_out == {"profiling took too much of the time of the function": 1}  # small


def test_means_and_recursion(result: ToolResult) -> None:
    by_name = {timing.name: timing for timing in result.timings}
    assert by_name["tree"].is_recursive
    assert not by_name["twice"].is_recursive
    for timing in result.timings:
        assert 0 < timing.low <= timing.median <= timing.high
    assert by_name["twice"].median < by_name["main"].median


def test_the_cost_of_profiling_is_subtracted_at_each_level() -> None:
    inner, outer = ("/p/a.py", 1, "inner"), ("/p/a.py", 5, "outer")
    stats = {
        inner: (1000, 1000, 0.01, 0.01, {outer: (1000, 1000, 0.01, 0.01)}),
        outer: (1, 1, 0.001, 0.011, {}),
    }
    result = read_profile(Path("p.prof"), marshal.dumps(stats), Path("/p"), 0)
    by_name = {timing.name: timing for timing in result.timings}
    assert by_name["inner"].median == pytest.approx(1e-5 - 140e-9)
    assert by_name["outer"].median == pytest.approx(0.011 - 1001 * 140e-9)
    assert by_name["outer"].high == pytest.approx(0.011 - 1001 * 70e-9)


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
