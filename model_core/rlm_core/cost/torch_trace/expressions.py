"""Expressions of the shape interpreter: plain arithmetic is evaluated, calls go to ``calls``, the rest is UNKNOWN.

Every node costs a step; the limit on steps ends any text in a fraction of a second.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from ..domain.folding import UNARY
from . import calls
from .arithmetic import BUILTINS, MAX_BITS, binary, compare, items_of, truth
from .functions import FUNCTIONS
from .library import RULE_ERRORS
from .products import matmul
from .recorder import Recorder, TraceLimit
from .shaping import index
from .values import (
    UNKNOWN,
    BoundMethod,
    Instance,
    LibraryName,
    ModuleContainer,
    NameScope,
    SourceClass,
    SourceFunction,
    SuperProxy,
    Tensor,
    TorchLayer,
    UnknownValue,
    Value,
)

_MAX_STEPS = 150_000
_MAX_TURNS = 400  # a longer loop is traced that far and counts as not understood
# The meaning of names in a text without its imports.
_PRESET = {
    "torch": "torch", "th": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "math": "math", "np": "numpy",
    "numpy": "numpy", "einops": "einops", "rearrange": "einops.rearrange", "Parameter": "torch.nn.Parameter",
    "Tensor": "torch.Tensor", "checkpoint": "torch.utils.checkpoint", "partial": "functools.partial",
    "collections": "collections", "itertools": "itertools", "functools": "functools", "repeat": "itertools.repeat",
    "chain": "itertools.chain", "OrderedDict": "collections.OrderedDict",
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
    ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor", ast.LShift: "mul",
    ast.RShift: "div",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


class Expressions:
    """Evaluates the expressions of a source text; ``overrides`` replace values assigned to names at its top level."""

    def __init__(self, overrides: Mapping[str, Value]) -> None:
        self.recorder = Recorder()
        self.depth = 0
        self.steps = 0
        self.overrides = overrides
        self.top = NameScope(None, {name: LibraryName(path) for name, path in _PRESET.items()})

    def step(self) -> None:
        """Count a step; raises TraceLimit at the limit."""
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise TraceLimit

    def call(self, target: Value, args: list[Value], named: dict[str, Value]) -> Value:
        """Call a value; what is not understood gives a tensor like its first tensor argument."""
        return calls.call(self, target, args, named)

    def run_function(self, function: SourceFunction, scope: NameScope) -> Value:
        """Run a function's body in a scope that holds its arguments."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, scope: NameScope) -> None:
        """Bind a value to a target."""
        raise NotImplementedError

    def turns(self, value: Value) -> list[Value]:
        """The items of a loop: those of a sequence, the slices of a tensor, or one UNKNOWN."""
        if isinstance(value, Tensor):
            value = [value.view(value.shape[1:])] * min(value.shape[0] if value.shape else 0, _MAX_TURNS)
        if isinstance(value, range) and len(value) > _MAX_TURNS:
            self.recorder.unknown += 1
            value = value[:_MAX_TURNS]
        items = self.guarded(items_of, value)
        return items if isinstance(items, list) else [UNKNOWN]

    def function(
        self, node: ast.FunctionDef | ast.Lambda, scope: NameScope, owner: SourceClass | None = None
    ) -> SourceFunction:
        """A function of the source with its default values."""
        spec = node.args
        positional = [*spec.posonlyargs, *spec.args]
        pairs = list(zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True))
        pairs += [
            (item, value) for item, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if value is not None
        ]
        defaults = {item.arg: self.evaluate(value, scope) for item, value in pairs}
        marks = {ast.unparse(item) for item in getattr(node, "decorator_list", [])}
        return SourceFunction(node, scope, defaults, owner, "staticmethod" in marks, "property" in marks)

    def guarded(self, action: Callable[..., Value], *args: Value) -> Value:
        """The result of an action, UNKNOWN when it fails."""
        try:
            return action(*args)
        except RULE_ERRORS:
            return UNKNOWN

    def evaluate(self, node: ast.expr, scope: NameScope) -> Value:
        """The value of an expression; UNKNOWN where it depends on what runs."""
        self.step()
        action = getattr(self, "_value_" + type(node).__name__.lower(), None)
        if action is None:
            return UNKNOWN
        try:
            value = action(node, scope)
        except RULE_ERRORS:
            return UNKNOWN
        # Operations on longer integers, which a text may spell out, take more than a step's time.
        return value if not isinstance(value, int) or value.bit_length() <= MAX_BITS else UNKNOWN

    def _value_constant(self, node: ast.Constant, scope: NameScope) -> Value:
        return node.value

    def _value_name(self, node: ast.Name, scope: NameScope) -> Value:
        try:
            return scope.find(node.id)
        except KeyError:
            # A class such as AutoModelForCausalLM names its model when it is called.
            named = node.id in BUILTINS or node.id in _BUILTIN_NAMES or node.id.startswith("Auto")
            return LibraryName(node.id) if named else UNKNOWN

    def _value_tuple(self, node: ast.Tuple, scope: NameScope) -> Value:
        return tuple(self.sequence(node.elts, scope))

    def _value_list(self, node: ast.List, scope: NameScope) -> Value:
        return self.sequence(node.elts, scope)

    _value_set = _value_list

    def sequence(self, nodes: Sequence[ast.expr], scope: NameScope) -> list[Value]:
        """The values of a display or an argument list, stars unpacked."""
        values: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += items_of(self.evaluate(node.value, scope))
            else:
                values.append(self.evaluate(node, scope))
        return values

    def _value_dict(self, node: ast.Dict, scope: NameScope) -> Value:
        result: dict[Value, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                result.update(self.evaluate(value, scope))
            else:
                result[self.evaluate(key, scope)] = self.evaluate(value, scope)
        return result

    def _value_attribute(self, node: ast.Attribute, scope: NameScope) -> Value:
        return calls.attribute(self, self.evaluate(node.value, scope), node.attr)

    def _value_subscript(self, node: ast.Subscript, scope: NameScope) -> Value:
        owner, key = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        if isinstance(owner, Tensor):
            return index(self.recorder, owner, key)
        if isinstance(owner, ModuleContainer):
            if isinstance(key, slice):
                return ModuleContainer(owner.name, dict(list(owner.items.items())[key]))
            return owner.items[key] if isinstance(key, str) else list(owner.items.values())[key]
        if isinstance(owner, Instance) and owner.base is not None:
            return list(owner.base.items.values())[key]
        return owner[key] if isinstance(owner, (str, list, tuple, dict, range)) else UNKNOWN

    def _value_slice(self, node: ast.Slice, scope: NameScope) -> Value:
        bounds = [None if part is None else self.evaluate(part, scope) for part in (node.lower, node.upper, node.step)]
        return slice(*(None if isinstance(bound, (UnknownValue, Tensor)) else bound for bound in bounds))

    def _value_binop(self, node: ast.BinOp, scope: NameScope) -> Value:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        kind = type(node.op)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            if kind is ast.MatMult:
                return matmul(self.recorder, left, right)
            return FUNCTIONS[_OPERATORS[kind]](self.recorder, [left, right], {})
        return binary(kind, left, right)

    def _value_unaryop(self, node: ast.UnaryOp, scope: NameScope) -> Value:
        value = self.evaluate(node.operand, scope)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return UNKNOWN if known is None else not known
        if isinstance(value, Tensor):
            return FUNCTIONS["neg"](self.recorder, [value], {})
        return UNARY[type(node.op)](value)

    def _value_boolop(self, node: ast.BoolOp, scope: NameScope) -> Value:
        value: Value = UNKNOWN
        unsure = False
        for part in node.values:
            value = self.evaluate(part, scope)
            known = truth(value)
            if known is not None and known is isinstance(node.op, ast.Or):
                return value
            unsure = unsure or known is None
        return UNKNOWN if unsure else value

    def _value_compare(self, node: ast.Compare, scope: NameScope) -> Value:
        left, result = self.evaluate(node.left, scope), True
        for sign, item in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(item, scope)
            if (isinstance(left, Tensor) or isinstance(right, Tensor)) and type(sign) in _COMPARISONS:
                return FUNCTIONS[_COMPARISONS[type(sign)]](self.recorder, [left, right], {})
            known = truth(compare(type(sign), left, right))
            if not known:
                return UNKNOWN if known is None else False
            left = right
        return result

    def _value_ifexp(self, node: ast.IfExp, scope: NameScope) -> Value:
        known = truth(self.evaluate(node.test, scope))
        return self.evaluate(node.orelse if known is False else node.body, scope)

    def _value_lambda(self, node: ast.Lambda, scope: NameScope) -> Value:
        return self.function(node, scope)

    def _value_joinedstr(self, node: ast.JoinedStr, scope: NameScope) -> Value:
        parts = [self.evaluate(item, scope) for item in node.values]
        return "".join(part for part in parts if isinstance(part, str))[:1000]

    def _value_formattedvalue(self, node: ast.FormattedValue, scope: NameScope) -> Value:
        value = self.evaluate(node.value, scope)
        return str(value)[:100] if isinstance(value, (str, int, float)) else "?"

    def _value_namedexpr(self, node: ast.NamedExpr, scope: NameScope) -> Value:
        value = self.evaluate(node.value, scope)
        self.assign(node.target, value, scope)
        return value

    def _value_listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: NameScope) -> Value:
        return [self.evaluate(node.elt, inner) for inner in self.comprehended(node.generators, NameScope(scope))]

    _value_generatorexp = _value_listcomp
    _value_setcomp = _value_listcomp

    def _value_dictcomp(self, node: ast.DictComp, scope: NameScope) -> Value:
        scopes = self.comprehended(node.generators, NameScope(scope))
        return {self.evaluate(node.key, inner): self.evaluate(node.value, inner) for inner in scopes}

    def comprehended(self, generators: Sequence[ast.comprehension], scope: NameScope) -> list[NameScope]:
        """A scope for every turn of a comprehension."""
        scopes = [scope]
        for generator in generators:
            inner_scopes = []
            for outer in scopes:
                for item in self.turns(self.evaluate(generator.iter, outer)):
                    inner = NameScope(outer)
                    self.assign(generator.target, item, inner)
                    if all(truth(self.evaluate(test, inner)) is not False for test in generator.ifs):
                        inner_scopes.append(inner)
            scopes = inner_scopes
        return scopes

    def _value_call(self, node: ast.Call, scope: NameScope) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id in _BUILTIN_NAMES:
            return self.builtin(node.func.id, node, scope)
        target = self.evaluate(node.func, scope)
        args = self.sequence(node.args, scope)
        named: dict[str, Value] = {}
        for item in node.keywords:
            value = self.evaluate(item.value, scope)
            if item.arg is not None:
                named[item.arg] = value
            elif isinstance(value, dict):
                named.update(value)
        if isinstance(target, BoundMethod) and isinstance(target.target, Instance) and target.method == "__init__":
            return calls.initialise_base(self, target.target, args, named)
        return calls.call(self, target, args, named)

    def builtin(self, name: str, node: ast.Call, scope: NameScope) -> Value:
        """Builtins that need the scope or classes."""
        if name == "super":
            return SuperProxy(scope.find("__self__"), scope.find("__class__"))
        args = self.sequence(node.args, scope)
        if name == "map":
            return [calls.call(self, args[0], [item], {}) for item in items_of(args[1])]
        if name == "filter":
            return items_of(args[1])
        if name == "isinstance":
            return _is_instance(args[0], args[1])
        if name == "type":
            return args[0].kind if isinstance(args[0], Instance) else UNKNOWN
        owner, key = args[0], str(args[1])
        if name == "setattr":
            if isinstance(owner, Instance):
                owner.attributes[key] = args[2]
            return None
        if name == "hasattr" and isinstance(owner, Instance):
            return key in owner.attributes or key in owner.kind.members
        try:
            value = calls.attribute(self, owner, key)
        except AttributeError:
            value = args[2] if len(args) > 2 else UNKNOWN
        return value if name == "getattr" else UNKNOWN


_BUILTIN_NAMES = frozenset({"super", "isinstance", "getattr", "setattr", "hasattr", "map", "filter", "type"})
_PLAIN = {
    "int": int,
    "float": float,
    "str": str,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "bool": bool,
    "Iterable": (list, tuple),
}


def _is_instance(value: Value, kind: Value) -> Value:
    if isinstance(kind, tuple):
        answers = [_is_instance(value, item) for item in kind]
        return True if True in answers else (UNKNOWN if UNKNOWN in answers else False)
    if isinstance(value, UnknownValue):
        return UNKNOWN
    if isinstance(kind, SourceClass):
        return isinstance(value, Instance) and any(base is kind for base in value.kind.lineage())
    if not isinstance(kind, LibraryName):
        return UNKNOWN
    if kind.name in _PLAIN:
        return isinstance(value, _PLAIN[kind.name])  # type: ignore[arg-type]
    if kind.name in ("Tensor", "Parameter"):
        return isinstance(value, Tensor)
    if kind.name == "Module":
        return isinstance(value, (Instance, TorchLayer, ModuleContainer))
    return isinstance(value, (TorchLayer, ModuleContainer)) and value.name == kind.name
