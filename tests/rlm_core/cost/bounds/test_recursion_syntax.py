"""The syntax of recursive functions."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.bounds.recursion_syntax import (
    base_share,
    changing_parameters,
    checks,
    ends_of,
    is_cached,
)
from rlm_core.cost.domain.syntax import Function
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource


def function(text: str) -> Function:
    """The function of a text."""
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


@pytest.mark.parametrize(
    ("text", "changing"),
    [
        ("def f(n):\n    return 1\n", None),
        ("def f(n):\n    if n < 3:\n        return 1\n    return f(n - 1)\n", {"n": 2}),
        ("def f(n, k):\n    if n <= 3:\n        return 1\n    return f(n - 1, k)\n", {"n": 3}),
        ("def f(a):\n    if len(a) == 1:\n        return 1\n    return f(a[1:])\n", {"a": 1}),
        ("def f(a, n=0):\n    return f(a, n=n + 1)\n", {"n": 0}),
        ("def f(self, n):\n    return self.f(n - 1)\n", {"n": 0}),
        ("def f(self, n):\n    return f(n - 1)\n", None),
        ("def f(self, n):\n    return other.f(n - 1)\n", None),
    ],
)
def test_the_arguments_that_recursive_calls_change(text: str, changing: dict[str, float] | None) -> None:
    assert changing_parameters(function(text)) == changing


@pytest.mark.parametrize(
    ("text", "cached"),
    [
        ("@cache\ndef f(n): return f(n - 1)", True),
        ("@functools.lru_cache(maxsize=None)\ndef f(n): return f(n - 1)", True),
        ("@other\ndef f(n): return f(n - 1)", False),
        ("def f(n, memo):\n    if n in memo:\n        return memo[n]\n    memo[n] = f(n - 1)\n", True),
        ("def f(n, memo):\n    memo[n] = f(n - 1)\n", False),
    ],
)
def test_caches_are_decorators_or_dictionaries(text: str, cached: bool) -> None:
    assert is_cached(function(text)) is cached


def test_half_of_the_calls_of_a_branching_recursion_end_at_once() -> None:
    assert base_share(function("def f(n): return f(n - 1) + f(n - 2)")) == 0.5
    assert base_share(function("def f(n): return f(n - 1)")) < 0.1


def test_checks_end_a_call_without_another() -> None:
    lines = ["def f(n):", "    if n == 0:", "        return 0", "    if n % 2:", "        return f(n - 1)"]
    assert checks(function("\n".join([*lines, "    return f(n // 2)"]))) == 1
    lines = ["def f(n):", "    if n == 0:", "        return 0", "    elif n == 1:", "        return 1"]
    assert checks(function("\n".join([*lines, "    return f(n - 1) + f(n - 2)"]))) == 2
    assert checks(function("def f(n):\n    return n and f(n - 1)")) == 1


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("i == n", {"i": ("n", False)}),
        ("n <= i", {"i": ("n", False)}),
        ("len(path) >= k + 1", {"path": ("k + 1", True)}),
        ("i != n", {}),
        ("other == n", {}),
    ],
)
def test_what_ends_a_recursion(end: str, expected: dict[str, tuple[str, bool]]) -> None:
    text = f"def f(i, path, other):\n    if {end}:\n        return\n    f(i + 1, path + [i], other)"
    found = ends_of(function(text))
    assert {name: (ast.unparse(limit), of_length) for name, (limit, of_length) in found.items()} == expected


@pytest.mark.parametrize("guard", ["if depth > limit:\n        raise ValueError", "assert depth <= limit"])
def test_an_error_at_a_largest_depth_does_not_end_a_recursion(guard: str) -> None:
    text = (
        f"def f(text, depth, limit):\n    {guard}\n    if not text:\n        return\n    f(text[1:], depth + 1, limit)"
    )
    assert ends_of(function(text)).keys().isdisjoint({"depth"})


def test_the_syntax_of_a_function_is_read_once_however_often_it_is_called() -> None:
    names = [f"f{k}" for k in range(40)]
    source = "\n".join(f"def {name}(n): return {' + '.join(f'{other}(n)' for other in names)}" for name in names)
    for read in (base_share, checks, is_cached):
        read.cache_clear()
    Analyser().analyse(ParsedSource(source.encode(), "python"))
    # Once for each function, not once for each of the 40 calls in each.
    assert all(0 < read.cache_info().misses <= 4 * len(names) for read in (base_share, checks, is_cached))
