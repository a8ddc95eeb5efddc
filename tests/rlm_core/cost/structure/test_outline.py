"""Source text in any language -> routines, loops and calls, and how they nest."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.structure.literals import number
from rlm_core.cost.structure.outline import MAX_BYTES, outline
from rlm_core.cost.structure.parts import Loop, Outline
from rlm_core.source.parsed import ParsedSource

LITERAL = {
    "c": "void f() { for (int i = 0; i < 100; i++) { g(i); } }",
    "cpp": "void f() { for (size_t i = 0; i < 100; ++i) { g(i); } }",
    "java": "class A { void f() { for (int i = 0; i < 100; i++) { g(i); } } }",
    "csharp": "class A { void F() { for (int i = 0; i < 100; i++) { G(i); } } }",
    "go": "func f() { for i := 0; i < 100; i++ { g(i) } }",
    "javascript": "function f() { for (let i = 0; i < 100; i++) { g(i); } }",
    "typescript": "function f(): void { for (let i = 0; i < 100; i++) { g(i); } }",
    "rust": "fn f() { for i in 0..100 { g(i); } }",
    "python": "def f():\n    for i in range(100):\n        g(i)\n",
}


def outlined(text: str, language: str) -> Outline:
    return outline(ParsedSource(text.encode(), language))


def loops(text: str, language: str) -> list[Loop]:
    return list(outlined(text, language).loops())


@pytest.mark.parametrize("language", LITERAL)
def test_a_loop_over_a_literal_range_has_a_count_in_every_language(language: str) -> None:
    (loop,) = loops(LITERAL[language], language)
    assert (loop.kind, loop.count, loop.depth) == ("literal", 100, 1)


@pytest.mark.parametrize("language", LITERAL)
def test_a_call_knows_the_loop_and_the_function_around_it(language: str) -> None:
    calls = [call for call in outlined(LITERAL[language], language).calls() if call.name.lower() == "g"]
    assert len(calls) == 1
    assert calls[0].loop is not None
    assert calls[0].function.name.lower() == "f"


@pytest.mark.parametrize(
    ("header", "count"),
    [
        ("int i = 0; i <= 10; i++", 11),
        ("int i = 10; i > 0; i--", 10),
        ("int i = 10; i >= 0; --i", 11),
        ("int i = 0; i < 100; i += 10", 10),
        ("int i = 1; i < 1 << 4; i++", 15),
        ("int i = 0; i < 2 * 10; i++", 20),
    ],
)
def test_the_rounds_of_a_counted_loop(header: str, count: float) -> None:
    (loop,) = loops(f"void f() {{ for ({header}) g(i); }}", "cpp")
    assert loop.count == count


@pytest.mark.parametrize(
    ("text", "language", "kind"),
    [
        ("void f(int n) { for (int i = 0; i < n; i++) g(); }", "cpp", "count"),
        ("void f(vector<int>& a) { for (int x : a) g(x); }", "cpp", "each"),
        ("void f(int n) { while (n > 0) { n /= 2; } }", "cpp", "halving"),
        ("void f(int n) { for (int i = n; i; i >>= 1) g(); }", "cpp", "halving"),
        ("void f(int n) { for (int i = 2; i * i <= n; i++) g(); }", "cpp", "sqrt"),
        ("void f(queue<int>& q) { while (!q.empty()) { q.pop(); } }", "cpp", "worklist"),
        ("int f(int l, int r) { while (l < r) { int mid = (l + r) / 2; if (g(mid)) r = mid; else l = mid; } }", "cpp",
         "search"),
        ("func f(xs []int) { for _, x := range xs { g(x) } }", "go", "each"),
        ("func f() { for { g() } }", "go", "endless"),
        ("fn f() { loop { if g() { break; } } }", "rust", "while"),
        ("def f(n):\n    while n:\n        n //= 2\n", "python", "halving"),
        ("def f(xs):\n    return [g(x) for x in xs]\n", "python", "each"),
        ("def f():\n    while True:\n        g()\n", "python", "endless"),
        ("def f(q):\n    while q:\n        q.popleft()\n", "python", "worklist"),
    ],
)  # fmt: skip
def test_the_kind_of_a_loop(text: str, language: str, kind: str) -> None:
    (loop,) = loops(text, language)
    assert loop.kind == kind


def test_a_range_that_is_half_written_is_a_loop_of_unknown_length() -> None:
    (loop,) = loops("def f():\n    for i in range():\n        g(i)\n", "python")
    assert loop.count is None


def test_an_inner_while_that_never_starts_again_is_amortised() -> None:
    window = "def f(xs):\n    j = 0\n    for i in range(len(xs)):\n        while xs[j] < i:\n            j += 1\n"
    restarted = window.replace("        while", "        j = 0\n        while").replace("    j = 0\n    for", "    for")
    assert [loop.kind for loop in loops(window, "python")] == ["count", "amortised"]
    assert [loop.kind for loop in loops(restarted, "python")] == ["count", "while"]


def test_comprehensions_nest_in_the_order_of_their_clauses() -> None:
    first, second = loops("def f(xs, ys):\n    return [x * y for x in xs for y in ys]\n", "python")
    assert (first.bound, first.depth, second.bound, second.depth) == ("xs", 1, "ys", 2)


def test_memoised_functions_named_lambdas_and_their_parameters() -> None:
    python = outlined("@cache\ndef f(a, b):\n    return f(a - 1, b)\n", "python").routines[1]
    assert (python.name, python.parameters, python.memoised) == ("f", 2, True)
    names = [
        [routine.name for routine in outlined(text, language).routines[1:]]
        for text, language in (
            ("void g() { function<int(int)> dfs = [&](int u) { return dfs(u - 1); }; }", "cpp"),
            ("const dfs = (u) => { return dfs(u - 1); };", "javascript"),
            ("func g() { dfs := func(u int) int { return 1 } }", "go"),
        )
    ]
    assert names == [["g", "dfs"], ["dfs"], ["g", "dfs"]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10), ("1_000", 1000), ("1e6", 1e6), ("10**6 + 1", 1_000_001), ("2 * 10 ** 3", 2000), ("1 << 10", 1024),
        ("0xff", 255), ("100L", 100), ("5usize", 5), ("(int)1e3", 1000), ("n", None), ("10 * n", None), ("", None),
        ("9" * 39 + "**9", None), ("-3", -3), ("7-", None),
    ],
)  # fmt: skip
def test_the_value_of_a_literal_expression(text: str, value: float | None) -> None:
    assert number(text) == value


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_has_a_value_or_none(text: str) -> None:
    value = number(text)
    assert value is None or isinstance(value, float)


@settings(deadline=None, max_examples=40)
@given(st.text(alphabet="for while(){};:=<>+-*/ \ninrange0123abc,.[]", max_size=200), st.sampled_from(sorted(LITERAL)))
def test_the_outline_of_any_text_is_deterministic(text: str, language: str) -> None:
    def shape(entry: Outline) -> list[tuple[str, float | None, int]]:
        return [(loop.kind, loop.count, loop.depth) for loop in entry.loops()]

    assert shape(outlined(text, language)) == shape(outlined(text, language))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("void f(){" + "for(int i=0;i<n;i++){" * 10_000, "cpp"),
        ("void f(){" + "while(" * 10_000, "cpp"),
        ("x = " + "(" * 10_000 + ")" * 10_000, "python"),
        ("f(" * 10_000, "javascript"),
        ("x = '" + "a" * 1_000_000 + "'", "python"),
        ("while (a) {" + "a" * 1_000_000 + "}", "cpp"),
        ("while (a) { b = c / 2; } " * 40_000, "cpp"),
        ("[" * 3_000 + "x for x in y" + "]" * 3_000, "python"),
    ],
)
def test_hostile_texts_end_in_bounded_time_with_bounded_outlines(text: str, language: str) -> None:
    begun = time.process_time()
    entry = outlined(text, language)
    list(entry.loops())
    assert time.process_time() - begun < 10
    assert len(entry.source) <= MAX_BYTES
    assert sum(len(routine.loops) + len(routine.calls) for routine in entry.routines) <= 3_000


def test_the_clauses_of_a_comprehension_nest_in_the_order_of_the_text() -> None:
    text = "def f(a):\n    return [z for x in a for y in x for z in y if z]\n"
    for _ in range(50):
        assert [(loop.depth, loop.bound) for loop in loops(text, "python")] == [(1, "a"), (2, "x"), (3, "y")]


def test_a_call_of_a_class_by_a_keyword_has_a_name_too() -> None:
    (call,) = outlined("<?php class A { function f() { return new self; } }", "php").calls()
    assert call.name == "self"
