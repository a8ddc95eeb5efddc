"""How a Python file calls its PyTorch modules, and which layers a module has, by following the text without running it.

Input: the text of a file, or of one module. Output: for each Module class the sizes of the first call whose tensors are
known, with the place of the call; the layers of a module in the order in which it makes them.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..concrete.frame import LimitReached, execute
from ..concrete.values import UNKNOWN, NameScope, SourceFunction, Value
from ..domain.syntax import parse_whole
from .calls import attribute_of, class_attribute, instantiate
from .context import FAILURES, TraceContext, attempted, call, new_context
from .recorder import Recorder
from .tracing import MAX_TEXT
from .values import Instance, ModuleContainer, SourceClass, Tensor, TorchLayer

# An editor analyses a file at each edit; this takes about 30 ms.
_MAX_STEPS = 10_000
_MAX_LAYERS = 200
_ENTRY = re.compile(r"_*(?:test|bench|benchmark|main|demo|example|run)(?:_|\d|\Z)")


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """A call of a module: the arguments of its ``forward`` and ``__init__`` by name, with their defaults.

    ``line`` (1-based) and ``text`` are those of the outermost call of a module, from which this one follows.
    """

    arguments: Mapping[str, Value]
    initial: Mapping[str, Value]
    line: int
    text: str


class _CallRecorder:
    """Observes a trace and records the first call of each Module class in which all tensors are known."""

    def __init__(self, source: str) -> None:
        self.recorded: dict[str, ModuleCall] = {}
        self._source = source
        self._initial: dict[int, tuple[Instance, dict[str, Value]]] = {}

    def __call__(self, context: TraceContext, function: SourceFunction, scope: NameScope) -> ast.Call | None:
        """Record a call of a method; returns the outermost call of a module that is followed."""
        node, instance = function.node, scope.names.get("__self__")
        if not isinstance(node, ast.FunctionDef) or not isinstance(instance, Instance):
            return context.outermost
        names = {item.arg: scope.names[item.arg] for item in parameters(node)}
        if node.name == "__init__":
            # A subclass is entered before its base.
            self._initial.setdefault(id(instance), (instance, names))
        if node.name != "forward" or context.call is None:
            return context.outermost
        outermost = context.outermost or context.call
        known = any(isinstance(value, Tensor) for value in names.values())
        if known and instance.kind.name not in self.recorded:
            initial = self._initial.get(id(instance), (instance, {}))[1]
            text = " ".join((ast.get_source_segment(self._source, outermost) or "").split())
            self.recorded[instance.kind.name] = ModuleCall(names, initial, outermost.lineno, text)
        return outermost


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    """The positional parameters of a method without ``self``."""
    return [*function.args.posonlyargs, *function.args.args][1:]


def module_calls(source: str) -> dict[str, ModuleCall]:
    """The first call of each Module class of a file, by its name, in which the shape of a tensor is known.

    Calls are followed at the top level, below ``if __name__ == "__main__"``, and in functions and classes named like
    tests, benchmarks and main programs. Never raises.
    """
    calls = _CallRecorder(source)
    context = new_context({}, recorder=Recorder(_MAX_STEPS), observer=calls)
    with contextlib.suppress(LimitReached, RecursionError, MemoryError):
        for statement in _followed(context, source):
            value = context.top.names.get(getattr(statement, "name", ""))
            if isinstance(value, SourceFunction) and _ENTRY.match(statement.name):  # type: ignore[attr-defined]
                attempted(call, context, value, [], {})
            elif isinstance(value, SourceClass) and value.name.startswith("Test"):
                for method in _test_methods(context, value):
                    attempted(call, context, method, [], {})
    return calls.recorded


def layers_of(source: str, name: str) -> list[TorchLayer]:
    """The layers of the Module class ``name`` in the order in which its ``__init__`` makes them.

    Empty where ``__init__`` needs arguments. Never raises.
    """
    context = new_context({})
    try:
        _followed(context, source)
        kind = context.top.names.get(name)
        if not isinstance(kind, SourceClass):
            return []
        constructor = class_attribute(kind, "__init__")
        if not isinstance(constructor, SourceFunction) or not isinstance(constructor.node, ast.FunctionDef):
            return []
        if any(item.arg not in constructor.defaults for item in parameters(constructor.node)):
            return []
        return list(_layers(instantiate(context, kind, [], {})))
    except FAILURES:
        return []


def signatures(source: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of ``__init__`` and of ``forward`` of a class, without ``self``: UNKNOWN or their defaults."""
    context = new_context({})
    with contextlib.suppress(*FAILURES):
        _followed(context, source, (ast.ClassDef, ast.Assign, ast.Import, ast.ImportFrom))
    kind = context.top.names.get(name)
    if not isinstance(kind, SourceClass):
        return {}, {}
    result: list[dict[str, Any]] = []
    for method in ("__init__", "forward"):
        function = class_attribute(kind, method)
        is_known = isinstance(function, SourceFunction) and isinstance(function.node, ast.FunctionDef)
        names = [item.arg for item in parameters(function.node)] if is_known else []
        result.append({name: function.defaults.get(name, UNKNOWN) for name in names})
    return result[0], result[1]


def _followed(
    context: TraceContext, source: str, kinds: type[ast.stmt] | tuple[type[ast.stmt], ...] = ast.stmt
) -> list[ast.stmt]:
    """The statements of a file's top level, those of some kinds followed; one that raises does not stop the others."""
    tree = parse_whole(source, MAX_TEXT)
    statements = tree.body if isinstance(tree, ast.Module) else []
    for statement in statements:
        if isinstance(statement, kinds):
            attempted(execute, context, [statement])
    return statements


def _test_methods(context: TraceContext, kind: SourceClass) -> Iterator[Value]:
    instance = Instance(kind)
    for name in ("setUp", *(name for name in kind.members if name.startswith("test"))):
        if isinstance(kind.members.get(name), SourceFunction):
            yield attribute_of(context, instance, name)


def _layers(module: Instance) -> Iterator[TorchLayer]:
    waiting: list[Value] = [module]
    count = 0
    while waiting and count < _MAX_LAYERS:
        value = waiting.pop()
        count += 1
        if isinstance(value, TorchLayer):
            yield value
        elif isinstance(value, Instance):
            waiting += [*reversed(value.attributes.values()), value.base]
        elif isinstance(value, ModuleContainer):
            waiting += reversed(value.items.values())
        elif isinstance(value, (list, tuple)):
            waiting += reversed(value[:_MAX_LAYERS])
