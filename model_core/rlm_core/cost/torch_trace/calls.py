"""Attributes and calls of values in a trace: layers, tensor methods, classes and functions of the source."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..concrete.frame import call_function
from ..concrete.values import UNKNOWN, LibraryName, Named, SourceFunction, UnknownValue, Value
from . import layers
from .arithmetic import items_of
from .context import CALLEES, TraceContext, call
from .functions import FUNCTIONS
from .library import CONSTANTS, build_container, build_layer, call_library
from .values import (
    DTYPES,
    BoundMethod,
    Instance,
    ModuleContainer,
    PartialCall,
    SourceClass,
    SuperProxy,
    Tensor,
    TorchLayer,
    dtype_name,
)

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
_PARTS = {
    "values": 0, "indices": 1, "sign": 0, "logabsdet": 1, "Q": 0, "R": 1, "U": 0, "S": 1, "Vh": 2, "V": 2, "LU": 0,
    "pivots": 1, "eigenvalues": 0, "eigenvectors": 1, "L": 0, "solution": 0,
}  # fmt: skip
_SELF_ATTRIBUTES = frozenset({"real", "imag", "data", "grad", "logits", "last_hidden_state"})
_MODULES = (Instance, TorchLayer, ModuleContainer)


def attribute_of(context: TraceContext, value: Value, name: str) -> Value:
    """``value.name``; UNKNOWN where it depends on what runs; raises AttributeError for a missing one."""
    if isinstance(value, LibraryName):
        if value.path == "torch" and name in DTYPES:
            return dtype_name(DTYPES[name])
        is_number = name in CONSTANTS and value.name in ("math", "numpy")
        return CONSTANTS[name] if is_number else LibraryName(f"{value.path}.{name}")
    if isinstance(value, Tensor):
        return _tensor_attribute(context, value, name)
    if isinstance(value, (Instance, SuperProxy)):
        return _instance_attribute(context, value, name)
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


def _tensor_attribute(context: TraceContext, x: Tensor, name: str) -> Value:
    if name in ("T", "mT", "H"):
        return FUNCTIONS[name](context.recorder, [x], {})
    if name in _SELF_ATTRIBUTES:
        return x
    known = {
        "shape": x.shape,
        "ndim": len(x.shape),
        "dtype": dtype_name(x.dtype),
        "is_cuda": True,
        "requires_grad": False,
    }
    known |= dict.fromkeys(("device", "layout", "names", "is_sparse"), UNKNOWN)
    return known[name] if name in known else BoundMethod(x, name)


def _instance_attribute(context: TraceContext, value: Instance | SuperProxy, name: str) -> Value:
    target = value.target if isinstance(value, SuperProxy) else value
    if not isinstance(value, SuperProxy) and name in target.attributes:
        return target.attributes[name]
    lineage = target.kind.lineage()
    start = lineage.index(value.after) + 1 if isinstance(value, SuperProxy) else 0
    for kind in lineage[start:]:
        if isinstance(kind, SourceClass) and name in kind.members:
            member = kind.members[name]
            if isinstance(member, SourceFunction) and member.getter:
                return call_function(context, member, [target], {})
            return BoundMethod(target, member) if isinstance(member, SourceFunction) and not member.plain else member
    if target.base is not None and not name.startswith("__"):
        return attribute_of(context, target.base, name)
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
    return kind.name if name == "__name__" else BoundMethod(kind, name)


def _call_container(context: TraceContext, container: ModuleContainer, args: list[Value], named: Named) -> Value:
    value = args[0] if args else UNKNOWN
    for item in list(container.items.values()):
        value = call(context, item, [value], {})
    return value


def _call_instance(context: TraceContext, target: Instance, args: list[Value], named: Named) -> Value:
    classes = [kind for kind in target.kind.lineage() if isinstance(kind, SourceClass)]
    if target.base is not None and not any("forward" in kind.members for kind in classes):
        return call(context, target.base, args, named)
    method = "forward" if target.kind.library_base else "__call__"
    return call(context, attribute_of(context, target, method), args, named)


def _call_bound(context: TraceContext, bound_method: BoundMethod, args: list[Value], named: Named) -> Value:
    target, method = bound_method.target, bound_method.method
    if isinstance(method, SourceFunction):
        return call_function(context, method, [target, *args], named)
    if isinstance(target, Tensor):
        return _tensor_method(context, target, method, args, named)
    if isinstance(target, SourceClass) and method == "apply":  # torch.autograd.Function
        return call(context, class_attribute(target, "forward"), [UNKNOWN, *args], named)
    if method in ("partial", "forward", "__call__"):
        return call(context, target, args, named)
    if isinstance(target, ModuleContainer):
        return _container_method(target, method, args)
    if method in _KEEPS and isinstance(target, (Instance, TorchLayer)):
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
        for item in items_of(args[0]) if method == "extend" else [args[-1]]:
            target.items[str(args[0]) if method == "add_module" else str(len(target.items))] = item
        return target
    items = target.items
    views = {"items": items.items(), "keys": items.keys(), "values": items.values(), "children": items.values()}
    return list(views[method]) if method in views else target


def _tensor_method(context: TraceContext, x: Tensor, name: str, args: list[Value], named: Named) -> Value:
    """A method of a tensor; one that works in place costs the same as its counterpart."""
    if name == "size":
        dim = args[0] if args else named.get("dim")
        return x.shape if dim is None else x.shape[dim]
    if name == "stride":
        # That of its shape in memory: views keep no others.
        strides = tuple(math.prod(x.shape[axis + 1 :]) for axis in range(len(x.shape)))
        dim = args[0] if args else named.get("dim")
        return strides if dim is None else strides[dim]
    if name in ("dim", "ndimension"):
        return len(x.shape)
    if name in ("numel", "nelement"):
        return x.elements
    if name == "element_size":
        return x.bytes // max(x.elements, 1)
    if name.startswith("is_"):
        is_floating = not x.dtype.startswith(("int", "uint", "bool"))
        return {"is_contiguous": x.contiguous, "is_floating_point": is_floating}.get(name, UNKNOWN)
    if name.startswith("__") and name.endswith("__"):
        name = name.strip("_")
    plain = name if name in FUNCTIONS else name.rstrip("_")
    plain = _METHOD_NAMES.get(plain, plain)
    if plain in ("zero", "fill", "uniform", "normal", "random", "exponential"):
        args = []
    return FUNCTIONS[plain](context.recorder, [x, *args], named)


def instantiate(context: TraceContext, kind: SourceClass, args: list[Value], named: Named) -> Instance:
    """An object of a class of the source, its ``__init__`` run."""
    instance = Instance(kind)
    method = class_attribute(kind, "__init__")
    if isinstance(method, SourceFunction):
        call_function(context, method, [instance, *args], named)
    elif kind.fields:
        members = {key: value for key, value in kind.members.items() if key in kind.fields}
        instance.attributes = members | dict(zip(kind.fields, args, strict=False)) | named
    else:
        initialise_base(context, instance, args, named)
    return instance


def initialise_base(context: TraceContext, instance: Instance, args: list[Value], named: Named) -> None:
    """``super().__init__`` of a class whose base is a layer or a container of the library."""
    base = instance.kind.library_base
    if base is not None and base.name in layers.CONTAINERS:
        instance.base = build_container(base.name, args)
    elif base is not None and base.name in layers.KNOWN:
        instance.base = build_layer(context, base.name, args, named)


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
        inside = [item for item in (*value.attributes.values(), value.base) if isinstance(item, (*_MODULES, Tensor))]
    elif isinstance(value, ModuleContainer):
        inside = list(value.items.values())
    elif isinstance(value, TorchLayer):
        inside = list(value.weights.values())
    return [weight for item in inside for weight in weights_of(item, seen, depth - 1)]


def _keep(target: Instance, name: str, value: Value = None, *_: Value, **__: Value) -> None:
    target.attributes[name] = value


def _save(target: Instance, *values: Value) -> None:
    """``ctx.save_for_backward`` of an autograd function."""
    target.attributes["saved_tensors"] = values


_MODULE_METHODS: dict[str, Callable[..., Value]] = {
    "register_buffer": _keep, "register_parameter": _keep, "add_module": _keep, "parameters": weights_of,
    "named_parameters": lambda target: [("", weight) for weight in weights_of(target)],
    "children": lambda target: [value for value in target.attributes.values() if isinstance(value, _MODULES)],
    "modules": lambda target: [], "save_for_backward": _save,
}  # fmt: skip
CALLEES.update(
    {
        LibraryName: call_library, SourceFunction: call_function, BoundMethod: _call_bound, SourceClass: instantiate,
        ModuleContainer: _call_container, Instance: _call_instance,
        TorchLayer: lambda context, layer, args, named: layers.call(context.recorder, layer, args, named),
        PartialCall: lambda context, partial, args, named: call(
            context, partial.target, [*partial.args, *args], {**partial.named, **named}),
    }
)  # fmt: skip
