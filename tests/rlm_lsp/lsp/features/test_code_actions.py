"""Comments that code actions write: in each language, where they hold, and never too low a budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Prediction
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import Metric
from rlm_lsp.budgets.comments import read_comments
from rlm_lsp.budgets.syntax import Budget, bound, parse, render
from rlm_lsp.lsp.features.code_actions import applied, budgets_from, ignore, rounded_up, set_budgets

from tests.fakes import NO_NUMBER

pytestmark = pytest.mark.timeout(30)

BUDGETS = [Budget("latency", 0.0015), Budget("memory", 3072.0)]
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
    edits = set_budgets(source, language, units, units[-1], BUDGETS, PATH)
    assert edits is not None
    after = applied(source, edits)
    assert after.count(newline.encode()) == source.count(newline.encode()) + 1 == after.count(b"\n")
    comments = read_comments(ParsedSource(after, language), find_units(ParsedSource(after, language), PATH))
    assert comments.malformed == ()
    assert [placed.budget for placed in comments.units[-1].budgets] == BUDGETS


@pytest.mark.parametrize("language", sorted(TEXTS))
def test_a_unit_can_be_ignored_once(language: str) -> None:
    source = TEXTS[language].encode()
    units = find_units(ParsedSource(source, language), PATH)
    edits = ignore(source, language, units, units[-1], PATH)
    assert edits is not None
    after = applied(source, edits)
    now = find_units(ParsedSource(after, language), PATH)
    assert read_comments(ParsedSource(after, language), now).units[-1].ignored >= {"latency", "memory"}
    assert ignore(after, language, now, now[-1], PATH) is None


def test_a_comment_has_the_indentation_of_its_unit() -> None:
    source = TEXTS["python"].encode()
    units = find_units(ParsedSource(source, "python"))
    edits = set_budgets(source, "python", units, units[-1], BUDGETS)
    assert edits is not None
    lines = applied(source, edits).decode().splitlines()
    assert lines[3:5] == ["    # rlm: latency < 1.5 ms, memory < 3 KiB", "    @functools.cache"]


def test_a_budget_that_is_there_is_replaced_and_a_narrower_one_stays() -> None:
    source = b"# rlm: latency < 1 s, latency < 2 ms on nvidia-l4\n@triton.jit\ndef f(n):\n    return n\n"
    units = find_units(ParsedSource(source, "python"))
    edits = set_budgets(source, "python", units, units[0], BUDGETS[:1])
    assert edits is not None
    assert applied(source, edits).startswith(b"# rlm: latency < 1.5 ms, latency < 2 ms on nvidia-l4\n@triton")
    source = b"# rlm: memory < 1 B\ndef f(n):\n    return n\n"
    units = find_units(ParsedSource(source, "python"))
    edits = set_budgets(source, "python", units, units[0], BUDGETS)
    assert edits is not None
    assert applied(source, edits).startswith(b"# rlm: memory < 3 KiB\n# rlm: latency < 1.5 ms\ndef f")


def test_nothing_is_offered_where_a_comment_is_impossible() -> None:
    source = b"module {\n  tt.func public @f() {\n    tt.return\n  }\n}\n"
    units = find_units(ParsedSource(source, "ttir"))
    assert units
    assert set_budgets(source, "ttir", units, units[0], BUDGETS[:1]) is None
    assert ignore(source, "ttir", units, units[0]) is None


@given(st.sampled_from(["latency", "memory"]), st.floats(1e-9, 1e9))
def test_a_rounded_bound_is_never_lower_and_reads_back(metric: Metric, value: float) -> None:
    if metric == "memory":
        value = max(value, 1.0)
    up = rounded_up(metric, value)
    assert value <= up * (1 + 1e-12)
    assert up <= max(value * 1.1, value + 1e-9 if metric == "latency" else value + 1) * (1 + 1e-9)
    budget = Budget(metric, up)
    assert parse(render([budget]))[0][0].budget == budget
    assert len(bound(budget)) <= 12


def test_the_budget_is_the_upper_end_of_the_default_band(make_prediction: Callable[..., Prediction]) -> None:
    found = budgets_from(
        [
            make_prediction(1e-5, 1.63e-4),
            make_prediction(1e-5, 1.2e-4, device="other"),
            make_prediction(0.0, 3000.0, metric="memory", floor=4000.0),
        ]
    )
    assert render(found) == "latency < 170 µs, memory < 4 KiB"


def test_what_has_no_upper_end_has_no_budget(make_prediction: Callable[..., Prediction]) -> None:
    assert budgets_from([make_prediction(abstained=NO_NUMBER), make_prediction(high=float("inf"))]) == []
    assert budgets_from([make_prediction(0.5, 0.9, metric="accuracy")]) == []
