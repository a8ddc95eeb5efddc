"""Expressions of a program that are not those of every Python text: subscripts, attributes and calls."""

from __future__ import annotations

import ast

from ..concrete.frame import evaluate
from ..concrete.syntax import items_in, keywords_in, name_value
from ..concrete.values import UNKNOWN, LibraryName, SourceFunction, Value
from . import language, loops  # noqa: F401 - the loops register themselves
from .blocks import expanded, transposed
from .program import Program, call_device
from .values import (
    DTYPES,
    BlockPointer,
    DType,
    Kernel,
    Method,
    Pointer,
    PointerType,
    dtype_of,
    shape_of,
)


def _name(program: Program, node: ast.Name) -> Value:
    value = name_value(program, node)
    return value.function if isinstance(value, Kernel) else value


def _subscript(program: Program, node: ast.Subscript) -> Value:
    owner, key = evaluate(program, node.value), evaluate(program, node.slice)
    if isinstance(owner, (tuple, list, str, dict, range)):
        return owner[key]
    return expanded(owner, key if isinstance(key, tuple) else (key,))


def _slice(program: Program, node: ast.Slice) -> Value:
    if node.lower is None and node.upper is None and node.step is None:
        return slice(None)
    return UNKNOWN


def _attribute(program: Program, node: ast.Attribute) -> Value:
    owner = evaluate(program, node.value)
    name = node.attr
    if isinstance(owner, LibraryName):
        if name in DTYPES and owner.path in ("triton.language", "tl", "torch"):
            return DType(DTYPES[name])
        return LibraryName(f"{owner.path}.{name}")
    if name == "shape":
        return shape_of(owner)
    if name in ("dtype", "type"):
        element = DType(dtype_of(owner))
        return PointerType(element) if isinstance(owner, Pointer) else element
    if name in ("element_ty", "scalar"):
        return owner.element if isinstance(owner, PointerType) else owner
    if name == "primitive_bitwidth":
        return language.bits(owner)
    if name == "value":
        return owner
    if name == "T":
        return transposed(owner, ())
    if name == "block_shape" and isinstance(owner, BlockPointer):
        return owner.block
    return UNKNOWN if owner is UNKNOWN else Method(owner, name)


def _call(program: Program, node: ast.Call) -> Value:
    target = evaluate(program, node.func)
    args, named = items_in(program, node.args), keywords_in(program, node.keywords)
    if isinstance(target, SourceFunction):
        return call_device(program, target, args, named)
    if isinstance(target, DType):
        return language.cast(program, args[0], target)
    # Libraries have modules like the language's own, which the text does not show.
    own = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    name = target.name if isinstance(target, (LibraryName, Method)) else own if target is UNKNOWN else ""
    if isinstance(target, Method):
        args = [target.owner, *args]
    return language.call(program, node, name, args, named)


Program.expressions.update(
    {
        ast.List: lambda program, node: tuple(items_in(program, node.elts)),
        ast.JoinedStr: lambda program, node: "text", ast.Attribute: _attribute, ast.Name: _name,
        ast.Subscript: _subscript, ast.Slice: _slice, ast.Call: _call,
    }
)  # fmt: skip
