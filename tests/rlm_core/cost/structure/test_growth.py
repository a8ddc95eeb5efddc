"""An outline -> the order of its routines: loops multiply, calls add, recursion by its shape."""

from __future__ import annotations

import pytest
from rlm_core.cost.structure.growth import Order, orders
from rlm_core.cost.structure.outline import outline
from rlm_core.source.parsed import ParsedSource


def order(text: str, language: str) -> Order:
    return max(orders(outline(ParsedSource(text.encode(), language))))


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("int f(int n) { return n + 1; }", "cpp", Order()),
        ("void f(int n) { for (int i = 0; i < 1000; i++) g(); }", "cpp", Order()),
        ("void f(int n) { for (int i = 0; i < n; i++) for (int j = i; j < n; j++) g(); }", "cpp", Order(1, 2, 0)),
        ("void f(int n) { for (int i = 0; i < n; i++) for (int j = 1; j < n; j *= 2) g(); }", "cpp", Order(1, 1, 1)),
        ("void f(vector<int>& a) { sort(a.begin(), a.end()); }", "cpp", Order(1, 1, 1)),
        ("void f(vector<int>& a) { for (int x : a) lower_bound(b.begin(), b.end(), x); }", "cpp", Order(1, 1, 1)),
        ("int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }", "c", Order(2, 0, 0)),
        ("int f(int n) { return n ? f(n - 1) : 0; }", "c", Order(1, 1, 0)),
        ("int f(int n) { return n ? f(n / 2) : 0; }", "c", Order(1, 0, 1)),
        ("int f(Node* r) { return r ? f(r->left) + f(r->right) : 0; }", "cpp", Order(1, 1, 0)),
        ("@cache\ndef f(i, j):\n    return f(i - 1, j) + f(i, j - 1)\n", "python", Order(1, 2, 0)),
        ("func g(n int) { for i := 0; i < n; i++ { h() } }\nfunc f(xs []int) { for _, x := range xs { g(x) } }", "go",
         Order(1, 2, 0)),
        ("def f(q):\n    while q:\n        for x in q:\n            g(x)\n", "python", Order(1, 1, 0)),
        ("def f(a):\n    print 'x'\n    for i in xrange(len(a)):\n        print a[i]\n", "python", Order(1, 1, 0)),
    ],
)  # fmt: skip
def test_the_order_of_a_text(text: str, language: str, expected: Order) -> None:
    assert order(text, language) == expected


def test_functions_that_call_each_other_have_an_order() -> None:
    assert order("def f(n):\n    return g(n - 1)\ndef g(n):\n    return f(n - 1)\n", "python") == Order()
