"""The entry points of the evaluator: which syntax and which kinds of values they handle, and what they charge."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.domain import dispatch
from rlm_core.cost.domain.context import TooComplex
from rlm_core.cost.domain.dispatch import call_value, evaluate, execute, peek
from rlm_core.cost.domain.values import NONE, UNKNOWN, Value, literal

from ..evaluating import context_with

# Parts of other expressions, which handle them, and statements that do nothing when they run.
_PARTS = {"FormattedValue", "Slice", "TemplateStr", "Interpolation"}
_WITHOUT_EFFECT = {"Pass", "Global", "Nonlocal", "TypeAlias"}
_DEPRECATED = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}


@pytest.mark.parametrize(
    ("table", "kind", "others"),
    [(dispatch.EXPRESSIONS, ast.expr, _PARTS | _DEPRECATED), (dispatch.STATEMENTS, ast.stmt, _WITHOUT_EFFECT)],
)
def test_all_syntax_is_handled(table: dict[type[ast.AST], object], kind: type[ast.AST], others: set[str]) -> None:
    types = {syntax for syntax in vars(ast).values() if isinstance(syntax, type) and kind in syntax.__bases__}
    assert {syntax.__name__ for syntax in types - table.keys()} <= others


def test_an_expression_is_paid_for_unless_it_is_only_looked_at() -> None:
    context, node = context_with(a=Value("int")), ast.parse("a + 1", mode="eval").body
    assert peek(context, node).kind == "int"
    assert not context.meter.total.terms
    assert evaluate(context, node).kind == "int"
    assert context.meter.total.terms
    assert evaluate(context, None) is NONE


def test_what_is_too_deep_is_unknown_and_what_is_too_long_ends_the_analysis() -> None:
    deep = ast.parse("-" * 85 + "a", mode="eval").body
    assert evaluate(context_with(a=literal(1)), deep) == UNKNOWN
    context = context_with()
    context.left = 3
    with pytest.raises(TooComplex):
        execute(context, ast.parse("a = 1\nb = 2\nc = 3").body)


def test_statements_behind_an_exit_are_not_read() -> None:
    context = context_with()
    execute(context, ast.parse("def f():\n    a = 1\n    return a\n    b = 2").body[0].body)  # type: ignore[attr-defined]
    assert "a" in context.frame.names
    assert "b" not in context.frame.names


def test_a_call_of_what_is_not_known_is_an_unknown_call() -> None:
    context = context_with()
    assert call_value(context, Value("set"), [], {}) == UNKNOWN
    assert [times.exact for times in context.meter.unknown.values()] == [1]
