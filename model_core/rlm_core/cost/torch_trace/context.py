"""The state of a trace, and the dispatcher of the functions that follow a text.

Nothing is run. Values are concrete where they are known, so each iteration of a loop is followed; ``UNKNOWN`` stands
for the others. Every node costs a step; the limit on steps ends any text in a fraction of a second.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..domain.records import record, replace
from .arithmetic import MAX_BITS
from .products import unknown_like
from .recorder import Recorder, TraceLimit
from .values import (
    UNKNOWN,
    BoundMethod,
    LibraryName,
    Named,
    NameScope,
    SourceFunction,
    Tensor,
    TorchLayer,
    Value,
    tensors_in,
)

MAX_DEPTH = 40  # of calls
# The exceptions of a rule for a call that it does not understand.
RULE_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
# The meaning of names in a text without its imports.
_PRESET = {name: LibraryName(path) for name, path in {
    "torch": "torch", "th": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "math": "math", "np": "numpy",
    "numpy": "numpy", "einops": "einops", "rearrange": "einops.rearrange", "Parameter": "torch.nn.Parameter",
    "Tensor": "torch.Tensor", "checkpoint": "torch.utils.checkpoint", "partial": "functools.partial",
    "collections": "collections", "itertools": "itertools", "functools": "functools", "repeat": "itertools.repeat",
    "chain": "itertools.chain", "OrderedDict": "collections.OrderedDict",
}.items()}  # fmt: skip


class SourceException(Exception):  # noqa: N818 - the source's own exception
    """The source raises on every path from here."""


FAILURES = (*RULE_ERRORS, TraceLimit, SourceException, RecursionError, MemoryError)


@record
class TraceContext:
    """The state that the functions of a trace share.

    recorder: the operations so far, and the budget.
    top: the names of the text's top level.
    scope: the names of the block that is followed.
    overrides: values that replace those assigned to names at the top level.
    observer: is called with the function and its names before a function of the source is followed; returns
        ``outermost`` for it. Where there is one, assertions are followed too.
    call: the innermost call that is followed, as it is written.
    outermost: the outermost call of a module that is followed, as it is written.
    depth: the number of calls that are followed.
    """

    recorder: Recorder
    top: NameScope
    scope: NameScope
    overrides: Mapping[str, Value]
    observer: Observer | None = None
    call: ast.Call | None = None
    outermost: ast.Call | None = None
    depth: int = 0

    def inside(self, scope: NameScope) -> TraceContext:
        """Return the context of an inner block."""
        return replace(self, scope=scope)


Observer = Callable[[TraceContext, SourceFunction, NameScope], ast.Call | None]
Signal = tuple[str, Value] | None
"""How control leaves a statement: ``return`` with its value, ``break``, ``continue``, or None at its end."""

EXPRESSIONS: dict[type[ast.expr], Callable[[TraceContext, Any], Value]] = {}
STATEMENTS: dict[type[ast.stmt], Callable[[TraceContext, Any], Signal]] = {}
SUBSCRIPTS: dict[type, Callable[[TraceContext, Any, Value], Value]] = {}
CALLEES: dict[type, Callable[[TraceContext, Any, list[Value], Named], Value]] = {}


def new_context(
    overrides: Mapping[str, Value],
    names: Mapping[str, Value] | None = None,
    recorder: Recorder | None = None,
    observer: Observer | None = None,
) -> TraceContext:
    """Return the context of a text's top level.

    Args:
        overrides: values that replace those assigned to names in it.
        names: what it binds before; the usual imports by default.
        recorder: records the operations; has the usual limits by default.
        observer: see :class:`TraceContext`.
    """
    top = NameScope(None, {**(_PRESET if names is None else names)})
    return TraceContext(Recorder() if recorder is None else recorder, top, top, overrides, observer)


def evaluate(context: TraceContext, node: ast.expr) -> Value:
    """Return the value of an expression; UNKNOWN where it depends on what runs."""
    recorder = context.recorder
    # A step, without a call: this runs for each node.
    recorder.steps += 1
    if recorder.steps > recorder.most_steps:
        raise TraceLimit
    handler = EXPRESSIONS.get(type(node))
    if handler is None:
        return UNKNOWN
    try:
        value = handler(context, node)
    except RULE_ERRORS:
        return UNKNOWN
    # Operations on longer integers, which a text may spell out, take more than a step's time.
    return value if not isinstance(value, int) or value.bit_length() <= MAX_BITS else UNKNOWN


def execute(context: TraceContext, body: Sequence[ast.stmt]) -> Signal:
    """Follow statements in order; returns how control leaves them."""
    for statement in body:
        context.recorder.step()
        handler = STATEMENTS.get(type(statement))
        signal = handler(context, statement) if handler is not None else None
        if signal is not None:
            return signal
    return None


def call(context: TraceContext, target: Value, args: list[Value], named: Named) -> Value:
    """Call a value; an unknown call is counted and returns a tensor like its first tensor argument."""
    callee = CALLEES.get(type(target))
    try:
        if callee is not None:
            return callee(context, target, args, named)
        inputs = tensors_in([*args, *named.values()])
    except RULE_ERRORS:
        inputs = tensors_in([*args, *named.values()])
        if isinstance(target, BoundMethod) and isinstance(target.target, Tensor):
            inputs.insert(0, target.target)
    name = target.name if isinstance(target, (LibraryName, TorchLayer)) else "call"
    return unknown_like(context.recorder, name, inputs) if inputs or isinstance(target, TorchLayer) else UNKNOWN


def attempted(action: Callable[..., Value], *args: Value) -> Value:
    """Return the result of an action, UNKNOWN when it fails or the source raises."""
    try:
        return action(*args)
    except (*RULE_ERRORS, SourceException):
        return UNKNOWN
