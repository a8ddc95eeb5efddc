"""The state of a trace: a frame of a text whose values are tensors, layers and modules of PyTorch. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ..concrete.frame import RULE_ERRORS, Frame, LimitReached, Signal, evaluate
from ..concrete.syntax import EXPRESSIONS, STATEMENTS
from ..concrete.values import UNKNOWN, LibraryName, Named, NameScope, SourceFunction, Value
from ..domain.folding import UNARY
from ..domain.records import record, replace
from .arithmetic import BUILTINS, binary, compare, items_of, truth
from .functions import FUNCTIONS
from .products import matmul, unknown_like
from .recorder import Recorder
from .shaping import index
from .values import BoundMethod, Instance, ModuleContainer, Tensor, TorchLayer, tensors_in

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
    ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor", ast.LShift: "mul",
    ast.RShift: "div",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
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


FAILURES = (*RULE_ERRORS, LimitReached, SourceException, RecursionError, MemoryError)


@record
class TraceContext(Frame):
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
    expressions: ClassVar[dict[type[ast.expr], Callable[[Any, Any], Value]]] = {**EXPRESSIONS}
    statements: ClassVar[dict[type[ast.stmt], Callable[[Any, Any], Signal]]] = {**STATEMENTS}
    most_depth: ClassVar[int] = 40

    @property
    def budget(self) -> Recorder:
        """The recorder, which counts the steps."""
        return self.recorder

    def enter(self, function: SourceFunction, names: Named, args: Sequence[Value]) -> TraceContext:
        """Return the context of a call of a function."""
        if function.owner is not None:
            names["__class__"] = function.owner
            names["__self__"] = args[0] if args else UNKNOWN
        scope = NameScope(function.scope, names)
        outermost = self.observer(self, function, scope) if self.observer is not None else None
        return replace(self, scope=scope, outermost=outermost, depth=self.depth + 1)

    def is_builtin(self, name: str) -> bool:
        """Return whether a name has a meaning without a binding."""
        # A class such as AutoModelForCausalLM names its model when it is called.
        return name in BUILTINS or name in CONTEXT_BUILTINS or name.startswith("Auto")

    def truth(self, value: Value) -> bool | None:
        """Return whether a value counts as true; None where it depends on what runs."""
        return truth(value)

    def binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return ``left OP right``; operations on tensors are recorded."""
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            if kind is ast.MatMult:
                return matmul(self.recorder, left, right)
            return FUNCTIONS[_OPERATORS[kind]](self.recorder, [left, right], {})
        return binary(kind, left, right)

    def unary(self, kind: type[ast.unaryop], value: Value) -> Value:
        """Return ``OP value``."""
        return FUNCTIONS["neg"](self.recorder, [value], {}) if isinstance(value, Tensor) else UNARY[kind](value)

    def compare(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return ``left OP right``: a truth value, or a tensor of them."""
        if (isinstance(left, Tensor) or isinstance(right, Tensor)) and kind in _COMPARISONS:
            return FUNCTIONS[_COMPARISONS[kind]](self.recorder, [left, right], {})
        return compare(kind, left, right)

    def undecided(self, kind: type[ast.boolop | ast.unaryop], values: Sequence[Value]) -> Value:
        """Return UNKNOWN."""
        return UNKNOWN

    def either(self, body: ast.expr, orelse: ast.expr) -> Value:
        """Return the first value, which is mostly the usual one."""
        return evaluate(self, body)

    def items(self, value: Value) -> list[Value]:
        """Return the items of a value; raises TypeError or ValueError."""
        return items_of(value)

    def bind(self, name: str, value: Value) -> None:
        """Bind a name; at the top level an override replaces the value."""
        if self.scope is self.top and name in self.overrides:
            given = self.overrides[name]
            value = (given,) if isinstance(value, tuple) and isinstance(given, int) else given
        self.scope.names[name] = value

    def parts(self, value: Value, targets: Sequence[ast.expr]) -> Sequence[Value]:
        """Return the parts of a value for as many targets, one of which may be starred."""
        if isinstance(value, Tensor) and value.shape and value.shape[0] == len(targets):
            return [attempted(index, self.recorder, value, number) for number in range(len(targets))]
        parts = attempted(items_of, value)
        starred = [number for number, item in enumerate(targets) if isinstance(item, ast.Starred)]
        if isinstance(parts, list) and starred and len(parts) >= len(targets) - 1:
            start, end = starred[0], len(parts) - (len(targets) - starred[0] - 1)
            return [*parts[:start], parts[start:end], *parts[end:]]
        return parts if isinstance(parts, list) and len(parts) == len(targets) else [UNKNOWN] * len(targets)

    def store(self, target: ast.expr, value: Value) -> None:
        """Store a value into an attribute or a subscript."""
        if isinstance(target, ast.Attribute):
            owner = evaluate(self, target.value)
            if isinstance(owner, Instance):
                owner.attributes[target.attr] = value
            elif isinstance(owner, TorchLayer):
                (owner.weights if isinstance(value, Tensor) else owner.options)[target.attr] = value
        elif isinstance(target, ast.Subscript):
            owner, key = evaluate(self, target.value), evaluate(self, target.slice)
            if isinstance(owner, Tensor):
                attempted(_write, self.recorder, owner, key, value)
            elif isinstance(owner, (list, dict)):
                attempted(owner.__setitem__, key, value)
            elif isinstance(owner, ModuleContainer):
                owner.items[str(key)] = value

    def inside(self, scope: NameScope) -> TraceContext:
        """Return the context of an inner block."""
        return replace(self, scope=scope)


Observer = Callable[[TraceContext, SourceFunction, NameScope], ast.Call | None]
CONTEXT_BUILTINS: dict[str, Callable[..., Value]] = {}
"""Builtins that need the context, or that know classes."""
SUBSCRIPTS: dict[type, Callable[[TraceContext, Any, Value], Value]] = {}
CALLEES: dict[type, Callable[[TraceContext, Any, list[Value], Named], Value]] = {}


def _write(recorder: Recorder, owner: Tensor, key: Value, value: Value) -> None:
    """Elements written into a part of a tensor."""
    part = index(recorder, owner, key)
    inputs = [value] if isinstance(value, Tensor) else []
    recorder.add("store", "elementwise", inputs, part.shape, dtype=owner.dtype)


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
