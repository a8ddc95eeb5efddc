"""Evaluates single expressions, for tests."""

from __future__ import annotations

import ast
from typing import Any

from rlm_core.cost.domain.values import Value
from rlm_core.cost.frames import Frame
from rlm_core.cost.scope import Texts
from rlm_core.cost.statements import Interpreter


def interpreter(**names: Value) -> Interpreter:
    """An interpreter inside a function with these names."""
    strict = Interpreter(Texts(), 10_000)
    strict.strict = True
    strict.frame = Frame(Texts(), names=dict(names))
    return strict


def evaluated(text: str, **names: Value) -> Value:
    """The value of an expression."""
    return interpreter(**names).value(ast.parse(text, mode="eval").body)


def same(left: Any, right: Any) -> bool:
    """Whether two constants are equal, and of one type."""
    return type(left) is type(right) and (left == right or left != left)
