"""Parameters of functions: bound as Python binds them, and functions without a body."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.domain.syntax import Function
from rlm_core.cost.domain.values import literal
from rlm_core.cost.evaluate.parameters import bind_arguments, is_abstract, is_method


def function(text: str) -> Function:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


@settings(max_examples=30)
@given(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4), st.integers(0, 3))
def test_arguments_are_bound_as_python_binds_them(keywords: list[str], positional: int) -> None:
    node = function("def g(a, b, /, c=3, *rest, d=4, **others):\n    return 1\n")
    names = {name: literal(name) for name in keywords if name not in "ab"[:positional] + "abc"[:positional]}
    bound = bind_arguments(node, [literal(k) for k in range(positional)], names)
    for place, name in enumerate("abc"[:positional]):
        assert bound[name].constant == place
    for name, value in names.items():
        if name in "abcd":
            assert bound[name] == value
    others = bound["others"].size
    assert others is not None
    assert others.exact == sum(name not in "abcd" for name in names)


@pytest.mark.parametrize(
    ("body", "abstract"),
    [("pass", True), ("...", True), ("raise NotImplementedError", True), ("raise NotImplementedError('x')", True),
     ("'doc'", True), ("return 1", False), ("raise ValueError", False)],
)  # fmt: skip
def test_functions_without_a_body_are_abstract(body: str, abstract: bool) -> None:
    assert is_abstract(function(f"def g():\n    {body}\n")) is abstract


@pytest.mark.parametrize(
    ("parameters", "method"),
    [("self, a", True), ("cls", True), ("a, self", False), ("", False), ("self, /, a", True)],
)
def test_a_method_takes_its_object_first(parameters: str, method: bool) -> None:
    assert is_method(function(f"def g({parameters}):\n    pass\n")) is method
