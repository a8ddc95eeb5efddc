"""Structure: the same counts for the same code in every language, and nothing from layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import SourceError
from rlm_core.source.canonical import canonical
from rlm_core.source.languages import LANGUAGES
from rlm_core.source.syntax_counts import FACTS, NAMES, facts, structure

from .test_canonical import WITH_AND_WITHOUT_COMMENTS

# Per language: a function around a body, a loop around a body, and a call.
_PYTHON = ("def f(x):\n{}\n", "for i in x:\n{}", "g(x)")
SAMPLES = {
    "python": _PYTHON,
    "triton": ("@triton.jit\ndef f(x):\n{}\n", "while x > 0:\n{}", "tl.load(x)"),
    "pytorch": ("class M(nn.Module):\n\tdef forward(self, x):\n{}\n", "for layer in self.layers:\n{}", "layer(x)"),
    "c": ("void f(int *x) {{\n{}\n}}\n", "for (int i = 0; i < 9; i++) {{\n{}\n}}", "g(x);"),
    "cpp": ("void f(vector<int>& x) {{\n{}\n}}\n", "for (auto& i : x) {{\n{}\n}}", "x.push_back(1);"),
    "csharp": ("class A {{ void F(int[] x) {{\n{}\n}} }}\n", "foreach (var i in x) {{\n{}\n}}", "G(x);"),
    "go": ("package a\nfunc f(x []int) {{\n{}\n}}\n", "for i := range x {{\n{}\n}}", "g(x)"),
    "java": ("class A {{ void f(int[] x) {{\n{}\n}} }}\n", "for (int i : x) {{\n{}\n}}", "g(x);"),
    "javascript": ("function f(x) {{\n{}\n}}\n", "for (const i of x) {{\n{}\n}}", "g(x);"),
    "kotlin": ("fun f(x: IntArray) {{\n{}\n}}\n", "for (i in x) {{\n{}\n}}", "g(x)"),
    "php": ("<?php\nfunction f($x) {{\n{}\n}}\n", "foreach ($x as $i) {{\n{}\n}}", "g($x);"),
    "ruby": ("def f(x)\n{}\nend\n", "while x\n{}\nend", "g(x)"),
    "rust": ("fn f(x: Vec<i32>) {{\n{}\n}}\n", "for i in x {{\n{}\n}}", "g(x);"),
    "scala": ("def f(x: Array[Int]): Unit = {{\n{}\n}}\n", "for (i <- x) {{\n{}\n}}", "g(x)"),
    "swift": ("func f(x: [Int]) {{\n{}\n}}\n", "for i in x {{\n{}\n}}", "g(x)"),
    "typescript": ("function f(x: number[]) {{\n{}\n}}\n", "while (x) {{\n{}\n}}", "g(x);"),
}


def sample(language: str, loops: int, calls: int = 1) -> str:
    """A function with nested loops and calls in the innermost one."""
    function, loop, call = SAMPLES[language]
    margin = 2 if language == "pytorch" else 1
    body = "\n".join(["\t" * (margin + loops) + call] * calls)
    for depth in reversed(range(loops)):
        body = "\t" * (margin + depth) + loop.format(body)
    return canonical(function.format(body), language)


def counts(text: str, language: str) -> dict[str, int]:
    """The counts by name, as whole numbers."""
    values = np.round(np.expm1(structure(text, language).astype(np.float64)))
    return {name: int(value) for name, value in zip(NAMES, values, strict=True)}


def test_every_language_with_a_grammar_has_a_sample() -> None:
    assert SAMPLES.keys() == {name for name, entry in LANGUAGES.items() if entry.grammar is not None}


@pytest.mark.parametrize("language", SAMPLES)
def test_a_loop_around_raises_the_nesting_by_one(language: str) -> None:
    found = [counts(sample(language, loops), language) for loops in range(4)]
    assert [entry["loops"] for entry in found] == [entry["loop_nesting"] for entry in found] == [0, 1, 2, 3]
    assert [entry["nested_loops"] for entry in found] == [0, 0, 1, 2]


@pytest.mark.parametrize("language", SAMPLES)
def test_calls_are_counted_at_their_location(language: str) -> None:
    bare, looped, nested = (counts(sample(language, loops, calls=3), language) for loops in range(3))
    assert bare["calls"] - counts(sample(language, 0), language)["calls"] == 2
    assert (bare["calls_in_loops"], bare["calls_in_nested_loops"]) == (0, 0)
    assert (looped["calls_in_loops"], looped["calls_in_nested_loops"]) == (3, 0)
    assert (nested["calls_in_loops"], nested["calls_in_nested_loops"]) == (3, 3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_and_layout_count_for_nothing(language: str) -> None:
    noisy, plain = (canonical(text, language) for text in WITH_AND_WITHOUT_COMMENTS[language])
    assert structure(noisy, language).tolist() == structure(plain, language).tolist()
    assert structure(canonical(plain, language), language).tolist() == structure(plain, language).tolist()


@given(st.text(), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_has_finite_counts(text: str, language: str) -> None:
    found = structure(canonical(text, language), language)
    assert found.shape == (len(NAMES),)
    assert found.dtype == np.float32
    assert np.all(np.isfinite(found))
    assert np.all(found >= 0)


def test_recursion_is_seen() -> None:
    text = "def f(n):\n\treturn f(n - 1) + g(n)"
    assert counts(text, "python")["recursive_calls"] == 1
    assert counts(text.replace("return f", "return h"), "python")["recursive_calls"] == 0


def test_a_method_that_calls_itself_is_recursive() -> None:
    assert counts("def f(self, n):\n\treturn self.f(n - 1)", "python")["recursive_calls"] == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("if x:\n\tpass", "branches"),
        ("x = y", "assignments"),
        ("x += 1", "assignments"),
        ("x + y", "operations"),
        ("x[1]", "subscripts"),
        ("f('text')", "strings"),
        ("x = [1, 2]", "collections"),
        ("x = [i for i in y]", "collections"),
        ("raise x", "raises"),
        ("def f():\n\treturn 1", "returns"),
        ("def f():\n\tyield 1", "returns"),
        ("x = lambda: 1", "functions"),
        ("class A:\n\tpass", "classes"),
        ("for x in y:\n\tif x:\n\t\tpass", "branches_in_loops"),
        ("for x in y:\n\tx + 1", "operations_in_loops"),
        ("for x in y:\n\ty[x]", "subscripts_in_loops"),
        ("[x for x in y]", "loops"),
    ],
)
def test_what_is_in_a_text_is_counted(text: str, name: str) -> None:
    assert counts(text, "python")[name] >= 1
    assert counts("pass", "python")[name] == 0


@pytest.mark.parametrize("language", ["python", "ttir", "onnx"])
def test_words_lines_and_numbers_need_no_grammar(language: str) -> None:
    found = counts("alpha beta\nalpha = 1000 + 7", language)
    assert (found["names"], found["lines"]) == (2, 2)
    numbers = [structure(f"x = {number}", language)[-1] for number in ("1", "10", "1_000", "1000000")]
    assert numbers == sorted(set(numbers))


def test_numbers_beyond_64_bits_are_no_error() -> None:
    assert np.isfinite(structure("x = " + "9" * 6000, "python")).all()


def test_a_huge_or_deep_text_is_counted_in_part() -> None:
    deep = structure("x = " + "(" * 3000 + ")" * 3000, "python")
    long = structure("x = f(1)\n" * 30_000, "python")
    assert np.all(np.isfinite(deep))
    assert np.all(np.isfinite(long))


def test_a_language_that_we_do_not_read_is_an_error() -> None:
    with pytest.raises(SourceError, match="unknown language 'cobol'"):
        structure("x", "cobol")


lengths = st.lists(st.integers(0, 5000), max_size=12)


@given(st.integers(1, 5000), lengths, lengths)
def test_facts_are_finite_and_grow_with_the_text(own: int, level1: list[int], level2: list[int]) -> None:
    plain = np.zeros(len(NAMES), np.float32)
    found = facts(plain, own, level1, level2)
    assert found.shape == (FACTS,)
    assert np.all(np.isfinite(found))
    assert facts(plain, own + 1, level1, level2)[0] > found[0]


def test_facts_end_with_the_counts_of_the_unit() -> None:
    mine = structure("for x in y:\n\tf(x)", "python")
    assert facts(mine, 7, [3, 4], [])[-len(NAMES) :].tolist() == mine.tolist()
