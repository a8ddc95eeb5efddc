"""Geometric induction variables: numbers that each iteration of a loop multiplies, halves, or strips of a bit."""

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
        case ast.BinOp(left=ast.Name(id=left), op=ast.BitAnd(), right=right) if left == name and _is_about(right, name):
            return "shrinks"
        case ast.BinOp(left=ast.Name(id=left), op=ast.Add() | ast.Sub() as op, right=right) if left == name:
            if _is_lowest_bit(right, name):
                return "grows" if isinstance(op, ast.Add) else "shrinks"
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


def _is_lowest_bit(node: ast.expr, name: str) -> bool:
    match node:
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            sides = (left, right)
            return any(isinstance(side, ast.Name) and side.id == name for side in sides) and any(
                isinstance(side, ast.UnaryOp) and isinstance(side.op, ast.USub) and _is_about(side.operand, name)
                for side in sides
            )
    return False


class Doubled(ast.expr):
    """The factor of a number that is shifted or added to itself."""

    _fields = ()
    bits = 1.0


def factor_of(node: ast.stmt, name: str) -> ast.expr | None:
    """The factor by which a loop multiplies a name in each iteration."""
    for inner in walk(node):
        if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name) and inner.target.id == name:
            if isinstance(inner.op, (ast.Mult, ast.Pow)):
                return inner.value
            if isinstance(inner.op, ast.LShift):
                return Doubled()
        if isinstance(inner, ast.Assign) and len(inner.targets) == 1:
            target, value = inner.targets[0], inner.value
            if isinstance(target, ast.Name) and target.id == name and isinstance(value, ast.BinOp):
                if isinstance(value.op, ast.Mult) and isinstance(value.left, ast.Name) and value.left.id == name:
                    return value.right
                if isinstance(value.op, ast.LShift) and isinstance(value.left, ast.Name) and value.left.id == name:
                    return Doubled()
            if (
                isinstance(target, ast.Tuple)
                and isinstance(value, ast.Tuple)
                and len(target.elts) == len(value.elts) == 2
            ):
                # `a, b = b, a + b`: Fibonacci numbers grow by .69 bits.
                sums = [part for part in value.elts if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)]
                held = {part.id for part in target.elts if isinstance(part, ast.Name)}
                if name in held and len(sums) == 1 and {n.id for n in walk(sums[0]) if isinstance(n, ast.Name)} == held:
                    doubled = Doubled()
                    doubled.bits = 0.694
                    return doubled
    return None
