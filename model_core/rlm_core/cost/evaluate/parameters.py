"""The parameters of functions: what a call binds them to, their defaults, and functions without a body."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..domain.folding import MISSING
from ..domain.lattice import joined
from ..domain.names import bound
from ..domain.quantities import ZERO, constant
from ..domain.records import replace
from ..domain.syntax import Function
from ..domain.values import UNKNOWN, Value


def is_method(node: Function) -> bool:
    """Return whether the first parameter is bound by the call: ``self``, or ``cls`` of a class method."""
    if isinstance(node, ast.Lambda):
        return False
    first = [*node.args.posonlyargs, *node.args.args][:1]
    return bool(first) and first[0].arg in ("self", "cls")


def is_abstract(node: Function) -> bool:
    """Return whether a function has no body but a docstring, ``pass``, ``...`` or ``raise NotImplementedError``."""
    if isinstance(node, ast.Lambda):
        return False
    for statement in node.body:
        if isinstance(statement, ast.Pass) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            continue
        if isinstance(statement, ast.Raise) and statement.exc is not None:
            raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                continue
        return False
    return True


def bind_arguments(node: Function, args: Sequence[Value], keywords: Mapping[str, Value]) -> dict[str, Value]:
    """Parameter values by name, for a call with these arguments."""
    binding = bound(node.args, args, keywords)
    names = binding.names
    if node.args.vararg is not None:
        rest = binding.rest
        item = joined([(1 / len(rest), value) for value in rest]) if rest else UNKNOWN
        names[node.args.vararg.arg] = Value("tuple", size=constant(len(rest)), item=item)
    if node.args.kwarg is not None:
        names[node.args.kwarg.arg] = Value("dict", size=constant(len(binding.extra)))
    # What the caller holds is not held again.
    return {name: replace(value, bytes=ZERO) if value.bytes.terms else value for name, value in names.items()}


def assumed(name: str, value: Value) -> Value:
    """A parameter with a default, or what `__init__` stores: probably that value, but it may be another by then."""
    if not value.known:
        return value if value.kind != "unknown" else Value("unknown", name=name)
    if value.kind == "int" and value.number is not None and abs(value.constant) > 1:
        return Value(
            "int",
            number=constant(min(value.constant, 0), max(value.constant, 0), value.constant),
            payload=("default", value.constant),
        )
    if value.kind == "float" and value.number is not None:
        return Value(
            "float",
            number=constant(min(value.constant, 0.0), max(value.constant, 0.0), value.constant),
            payload=("default", value.constant),
        )
    if value.kind in ("none", "bool", "int", "str"):
        kind = "unknown" if value.kind == "none" else value.kind
        return Value(
            kind, MISSING, size=value.size, name=name, number=value.number, payload=("default", value.constant)
        )
    return value
