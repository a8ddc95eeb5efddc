"""The names that Python binds, compared with what Python itself does."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.concrete.values import NameScope
from rlm_core.cost.domain.folding import MISSING
from rlm_core.cost.domain.names import bound, defaults_of, imported_names, lookup

SIGNATURES = ["a", "a, b=2", "a, /, b, c=3", "a, *b", "*, a, b=2", "a, *, b", "*a, **b", "a, b=1, *c, d=4, **e", ""]


def parameters(signature: str) -> ast.arguments:
    node = ast.parse(f"def f({signature}): pass").body[0]
    assert isinstance(node, ast.FunctionDef)
    return node.args


@given(
    st.sampled_from(SIGNATURES),
    st.lists(st.integers(), max_size=4),
    st.dictionaries(st.sampled_from("abcde"), st.integers(), max_size=3),
)
def test_a_call_binds_what_python_binds(signature: str, args: list[int], keywords: dict[str, int]) -> None:
    spec = parameters(signature)
    # A signature from our own list, to compare with.
    expected_of = inspect.signature(eval(f"lambda {signature}: None"))
    try:
        expected = expected_of.bind(*args, **keywords).arguments
    except TypeError:
        return
    binding = bound(spec, args, keywords)
    known: dict[str, Any] = dict(binding.names)
    if spec.vararg is not None and binding.rest:
        known[spec.vararg.arg] = tuple(binding.rest)
    if spec.kwarg is not None and binding.extra:
        known[spec.kwarg.arg] = binding.extra
    assert known == dict(expected)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_defaults_are_those_of_the_parameters(signature: str) -> None:
    expected = {
        name: repr(item.default)
        for name, item in inspect.signature(eval(f"lambda {signature}: None")).parameters.items()
        if item.default is not item.empty
    }
    assert {name: ast.unparse(value) for name, value in defaults_of(parameters(signature))} == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b, c", [("a", "a"), ("c", "c")]),
        ("import a.b as d", [("d", "a.b")]),
        ("from a.b import c, d as e", [("c", "a.b.c"), ("e", "a.b.d")]),
    ],
)
def test_an_import_binds_names(text: str, names: list[tuple[str, str]]) -> None:
    node = ast.parse(text).body[0]
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    assert list(imported_names(node)) == names


def test_a_name_is_looked_up_in_the_blocks_around() -> None:
    outer = NameScope(None, {"a": 1, "b": 2})
    inner = NameScope(outer, {"b": None})
    assert lookup(inner, "a") == 1
    assert lookup(inner, "b") is None
    assert lookup(inner, "c") is MISSING
