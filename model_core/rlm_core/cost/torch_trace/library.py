"""Calls of library names in a trace: Python's builtins, math, torch, einops and related modules."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

from ..concrete.frame import RULE_ERRORS
from ..concrete.values import UNKNOWN, LibraryName, Named, Value
from . import creation, layers, windows  # noqa: F401 - their rules register themselves
from .arithmetic import BUILTINS, MATH, binary, items_of
from .context import TraceContext, call
from .functions import FUNCTIONS
from .products import unknown_like
from .values import DTYPES, BoundMethod, ModuleContainer, PartialCall, Tensor, TorchLayer, tensors_in

CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "tau": math.tau, "newaxis": None}
_OF_TENSORS = frozenset({"abs", "max", "min", "pow", "round", "sum", "float", "bool"})
# Modules whose functions without a rule make nothing like a tensor.
_QUIET = (
    "torch.", "numpy.", "einops.", "math.", "functools.", "itertools.", "collections.", "copy.", "dataclasses.",
    "typing.",
)  # fmt: skip

RULES: dict[str, Callable[[TraceContext, list[Value], Named], Value]] = {}
"""Functions of other libraries by their dotted names."""


def call_library(context: TraceContext, function: LibraryName, args: list[Value], named: Named) -> Value:
    """Call a name of a library; raises LookupError for an unknown one."""
    path, name, recorder = function.path, function.name, context.recorder
    if (rule := RULES.get(path)) is not None:
        return rule(context, args, named)
    given = tensors_in([*args, *named.values()])
    if path in BUILTINS and not (given and path in _OF_TENSORS):
        return BUILTINS[path](*args, **named)
    if path == "sum":
        total: Value = 0
        for item in items_of(args[0]):
            is_tensor = isinstance(item, Tensor)
            total = FUNCTIONS["add"](recorder, [total, item], {}) if is_tensor else binary(ast.Add, total, item)
        return total
    if name in layers.CONTAINERS:
        return build_container(name, args)
    if name in layers.KNOWN and not path.startswith("numpy."):
        return build_layer(context, name, args, named)
    if path.startswith(("math.", "numpy.", "torch.sym_")) and not given:
        return MATH[name.removeprefix("sym_")](*args)
    if name in ("Parameter", "Buffer"):
        x = args[0] if args else named.get("data")
        return Tensor(x.shape, x.dtype, parameter=name == "Parameter") if isinstance(x, Tensor) else x
    if name == "from_pretrained":
        return UNKNOWN if "Config" in path or "Tokenizer" in path else layers.load_pretrained(str(args[0]))
    if name == "checkpoint" and args:
        return call(context, args[0], args[1:], {key: value for key, value in named.items() if key != "use_reentrant"})
    if ".init." in path or name in ("manual_seed", "trunc_normal_"):
        return args[0] if args else None
    if name == "set_default_dtype" and args:
        recorder.dtype = DTYPES.get(args[0].name, "fp32")
        return None
    if name == "rearrange" or (path.startswith("einops.") and name in ("repeat", "reduce")):
        return FUNCTIONS[name if name == "rearrange" else f"einops_{name}"](recorder, args, named)
    if name == "partial":
        return PartialCall(args[0], args[1:], named)
    if name in ("deepcopy", "copy", "compile", "script", "deque", "namedtuple", "checkpoint_wrapper"):
        return args[0] if args else UNKNOWN
    if name in ("OrderedDict", "defaultdict"):
        return BUILTINS["dict"](*[value for value in args if isinstance(value, (dict, list))], **named)
    if path == "itertools.repeat":
        return [args[0]] * min(int(args[1]), 1000)
    if path == "itertools.chain":
        return [item for part in args for item in items_of(part)]
    if name in ("is_available", "is_grad_enabled", "is_autocast_enabled", "is_tracing", "is_scripting"):
        return False
    if name in ("is_tensor", "numel", "is_floating_point") and given:
        return True if name == "is_tensor" else call(context, BoundMethod(given[0], name), [], {})
    if name == "Size" and args:
        return tuple(items_of(args[0]))
    if path.startswith(("torch.", "numpy.")) or path in BUILTINS:
        return FUNCTIONS[name if name in FUNCTIONS else name.rstrip("_")](recorder, args, named)
    return unknown_like(recorder, name, given) if given and not path.startswith(_QUIET) else UNKNOWN


def build_layer(context: TraceContext, name: str, args: list[Value], named: Named) -> TorchLayer:
    """A layer of the library, without weights when its sizes are not known."""
    try:
        return layers.build(name, args, named, context.recorder.dtype)
    except RULE_ERRORS:
        context.recorder.unknown += 1
        return TorchLayer(name, layers.options_of(name, args, named))


def build_container(name: str, args: list[Value]) -> ModuleContainer:
    """A container of the library from its items or its dict."""
    if len(args) == 1 and isinstance(args[0], dict):
        return ModuleContainer(name, {str(key): value for key, value in args[0].items()})
    parts = args if name == "Sequential" else [item for arg in args for item in items_of(arg)]
    return ModuleContainer(name, {str(index): part for index, part in enumerate(parts)})
