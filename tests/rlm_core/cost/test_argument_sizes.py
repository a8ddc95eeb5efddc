"""The sizes of arguments: of literals, ranges, repeated and computed values, arrays, and names bound to these."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.argument_sizes import caller_text, sizes_of
from rlm_core.cost.scope import ModuleScope
from rlm_core.source.call_graph import CallGraph
from rlm_core.source.module_index import index_module
from rlm_core.source.parsed import ParsedSource

MODULE = b"""
import random
import numpy as np
from pathlib import Path
N = 1_000
ROWS = [[0] * 5 for _ in range(N)]
DATA = [0] * N
"""
SCOPE = ModuleScope(index_module(ParsedSource(MODULE, "python"), "app"), CallGraph())


@pytest.mark.parametrize(
    ("argument", "sizes"),
    [
        ("10_000", {"": 10_000}),
        ("2**20", {"": 2**20}),
        ("N // 2", {"": 500}),
        ("[1, 2, 3]", {"": 3}),
        ("[0] * N", {"": 1_000}),
        ("'ab' * 50", {"": 100}),
        ("range(N)", {"": 1_000}),
        ("list(range(10, 60))", {"": 50}),
        ("[random.random() for _ in range(N)]", {"": 1_000}),
        ("{i: [0] * 4 for i in range(20)}", {"": 20, "[]": 4}),
        ("ROWS", {"": 1_000, "[]": 5}),
        ("np.zeros((50, 80))", {"": 4_000, ".0": 50, ".1": 80}),
        ("np.arange(N)", {"": 1_000}),
        ("None", {}),
        ("-5", None),
        ("True", None),
        ("Path('x').read_text()", None),
        ("load()", None),
        ("[x for x in range(N) if x % 2]", None),
        ("DATA[:500]", {"": 500}),
        ("load()[:500]", None),
    ],
)
def test_the_sizes_of_an_argument_are_those_that_the_text_fixes(argument: str, sizes: dict[str, float] | None) -> None:
    assert sizes_of(ast.parse(argument, mode="eval").body, SCOPE, {}) == sizes


def sizes_in(body: str) -> dict[str, float] | None:
    """The sizes of the argument of the only call of ``total`` in a function."""
    text = "def main(given):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    caller = caller_text(text, is_function=True)
    [call] = caller.calls["total"]
    found = sizes_of(call.positional[0], SCOPE, caller.bindings)
    return dict(found) if found is not None else None


def test_a_name_that_is_bound_once_has_the_size_of_its_value() -> None:
    assert sizes_in("count = 3 * N\norders = [0.0] * count\ntotal(orders)") == {"": 3_000}


@pytest.mark.parametrize(
    "body",
    [
        "orders = []\nfor i in range(10):\n    orders.append(i)\ntotal(orders)",
        "orders = [1]\norders = load()\ntotal(orders)",
        "orders = {}\norders['a'] = 1\ntotal(orders)",
        "orders = [1]\norders += given\ntotal(orders)",
        "total(given)",
        "for orders in given:\n    total(orders)",
        "orders = orders\ntotal(orders)",
    ],
)
def test_a_name_that_changes_or_is_not_known_has_no_size(body: str) -> None:
    assert sizes_in(body) is None


def test_a_parameter_hides_the_constant_of_the_module() -> None:
    caller = caller_text("def main(N):\n    total(N)\n", is_function=True)
    assert sizes_of(caller.calls["total"][0].positional[0], SCOPE, caller.bindings) is None
