"""Rough work facts from outlines: literal loops, growth by input, loops that may not end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.structure.facts import outline_facts
from rlm_core.types import CauseKind, WorkFacts

PROGRAM = (
    "int f(vector<int>& a, int m) {{ int {0} = a.size(); for (int {1} = 0; {1} < {0}; ++{1}) "
    "for (int j = 0; j < m; ++j) g(); }}"
)


def facts(text: str, language: str) -> WorkFacts:
    result = outline_facts(text, language)
    assert result is not None
    return result


def test_literal_loops_multiply_and_are_named() -> None:
    latency = facts(
        "for (let i = 0; i < 1e6; i++) {\n  for (let j = 0; j < 100; j++) { x += j }\n}", "javascript"
    ).latency
    assert latency.known.likely == pytest.approx(0.2)
    assert 0 < latency.known.least < latency.known.likely
    (cause,) = latency.causes
    assert (cause.kind, cause.line, cause.count) == (CauseKind.LOOP, 1, 1e8)
    assert latency.growth == ()


@pytest.mark.parametrize(
    "text",
    [
        "if (debug) { for (let i = 0; i < 1e9; i++) { f(i) } }",
        "for (let i = 0; i < 1e9; i++) { if (f(i)) break }",
        "function f() { for (let i = 0; i < 1e9; i++) { h(i) } }\nfunction g() { }",
    ],
)
def test_a_loop_that_may_not_run_in_full_has_no_least_time(text: str) -> None:
    known = facts(text, "javascript").latency.known
    assert known.least == 0
    assert known.likely > 0.1


def test_compiled_loops_may_be_removed_by_the_compiler() -> None:
    known = facts(
        "int main() { long s = 0; for (int i = 0; i < 1000000000; i++) s += i; return s; }", "cpp"
    ).latency.known
    assert (known.least, known.likely) == (0, 1)


def test_growth_names_the_inputs_that_bound_the_loops() -> None:
    growth = facts(PROGRAM.format("n", "i"), "cpp").latency.growth
    assert {(factor.size, factor.degree) for factor in growth} == {("a", 1), ("m", 1)}


@settings(deadline=None, max_examples=20)
@given(st.lists(st.from_regex(r"[b-ho-z][a-z]{0,5}", fullmatch=True), min_size=2, max_size=2, unique=True))
def test_renaming_locals_and_spacing_do_not_change_growth(names: list[str]) -> None:
    if {"for", "int", "g", "f", "do", "if"} & set(names):
        return
    plain = facts(PROGRAM.format("n", "i"), "cpp").latency.growth
    renamed = PROGRAM.format(*names)
    assert facts(renamed, "cpp").latency.growth == plain
    assert facts(renamed.replace("{ ", "{\n\n    ").replace("; ", ";  "), "cpp").latency.growth == plain


@pytest.mark.parametrize(
    ("text", "language", "line"),
    [
        ("func main() {\n\tfor {\n\t\twork()\n\t}\n}", "go", 1),
        ("int main() { while (1) { work(); } }", "c", 0),
        ("fn main() { loop { work(); } }", "rust", 0),
        ("print 'a'\nwhile True:\n    pass\n", "python", 1),
        ("fn main() { loop { if done() { break; } } }", "rust", None),
        ("function f() { for (;;) { if (x) return 1; } }", "javascript", None),
        ("func f() { for i := 0; i < n; i++ { work() } }", "go", None),
    ],
)
def test_a_loop_without_a_way_out_may_not_end(text: str, language: str, line: int | None) -> None:
    assert facts(text, language).endless == line


def test_outlines_state_that_costs_are_not_fully_known() -> None:
    entry = facts("int main() { return 0; }", "c")
    assert not entry.fixed
    assert entry.nodes == 0
    assert outline_facts("%0 = tt.load", "ttir") is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (
            "def f(m):\n    try:\n        while True:\n            next(m)\n    except StopIteration: pass\n",
            "python",
        ),
        ("class A { void f() { try { while (true) { g(); } } catch (Error e) { } } }", "java"),
    ],
)
def test_a_loop_whose_errors_are_caught_may_end(text: str, language: str) -> None:
    assert facts(text, language).endless is None
