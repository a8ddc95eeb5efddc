"""Attributes and calls of the shape interpreter: layers, tensor methods, classes and functions of the source."""

from __future__ import annotations

from collections.abc import Callable

from . import layers, products
from .arithmetic import CONSTANTS, items_of
from .functions import FUNCTIONS
from .library import RULE_ERRORS, Named, Runner, build_container, build_layer, call_library
from .recorder import TraceLimit
from .values import (  # fmt: skip
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
    tensors_in,
)

_MAX_DEPTH = 40
_PLAIN_METHODS: dict[type, frozenset[str]] = {
    str: frozenset({"lower", "upper", "startswith", "endswith", "split", "strip"}),
    list: frozenset({"append", "extend", "insert", "pop", "reverse", "index", "copy", "count"}),
    tuple: frozenset({"index", "count"}),
    dict: frozenset({"items", "keys", "values", "get", "pop", "update", "copy", "setdefault"}),
    int: frozenset({"bit_length"}),
}
_KEEPS = frozenset({
    "to", "cuda", "cpu", "half", "float", "bfloat16", "double", "eval", "train", "requires_grad_", "apply", "type",
    "compile",
})  # fmt: skip
_METHOD_NAMES = {"unfold": "unfold_windows"}
# Names of the results of functions with several results.
_PARTS = {"values": 0, "indices": 1, "sign": 0, "logabsdet": 1, "Q": 0, "R": 1, "U": 0, "S": 1, "Vh": 2, "V": 2,
"LU": 0, "pivots": 1,
          "eigenvalues": 0, "eigenvectors": 1, "L": 0, "solution": 0}  # fmt: skip
_VIEW_ATTRIBUTES = frozenset({"T", "mT", "H"})


def attribute(runner: Runner, value: Value, name: str) -> Value:
    """``value.name``; UNKNOWN where it depends on what runs; raises AttributeError for a missing one."""
    if isinstance(value, LibraryName):
        return (
            CONSTANTS[name]
            if name in CONSTANTS and value.name in ("math", "numpy")
            else LibraryName(f"{value.path}.{name}")
        )
    if isinstance(value, Tensor):
        return _tensor_attribute(runner, value, name)
    if isinstance(value, (Instance, SuperProxy)):
        return _instance_attribute(runner, value, name)
    if isinstance(value, SourceClass):
        return class_attribute(value, name)
    if isinstance(value, TorchLayer):
        member = value.weights.get(name, value.options.get(name))
        if member is None and name not in value.options and name not in ("weight", "bias"):
            return True if name == "training" else BoundMethod(value, name)
        return member
    if isinstance(value, ModuleContainer) and name in value.items:
        return value.items[name]
    if isinstance(value, tuple) and name in _PARTS:
        return value[_PARTS[name]]
    return UNKNOWN if isinstance(value, (UnknownValue, SourceFunction)) else BoundMethod(value, name)


def _tensor_attribute(runner: Runner, x: Tensor, name: str) -> Value:
    if name == "shape":
        return x.shape
    if name in ("ndim", "dtype", "is_cuda", "requires_grad"):
        return {"ndim": len(x.shape), "dtype": x.dtype, "is_cuda": True, "requires_grad": False}[name]
    if name in _VIEW_ATTRIBUTES:
        return FUNCTIONS[name](runner.recorder, [x], {})
    if name in ("real", "imag", "data", "grad", "logits", "last_hidden_state"):
        return x
    return UNKNOWN if name in ("device", "layout", "names", "is_sparse") else BoundMethod(x, name)


def _instance_attribute(runner: Runner, value: Instance | SuperProxy, name: str) -> Value:
    target = value.target if isinstance(value, SuperProxy) else value
    if not isinstance(value, SuperProxy) and name in target.attributes:
        return target.attributes[name]
    lineage = target.kind.lineage()
    start = lineage.index(value.after) + 1 if isinstance(value, SuperProxy) else 0
    for kind in lineage[start:]:
        if isinstance(kind, SourceClass) and name in kind.members:
            member = kind.members[name]
            if isinstance(member, SourceFunction) and member.getter:
                return call_function(runner, member, [target], {})
            return BoundMethod(target, member) if isinstance(member, SourceFunction) and not member.plain else member
    if target.base is not None and not name.startswith("__"):
        return attribute(runner, target.base, name)
    if name in ("training", "__class__"):
        return True if name == "training" else target.kind
    if name != "__init__" and name not in _MODULE_METHODS and name not in _KEEPS:
        raise AttributeError(name)
    return BoundMethod(target, name)


