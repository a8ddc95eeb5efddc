"""Calls of library names by the shape interpreter: Python's builtins, math, torch, einops and related modules."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Protocol

from . import creation, layers, products, windows  # noqa: F401 - their rules register themselves
from .arithmetic import BUILTINS, MATH, binary, items_of
from .functions import FUNCTIONS
from .recorder import Recorder
from .values import (
    DTYPES,
    UNKNOWN,
    BoundMethod,
    LibraryName,
    ModuleContainer,
    NameScope,
    SourceFunction,
    Tensor,
    TorchLayer,
    Value,
    tensors_in,
)

Named = dict[str, Value]
# The exceptions of a rule for a call that it does not understand.
RULE_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
_QUIET = (
    "torch.", "numpy.", "einops.", "math.", "functools.", "itertools.", "collections.", "copy.", "dataclasses.",
    "typing.",
)  # fmt: skip


class Runner(Protocol):
    """The part of the interpreter that calls need."""

    recorder: Recorder
    depth: int

    def run_function(self, function: SourceFunction, scope: NameScope) -> Value:
        """Run a function's body in a scope that holds its arguments."""

    def call(self, target: Value, args: list[Value], named: dict[str, Value]) -> Value:
        """Call a value."""


def call_library(runner: Runner, ref: LibraryName, args: list[Value], named: Named) -> Value:
    """Call a name of a library; raises LookupError for an unknown one."""
    path, name = ref.path, ref.name
    given = tensors_in([*args, *named.values()])
    if path in BUILTINS and not (given and path in ("abs", "max", "min", "pow", "round", "sum", "float", "bool")):
        return BUILTINS[path](*args, **named)
    if path == "sum":
        total: Value = 0
        for item in items_of(args[0]):
            total = (
                FUNCTIONS["add"](runner.recorder, [total, item], {})
                if isinstance(item, Tensor)
                else binary(ast.Add, total, item)
            )
        return total
    if name in layers.CONTAINERS:
        return build_container(name, args)
    if name in layers.KNOWN and not path.startswith("numpy."):
        return build_layer(runner, name, args, named)
    if path.startswith(("math.", "numpy.", "torch.sym_")) and not given:
        return MATH[name.removeprefix("sym_")](*args)
    if name in ("Parameter", "Buffer"):
        x = args[0] if args else named.get("data")
        return Tensor(x.shape, x.dtype, parameter=name == "Parameter") if isinstance(x, Tensor) else x
    if name == "from_pretrained":
        return UNKNOWN if "Config" in path or "Tokenizer" in path else layers.load_pretrained(str(args[0]))
    if name == "checkpoint" and args:
        return runner.call(args[0], args[1:], {key: value for key, value in named.items() if key != "use_reentrant"})
    if ".init." in path or name in ("manual_seed", "trunc_normal_"):
        return args[0] if args else None
    if name == "set_default_dtype" and args:
        runner.recorder.dtype = DTYPES.get(args[0].name, "fp32")
        return None
    if name == "rearrange" or (path.startswith("einops.") and name in ("repeat", "reduce")):
        return FUNCTIONS[name if name == "rearrange" else f"einops_{name}"](runner.recorder, args, named)
    if name == "partial":
        inner, fixed = args[0], args[1:]
        return _partial(runner, inner, fixed, named)
    if name in ("deepcopy", "copy", "compile", "script", "deque", "namedtuple", "checkpoint_wrapper"):
        return args[0] if args else UNKNOWN
    if name in ("OrderedDict", "defaultdict"):
        return BUILTINS["dict"](*[value for value in args if isinstance(value, (dict, list))], **named)
    if path.startswith("itertools.") and name in ("repeat", "chain"):
        return (
            [args[0]] * min(int(args[1]), 1000)
            if name == "repeat"
            else [item for part in args for item in items_of(part)]
        )
    if name in ("is_available", "is_grad_enabled", "is_autocast_enabled", "is_tracing", "is_scripting"):
        return False
    if name in ("is_tensor", "numel", "is_floating_point") and given:
        return True if name == "is_tensor" else runner.call(BoundMethod(given[0], name), [], {})
    if name == "Size" and args:
        return tuple(items_of(args[0]))
    if path.startswith(("torch.", "numpy.")) or path in BUILTINS:
        return FUNCTIONS[name if name in FUNCTIONS else name.rstrip("_")](runner.recorder, args, named)
    if given and not path.startswith(_QUIET):
        return products.unknown_like(runner.recorder, name, given)
    return UNKNOWN


def _partial(runner: Runner, inner: Value, fixed: list[Value], preset: Named) -> Callable[..., Value]:
    return lambda *args, **named: runner.call(inner, [*fixed, *args], {**preset, **named})


def build_layer(runner: Runner, name: str, args: list[Value], named: Named) -> TorchLayer:
    """A layer of the library, without weights when its sizes are not known."""
    try:
        return layers.build(name, args, named, runner.recorder.dtype)
    except RULE_ERRORS:
        runner.recorder.unknown += 1
        return TorchLayer(name, {**dict(zip(layers.SIGNATURES.get(name, "").split(), args, strict=False)), **named})


def build_container(name: str, args: list[Value]) -> ModuleContainer:
    """A container of the library from its items or its dict."""
    if len(args) == 1 and isinstance(args[0], dict):
        return ModuleContainer(name, {str(key): value for key, value in args[0].items()})
    parts = args if name == "Sequential" else [item for arg in args for item in items_of(arg)]
    return ModuleContainer(name, {str(index): part for index, part in enumerate(parts)})
