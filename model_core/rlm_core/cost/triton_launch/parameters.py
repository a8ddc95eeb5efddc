"""Which parameters of functions and kernels are tensors, by their use: their attributes, and pointers of kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..concrete.values import SourceFunction
from .host import HostProgram
from .pointers import pointer_parameters

_ATTRIBUTES = frozenset({
    "shape", "numel", "stride", "device", "dtype", "data_ptr", "size", "contiguous", "view", "reshape", "clone", "cuda",
    "element_size", "is_contiguous", "is_cuda", "dim", "ndim", "t", "T", "to", "float", "zero_", "copy_", "nelement",
    "expand", "unsqueeze", "squeeze", "transpose", "permute", "flatten", "new_empty", "new_zeros", "item", "max", "sum",
})  # fmt: skip
COMPANIONS = frozenset({"self", "ctx", "cls"})
_ROUNDS = 4  # of calls through functions


def tensor_parameters(program: HostProgram) -> dict[int, frozenset[str]]:
    """The names that each function uses as tensors, by the function's ``id``."""
    pointers = {name: pointer_parameters(kernel.function) for name, kernel in program.kernels.items()}
    names = {name: _used(function) for name, function in program.functions.items()}
    calls = {name: list(_calls(function)) for name, function in program.functions.items()}
    for _ in range(_ROUNDS):
        for name, function_calls in calls.items():
            for target, call in function_calls:
                kernel, function = program.kernels.get(target), program.functions.get(target)
                if kernel is not None:
                    parameters, wanted = kernel.function.node.args.args, set(pointers[target])
                elif function is not None:
                    parameters, wanted = function.node.args.args, names[target]
                else:
                    continue
                pairs = [*zip((item.arg for item in parameters), call.args, strict=False)]
                pairs += [(item.arg, item.value) for item in call.keywords if item.arg]
                names[name] |= {value.id for given, value in pairs if given in wanted and isinstance(value, ast.Name)}
    # What a method is called on is not a tensor; functions like operators of PyTorch call a tensor ``self`` too.
    owners = {name: COMPANIONS if "." in name else frozenset() for name in names}
    return {id(function): frozenset(names[name] - owners[name]) for name, function in program.functions.items()}


def _used(function: SourceFunction) -> set[str]:
    return {
        node.value.id
        for node in ast.walk(function.node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _ATTRIBUTES
    }


def _calls(function: SourceFunction) -> Iterator[tuple[str, ast.Call]]:
    """The calls of named functions and kernels."""
    for node in ast.walk(function.node):
        if isinstance(node, ast.Call):
            target = node.func.value if isinstance(node.func, ast.Subscript) else node.func
            if isinstance(target, ast.Name):
                yield target.id, node
