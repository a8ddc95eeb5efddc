"""Numbers that a loop multiplies in each trip."""

from __future__ import annotations

import ast


class Doubled(ast.expr):
    """The factor of a number that is shifted or added to itself."""

    _fields = ()
    bits = 1.0


def factor_of(node: ast.stmt, name: str) -> ast.expr | None:
    """The factor by which a loop multiplies a name in each iteration."""
    for inner in ast.walk(node):
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
                if (
                    name in held
                    and len(sums) == 1
                    and {n.id for n in ast.walk(sums[0]) if isinstance(n, ast.Name)} == held
                ):
                    doubled = Doubled()
                    doubled.bits = 0.694
                    return doubled
    return None
