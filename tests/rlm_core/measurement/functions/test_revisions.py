"""Functions of a bench file are timed at a revision and in the working tree, in turn."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import DataError
from rlm_core.measurement.functions.revisions import (
    CONFIDENCE,
    RevisionTiming,
    compare_revisions,
    median_interval,
)

from tests.rlm_lsp.findings.support import commit, write

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(os.name == "nt", reason="not on Windows")]

FAST = "def unique(items):\n    return list(dict.fromkeys(items))\n\n\ndef total(items):\n    return sum(items)\n"
SLOW = FAST.replace(
    "    return list(dict.fromkeys(items))\n",
    "    found = []\n    for item in items:\n        if item not in found:\n"
    "            found.append(item)\n    return found\n",
)
BENCH = """
import time
import shapes


def bench_unique(n):
    return shapes.unique, list(range(n))


def bench_total(n):
    return shapes.total, list(range(n))


def bench_drain(n):
    def drain(items):
        assert len(items) == n, "the inputs of each call are new"
        while items:
            items.pop()

    return drain, list(range(n))


def bench_sleep(n):
    return time.sleep, n * 1e-5


def bench_new(n):
    return shapes.new, n


def bench_fails(n):
    return (lambda: 1 / 0),
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    (root / "inner").mkdir()
    commit(root, {"inner/src/shapes/__init__.py": FAST})
    write(root, {"inner/src/shapes/__init__.py": SLOW + "\n\ndef new(n):\n    pass\n", "inner/rlm_bench.py": BENCH})
    return root


def compare(
    project: Path, names: list[str], sizes: list[int] | None = None
) -> tuple[dict[str, RevisionTiming], list[str]]:
    notes: list[str] = []
    folder = project / "inner"
    found = compare_revisions(
        folder, project, "HEAD", folder / "rlm_bench.py", sizes or [500], 5, sys.executable, notes.append, names
    )
    return {one.name: one for one in found}, notes


def test_a_slower_function_is_found_and_calls_have_their_own_inputs(project: Path) -> None:
    found, notes = compare(project, ["bench_unique", "bench_total", "bench_drain"])
    assert not notes
    assert found["bench_unique"].direction == "slower"
    assert found["bench_unique"].low > 5
    assert found["bench_unique"].head > found["bench_unique"].base > 0
    assert found["bench_total"].high < 5
    assert found.keys() == {"bench_unique", "bench_total", "bench_drain"}
    assert not found["bench_unique"].waits


def test_functions_that_wait_are_timed_on_the_wall(project: Path) -> None:
    found, _ = compare(project, ["bench_sleep"])
    assert found["bench_sleep"].waits
    assert found["bench_sleep"].base >= 5e-3


def test_what_cannot_be_called_is_named_and_the_rest_goes_on(project: Path) -> None:
    found, notes = compare(project, ["bench_new", "bench_fails", "bench_total"])
    assert list(found) == ["bench_total"]
    assert notes == [
        "bench_new(500): at HEAD: AttributeError: module 'shapes' has no attribute 'new'",
        "bench_fails(500): at HEAD: ZeroDivisionError: division by zero",
    ]


def test_a_process_that_ends_is_one_line(project: Path) -> None:
    (project / "inner" / "rlm_bench.py").write_text("import os\n\n\ndef bench_end(n):\n    os._exit(3)\n")
    with pytest.raises(DataError, match=r"^the process at HEAD has ended$"):
        compare(project, ["bench_end"])


def test_a_function_that_the_file_lacks(project: Path) -> None:
    with pytest.raises(DataError, match="has no function bench_other; it has bench_unique, bench_total"):
        compare(project, ["bench_other"])


@pytest.mark.parametrize(
    ("ratio", "low", "high", "direction"),
    [
        (1.5, 1.4, 1.6, "slower"),
        (0.5, 0.4, 0.6, "faster"),
        (1.0, 0.98, 1.03, "unchanged"),
        (1.07, 1.06, 1.09, "unchanged"),
        (1.3, 1.05, 1.5, "unknown"),
        (1.3, 0.9, 1.7, "unknown"),
        (1.08, 0.99, 1.2, "unknown"),
    ],
)
def test_directions(ratio: float, low: float, high: float, direction: str) -> None:
    assert RevisionTiming("bench_f", 1, 1.0, ratio, ratio, low, high, 20, waits=False).direction == direction


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=60).map(sorted))
def test_the_interval_contains_the_median(ordered: list[float]) -> None:
    low, high = median_interval(ordered)
    assert low <= median(ordered) <= high


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    draws = random.Random(0)
    for count in (5, 8, 20):
        intervals = [median_interval(sorted(draws.lognormvariate(0, 1) for _ in range(count))) for _ in range(2000)]
        share = sum(low <= 1 <= high for low, high in intervals) / len(intervals)
        assert share > CONFIDENCE - 0.02
        assert share < 0.99
