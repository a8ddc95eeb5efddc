"""Geometric induction variables: numbers that each iteration of a loop multiplies or halves."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Literal

from ..domain.syntax import walk

_MOST_STEPS = 3
Scaling = Literal["grows", "shrinks"]


def scaling(body: Sequence[ast.stmt], name: str) -> Scaling | None:
    """How the statements of a loop scale a name, so that it takes about the logarithm of its range; None if not."""
    given = _assigned(body)
    values = given.get(name, [])
    found = {_scales(_resolved(value, given, name), name) for value in values}
    return found.pop() if len(found) == 1 else None


def _assigned(body: Sequence[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Return what each name is assigned, wherever in the statements."""
    given: dict[str, list[ast.expr]] = {}
    for statement in body:
        for node in walk(statement):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                left = ast.Name(node.target.id, ast.Load())
                given.setdefault(node.target.id, []).append(ast.BinOp(left, node.op, node.value))
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                _note(node.targets[0], node.value, given)
    return given


def _note(target: ast.expr, value: ast.expr, given: dict[str, list[ast.expr]]) -> None:
    if isinstance(target, ast.Name):
        given.setdefault(target.id, []).append(value)
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for part, inner in zip(target.elts, value.elts, strict=True):
            _note(part, inner, given)


def _resolved(value: ast.expr, given: Mapping[str, Sequence[ast.expr]], name: str) -> ast.expr:
    """Resolve a name that is assigned: the first value of the name that it is given."""
    for _ in range(_MOST_STEPS):
        if not isinstance(value, ast.Name) or value.id == name or not given.get(value.id):
            break
        value = given[value.id][0]
    return value


def _scales(value: ast.expr, name: str) -> Scaling | None:
    match value:
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.RShift()) if _is_about(left, name):
            return "shrinks"
        case ast.BinOp(op=ast.Mod(), right=ast.Name(id=divisor)) if divisor == name:
            return "shrinks"
        case ast.BinOp(left=ast.Name(id=left), op=ast.Add() | ast.Sub()) if left == name:
            return None
        case ast.BinOp(left=left, op=ast.Add()) if _is_multiple(left, name):
            return "grows"
        case _ if _is_multiple(value, name):
            return "grows"
    return None


def _is_about(node: ast.expr, name: str) -> bool:
    """Return whether an expression is the name, give or take a number."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and isinstance(node.right, ast.Constant):
        node = node.left
    return isinstance(node, ast.Name) and node.id == name


def _is_multiple(node: ast.expr, name: str) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Mult, ast.LShift)):
        return False
    sides = [node.left] if isinstance(node.op, ast.LShift) else [node.left, node.right]
    others = [side for side in (node.left, node.right) if not (isinstance(side, ast.Name) and side.id == name)]
    is_scaled = any(isinstance(side, ast.Name) and side.id == name for side in sides)
    least = 0 if isinstance(node.op, ast.LShift) else 1
    return is_scaled and len(others) == 1 and isinstance(others[0], ast.Constant) and others[0].value != least
