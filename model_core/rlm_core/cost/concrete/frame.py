"""A block of a text that is followed, its budget, and the entry points: evaluate, execute, call a function.

Values are concrete where they are known, so each iteration of a loop can be followed; ``UNKNOWN`` stands for the
others. Every node costs a step; the limit on steps ends any text in a fraction of a second.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ..domain.names import bound
from .values import UNKNOWN, Named, NameScope, SourceFunction, Value

MAX_BITS = 256  # of an integer
# The exceptions of a rule for what it does not understand.
RULE_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)

Signal = tuple[str, Value] | None
"""How control leaves a statement: ``return`` with its value, ``break``, ``continue``, or None at its end."""


class LimitReached(Exception):  # noqa: N818 - a signal, not an error
    """The budget is used up."""


class Budget:
    """The steps that a text may still take."""

    def __init__(self, steps: int) -> None:
        self.steps_left = steps

    def step(self) -> None:
        """Count a step.

        Raises:
            LimitReached: the budget is used up.
        """
        self.steps_left -= 1
        if self.steps_left < 0:
            raise LimitReached


class Frame(ABC):
    """A block of a text that is followed. A domain says here what its values are and do.

    scope: the names of the block.
    depth: the number of calls that are followed.
    expressions, statements: what follows each type of syntax.
    most_depth: of calls.
    """

    __slots__ = ()
    scope: NameScope
    depth: int
    expressions: ClassVar[dict[type[ast.expr], Callable[[Any, Any], Value]]]
    statements: ClassVar[dict[type[ast.stmt], Callable[[Any, Any], Signal]]]
    most_depth: ClassVar[int]

    @property
    @abstractmethod
    def budget(self) -> Budget:
        """The budget that all frames of a text share."""

    @abstractmethod
    def enter(self, function: SourceFunction, names: Named, args: Sequence[Value]) -> Frame:
        """Return the frame of a call of a function; ``names`` are the values of its parameters."""

    @abstractmethod
    def is_builtin(self, name: str) -> bool:
        """Return whether an unbound name is Python's."""

    @abstractmethod
    def truth(self, value: Value) -> bool | None:
        """Return whether a value counts as true; None where it depends on what runs."""

    @abstractmethod
    def binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return ``left OP right``; one of RULE_ERRORS stands for UNKNOWN."""

    @abstractmethod
    def unary(self, kind: type[ast.unaryop], value: Value) -> Value:
        """Return ``OP value`` of any operator but ``not``."""

    @abstractmethod
    def compare(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return ``left OP right``."""

    @abstractmethod
    def undecided(self, kind: type[ast.boolop | ast.unaryop], values: Sequence[Value]) -> Value:
        """Return what ``and``, ``or`` or ``not`` makes of values whose truth is not known."""

    @abstractmethod
    def either(self, body: ast.expr, orelse: ast.expr) -> Value:
        """Return the value of a conditional expression whose condition is not known."""

    @abstractmethod
    def items(self, value: Value) -> Sequence[Value]:
        """Return the items that a star unpacks; one of RULE_ERRORS where they are not known."""

    def bind(self, name: str, value: Value) -> None:
        """Bind a name of the block."""
        self.scope.names[name] = value

    @abstractmethod
    def parts(self, value: Value, targets: Sequence[ast.expr]) -> Sequence[Value]:
        """Return the parts of a value for as many targets; UNKNOWN for what does not fit."""

    @abstractmethod
    def store(self, target: ast.expr, value: Value) -> None:
        """Store a value into an attribute or a subscript."""


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """Return the value of an expression; UNKNOWN where it depends on what runs."""
    budget = frame.budget
    # A step, without a call: this runs for each node.
    budget.steps_left -= 1
    if budget.steps_left < 0:
        raise LimitReached
    handler = frame.expressions.get(type(node))
    if handler is None:
        return UNKNOWN
    try:
        value = handler(frame, node)
    except RULE_ERRORS:
        return UNKNOWN
    # Operations on longer integers, which a text may spell out, take more than a step's time.
    return value if not isinstance(value, int) or value.bit_length() <= MAX_BITS else UNKNOWN


def execute(frame: Frame, body: Sequence[ast.stmt]) -> Signal:
    """Follow statements in order; returns how control leaves them."""
    for statement in body:
        frame.budget.step()
        handler = frame.statements.get(type(statement))
        signal = handler(frame, statement) if handler is not None else None
        if signal is not None:
            return signal
    return None


def call_function(frame: Frame, function: SourceFunction, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """Follow a function of the text and return its result; a parameter without a value is UNKNOWN.

    Raises:
        LimitReached: calls nest too deeply, or the budget is used up.
    """
    if frame.depth >= frame.most_depth:
        raise LimitReached
    node, spec = function.node, function.node.args
    binding = bound(spec, args, named)
    names: Named = dict.fromkeys((item.arg for item in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)), UNKNOWN)
    names |= function.defaults
    names |= binding.names
    if spec.vararg:
        names[spec.vararg.arg] = tuple(binding.rest)
    if spec.kwarg:
        names[spec.kwarg.arg] = binding.extra
    inner = frame.enter(function, names, args)
    if isinstance(node, ast.Lambda):
        return evaluate(inner, node.body)
    signal = execute(inner, node.body)
    return signal[1] if signal is not None and signal[0] == "return" else None
