"""The syntax of recursive functions."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.bounds.recursion_syntax import (
    base_share,
    changing_parameters,
    checks,
    conditions_to_go_on,
    is_cached,
    resumed,
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
        ("def f(n):\n    return f(n - 1)\n", ("n",)),
        ("def f(n, k):\n    return f(n - 1, k)\n", ("n",)),
        ("def f(a, n=0):\n    return f(a, n=n + 1)\n", ("n",)),
        ("def f(self, n):\n    return self.f(n - 1)\n", ("n",)),
        ("def f(self, n):\n    return f(n - 1)\n", None),
        ("def f(self, n):\n    return other.f(n - 1)\n", None),
    ],
)
def test_the_arguments_that_recursive_calls_change(text: str, changing: tuple[str, ...] | None) -> None:
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


def conditions(text: str) -> list[str]:
    """The conditions on which a function goes on."""
    return [ast.unparse(test) for test in conditions_to_go_on(function(text))]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("i == n", ["i != n"]),
        ("n <= i", ["n > i"]),
        ("not path", ["path"]),
        ("i < 0 or len(path) >= k + 1", ["i >= 0", "len(path) < k + 1"]),
        ("i == j == n", ["i != j", "j != n"]),
        ("done(path)", []),
    ],
)
def test_a_function_goes_on_where_what_ends_it_does_not_hold(end: str, expected: list[str]) -> None:
    assert conditions(f"def f(i, path):\n    if {end}:\n        return\n    f(i + 1, path + [i])") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    if low < high:\n        f(low + 1, high)\n", ["low < high"]),
        ("    if low >= high:\n        x = 1\n    else:\n        f(low + 1, high)\n", ["low < high"]),
        ("    return f(low + 1, high) if low < high else 0\n", ["low < high"]),
        ("    return low < high and f(low + 1, high)\n", ["low < high"]),
        ("    return low >= high or f(low + 1, high)\n", ["low < high"]),
        ("    if low < high:\n        f(low + 1, high)\n    else:\n        f(low, high - 1)\n", []),
        ("    best = low\n    if 2 * low < high:\n        best = 2 * low\n    f(best, high)\n", ["2 * low < high"]),
    ],
)
def test_a_function_goes_on_where_it_calls_itself_with_something_else(body: str, expected: list[str]) -> None:
    assert conditions(f"def f(low, high):\n{body}") == expected


def test_a_loop_goes_on_where_a_call_ended() -> None:
    loop = "def f(tokens, i):\n    while i < len(tokens):\n        {} = f(tokens, i + 1)\n    return i\n"
    assert resumed(function(loop.format("i"))) == {"i"}
    assert resumed(function(loop.format("i, value"))) == {"i", "value"}
    assert resumed(function("def f(tokens, i):\n    i = f(tokens, i + 1)\n    return i\n")) == frozenset()


@pytest.mark.parametrize("guard", ["if depth > limit:\n        raise ValueError", "assert depth <= limit"])
def test_an_error_at_a_largest_depth_does_not_end_a_recursion(guard: str) -> None:
    text = (
        f"def f(text, depth, limit):\n    {guard}\n    if not text:\n        return\n    f(text[1:], depth + 1, limit)"
    )
    assert conditions(text) == ["text"]


def test_the_syntax_of_a_function_is_read_once_however_often_it_is_called() -> None:
    names = [f"f{k}" for k in range(40)]
    source = "\n".join(f"def {name}(n): return {' + '.join(f'{other}(n)' for other in names)}" for name in names)
    for read in (base_share, checks, is_cached):
        read.cache_clear()
    Analyser().analyse(ParsedSource(source.encode(), "python"))
    # Once for each function, not once for each of the 40 calls in each.
    assert all(0 < read.cache_info().misses <= 4 * len(names) for read in (base_share, checks, is_cached))


def test_a_table_that_each_call_makes_for_itself_keeps_no_results() -> None:
    text = "def f(n):\n    {made}\n    if n in table:\n        return table[n]\n    table[n] = f(n - 1) + f(n - 2)\n"
    assert not is_cached(function(text.format(made="table = {}")))
    assert is_cached(function(text.format(made="table = TABLE")))
