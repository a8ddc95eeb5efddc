"""Comments that are written for the user: in each language, where they hold, and never too low a budget."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Prediction
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import Metric
from rlm_lsp.budgets.comments import read_comments
from rlm_lsp.budgets.edits import applied, ignore, rounded_up, upper_end, write_budget
from rlm_lsp.budgets.syntax import Budget, bound, parse, render

from tests.fakes import NO_NUMBER

pytestmark = pytest.mark.timeout(30)

BUDGET = Budget("latency", 0.005)
PATH = Path("leetcode/1-solution")
TEXTS = {
    "python": "import functools\n\nclass A:\n    @functools.cache\n    def f(self, n):\n        return n\n",
    "java": "import java.util.*;\n\nclass Solution {\n    int f(int n) { return n; }\n}\n",
    "cpp": "#include <vector>\nclass Solution {\npublic:\n    int f(int n) { return n; }\n};\n",
    "go": "package main\n\nfunc f(n int) int { return n }\n",
    "ruby": "def f(n)\n  n\nend\n",
    "php": "<?php\nfunction f($n) {\n    return $n;\n}\n",
    "rust": "impl Solution {\n    pub fn f(n: i32) -> i32 { n }\n}\n",
    "javascript": "const f = (n) => n + 1;\n",
    "csharp": "public class Solution {\n    public int F(int n) { return n; }\n}\n",
    "kotlin": "class Solution {\n    fun f(n: Int): Int = n\n}\n",
    "swift": "class Solution {\n    func f(_ n: Int) -> Int { return n }\n}\n",
    "scala": "object Solution {\n  def f(n: Int): Int = n\n}\n",
    "typescript": "function f(n: number): number { return n; }\n",
    "c": "int f(int n) { return n; }\n",
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("language", sorted(TEXTS))
def test_a_written_budget_holds(language: str, newline: str) -> None:
    source = TEXTS[language].replace("\n", newline).encode()
    units = find_units(ParsedSource(source, language), PATH)
    edit = write_budget(source, language, units, units[-1], BUDGET, PATH)
    assert edit is not None
    after = applied(source, [edit])
    assert after.count(newline.encode()) == source.count(newline.encode()) + 1 == after.count(b"\n")
    comments = read_comments(ParsedSource(after, language), find_units(ParsedSource(after, language), PATH))
    assert comments.malformed == ()
    assert [placed.budget for placed in comments.units[-1].budgets] == [BUDGET]


@pytest.mark.parametrize("language", sorted(TEXTS))
def test_a_unit_can_be_ignored_once(language: str) -> None:
    source = TEXTS[language].encode()
    units = find_units(ParsedSource(source, language), PATH)
    edit = ignore(source, language, units, units[-1], PATH)
    assert edit is not None
    after = applied(source, [edit])
    now = find_units(ParsedSource(after, language), PATH)
    assert read_comments(ParsedSource(after, language), now).units[-1].ignored >= {"latency", "memory"}
    assert ignore(after, language, now, now[-1], PATH) is None


def test_a_comment_has_the_indentation_of_its_unit() -> None:
    source = TEXTS["python"].encode()
    units = find_units(ParsedSource(source, "python"))
    edit = write_budget(source, "python", units, units[-1], BUDGET)
    assert edit is not None
    lines = applied(source, [edit]).decode().splitlines()
    assert lines[3:5] == ["    # rlm: latency < 5 ms", "    @functools.cache"]


def test_a_raised_budget_takes_the_place_of_the_old_one_and_no_other() -> None:
    source = b"# rlm: latency < 1 s, latency < 2 ms on nvidia-l4\n@triton.jit\ndef f(n):\n    return n\n"
    units = find_units(ParsedSource(source, "python"))
    [general, narrow] = read_comments(ParsedSource(source, "python"), units).units[0].budgets
    edit = write_budget(source, "python", units, units[0], replace(narrow.budget, value=0.01), at=narrow.span)
    assert edit is not None
    assert applied(source, [edit]).startswith(b"# rlm: latency < 1 s, latency < 10 ms on nvidia-l4\n@triton")
    edit = write_budget(source, "python", units, units[0], replace(general.budget, value=2.0), at=general.span)
    assert edit is not None
    assert applied(source, [edit]).startswith(b"# rlm: latency < 2 s, latency < 2 ms on nvidia-l4\n@triton")


def test_nothing_is_offered_where_a_comment_is_impossible() -> None:
    source = b"module {\n  tt.func public @f() {\n    tt.return\n  }\n}\n"
    units = find_units(ParsedSource(source, "ttir"))
    assert units
    assert write_budget(source, "ttir", units, units[0], BUDGET) is None
    assert ignore(source, "ttir", units, units[0]) is None


@given(st.sampled_from(["latency", "memory"]), st.floats(1e-9, 1e9))
def test_a_rounded_bound_is_never_lower_and_one_that_a_person_would_write(metric: Metric, value: float) -> None:
    up = rounded_up(metric, value)
    assert value <= up * (1 + 1e-12)
    assert up <= max(value * 2.6, 1.0 if metric == "memory" else 0.0)
    budget = Budget(metric, up)
    assert parse(render([budget]))[0][0].budget == budget
    assert re.fullmatch(r"[125]0* (ns|µs|ms|s|B|KiB|MiB|GiB)|0\.0*[125] ns", bound(budget))


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [("latency", 1.63e-4, "200 µs"), ("latency", 0.6, "1 s"), ("latency", 0.2, "200 ms"), ("memory", 4000.0, "5 KiB"),
     ("memory", 600.0, "1 KiB"), ("memory", 3 * 2**20, "5 MiB"), ("memory", 1.0, "1 B")],
)  # fmt: skip
def test_rounded_bounds(metric: Metric, value: float, text: str) -> None:
    assert bound(Budget(metric, rounded_up(metric, value))) == text


def test_the_upper_end_is_that_of_the_default_band(make_prediction: Callable[..., Prediction]) -> None:
    assert upper_end([make_prediction(1e-5, 1.63e-4), make_prediction(1e-5, 1.2e-4, device="other")]) == 1.63e-4
    assert upper_end([make_prediction(0.0, 3000.0, metric="memory", floor=4000.0)]) == 4000.0
    assert upper_end([]) is upper_end([make_prediction(abstained=NO_NUMBER)]) is None
    assert upper_end([make_prediction(high=float("inf"))]) is None
