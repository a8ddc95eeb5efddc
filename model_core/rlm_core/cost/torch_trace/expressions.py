"""Expressions of a trace: known values are computed with, operations on tensors are recorded, the rest is UNKNOWN."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..domain.folding import MISSING, UNARY, LargeInteger
from ..domain.names import lookup
from ..domain.records import replace
from .arithmetic import BUILTINS, binary, compare, items_of, truth
from .calls import attribute_of, initialise_base
from .context import EXPRESSIONS, SUBSCRIPTS, TraceContext, call, evaluate
from .functions import FUNCTIONS
from .products import matmul
from .shaping import index
from .statements import bind_target, iterated, new_function
from .values import (
    UNKNOWN,
    BoundMethod,
    Instance,
    LibraryName,
    ModuleContainer,
    Named,
    NameScope,
    SourceClass,
    SuperProxy,
    Tensor,
    TorchLayer,
    UnknownValue,
    Value,
)

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
    ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor", ast.LShift: "mul",
    ast.RShift: "div",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


def _name(context: TraceContext, node: ast.Name) -> Value:
    value = lookup(context.scope, node.id)
    if value is not MISSING:
        return value
    # A class such as AutoModelForCausalLM names its model when it is called.
    is_library = node.id in BUILTINS or node.id in _CONTEXT_BUILTINS or node.id.startswith("Auto")
    return LibraryName(node.id) if is_library else UNKNOWN


def _items(context: TraceContext, nodes: Sequence[ast.expr]) -> list[Value]:
    """The values of a display or an argument list, stars unpacked."""
    values: list[Value] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            values += items_of(evaluate(context, node.value))
        else:
            values.append(evaluate(context, node))
    return values


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


def _binary(context: TraceContext, node: ast.BinOp) -> Value:
    left, right = evaluate(context, node.left), evaluate(context, node.right)
    kind = type(node.op)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        if kind is ast.MatMult:
            return matmul(context.recorder, left, right)
        return FUNCTIONS[_OPERATORS[kind]](context.recorder, [left, right], {})
    return binary(kind, left, right)


def _unary(context: TraceContext, node: ast.UnaryOp) -> Value:
    value = evaluate(context, node.operand)
    if isinstance(node.op, ast.Not):
        known = truth(value)
        return UNKNOWN if known is None else not known
    if isinstance(value, Tensor):
        return FUNCTIONS["neg"](context.recorder, [value], {})
    return UNARY[type(node.op)](value)


def _boolean(context: TraceContext, node: ast.BoolOp) -> Value:
    value: Value = UNKNOWN
    unsure = False
    for part in node.values:
        value = evaluate(context, part)
        known = truth(value)
        if known is not None and known is isinstance(node.op, ast.Or):
            return value
        unsure = unsure or known is None
    return UNKNOWN if unsure else value


def _comparison(context: TraceContext, node: ast.Compare) -> Value:
    left = evaluate(context, node.left)
    for sign, item in zip(node.ops, node.comparators, strict=True):
        right = evaluate(context, item)
        if (isinstance(left, Tensor) or isinstance(right, Tensor)) and type(sign) in _COMPARISONS:
            return FUNCTIONS[_COMPARISONS[type(sign)]](context.recorder, [left, right], {})
        known = truth(compare(type(sign), left, right))
        if not known:
            return UNKNOWN if known is None else False
        left = right
    return True


def _conditional(context: TraceContext, node: ast.IfExp) -> Value:
    known = truth(evaluate(context, node.test))
    return evaluate(context, node.orelse if known is False else node.body)


def _joined_text(context: TraceContext, node: ast.JoinedStr) -> Value:
    parts = [evaluate(context, item) for item in node.values]
    return "".join(part for part in parts if isinstance(part, str))[:1000]


def _formatted(context: TraceContext, node: ast.FormattedValue) -> Value:
    value = evaluate(context, node.value)
    return str(value)[:100] if isinstance(value, (str, int, float)) else "?"


def _named(context: TraceContext, node: ast.NamedExpr) -> Value:
    value = evaluate(context, node.value)
    bind_target(context, node.target, value)
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
                bind_target(inner, generator.target, item)
                if all(truth(evaluate(inner, test)) is not False for test in generator.ifs):
                    inner_contexts.append(inner)
        contexts = inner_contexts
    return contexts


def _call(context: TraceContext, node: ast.Call) -> Value:
    if context.observer is not None:
        context = replace(context, call=node)
    builtin = node.func.id if isinstance(node.func, ast.Name) and node.func.id in _CONTEXT_BUILTINS else ""
    if builtin == "super":
        return _super(context)
    target = UNKNOWN if builtin else evaluate(context, node.func)
    args = _items(context, node.args)
    if builtin:
        return _CONTEXT_BUILTINS[builtin](context, *args)
    named: Named = {}
    for item in node.keywords:
        value = evaluate(context, item.value)
        if item.arg is not None:
            named[item.arg] = value
        elif isinstance(value, dict):
            named.update(value)
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


# Builtins that need the context, or that know classes.
_CONTEXT_BUILTINS: dict[str, Callable[..., Value]] = {
    "super": _super, "isinstance": _is_instance, "getattr": _get_attribute, "setattr": _set_attribute,
    "hasattr": _has_attribute,
    "map": lambda context, function, *iterables: [
        call(context, function, list(items), {}) for items in zip(*map(items_of, iterables), strict=False)
    ],
    "filter": lambda context, function, items: items_of(items),
    "type": lambda context, value: value.kind if isinstance(value, Instance) else UNKNOWN,
}  # fmt: skip
_MODULES = (Instance, TorchLayer, ModuleContainer)
_TYPES: dict[str, Any] = {
    "int": int, "float": float, "str": str, "list": list, "tuple": tuple, "dict": dict, "bool": bool,
    "Iterable": (list, tuple), "Tensor": Tensor, "Parameter": Tensor, "Module": _MODULES,
}  # fmt: skip

EXPRESSIONS.update(
    {
        ast.Constant: lambda context, node: UNKNOWN if isinstance(node.value, LargeInteger) else node.value,
        ast.Tuple: lambda context, node: tuple(_items(context, node.elts)),
        ast.List: lambda context, node: _items(context, node.elts),
        ast.Set: lambda context, node: _items(context, node.elts),
        ast.Attribute: lambda context, node: attribute_of(context, evaluate(context, node.value), node.attr),
        ast.Name: _name, ast.Dict: _dict, ast.Subscript: _subscript, ast.Slice: _slice, ast.BinOp: _binary,
        ast.UnaryOp: _unary, ast.BoolOp: _boolean, ast.Compare: _comparison, ast.IfExp: _conditional,
        ast.Lambda: new_function, ast.JoinedStr: _joined_text, ast.FormattedValue: _formatted, ast.NamedExpr: _named,
        ast.ListComp: _list_comprehension, ast.SetComp: _list_comprehension, ast.GeneratorExp: _list_comprehension,
        ast.DictComp: _dict_comprehension, ast.Call: _call,
    }
)  # fmt: skip
