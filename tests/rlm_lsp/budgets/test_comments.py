"""Budgets in comments: each language's comments, which unit they are above, and what cannot be read."""

from __future__ import annotations

import pytest
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import Span
from rlm_lsp.budgets.comments import FileComments, read_comments
from rlm_lsp.budgets.syntax import Budget

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