def class_attribute(kind: SourceClass, name: str) -> Value:
    """A member of a class of the source or of its bases."""
    for base in kind.lineage():
        if isinstance(base, SourceClass) and name in base.members:
            return base.members[name]
    if name == "__name__":
        return kind.name
    return BoundMethod(kind, name)


def call(runner: Runner, target: Value, args: list[Value], named: Named) -> Value:
    """Call a value; an unknown call is counted and returns a tensor like its first tensor argument."""
    try:
        return _call(runner, target, args, named)
    except RULE_ERRORS:
        inputs = tensors_in([*args, *named.values()])
        if isinstance(target, BoundMethod) and isinstance(target.target, Tensor):
            inputs.insert(0, target.target)
        name = target.name if isinstance(target, (LibraryName, TorchLayer)) else "call"
        return (
            products.unknown_like(runner.recorder, name, inputs)
            if inputs or isinstance(target, TorchLayer)
            else UNKNOWN
        )


def _call(runner: Runner, target: Value, args: list[Value], named: Named) -> Value:
    if isinstance(target, LibraryName):
        return call_library(runner, target, args, named)
    if isinstance(target, SourceFunction):
        return call_function(runner, target, args, named)
    if isinstance(target, BoundMethod):
        return _call_bound(runner, target, args, named)
    if isinstance(target, SourceClass):
        return instantiate(runner, target, args, named)
    if isinstance(target, TorchLayer):
        if target.name == "Pretrained":
            return layers.call_pretrained(runner.recorder, target, (tensors_in(args) or tensors_in(named))[0])
        return layers.call(runner.recorder, target, args, named)
    if isinstance(target, ModuleContainer):
        value = args[0] if args else UNKNOWN
        for item in list(target.items.values()):
            value = call(runner, item, [value], {})
        return value
    if isinstance(target, Instance):
        if target.base is not None and not any(
            "forward" in kind.members for kind in target.kind.lineage() if isinstance(kind, SourceClass)
        ):
            return call(runner, target.base, args, named)
        method = "forward" if target.kind.library_base else "__call__"
        return call(runner, attribute(runner, target, method), args, named)
    if callable(target):
        return target(*args, **named)
    inputs = tensors_in([*args, *named.values()])
    return products.unknown_like(runner.recorder, "call", inputs) if inputs else UNKNOWN


def _call_bound(runner: Runner, bound: BoundMethod, args: list[Value], named: Named) -> Value:
    target, method = bound.target, bound.method
    if isinstance(method, SourceFunction):
        return call_function(runner, method, [target, *args], named)
    if isinstance(target, Tensor):
        return tensor_method(runner, target, method, args, named)
    if isinstance(target, SourceClass) and method == "apply":  # torch.autograd.Function
        return call(runner, class_attribute(target, "forward"), [UNKNOWN, *args], named)
    if method == "partial":
        return call(runner, target, [*args], named)
    if method in ("forward", "__call__"):
        return call(runner, target, args, named)
    if isinstance(target, ModuleContainer):
        return _container_method(target, method, args)
    if method in _KEEPS and isinstance(target, (Instance, TorchLayer, ModuleContainer)):
        return target
    if isinstance(target, Instance):
        return _MODULE_METHODS[method](target, *args, **named)
    if method in _PLAIN_METHODS.get(type(target), ()):
        if method in ("extend", "update") and not isinstance(args[0], dict):
            args = [items_of(args[0])]
        return getattr(target, method)(*args, **named)
    return UNKNOWN


def _container_method(target: ModuleContainer, method: str, args: list[Value]) -> Value:
    if method in ("append", "add_module", "insert", "extend"):
        added = items_of(args[0]) if method == "extend" else [args[-1]]
        for item in added:
            target.items[str(args[0]) if method == "add_module" else str(len(target.items))] = item
        return target
    views: dict[str, Value] = {
        "items": list(target.items.items()), "keys": list(target.items), "values": list(target.items.values()),
        "children": list(target.items.values()),
    }  # fmt: skip
    return views.get(method, target)


