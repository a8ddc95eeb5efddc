"""Evaluates single expressions, for tests."""

from __future__ import annotations

import ast
from typing import Any

from rlm_core.cost import evaluate  # noqa: F401 - fills the tables of the dispatcher
from rlm_core.cost.domain import dispatch
from rlm_core.cost.domain.context import Context
from rlm_core.cost.domain.frames import Frame
from rlm_core.cost.domain.values import Value
from rlm_core.cost.scope import Texts


class StrictContext(Context):
    """A context in which rules of the library raise."""

    strict = True


def context_with(**names: Value) -> Context:
    """A context inside a function with these names."""
    return StrictContext(Frame(Texts(), names=dict(names)), 10_000)


def evaluated(text: str, **names: Value) -> Value:
    """The value of an expression."""
    return dispatch.evaluate(context_with(**names), ast.parse(text, mode="eval").body)


def same(left: Any, right: Any) -> bool:
    """Return whether two constants are equal, and of one type."""
    return type(left) is type(right) and (left == right or left != left)
