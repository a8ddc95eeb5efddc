"""How a Python file calls its PyTorch modules, and which layers a module has, by following the text without running it.

Input: the text of a file, or of one module. Output: for each Module class the sizes of the first call whose tensors are
known, with the place of the call; the layers of a module in the order in which it makes them.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import calls
from .interpreter import Interpreter, SourceException
from .library import RULE_ERRORS
from .recorder import TraceLimit
from .tracing import MAX_TEXT
from .values import (
    UNKNOWN,
    Instance,
    ModuleContainer,
    NameScope,
    SourceClass,
    SourceFunction,
    Tensor,
    TorchLayer,
    Value,
)

# An editor analyses a file at each edit; this takes about 30 ms.
_MAX_STEPS = 10_000
_MAX_LAYERS = 200
_ENTRY = re.compile(r"_*(?:test|bench|benchmark|main|demo|example|run)(?:_|\d|\Z)")
_FAILURES = (*RULE_ERRORS, TraceLimit, SourceException, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """A call of a module: the arguments of its ``forward`` and ``__init__`` by name, with their defaults.

    ``line`` (1-based) and ``text`` are those of the outermost call of a module, from which this one follows.
    """

    arguments: Mapping[str, Value]
    initial: Mapping[str, Value]
    line: int
    text: str


class _CallRecorder(Interpreter):
    """Follows a file and records the first call of each Module class in which all tensors are known."""

    def __init__(self, source: str) -> None:
        super().__init__({})
        self.recorded: dict[str, ModuleCall] = {}
        self._source = source
        self._calls: list[ast.Call] = []
        self._outermost: ast.Call | None = None
        self._initial: dict[int, tuple[Instance, dict[str, Value]]] = {}

    def step(self) -> None:
        super().step()
        if self.steps > _MAX_STEPS:
            raise TraceLimit

    def run_function(self, function: SourceFunction, scope: NameScope) -> Value:
        node, instance = function.node, scope.names.get("__self__")
        if not isinstance(node, ast.FunctionDef) or not isinstance(instance, Instance):
            return super().run_function(function, scope)
        names = {item.arg: scope.names[item.arg] for item in parameters(node)}
        if node.name == "__init__":
            # A subclass is entered before its base.
            self._initial.setdefault(id(instance), (instance, names))
        if node.name != "forward" or not self._calls:
            return super().run_function(function, scope)
        outermost, self._outermost = self._outermost, self._outermost or self._calls[-1]
        try:
            self._record(instance, names, self._outermost)
            return super().run_function(function, scope)
        finally:
            self._outermost = outermost

    def _record(self, instance: Instance, names: dict[str, Value], call: ast.Call) -> None:
        known = any(isinstance(value, Tensor) for value in names.values())
        if known and instance.kind.name not in self.recorded:
            initial = self._initial.get(id(instance), (instance, {}))[1]
            text = " ".join((ast.get_source_segment(self._source, call) or "").split())
            self.recorded[instance.kind.name] = ModuleCall(names, initial, call.lineno, text)

    def _value_call(self, node: ast.Call, scope: NameScope) -> Value:
        self._calls.append(node)
        try:
            return super()._value_call(node, scope)
        finally:
            self._calls.pop()

    def _run_assert(self, node: ast.Assert, scope: NameScope) -> None:
        self.evaluate(node.test, scope)


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    """The positional parameters of a method without ``self``."""
    return [*function.args.posonlyargs, *function.args.args][1:]


def module_calls(source: str) -> dict[str, ModuleCall]:
    """The first call of each Module class of a file, by its name, in which the shape of a tensor is known.

    Calls are followed at the top level, below ``if __name__ == "__main__"``, and in functions and classes named like
    tests, benchmarks and main programs. Never raises.
    """
    tree = _parsed(source)
    if tree is None:
        return {}
    runner = _CallRecorder(source)
    try:
        for statement in tree.body:
            _guarded(runner, statement)
        for statement in tree.body:
            value = runner.top.names.get(getattr(statement, "name", ""))
            if isinstance(value, SourceFunction) and _ENTRY.match(statement.name):  # type: ignore[attr-defined]
                _call(runner, value)
            elif isinstance(value, SourceClass) and value.name.startswith("Test"):
                for method in _test_methods(runner, value):
                    _call(runner, method)
    except (TraceLimit, RecursionError, MemoryError):
        pass
    return runner.recorded


def layers_of(source: str, name: str) -> list[TorchLayer]:
    """The layers of the Module class ``name`` in the order in which its ``__init__`` makes them.

    Empty where ``__init__`` needs arguments. Never raises.
    """
    tree = _parsed(source)
    if tree is None:
        return []
    runner = Interpreter({})
    try:
        for statement in tree.body:
            _guarded(runner, statement)
        kind = runner.top.names.get(name)
        if not isinstance(kind, SourceClass):
            return []
        constructor = calls.class_attribute(kind, "__init__")
        if not isinstance(constructor, SourceFunction) or not isinstance(constructor.node, ast.FunctionDef):
            return []
        if any(item.arg not in constructor.defaults for item in parameters(constructor.node)):
            return []
        return list(_layers(calls.instantiate(runner, kind, [], {})))
    except _FAILURES:
        return []


def signatures(source: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of ``__init__`` and of ``forward`` of a class, without ``self``: UNKNOWN or their defaults."""
    tree = _parsed(source)
    kind: Value = None
    runner = Interpreter({})
    for statement in tree.body if tree is not None else ():
        if isinstance(statement, (ast.ClassDef, ast.Assign, ast.Import, ast.ImportFrom)):
            try:
                _guarded(runner, statement)
            except _FAILURES:
                break
    kind = runner.top.names.get(name)
    if not isinstance(kind, SourceClass):
        return {}, {}
    result: list[dict[str, Any]] = []
    for method in ("__init__", "forward"):
        function = calls.class_attribute(kind, method)
        is_known = isinstance(function, SourceFunction) and isinstance(function.node, ast.FunctionDef)
        names = [item.arg for item in parameters(function.node)] if is_known else []
        result.append({name: function.defaults.get(name, UNKNOWN) for name in names})
    return result[0], result[1]


def _parsed(source: str) -> ast.Module | None:
    if len(source) > MAX_TEXT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _guarded(runner: Interpreter, statement: ast.stmt) -> None:
    """Run a statement of the top level; one that raises does not stop the others."""
    try:
        runner.run([statement], runner.top)
    except (*RULE_ERRORS, SourceException):
        pass


def _call(runner: Interpreter, function: Value) -> None:
    try:
        calls.call(runner, function, [], {})
    except (*RULE_ERRORS, SourceException):
        pass


def _test_methods(runner: Interpreter, kind: SourceClass) -> Iterator[Value]:
    instance = Instance(kind)
    for name in ("setUp", *(name for name in kind.members if name.startswith("test"))):
        if isinstance(kind.members.get(name), SourceFunction):
            yield calls.attribute(runner, instance, name)


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