def tensor_method(runner: Runner, x: Tensor, name: str, args: list[Value], named: Named) -> Value:
    """A method of a tensor; one that works in place costs the same as its counterpart."""
    if name in ("size", "dim", "numel", "nelement", "element_size", "ndimension"):
        if name == "size":
            dim = args[0] if args else named.get("dim")
            return x.shape if dim is None else x.shape[dim]
        return {"numel": x.elements, "nelement": x.elements, "element_size": x.bytes // max(x.elements, 1)}.get(
            name, len(x.shape)
        )
    if name in ("is_contiguous", "is_floating_point"):
        return x.contiguous if name == "is_contiguous" else not x.dtype.startswith(("int", "uint", "bool"))
    if name.startswith("is_"):
        return UNKNOWN
    if name.startswith("__") and name.endswith("__"):
        name = name.strip("_")
    plain = name if name in FUNCTIONS else name.rstrip("_")
    plain = _METHOD_NAMES.get(plain, plain)
    if plain in ("zero", "fill", "uniform", "normal", "random", "exponential"):
        args = []
    return FUNCTIONS[plain](runner.recorder, [x, *args], named)


def instantiate(runner: Runner, kind: SourceClass, args: list[Value], named: Named) -> Instance:
    """An object of a class of the source, its ``__init__`` run."""
    instance = Instance(kind)
    method = class_attribute(kind, "__init__")
    if isinstance(method, SourceFunction):
        call_function(runner, method, [instance, *args], named)
    elif kind.fields:
        members = {key: value for key, value in kind.members.items() if key in kind.fields}
        instance.attributes = members | dict(zip(kind.fields, args, strict=False)) | named
    else:
        initialise_base(runner, instance, args, named)
    return instance


def initialise_base(runner: Runner, instance: Instance, args: list[Value], named: Named) -> None:
    """``super().__init__`` of a class whose base is a layer or a container of the library."""
    base = instance.kind.library_base
    if base is not None and base.name in layers.CONTAINERS:
        instance.base = build_container(base.name, args)
    elif base is not None and base.name in layers.KNOWN:
        instance.base = build_layer(runner, base.name, args, named)


def call_function(runner: Runner, function: SourceFunction, args: list[Value], named: Named) -> Value:
    """Run a function of the source; raises TypeError for missing arguments, TraceLimit when calls nest too deeply."""
    if runner.depth >= _MAX_DEPTH:
        raise TraceLimit
    spec = function.node.args
    positional = [item.arg for item in (*spec.posonlyargs, *spec.args)]
    names = dict(function.defaults)
    names.update(zip(positional, args, strict=False))
    known = {*positional, *(item.arg for item in spec.kwonlyargs)}
    names.update({key: value for key, value in named.items() if key in known})
    if spec.vararg:
        names[spec.vararg.arg] = tuple(args[len(positional) :])
    if spec.kwarg:
        names[spec.kwarg.arg] = {key: value for key, value in named.items() if key not in known}
    for name in known:
        names.setdefault(name, UNKNOWN)
    if function.owner is not None:
        names["__class__"] = function.owner
        names["__self__"] = args[0] if args else UNKNOWN
    runner.depth += 1
    try:
        return runner.run_function(function, NameScope(function.scope, names))
    finally:
        runner.depth -= 1


def weights_of(value: Value, seen: set[int] | None = None, depth: int = 24) -> list[Tensor]:
    """The weights of a module and of all its submodules, each once."""
    seen = set() if seen is None else seen
    if id(value) in seen or depth == 0:
        return []
    seen.add(id(value))
    if isinstance(value, Tensor):
        return [value] if value.parameter else []
    inside: list[Value] = []
    if isinstance(value, Instance):
        inside = [*value.attributes.values(), value.base]
        inside = [item for item in inside if isinstance(item, (Instance, TorchLayer, ModuleContainer, Tensor))]
    elif isinstance(value, ModuleContainer):
        inside = list(value.items.values())
    elif isinstance(value, TorchLayer):
        inside = list(value.weights.values())
    return [weight for item in inside for weight in weights_of(item, seen, depth - 1)]


def _keep(target: Instance, name: str, value: Value = None, *_: Value, **__: Value) -> None:
    target.attributes[name] = value


_MODULE_METHODS: dict[str, Callable[..., Value]] = {
    "register_buffer": _keep,
    "register_parameter": _keep,
    "add_module": _keep,
    "parameters": weights_of,
    "named_parameters": lambda target: [("", weight) for weight in weights_of(target)],
    "children": lambda target: [
        value for value in target.attributes.values() if isinstance(value, (Instance, TorchLayer, ModuleContainer))
    ],
    "modules": lambda target: [],
}
