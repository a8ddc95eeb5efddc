"""The evaluator: what expressions, statements and calls do and cost, as functions over one context.

This module fills the tables of the dispatcher.
"""

from __future__ import annotations

import ast

from ..domain.dispatch import CALLEES, EXPRESSIONS, OTHER, STATEMENTS
from . import (
    calls,
    comprehensions,
    conditions,
    containers,
    expressions,
    function_bodies,
    loops,
    objects,
    statements,
    while_loops,
)

EXPRESSIONS.update(
    {
        ast.Constant: expressions.evaluate_constant,
        ast.Name: expressions.evaluate_name,
        ast.Attribute: expressions.evaluate_attribute,
        ast.BinOp: expressions.evaluate_binary,
        ast.UnaryOp: expressions.evaluate_unary,
        ast.BoolOp: conditions.evaluate_boolean,
        ast.Compare: conditions.evaluate_comparison,
        ast.IfExp: conditions.evaluate_conditional,
        ast.List: containers.evaluate_sequence,
        ast.Tuple: containers.evaluate_sequence,
        ast.Set: containers.evaluate_sequence,
        ast.Dict: containers.evaluate_dict,
        ast.Subscript: containers.evaluate_subscript,
        ast.JoinedStr: containers.evaluate_joined_text,
        ast.Lambda: expressions.evaluate_lambda,
        ast.ListComp: comprehensions.evaluate_comprehension,
        ast.SetComp: comprehensions.evaluate_comprehension,
        ast.DictComp: comprehensions.evaluate_comprehension,
        ast.GeneratorExp: comprehensions.evaluate_generator,
        ast.Await: expressions.evaluate_await,
        ast.Yield: expressions.evaluate_yield,
        ast.YieldFrom: expressions.evaluate_yield_from,
        ast.NamedExpr: expressions.evaluate_named,
        ast.Starred: expressions.evaluate_starred,
        ast.Call: calls.evaluate_call,
    }
)
STATEMENTS.update(
    {
        ast.Expr: statements.read_expression,
        ast.Assign: statements.read_assignment,
        ast.AnnAssign: statements.read_assignment,
        ast.AugAssign: statements.read_augmented,
        ast.Import: statements.read_import,
        ast.ImportFrom: statements.read_import,
        ast.Delete: statements.read_delete,
        ast.Assert: statements.read_assert,
        ast.Return: statements.read_return,
        ast.Raise: statements.read_raise,
        ast.Break: statements.read_break,
        ast.Continue: statements.read_continue,
        ast.If: statements.read_if,
        ast.Match: statements.read_match,
        ast.With: statements.read_with,
        ast.AsyncWith: statements.read_with,
        ast.Try: statements.read_try,
        ast.TryStar: statements.read_try,
        ast.For: loops.read_for,
        ast.AsyncFor: loops.read_for,
        ast.While: while_loops.read_while,
        ast.FunctionDef: statements.read_function_definition,
        ast.AsyncFunctionDef: statements.read_function_definition,
        ast.ClassDef: statements.read_class_definition,
    }
)
CALLEES.update(
    {
        "user-function": function_bodies.call_user,
        "class": objects.construct,
        "function": calls.call_library,
        "module": calls.call_library,
        OTHER: calls.call_other,
    }
)
