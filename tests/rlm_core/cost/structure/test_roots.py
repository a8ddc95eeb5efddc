"""Which inputs bound the loops of an outline."""

from __future__ import annotations

import pytest
from rlm_core.cost.structure.outline import outline
from rlm_core.cost.structure.roots import Roots
from rlm_core.source.parsed import ParsedSource


def paths(text: str, language: str) -> list[str]:
    structure = outline(ParsedSource(text.encode(), language))
    roots = Roots(structure)
    return [roots.path(loop) for loop in structure.loops()]


@pytest.mark.parametrize(
    ("text", "language", "last"),
    [
        ("def f(xs):\n n = len(xs)\n for i in range(n):\n  for j in range(i, n):\n   g()\n", "python", "a a"),
        ("def f(xs, ys):\n m, n = len(xs), len(ys)\n for i in range(m):\n  for j in range(n):\n   g()\n", "python",
         "a b"),
        ("int f(vector<vector<int>>& g) { int m = g.size(), n = g[0].size();"
         " for (int i = 0; i < m; ++i) for (int j = 0; j < n; ++j) h(); }", "cpp", "a a[]"),
        ("func f(words []string) { for _, w := range words { for i := 0; i < 26; i++ { g(w, i) } } }", "go", "a c"),
        ("function f(n: number) { for (let i = 1; i < n; i *= 2) { g(); } }", "typescript", "log"),
        ("fn f(a: &Vec<i32>) { for i in 0..a.len() { for j in 0..k { g(); } } }", "rust", "a ?"),
    ],
)  # fmt: skip
def test_bounds_are_followed_to_the_inputs(text: str, language: str, last: str) -> None:
    assert paths(text, language)[-1] == last


def test_the_kinds_of_parameters_come_from_their_types() -> None:
    structure = outline(ParsedSource(b"int f(vector<vector<int>>& grid, string s, int k) { return g(); }", "cpp"))
    assert Roots(structure).parameters == {"grid": "matrix", "s": "text", "k": "number"}


def test_assignments_in_a_circle_end() -> None:
    assert paths("def f():\n    a = b\n    b = a\n    for i in range(a):\n        g()\n", "python") == ["?"]
