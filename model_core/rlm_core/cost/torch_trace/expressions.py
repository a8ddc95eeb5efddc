"""Expressions of a trace: known values are computed with, operations on tensors are recorded, the rest is UNKNOWN."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..concrete.frame import evaluate
from ..concrete.syntax import bind, items_in, keywords_in
from ..concrete.values import UNKNOWN, LibraryName, NameScope, UnknownValue, Value
from ..domain.folding import MISSING
from ..domain.names import lookup
from ..domain.records import replace
from .arithmetic import items_of, truth
from .calls import attribute_of, initialise_base
from .context import CONTEXT_BUILTINS, SUBSCRIPTS, TraceContext, call
from .shaping import index
from .statements import iterated, new_function
from .values import BoundMethod, Instance, ModuleContainer, SourceClass, SuperProxy, Tensor, TorchLayer


def _dict(context: TraceContext, node: ast.Dict) -> Value:
    result: dict[Value, Value] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            result.update(evaluate(context, value))
        else:
            result[evaluate(context, key)] = evaluate(context, value)
    return result


def _subscript(context: TraceContext, node: ast.Subscript) -> Value:
    owner, key = evaluate(context, node.value), evaluate(context, node.slice)
    if isinstance(owner, Tensor):
        return index(context.recorder, owner, key)
    if (handler := SUBSCRIPTS.get(type(owner))) is not None:
        return handler(context, owner, key)
    if isinstance(owner, ModuleContainer):
        if isinstance(key, slice):
            return ModuleContainer(owner.name, dict(list(owner.items.items())[key]))
        return owner.items[key] if isinstance(key, str) else list(owner.items.values())[key]
    if isinstance(owner, Instance) and owner.base is not None:
        return list(owner.base.items.values())[key]
    return owner[key] if isinstance(owner, (str, list, tuple, dict, range)) else UNKNOWN


def _slice(context: TraceContext, node: ast.Slice) -> Value:
    bounds = [None if part is None else evaluate(context, part) for part in (node.lower, node.upper, node.step)]
    return slice(*(None if isinstance(bound, (UnknownValue, Tensor)) else bound for bound in bounds))


def _joined_text(context: TraceContext, node: ast.JoinedStr) -> Value:
    parts = [evaluate(context, item) for item in node.values]
    return "".join(part for part in parts if isinstance(part, str))[:1000]


def _formatted(context: TraceContext, node: ast.FormattedValue) -> Value:
    value = evaluate(context, node.value)
    return str(value)[:100] if isinstance(value, (str, int, float)) else "?"


def _named(context: TraceContext, node: ast.NamedExpr) -> Value:
    value = evaluate(context, node.value)
    bind(context, node.target, value)
    return value


def _list_comprehension(context: TraceContext, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    return [evaluate(inner, node.elt) for inner in _iterations(context, node.generators)]


def _dict_comprehension(context: TraceContext, node: ast.DictComp) -> Value:
    return {evaluate(inner, node.key): evaluate(inner, node.value) for inner in _iterations(context, node.generators)}


def _iterations(context: TraceContext, generators: Sequence[ast.comprehension]) -> list[TraceContext]:
    """A context for every iteration of a comprehension."""
    contexts = [context.inside(NameScope(context.scope))]
    for generator in generators:
        inner_contexts = []
        for outer in contexts:
            for item in iterated(context, evaluate(outer, generator.iter)):
                inner = context.inside(NameScope(outer.scope))
                bind(inner, generator.target, item)
                if all(truth(evaluate(inner, test)) is not False for test in generator.ifs):
                    inner_contexts.append(inner)
        contexts = inner_contexts
    return contexts


def _call(context: TraceContext, node: ast.Call) -> Value:
    if context.observer is not None:
        context = replace(context, call=node)
    builtin = node.func.id if isinstance(node.func, ast.Name) and node.func.id in CONTEXT_BUILTINS else ""
    if builtin == "super":
        return _super(context)
    target = UNKNOWN if builtin else evaluate(context, node.func)
    args = items_in(context, node.args)
    if builtin:
        return CONTEXT_BUILTINS[builtin](context, *args)
    named = keywords_in(context, node.keywords)
    if isinstance(target, BoundMethod) and isinstance(target.target, Instance) and target.method == "__init__":
        return initialise_base(context, target.target, args, named)
    return call(context, target, args, named)


def _super(context: TraceContext) -> Value:
    target, owner = (lookup(context.scope, name) for name in ("__self__", "__class__"))
    return UNKNOWN if MISSING in (target, owner) else SuperProxy(target, owner)


def _is_instance(context: TraceContext, value: Value, kind: Value) -> Value:
    if isinstance(kind, tuple):
        answers = [_is_instance(context, value, item) for item in kind]
        return True if True in answers else (UNKNOWN if UNKNOWN in answers else False)
    if isinstance(value, UnknownValue):
        return UNKNOWN
    if isinstance(kind, SourceClass):
        return isinstance(value, Instance) and any(base is kind for base in value.kind.lineage())
    if not isinstance(kind, LibraryName):
        return UNKNOWN
    if kind.name in _TYPES:
        return isinstance(value, _TYPES[kind.name])
    return isinstance(value, (TorchLayer, ModuleContainer)) and value.name == kind.name


def _get_attribute(context: TraceContext, owner: Value, name: Value, default: Value = UNKNOWN) -> Value:
    try:
        return attribute_of(context, owner, str(name))
    except AttributeError:
        return default


def _set_attribute(context: TraceContext, owner: Value, name: Value, value: Value) -> Value:
    if isinstance(owner, Instance):
        owner.attributes[str(name)] = value
    return None


def _has_attribute(context: TraceContext, owner: Value, name: Value) -> Value:
    return str(name) in {**owner.attributes, **owner.kind.members} if isinstance(owner, Instance) else UNKNOWN


CONTEXT_BUILTINS.update({
    "super": _super, "isinstance": _is_instance, "getattr": _get_attribute, "setattr": _set_attribute,
    "hasattr": _has_attribute,
    "map": lambda context, function, *iterables: [
        call(context, function, list(items), {}) for items in zip(*map(items_of, iterables), strict=False)
    ],
    "filter": lambda context, function, items: items_of(items),
    "type": lambda context, value: value.kind if isinstance(value, Instance) else UNKNOWN,
})  # fmt: skip
_MODULES = (Instance, TorchLayer, ModuleContainer)
_TYPES: dict[str, Any] = {
    "int": int, "float": float, "str": str, "list": list, "tuple": tuple, "dict": dict, "bool": bool,
    "Iterable": (list, tuple), "Tensor": Tensor, "Parameter": Tensor, "Module": _MODULES,
}  # fmt: skip

TraceContext.expressions.update(
    {
        ast.List: lambda context, node: items_in(context, node.elts),
        ast.Set: lambda context, node: items_in(context, node.elts),
        ast.Attribute: lambda context, node: attribute_of(context, evaluate(context, node.value), node.attr),
        ast.Dict: _dict, ast.Subscript: _subscript, ast.Slice: _slice, ast.Lambda: new_function,
        ast.JoinedStr: _joined_text, ast.FormattedValue: _formatted, ast.NamedExpr: _named,
        ast.ListComp: _list_comprehension, ast.SetComp: _list_comprehension, ast.GeneratorExp: _list_comprehension,
        ast.DictComp: _dict_comprehension, ast.Call: _call,
    }
)  # fmt: skip
