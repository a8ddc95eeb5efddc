"""Budgets in comments: each language's comments, which unit they are above, and what cannot be read."""

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
from rlm_core.types import Metric, Span
from rlm_lsp.budgets.comments import FileComments, applied, ignore, read_comments, rounded_up, upper_end, write_budget
from rlm_lsp.budgets.syntax import Budget, bound, parse, render

from tests.fakes import NO_NUMBER

BUDGET = Budget("latency", 1e-3)

PYTHON = """\
import functools

# What it is for.
# rlm: latency < 1 ms
@functools.cache
# rlm: memory < 10 MiB
def above(n):
    text = "# rlm: latency < 1 s"
    return text

def plain(n):
    '''rlm: latency < 1 s'''
    # rlm: sizes M=4096
    return n

class Box:
    # rlm: ignore latency
    def method(self):

        # rlm: latency < 2 ms
        async def inner():
            pass
        return inner
"""


def comments_of(text: str, language: str = "python") -> FileComments:
    source = text.encode()
    parsed = ParsedSource(source, language)
    return read_comments(parsed, find_units(parsed))


def by_name(text: str, language: str = "python") -> dict[str, list[Budget]]:
    units = find_units(ParsedSource(text.encode(), language))
    comments = comments_of(text, language)
    return {
        unit.qualname: [placed.budget for placed in entry.budgets]
        for unit, entry in zip(units, comments.units, strict=True)
    }


def slice_of(text: str, span: Span) -> str:
    """What a span covers, by bytes and by line and column, which must agree."""
    covered = text.encode()[span.start_byte : span.end_byte]
    line = text.encode().split(b"\n")[span.start_line]
    assert line[span.start_column : span.end_column] == covered
    return covered.decode()


def test_comments_belong_to_the_unit_below_them() -> None:
    assert by_name(PYTHON) == {
        "above": [BUDGET, Budget("memory", 10 * 2**20)],
        "plain": [],
        "Box.method": [],
        "Box.method.<locals>.inner": [Budget("latency", 2e-3)],
    }
    comments = comments_of(PYTHON)
    assert [sorted(entry.ignored) for entry in comments.units] == [[], [], ["latency"], []]
    assert comments.malformed == ()
    assert slice_of(PYTHON, comments.units[0].budgets[1].span) == "memory < 10 MiB"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("c", "#include <stdio.h>\n\n// rlm: latency < 1 ms\nint f(int n) { return n; }\n"),
        ("c", "/* rlm: latency < 1 ms */\nint f(int n) { return n; }\n"),
        ("cpp", "/**\n * rlm: latency < 1 ms\n */\ntemplate <class T>\nclass Solution { };\n"),
        ("csharp", "using System;\n// rlm: latency < 1 ms\npublic class Solution { int F() { return 1; } }\n"),
        ("go", "package main\n\n// rlm: latency < 1 ms\nfunc f() {}\n"),
        ("go", "// rlm: latency < 1 ms\npackage main\n\nfunc f() {}\n"),
        ("java", "import java.util.*;\n// rlm: latency < 1 ms\n@Deprecated\nclass Solution { }\n"),
        ("javascript", "// rlm: latency < 1 ms\nexport function f() {}\n"),
        ("javascript", "'use strict';\n// rlm: latency < 1 ms\nconst f = () => 1;\n"),
        ("kotlin", "// rlm: latency < 1 ms\nclass Solution { fun f() = 1 }\n"),
        ("php", "<?php\n# rlm: latency < 1 ms\nfunction f() { return 1; }\n"),
        ("ruby", "# rlm: latency < 1 ms\ndef f\n  1\nend\n"),
        ("rust", "struct Solution;\n/// rlm: latency < 1 ms\n#[cfg(test)]\nimpl Solution { fn f() {} }\n"),
        ("scala", "// rlm: latency < 1 ms\nobject Solution { }\n"),
        ("swift", "// rlm: latency < 1 ms\nclass Solution { }\n"),
        ("typescript", "// rlm: latency < 1 ms\nfunction f(): number { return 1 }\n"),
        ("python", "# rlm: latency < 1 ms\r\ndef f():\r\n    pass\r\n"),
        ("python", "class Solution:\n    # rlm: latency < 1 ms\n    def f(self):\n        pass\n"),
    ],
)
def test_each_language_has_its_comments(language: str, text: str) -> None:
    found = by_name(text, language)
    assert [budgets for budgets in found.values() if budgets] == [[BUDGET]]
    comments = comments_of(text, language)
    assert comments.malformed == ()
    [span] = [placed.span for entry in comments.units for placed in entry.budgets]
    assert slice_of(text, span) == "latency < 1 ms"


def test_a_program_and_a_function_that_start_on_one_line_do_not_share_a_budget() -> None:
    text = "# rlm: latency < 1 ms\ndef helper():\n    pass\n\n# rlm: latency < 1 s\nclass Solution:\n    pass\n"
    assert by_name(text) == {"helper": [BUDGET], "Solution": [Budget("latency", 1.0)]}


