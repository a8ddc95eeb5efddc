"""One program of a launch: a frame of indices, pointers and data. Where data decide, both branches are followed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..concrete.frame import Frame, Signal, call_function, evaluate, execute
from ..concrete.syntax import EXPRESSIONS, STATEMENTS
from ..concrete.values import UNKNOWN, Named, NameScope, SourceFunction, Value
from ..domain.records import replace
from .arithmetic import binary, compare, counted, truth
from .tally import Counts, Tally
from .values import Data, Pointer, dtype_of, shape_of

_BUILTINS = frozenset({"range", "min", "max", "abs", "len", "float", "int", "bool", "print", "tuple", "isinstance"})


@dataclass(slots=True, eq=False)
class Program(Frame):
    """A program of a launch: its place in the grid and the names that its kernel has bound."""

    tally: Tally
    scope: NameScope
    place: tuple[int, ...]
    grid: tuple[int, ...]
    depth: int = 0
    expressions: ClassVar[dict[type[ast.expr], Callable[[Any, Any], Value]]] = {**EXPRESSIONS}
    statements: ClassVar[dict[type[ast.stmt], Callable[[Any, Any], Signal]]] = {**STATEMENTS}
    most_depth: ClassVar[int] = 16

    @property
    def budget(self) -> Tally:
        """The tally, which counts the steps."""
        return self.tally

    def enter(self, function: SourceFunction, names: Named, args: Sequence[Value]) -> Program:
        """Return the frame of a call of a device function."""
        scope = NameScope(function.scope, names)
        return Program(self.tally, scope, self.place, self.grid, self.depth + 1)

    def is_builtin(self, name: str) -> bool:
        """Return whether a name is one of Python's that kernels may use."""
        return name in _BUILTINS

    def truth(self, value: Value) -> bool | None:
        """Return whether a value counts as true; None where data decide."""
        return None if value is UNKNOWN else truth(value)

    def binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return ``left OP right``; operations on data are counted."""
        return UNKNOWN if left is UNKNOWN or right is UNKNOWN else binary(self.tally, kind, left, right)

    def unary(self, kind: type[ast.unaryop], value: Value) -> Value:
        """Return ``OP value``."""
        if isinstance(value, Data):
            return value if value.dtype == "bool" else counted(self.tally, value.shape, value.dtype)
        if kind is ast.Invert:
            return not value if isinstance(value, bool) else ~value
        return -value if kind is ast.USub else value

    def compare(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return ``left OP right``: a truth value, a known mask, or data."""
        if left is UNKNOWN or right is UNKNOWN:
            shape = shape_of(right if left is UNKNOWN else left)
            return UNKNOWN if kind in (ast.Is, ast.IsNot) else Data(shape, "bool")
        return compare(self.tally, kind, left, right)

    def undecided(self, kind: type[ast.boolop | ast.unaryop], values: Sequence[Value]) -> Value:
        """Return data; ``and`` and ``or`` of blocks are those of their elements."""
        result, *others = values
        if kind is ast.Not:
            return Data(shape_of(result), "bool")
        for value in others:
            result = self.binary(ast.BitAnd if kind is ast.And else ast.BitOr, result, value)
        return Data((), "bool") if result is UNKNOWN and not others else result

    def either(self, body: ast.expr, orelse: ast.expr) -> Value:
        """Return a value that is one or the other."""
        return joined(evaluate(self, body), evaluate(self, orelse))

    def items(self, value: Value) -> list[Value]:
        """Return the items of a tuple."""
        return list(value)

    def parts(self, value: Value, targets: Sequence[ast.expr]) -> Sequence[Value]:
        """Return the parts of a tuple for as many targets; UNKNOWN for what does not fit."""
        is_fitting = isinstance(value, (tuple, list)) and len(value) == len(targets)
        return value if is_fitting else [UNKNOWN] * len(targets)

    def store(self, target: ast.expr, value: Value) -> None:
        """Do nothing: kernels store through pointers."""


def call_device(program: Program, function: SourceFunction, args: Sequence[Value], named: Named) -> Value:
    """Follow a device function and return its result; that it returns early does not end the program.

    Raises:
        LimitReached: calls nest too deeply, or the budget is used up.
    """
    certain = program.tally.certain
    result = call_function(program, function, args, named)
    program.tally.certain = certain
    return result


def _if(program: Program, node: ast.If) -> Signal:
    value = evaluate(program, node.test)
    known = program.truth(value)
    if known is not None:
        return execute(program, node.body if known else node.orelse)
    if value is UNKNOWN:
        program.tally.exact = False
    before, tally = program.scope.names, program.tally
    signals: list[Signal] = []
    branches: list[dict[str, Value]] = []
    counts: list[Counts] = []
    for body in (node.body, node.orelse):
        program.scope.names = dict(before)
        counts.append(tally.during(lambda body=body: signals.append(execute(program, body))))  # type: ignore[misc]
        branches.append(program.scope.names)
    tally.add_either(*counts)
    left = [signal is not None for signal in signals]
    if all(left):
        program.scope.names = branches[0]
        return signals[0]
    if any(left):
        tally.certain = False
        program.scope.names = branches[1 if left[0] else 0]
        return None
    names = {**branches[0], **branches[1]}
    for name in names:
        values = [branch[name] for branch in branches if name in branch]
        names[name] = values[0] if len(values) == 1 else joined(*values)
    program.scope.names = names
    return None


def joined(left: Value, right: Value) -> Value:
    """A value that is one or the other."""
    if left is right:
        return left
    if isinstance(left, Pointer) and isinstance(right, Pointer):
        return replace(left, offset=joined(left.offset, right.offset))
    numbers = (int, float, np.ndarray, Data)
    if isinstance(left, numbers) and isinstance(right, numbers):
        if not isinstance(left, Data) and not isinstance(right, Data) and np.array_equal(left, right):
            return left
        shape = shape_of(left) or shape_of(right)
        return Data(shape, dtype_of(left if isinstance(left, Data) else right))
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return tuple(map(joined, left, right))
    return left if _same(left, right) else UNKNOWN


def _same(left: Value, right: Value) -> bool:
    try:
        return bool(left == right)
    except ValueError:
        return False


Program.statements[ast.If] = _if