def test_modules_and_kernels_have_budgets_on_a_device() -> None:
    text = (
        "import torch.nn as nn\nimport triton\n\n"
        "# rlm: latency < 2 ms on A100 M=4096\n@triton.jit\ndef k(x, N):\n    pass\n"
        "\n# rlm: latency < 3 ms\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    found = by_name(text)
    assert found["k"] == [Budget("latency", 2e-3, "nvidia-a100-sxm4-80gb", (("M", "4096"),))]
    assert found["Net"] == [Budget("latency", 3e-3)]


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("# µ\n# rlm: latncy < 1 ms\ndef f(): pass\n", "latncy", "unknown metric"),
        ("# rlm: latency < 1 ms, memory < 1 MB\ndef f(): pass\n", "MB", "unknown unit"),
        ("# rlm: accuracy > 90 %\ndef f(): pass\n", "accuracy > 90 %", "a function has no accuracy"),
        ("# rlm: ignore speed\ndef f(): pass\n", "speed", "unknown metric 'speed'"),
        ("# rlm: latency < 1 ms\n\ndef f(): pass\n", "latency < 1 ms", "no unit starts below this comment"),
        ("# rlm: latency < 1 ms\nX = 1\n", "latency < 1 ms", "no unit starts below this comment"),
        ("def f(): pass\n# rlm: latency < 1 ms\n", "latency < 1 ms", "no unit starts below this comment"),
        ("# rlm:\ndef f(): pass\n", "", "a budget is missing"),
    ],
)
def test_malformed_text_is_reported_where_it_is(text: str, place: str, what: str) -> None:
    [wrong] = comments_of(text).malformed
    assert slice_of(text, wrong.span) == place
    assert what in wrong.message


def test_budgets_next_to_a_mistake_apply() -> None:
    assert by_name("# rlm: latency < 1 ms, memory < 1 MB\ndef f(): pass\n") == {"f": [BUDGET]}


def test_no_budget_is_reported_as_misplaced_in_a_file_that_does_not_parse() -> None:
    comments = comments_of("# rlm: latency < 1 ms\ndef f(:\n    pass\n")
    assert comments.malformed == ()


@pytest.mark.parametrize(
    "text",
    [
        "def f(): # rlm: latency < 1 ms\n    pass\n",
        "# see rlm: latency < 1 ms\ndef f(): pass\n",
        '"""\n# rlm: latency < 1 ms\n"""\ndef f(): pass\n',
    ],
)
def test_other_texts_are_no_budgets(text: str) -> None:
    assert by_name(text) == {"f": []}
    assert comments_of(text).malformed == ()


def test_texts_without_a_grammar_have_no_comments() -> None:
    comments = comments_of("module {\n  // rlm: latency < 1 ms\n  tt.func public @k() {\n  }\n}\n", "ttir")
    assert [entry.budgets for entry in comments.units] == [()]


def test_the_judge_of_a_program_is_no_budget() -> None:
    found = comments_of("// rlm: judge=atcoder runtime=pypy\n// rlm: latency < 1 s\nint main() {}\n", "cpp")
    assert not found.malformed
    assert [[placed.budget for placed in unit.budgets] for unit in found.units] == [[Budget("latency", 1.0)]]


@pytest.mark.parametrize(
    ("directive", "wrong", "message"),
    [
        ("judge=codeforces", "judge=codeforces", "unknown judge 'codeforces'; write `judge=leetcode` or `judge=boj`"),
        ("judge=boj runtime=jit", "runtime=jit", "unknown runtime 'jit'; write `runtime=cpython` or `runtime=pypy`"),
        ("judge=boj tier=gold", "tier=gold", "unknown tier 'gold'; write `judge=NAME` or `runtime=NAME`"),
    ],
)
def test_an_unknown_judge_is_a_mistake(directive: str, wrong: str, message: str) -> None:
    text = f"// rlm: {directive}\nint main() {{}}\n"
    [mistake] = comments_of(text, "cpp").malformed
    assert mistake.message.startswith(message)
    assert slice_of(text, mistake.span) == wrong


pytestmark = pytest.mark.timeout(30)

WRITTEN = Budget("latency", 0.005)
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
    edit = write_budget(source, language, units, units[-1], WRITTEN, PATH)
    assert edit is not None
    after = applied(source, [edit])
    assert after.count(newline.encode()) == source.count(newline.encode()) + 1 == after.count(b"\n")
    comments = read_comments(ParsedSource(after, language), find_units(ParsedSource(after, language), PATH))
    assert comments.malformed == ()
    assert [placed.budget for placed in comments.units[-1].budgets] == [WRITTEN]


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
    edit = write_budget(source, "python", units, units[-1], WRITTEN)
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
    assert write_budget(source, "ttir", units, units[0], WRITTEN) is None
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
